// The state of the terminal interface, the messages that change it, and the effects that it requests.
import type {
  Agent,
  Explanation,
  LogEntry,
  Policy,
  Service,
  ServiceDetail,
  Workload,
} from '../../client/records.ts';
import type { LifecycleEvent } from '../../presentation/event_text.ts';
import type { LogLevel } from '../../protocol/logs.ts';
import type { TypedInput } from './keys.ts';

/** The size of the terminal, in cells. */
export interface Size {
  columns: number;
  rows: number;
}

/** CPU in cores and memory in megabytes; null: nothing runs. */
export type ServiceUse = { cpu: number; rssMB: number } | null;

/** `refused`: the daemon runs but does not accept the token. */
export type Connection =
  | { state: 'connecting' }
  | { state: 'connected' }
  | { state: 'lost' | 'refused'; detail: string };

/** The reason why actions are impossible now; null if they are possible. */
export function faultOf({ state }: Connection): string | null {
  if (state === 'connected') return null;
  if (state === 'connecting') return 'the daemon is not found yet';
  return state === 'lost' ? 'the daemon is gone' : 'the token is not accepted';
}

/** The actions, and their target. */
export const ACTIONS = ['start', 'stop', 'restart', 'sleep', 'wake', 'remove'] as const;
export type Action = (typeof ACTIONS)[number];
export interface Target {
  kind: 'service' | 'agent' | 'group' | 'workload';
  /** The daemon's identifier: the name, or the id of a workload. */
  name: string;
  /** The name that messages show. */
  label: string;
  /** It sleeps until it is woken. */
  isAsleep: boolean;
}

/** The data that the details of a service show. */
export interface Details {
  service: ServiceDetail;
  explanation: Explanation;
  events: readonly LifecycleEvent[];
}

/** A selection of logs: of some services, of a stack, or of all services; and of their lines. */
export interface ShownLogs {
  title: string;
  names?: readonly string[];
  stack?: string;
  /** Only lines with this text. */
  q?: string | undefined;
  /** Only lines that name this level or a more severe one. */
  level?: LogLevel | undefined;
}

/** A read of log lines besides the stream: lines before or after the loaded ones, or a search. */
export type LineReading =
  | { kind: 'older'; first: LogEntry; cursor: string | null }
  | { kind: 'newer'; last: LogEntry }
  /** `edge`: the first or the last loaded line. */
  | { kind: 'find'; search: string; direction: 1 | -1; edge: LogEntry };

/** The result of a read. `cursor` leads to older lines; null: there are none. */
export type LogPageRead =
  | { kind: 'older'; entries: readonly LogEntry[]; cursor: string | null }
  /** `lastId`: the id of the newest line; null: more lines follow. */
  | { kind: 'newer'; entries: readonly LogEntry[]; lastId: string | null }
  | { kind: 'found'; entries: readonly LogEntry[]; cursor: string | null; found: string }
  /** Nothing was found, or nothing could be read. */
  | { kind: 'nothing'; reason: string };

/** The state of an open log. */
export interface OpenLog {
  selection: ShownLogs;
  entries: readonly LogEntry[];
  /** The index of the first visible entry, while the log is not followed. */
  top: number;
  isFollowing: boolean;
  /** The columns scrolled off at the left, while lines are not wrapped. */
  left: number;
  isWrapped: boolean;
  hasTimes: boolean;
  search: string;
  /** The index of the entry that was found last; null: none. */
  found: number | null;
  /** The last entry is the newest one: new entries are added. */
  isLive: boolean;
  /** The daemon keeps nothing older than the first entry. */
  isOldest: boolean;
  /** Leads to the entries before the first one; null: unknown. */
  cursor: string | null;
  /** The read in progress; null: none. */
  reading: LineReading['kind'] | null;
  /** The reason why no entries arrive; '' while they do. */
  trouble: string;
}

/** One view. Leaving it shows the view behind it. */
export type View =
  | { kind: 'list' }
  | { kind: 'details'; name: string; details: Details | null; trouble: string; top: number }
  | { kind: 'workload'; id: string; top: number }
  | { kind: 'policies'; policies: readonly Policy[] | null; trouble: string; top: number }
  | { kind: 'log'; log: OpenLog }
  | { kind: 'help'; keys: readonly { label: string; about: string }[]; top: number };

/** The purpose of an input line. */
export interface Purpose {
  kind: 'filter' | 'search' | 'lines' | 'prompt';
  /** The filter before the input, or the agent that receives the prompt. */
  subject: string;
}

/** A question or an input line, which the user must answer before anything else. */
export type Dialog =
  | { kind: 'confirm'; question: string; action: Action; targets: readonly Target[] }
  | { kind: 'input'; purpose: Purpose; text: string };

/** The orders of the rows of a section, in turn. */
export const ORDERS = ['name', 'state', 'cpu', 'memory'] as const;
export type Order = (typeof ORDERS)[number];

/** A row, with a key that stays the same when other rows change. */
export type UiRow =
  | { kind: 'head'; key: string; title: string; note: string; isFolded: boolean; members: HeadMembers }
  | { kind: 'service'; key: string; service: Service; agent: Agent | null }
  | { kind: 'workload'; key: string; workload: Workload };

/** The members of a section: the names of services, and the group and stack that consist of exactly these. */
export interface HeadMembers {
  names: readonly string[];
  group: string | null;
  stack: string | null;
}

export interface Model {
  size: Size;
  /** Epoch milliseconds. */
  now: number;
  /** The URL of the daemon. */
  address: string;
  connection: Connection;
  /** null: not read yet. */
  services: readonly Service[] | null;
  agents: readonly Agent[];
  workloads: readonly Workload[];
  usages: ReadonlyMap<string, ServiceUse>;
  filter: string;
  order: Order;
  /** Keys of sections whose members are hidden. */
  folded: ReadonlySet<string>;
  /** The rows of the list, derived from the fields above. */
  rows: readonly UiRow[];
  /** The key of the selected row. */
  selected: string;
  /** The keys of the marked rows, which the next action is for; if empty, it is for the selected row. */
  marked: ReadonlySet<string>;
  /** The index of the first visible row. */
  top: number;
  /** The open views; the last one is shown. */
  views: readonly View[];
  dialog: Dialog | null;
  /** The latest notice to the user. */
  notice: { tone: 'good' | 'bad'; text: string } | null;
  /** Actions that have begun, such as `start web`. */
  underWay: readonly string[];
}

/** A message, which changes the state. */
export type Message =
  | TypedInput
  | { kind: 'resized'; size: Size }
  | { kind: 'ticked'; now: number }
  | { kind: 'connection'; connection: Connection; address?: string }
  | { kind: 'lists'; services: readonly Service[]; agents: readonly Agent[] }
  | { kind: 'workloads'; workloads: readonly Workload[] }
  | { kind: 'usages'; usages: ReadonlyMap<string, ServiceUse> }
  | { kind: 'happened'; names: ReadonlySet<string> }
  | { kind: 'details'; name: string; details: Details }
  | { kind: 'noDetails'; name: string; reason: string }
  | { kind: 'policies'; policies: readonly Policy[] }
  | { kind: 'noPolicies'; reason: string }
  | { kind: 'logged'; entries: readonly LogEntry[] }
  | { kind: 'logTrouble'; trouble: string }
  | { kind: 'logRead'; selection: ShownLogs; reading: LineReading['kind']; page: LogPageRead }
  | { kind: 'began'; title: string }
  | { kind: 'ended'; title: string; error: string | null }
  | { kind: 'said'; tone: 'good' | 'bad'; text: string };

/** An effect that the state requests. */
export type Effect =
  | { kind: 'quit'; code: number }
  | { kind: 'suspend' }
  | { kind: 'redraw' }
  | { kind: 'act'; action: Action; target: Target }
  | { kind: 'prompt'; name: string; text: string }
  | { kind: 'attach'; name: string }
  | { kind: 'readDetails'; name: string }
  | { kind: 'readPolicies' }
  /** Puts a text on the clipboard of the user's terminal. */
  | { kind: 'copy'; text: string }
  | { kind: 'openUrl'; url: string }
  /** Follows a log: after the entry `after`, or from its last lines. */
  | { kind: 'openLog'; selection: ShownLogs; after?: string }
  | { kind: 'readLog'; selection: ShownLogs; reading: LineReading }
  /** Ends the stream of new entries. */
  | { kind: 'detachLog' }
  | { kind: 'closeLog' };

/** A new state, and the effects that it requests. */
export type Step = readonly [model: Model, ...effects: Effect[]];

/** The state before the first message. */
export const initialModel = (size: Size, now: number, address: string, filter: string): Model => ({
  size,
  now,
  address,
  connection: { state: 'connecting' },
  services: null,
  agents: [],
  workloads: [],
  usages: new Map(),
  filter,
  order: 'name',
  folded: new Set(),
  rows: [],
  selected: '',
  marked: new Set(),
  top: 0,
  views: [{ kind: 'list' }],
  dialog: null,
  notice: null,
  underWay: [],
});

/** The shown view. */
export const viewOf = ({ views }: Model): View => views.at(-1) ?? { kind: 'list' };

/** The layout of the screen's lines; a small terminal omits parts. */
export function layoutOf({ rows }: Size): { hasTitles: boolean; hasKeys: boolean; bodyRows: number } {
  const hasTitles = rows >= 7;
  const hasKeys = rows >= 5;
  // One line for the bar at the top, one for the notice at the bottom.
  const bodyRows = Math.max(0, rows - 2 - Number(hasTitles) - Number(hasKeys));
  return { hasTitles, hasKeys, bodyRows };
}
