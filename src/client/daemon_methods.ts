// The daemon's API, a method per endpoint: docs/reference.md "Endpoints". Names are encoded, times
// are RFC 3339 strings, durations are milliseconds, and every failure is a BerthError.
import type { LogsQuery } from '../protocol/service.ts';
import { type CallOptions, callApi, type Endpoint, encodePath, type Query, sendRequest } from './api_call.ts';
import { type AttachOptions, attachTerminal, type TerminalSession } from './attach_terminal.ts';
import { type StreamOptions, sseFrames } from './event_stream.ts';
import type {
  Agent,
  AgentRemoved,
  DaemonEvent,
  EventData,
  Explanation,
  Group,
  GroupStarted,
  GroupStopped,
  Logs,
  PastEvent,
  Registration,
  Removed,
  Resolution,
  Service,
  ServiceDetail,
  SpinupRequest,
  SpunUp,
  StartResult,
  StopResult,
  Version,
} from './records.ts';

export interface StartOptions extends CallOptions {
  /** Milliseconds; absent: the service's own. */
  timeout?: number | undefined;
  /** false: answer as soon as the process is there. */
  wait?: boolean | undefined;
}

export interface StopOptions extends CallOptions {
  /** Milliseconds; absent: the service's own. */
  grace?: number | undefined;
}

export type LogOptions = CallOptions & Partial<LogsQuery>;
export type LogFollowOptions = StreamOptions & Partial<LogsQuery>;

export interface EventOptions extends StreamOptions {
  types?: readonly (keyof EventData)[];
  names?: readonly string[];
  /** Replays what came after this id; without it nothing is replayed. */
  lastEventId?: number | undefined;
  /** Adds `at` and `run` to the data. */
  detail?: boolean;
}

export interface HistoryOptions extends CallOptions {
  types?: readonly (keyof EventData)[];
  names?: readonly string[];
  /** Events with a greater id. */
  since?: number | undefined;
  limit?: number | undefined;
}

const SERVICES = '/v1/services';
const GROUPS = '/v1/groups';
const AGENTS = '/v1/agents';

const commaSeparated = (values: readonly string[] | undefined): string | undefined =>
  values && values.length > 0 ? values.join(',') : undefined;

const logQuery = (options: LogFollowOptions | LogOptions): Query => [
  ['lines', options.lines],
  ['stream', options.stream ?? undefined],
  ['timestamps', options.timestamps],
  ['raw', options.raw],
];

async function* followLog(
  endpoint: Endpoint,
  target: string,
  options: LogFollowOptions,
): AsyncGenerator<string> {
  const query = logQuery(options);
  // After a break it goes on behind the last line, whatever `lines` says.
  const open = (lastEventId: string | null, signal: AbortSignal) =>
    sendRequest(endpoint, 'GET', target, { query, lastEventId, signal });
  for await (const frame of sseFrames(open, null, options)) {
    if (frame.event !== 'line') continue;
    const { line }: { line: string } = JSON.parse(frame.data);
    yield line;
  }
}

async function* streamEvents(endpoint: Endpoint, options: EventOptions): AsyncGenerator<DaemonEvent> {
  const query: Query = [
    ['types', commaSeparated(options.types)],
    ['names', commaSeparated(options.names)],
    ['detail', options.detail],
  ];
  const open = (lastEventId: string | null, signal: AbortSignal) =>
    sendRequest(endpoint, 'GET', '/v1/events', { query, lastEventId, signal });
  const from = options.lastEventId === undefined ? null : String(options.lastEventId);
  for await (const frame of sseFrames(open, from, options)) {
    yield parseEvent(frame);
  }
}

function parseEvent(frame: { id: string | null; event: string; data: string }): DaemonEvent {
  // The one place where a frame gets its type: the daemon's event names are the keys of EventData.
  return {
    type: frame.event,
    id: frame.id === null ? null : Number(frame.id),
    data: JSON.parse(frame.data),
  } as DaemonEvent;
}

/** The methods for services, groups, events and agents of one daemon. */
export function daemonMethods(endpoint: Endpoint) {
  const get = <T>(target: string, options: CallOptions = {}, query: Query = []) =>
    callApi<T>(endpoint, 'GET', target, { ...options, query });
  const change = <T>(method: string, target: string, options: CallOptions = {}, query: Query = []) =>
    callApi<T>(endpoint, method, target, { ...onlySignal(options), query, noDeadline: true });

  return {
    version: (options?: CallOptions) => get<Version>('/v1/version', options),
    /** Resolves true when the daemon serves, false while it starts or shuts down. */
    ready: async (options: CallOptions = {}): Promise<boolean> =>
      (await sendRequest(endpoint, 'GET', '/readyz', options)).status === 200,
    /** The OpenAPI 3.1 document of everything. */
    openapi: (options?: CallOptions) => get<object>('/openapi.json', options),

    services: async (options?: CallOptions) =>
      (await get<{ services: Service[] }>(SERVICES, options)).services,
    service: (name: string, options?: CallOptions) => get<ServiceDetail>(encodePath(SERVICES, name), options),
    /** Creates or replaces; the process, if there is one, is left alone. */
    register: (spec: Registration, options: CallOptions = {}) =>
      callApi<Service>(endpoint, 'POST', SERVICES, { ...options, body: spec }),
    /** Resolves when the ready-check has passed. */
    start: (name: string, options: StartOptions = {}) =>
      change<StartResult>('POST', encodePath(SERVICES, name, 'start'), options, [
        ['timeout', options.timeout],
        ['wait', options.wait],
      ]),
    /** Resolves when the whole process tree is gone. */
    stop: (name: string, options: StopOptions = {}) =>
      change<StopResult>('POST', encodePath(SERVICES, name, 'stop'), options, [['grace', options.grace]]),
    restart: (name: string, options: StopOptions & { timeout?: number | undefined } = {}) =>
      change<StartResult>('POST', encodePath(SERVICES, name, 'restart'), options, [
        ['timeout', options.timeout],
        ['grace', options.grace],
      ]),
    remove: (name: string, options: CallOptions = {}) =>
      change<Removed>('DELETE', encodePath(SERVICES, name), options),
    explain: (name: string, options?: CallOptions) =>
      get<Explanation>(encodePath(SERVICES, name, 'explain'), options),
    /** The URL of a service, running or not. */
    resolve: (name: string, options?: CallOptions) =>
      get<Resolution>(encodePath('/v1/resolve', name), options),
    logs: (name: string, options: LogOptions = {}) =>
      get<Logs>(encodePath(SERVICES, name, 'logs'), options, logQuery(options)),
    /** The last `lines`, then every new one. */
    followLogs: (name: string, options: LogFollowOptions = {}) =>
      followLog(endpoint, encodePath(SERVICES, name, 'logs', 'stream'), options),

    groups: async (options?: CallOptions) => (await get<{ groups: Group[] }>(GROUPS, options)).groups,
    startGroup: (name: string, options: StartOptions = {}) =>
      change<GroupStarted>('POST', encodePath(GROUPS, name, 'start'), options, [
        ['timeout', options.timeout],
      ]),
    stopGroup: (name: string, options: StopOptions = {}) =>
      change<GroupStopped>('POST', encodePath(GROUPS, name, 'stop'), options, [['grace', options.grace]]),

    /** Every event from now on, or from `lastEventId` on; goes on by itself after a break. */
    events: (options: EventOptions = {}) => streamEvents(endpoint, options),
    history: async (options: HistoryOptions = {}) =>
      (
        await get<{ events: PastEvent[] }>('/v1/events/history', options, [
          ['types', commaSeparated(options.types)],
          ['names', commaSeparated(options.names)],
          ['since', options.since],
          ['limit', options.limit],
        ])
      ).events,

    agents: async (options?: CallOptions) => (await get<{ agents: Agent[] }>(AGENTS, options)).agents,
    spinup: (spec: SpinupRequest, options: CallOptions = {}) =>
      callApi<SpunUp>(endpoint, 'POST', encodePath(AGENTS, 'spinup'), {
        ...options,
        body: spec,
        noDeadline: true,
      }),
    removeAgent: (name: string, options: CallOptions = {}) =>
      change<AgentRemoved>('DELETE', encodePath(AGENTS, name), options),
    agentLogs: (name: string, options: LogOptions = {}) =>
      get<Logs>(encodePath(AGENTS, name, 'logs'), options, logQuery(options)),
    followAgentLogs: (name: string, options: LogFollowOptions = {}) =>
      followLog(endpoint, encodePath(AGENTS, name, 'logs', 'stream'), options),
    attach: (name: string, options: AttachOptions): Promise<TerminalSession> =>
      attachTerminal(endpoint, name, options),
  };
}

const onlySignal = ({ signal }: CallOptions): CallOptions => (signal ? { signal } : {});
