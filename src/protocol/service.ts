// Services: the stored record, what a process adds to it, and the messages of `service:<name>`.
import type { AgentType } from './agent_types.ts';

export const SERVICE_STATUSES = ['running', 'stopped', 'crashed', 'starting', 'stopping'] as const;
export type ServiceStatus = (typeof SERVICE_STATUSES)[number];
export const RESTART_POLICIES = ['no', 'on-failure', 'always'] as const;
export type RestartPolicy = (typeof RESTART_POLICIES)[number];

/** What makes a service an agent: docs/reference.md "Agents". */
export interface AgentSpec {
  agentType: AgentType | null;
  hostname: string;
  cols: number;
  rows: number;
}

/** The effective spec of a service: every default filled in. User strings are rows, never keys of objects. */
export interface ServiceSpec {
  name: string;
  port: number;
  cmd: string;
  cwd: string;
  group: string | null;
  ready: string | null;
  env: [key: string, value: string][];
  dependsOn: string[];
  restart: RestartPolicy;
  autostart: boolean;
  stopSignal: string;
  /** Milliseconds, as is startTimeout. */
  stopGrace: number;
  startTimeout: number;
  labels: string[];
  agent: AgentSpec | null;
}

/** A registration as it came in: shapes checked, defaults filled; what needs the registry is still open. */
export interface ServiceInput extends Omit<ServiceSpec, 'env'> {
  /** null: absent, keep the stored one. */
  env: [key: string, value: string][] | null;
}

/** The record in the store. `revision` grows whenever the effective spec changes. */
export interface StoredService {
  spec: ServiceSpec;
  revision: number;
  /**
   * HMAC over the whole spec with a key of the state directory; absent in what an earlier version has
   * written.
   */
  hash?: string;
}

/** How the last process ended; kept in the store so that a later daemon still shows it. */
export interface LastEnd {
  run: string;
  status: 'stopped' | 'crashed';
  exitCode: number | null;
  signal: string | null;
  exitUnknown: boolean;
  /** Epoch milliseconds. */
  at: number;
  /**
   * Its whole tree has ended with it: by a stop, or with the machine. Else what it has left behind is ended
   * before the next.
   */
  whole?: true;
  /** The restart that was to follow: a daemon that finds it goes on waiting. */
  restart?: { attempt: number; at: number };
}

/** What the service actor reports to the views whenever it changes. */
export interface ServiceState {
  name: string;
  status: ServiceStatus;
  restarts: number;
  /** The process, while there is one. `port` and `revision` are those it was started with. */
  process: {
    run: string;
    pid: number;
    /** Epoch milliseconds. */
    startedAt: number;
    port: number;
    revision: number;
    rssMB: number;
  } | null;
  end: LastEnd | null;
}

/** A service without a process, whose last one ended as `end` says; null: it never had one. */
export function restingState(name: string, end: LastEnd | null): ServiceState {
  return { name, status: end?.status ?? 'stopped', restarts: 0, process: null, end };
}

export interface StartResult {
  name: string;
  status: ServiceStatus;
  pid: number | null;
}

export interface StopResult {
  name: string;
  status: 'stopped';
  exitCode: number | null;
  signal: string | null;
  escalated: boolean;
  reaped: number;
  left: { pid: number; command: string; reason: string }[];
  portFree: boolean;
  ms: number;
}

export interface LogsQuery {
  lines: number;
  stream: 'stdout' | 'stderr' | null;
  timestamps: boolean;
  /** Bytes as they came: no terminal emulation of the line. */
  raw: boolean;
}

/** A stretch of the log of a service; offsets are logical. */
export interface LogSlice {
  /** Where it really begins: rotation may have taken what was asked for. */
  start: number;
  /** Go on here. */
  end: number;
  /** Which run has printed it; null: there is nothing of what was asked for in it. */
  run: string | null;
  /** What was asked for: between two of them lies what another stream has brought. */
  parts: { offset: number; bytes: Uint8Array }[];
  /**
   * From which offset on what time holds (epoch milliseconds), in order; none when nobody has asked for them.
   */
  times: { offset: number; time: number }[];
}

export interface ServiceExplanation {
  status: ServiceStatus;
  reason: string;
  waitingFor: string | null;
  lastCheck: { url: string; at: number; status: number | null; error: string | null } | null;
  portHolder: string | null;
  backoff: { attempt: number; delayMs: number; nextAt: number } | null;
  exit: { exitCode: number | null; signal: string | null; at: number } | null;
  lastLines: string[];
  next: string;
}

/** A run that has ended, as the host tells it and tells again until it is acknowledged. */
export interface RunEnd {
  service: string;
  run: string;
  exitCode: number | null;
  signal: string | null;
  /** The host that watched it was gone when it ended. */
  exitUnknown: boolean;
  /** `reboot`: it was of another boot of the machine. */
  cause: 'exit' | 'reboot';
  at: number;
}

export interface ServiceProtocol {
  /**
   * At boot, and whenever the process host is there again: takes over the run that it has for this service,
   * reports to the views. Harmless at any time. An end that is news is on disk before the reply, if the disk
   * takes it.
   */
  adopt(message: Record<string, never>): null;
  /** The registry changed the record; the process is left alone. A pending restart ends. */
  changed(message: { stored: StoredService }): null;
  /**
   * `timeoutMs` null: the service's own startTimeout. `wait` false: answers when the process is there.
   * `join`: what runs is left alone and a start under way is joined, instead of already_running.
   */
  start(message: { timeoutMs: number | null; wait: boolean; join?: boolean }): StartResult;
  /** `graceMs` null: the service's own stopGrace. `last`: no start after it, the daemon is shutting down. */
  stop(message: { graceMs: number | null; last?: boolean }): StopResult;
  restart(message: { timeoutMs: number | null; graceMs: number | null }): StartResult;
  /** Stops it if need be and forgets its logs; the actor ends after the reply. */
  retire(message: { graceMs: number | null }): null;
  /** An array of strings as JSON: the front writes it as it is. */
  logs(message: LogsQuery): Uint8Array;
  /** Where in the log its last `lines` begin, in logical bytes; its end for none. */
  tailStart(message: Pick<LogsQuery, 'lines' | 'stream'>): number;
  /**
   * What the log says from `offset` on, over at most `limit` bytes of it and of one run; when, with
   * `timestamps`.
   */
  read(message: Pick<LogsQuery, 'stream' | 'timestamps'> & { offset: number; limit: number }): LogSlice;
  explain(message: Record<string, never>): ServiceExplanation;
  /** While on, the views get `grew` whenever the log grows. Counted: each on needs its off. */
  follow(message: { on: boolean }): null;
  /** From the host. */
  exited(message: RunEnd): null;
  /** From the host, while followed: the log reaches to the logical offset `end`. */
  grew(message: { end: number }): null;
}
