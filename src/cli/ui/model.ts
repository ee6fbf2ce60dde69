// The state of the terminal interface, what changes it, and what it asks for.
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

/** Of the terminal, in cells. */
export interface Size {
  columns: number;
  rows: number;
}

/** CPU in cores and memory in megabytes; null: nothing runs. */
export type ServiceUse = { cpu: number; rssMB: number } | null;

/** `refused`: the daemon is there, and does not accept the token. */
export type Connection =
  | { state: 'connecting' }
  | { state: 'connected' }
  | { state: 'lost' | 'refused'; detail: string };

/** Why nothing can be done now; null: something can. */
export function faultOf({ state }: Connection): string | null {
  if (state === 'connected') return null;
  if (state === 'connecting') return 'the daemon is not found yet';
  return state === 'lost' ? 'the daemon is gone' : 'the token is not accepted';
}

/** What is done to something, and what it is. */
export const ACTIONS = ['start', 'stop', 'restart', 'sleep', 'wake', 'remove'] as const;
export type Action = (typeof ACTIONS)[number];
export interface Target {
  kind: 'service' | 'agent' | 'group' | 'workload';
  /** By which the daemon knows it: the name, or the id of a workload. */
  name: string;
  /** What people call it. */
  label: string;
  /** It rests until it is woken. */
  isAsleep: boolean;
}

/** What the details of a service show. */
export interface Details {
  service: ServiceDetail;
  explanation: Explanation;
  events: readonly LifecycleEvent[];
}

/** Which logs: of some services, of a stack, or of all services; and which lines of them. */
export interface ShownLogs {
  title: string;
  names?: readonly string[];
  stack?: string;
  /** Only lines with this text. */
  q?: string | undefined;
  /** Only lines that name this level or a more severe one. */
  level?: LogLevel | undefined;
}

/** What is read of a log beside what comes: lines around those that are here, or a line that is searched. */
export type LineReading =
  | { kind: 'older'; first: LogEntry; cursor: string | null }
  | { kind: 'newer'; last: LogEntry }
  /** `edge`: the first or the last line that is here. */
  | { kind: 'find'; search: string; direction: 1 | -1; edge: LogEntry };

/** Lines that were read. `cursor` leads to older ones; null: there are none. */
export type LogPageRead =
  | { kind: 'older'; entries: readonly LogEntry[]; cursor: string | null }
  /** `lastId`: that of the newest line there is; null: more lines follow. */
  | { kind: 'newer'; entries: readonly LogEntry[]; lastId: string | null }
  | { kind: 'found'; entries: readonly LogEntry[]; cursor: string | null; found: string }
  /** Nothing was found, or nothing could be read. */
  | { kind: 'nothing'; reason: string };

/** A log in sight. */
export interface OpenLog {
  selection: ShownLogs;
  entries: readonly LogEntry[];
  /** The first entry in sight while it does not follow. */
  top: number;
  isFollowing: boolean;
  /** Columns left of the screen, while lines are not wrapped. */
  left: number;
  isWrapped: boolean;
  hasTimes: boolean;
  search: string;
  /** The entry that was found last; null: none. */
  found: number | null;
  /** The last entry is the newest: what comes is added. */
  isLive: boolean;
  /** Nothing older than the first entry is kept anywhere. */
  isOldest: boolean;
  /** Leads to what is older than the first entry; null: not known. */
  cursor: string | null;
  /** What is being read; null: nothing. */
  reading: LineReading['kind'] | null;
  /** Why nothing comes; '' while it does. */
  trouble: string;
}

/** What is in sight. Leaving one shows the one behind it. */
export type View =
  | { kind: 'list' }
  | { kind: 'details'; name: string; details: Details | null; trouble: string; top: number }
  | { kind: 'workload'; id: string; top: number }
  | { kind: 'policies'; policies: readonly Policy[] | null; trouble: string; top: number }
  | { kind: 'log'; log: OpenLog }
  | { kind: 'help'; keys: readonly { label: string; about: string }[]; top: number };

/** What an input line is for. */
export interface Purpose {
  kind: 'filter' | 'search' | 'lines' | 'prompt';
  /** The filter that there was before, or the agent that the prompt is for. */
  subject: string;
}

/** What must be answered before anything else. */
export type Dialog =
  | { kind: 'confirm'; question: string; action: Action; targets: readonly Target[] }
  | { kind: 'input'; purpose: Purpose; text: string };

/** By what the rows of a section are ordered, in turn. */
export const ORDERS = ['name', 'state', 'cpu', 'memory'] as const;
export type Order = (typeof ORDERS)[number];

/** A row, with a key that stays the same whatever changes around it. */
export type UiRow =
  | { kind: 'head'; key: string; title: string; note: string; isFolded: boolean; members: HeadMembers }
  | { kind: 'service'; key: string; service: Service; agent: Agent | null }
  | { kind: 'workload'; key: string; workload: Workload };

/** What a section holds: the names of services, and the group and stack that are just these. */
export interface HeadMembers {
  names: readonly string[];
  group: string | null;
  stack: string | null;
}

export interface Model {
  size: Size;
  /** Epoch milliseconds. */
  now: number;
  /** Where the daemon is. */
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
  /** What the list shows, from all of the above. */
  rows: readonly UiRow[];
  /** The key of the selected row. */
  selected: string;
  /** The keys of the rows that the next action is for, in place of the selected one; empty: that one. */
  marked: ReadonlySet<string>;
  /** The first row in sight. */
  top: number;
  /** The last one is in sight. */
  views: readonly View[];
  dialog: Dialog | null;
  /** The last thing to say. */
  notice: { tone: 'good' | 'bad'; text: string } | null;
  /** Actions that have begun, such as `start web`. */
  underWay: readonly string[];
}

/** What changes the state. */
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

/** What the state asks for. */
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
  /** What comes is not wanted now. */
  | { kind: 'detachLog' }
  | { kind: 'closeLog' };

/** A new state, and what it asks for. */
export type Step = readonly [model: Model, ...effects: Effect[]];

/** The state before anything has come. */
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

/** What is in sight. */
export const viewOf = ({ views }: Model): View => views.at(-1) ?? { kind: 'list' };

/** How the lines of the screen are shared out; what a small terminal has no room for is left out. */
export function layoutOf({ rows }: Size): { hasTitles: boolean; hasKeys: boolean; bodyRows: number } {
  const hasTitles = rows >= 7;
  const hasKeys = rows >= 5;
  // One for the bar above, one for what is said below.
  const bodyRows = Math.max(0, rows - 2 - Number(hasTitles) - Number(hasKeys));
  return { hasTitles, hasKeys, bodyRows };
}
