// Services: the stored record, the data of a process, and the messages of `service:<name>`.
import type { MessageOf, Ref } from '../runtime/actor.ts';
import { SERVICE } from '../settings/limits.ts';
import type { AgentType } from './agent_types.ts';
import type { EnvironmentRows } from './base_environment.ts';
import type { LiveField, ReadyField } from './checks.ts';
import type { Dependency } from './dependency_order.ts';
import type { LogSlice, LogsQuery } from './logs.ts';
import type { PortProtocol } from './port_protocol.ts';
import type { ScheduleSpec } from './schedules.ts';
import type { WatchState } from './watcher.ts';

export const SERVICE_STATUSES = [
  'running',
  'stopped',
  'crashed',
  'starting',
  'stopping',
  'sleeping',
  'completed',
] as const;
export type ServiceStatus = (typeof SERVICE_STATUSES)[number];
export const RESTART_POLICIES = ['no', 'on-failure', 'always'] as const;
/** A task runs to its end: docs/reference.md "Tasks". */
export const SERVICE_KINDS = ['service', 'task'] as const;
export type RestartPolicy = (typeof RESTART_POLICIES)[number];

/** A restart policy with its pauses and limits; `completeRestartRule` has the defaults. */
export interface RestartRule {
  policy: RestartPolicy;
  /** The first and the longest pause, in milliseconds. */
  minMs?: number | undefined;
  maxMs?: number | undefined;
  /**
   * Restarts after which it stays down, within `withinMs` milliseconds or else since a client last started
   * it.
   */
  max?: number | undefined;
  withinMs?: number | undefined;
}

/** The resource limits of a run. */
export interface RunLimits {
  memoryMB?: number | undefined;
  cpus?: number | undefined;
  pids?: number | undefined;
}

/** Why Berth or the system ended a process that nobody asked to stop. */
export const END_CAUSES = ['unhealthy', 'memory'] as const;
export type EndCause = (typeof END_CAUSES)[number];

/** What makes a service an agent: docs/reference.md "Agents". */
export interface AgentSpec {
  agentType: AgentType | null;
  hostname: string;
  cols: number;
  rows: number;
}

/** What to do when files change: docs/reference.md "Watch". */
export interface WatchSpec {
  /** Globs, relative to the service's `cwd`. */
  paths: string[];
  /** Lines in .gitignore syntax. */
  ignore: string[];
  debounceMs: number;
  /** `restart`, or the name of a signal. */
  action: string;
  /** Whether the services that depend on it are restarted after it. */
  cascade: boolean;
}

/** The effective spec of a service, with all defaults. User strings are rows, never keys of objects. */
export interface ServiceSpec {
  name: string;
  /** null: it has none. */
  port: number | null;
  cmd: string;
  cwd: string;
  group: string | null;
  ready: ReadyField | null;
  env: [key: string, value: string][];
  dependsOn: Dependency[];
  restart: RestartPolicy | RestartRule;
  autostart: boolean;
  stopSignal: string;
  /** Milliseconds, as is startTimeout. */
  stopGrace: number;
  startTimeout: number;
  labels: string[];
  agent: AgentSpec | null;
  /** null: it never sleeps. Absent in records of earlier versions. */
  sleep: SleepRule | null;
  /** The stack it belongs to, which its name begins with; null: not registered by a project. */
  stack: string | null;
  watch: WatchSpec | null;
  kind: (typeof SERVICE_KINDS)[number];
  /** Of a task: globs relative to `cwd`. It runs again when matching files have changed. */
  inputs: string[];
  live: LiveField | null;
  limits: RunLimits | null;
  /** Absolute paths, or relative to `cwd`. */
  envFile: string[];
  /** A shell command that is run first to stop it. */
  stop: string | null;
  /** Of a task: when it runs automatically; null: never. */
  schedule: ScheduleSpec | null;
  /** The protocol on its port. */
  protocol: PortProtocol;
}

/** When a service goes to sleep: docs/reference.md "Sleep of services". */
export interface SleepRule {
  /** Minutes without a connection or a byte; may be a fraction. */
  afterMinutes: number;
}

/** When its door puts it to sleep; null: it has no door. Agents have none: they sleep in their own way. */
export const doorRule = ({ agent, sleep }: Pick<ServiceSpec, 'agent' | 'sleep'>): SleepRule | null =>
  agent ? null : sleep;

/** The port of an agent, which always has one. Throws a TypeError for null. */
export function portOfAgent(port: number | null): number {
  if (port === null) throw new TypeError('an agent has no port');
  return port;
}

/** A registration with its shape checked and all defaults, not yet checked by the registry. */
export interface ServiceInput extends Omit<ServiceSpec, 'env'> {
  /** null: absent, so the stored one is kept. */
  env: [key: string, value: string][] | null;
  /** null: none; absent: keep the stored one. */
  baseEnv?: EnvironmentRows | null;
}

/** The environment that a service inherits instead of the daemon's own, plain or sealed. */
export interface StoredBaseEnv {
  /** HMAC of its rows, which shows a change without unsealing it. */
  hash: string;
  rows?: EnvironmentRows;
  sealed?: string;
}

/** The stored record. `revision` grows whenever the effective spec changes. */
export interface StoredService {
  spec: ServiceSpec;
  revision: number;
  /** HMAC of the whole spec with a key of the state directory; absent in records of earlier versions. */
  hash?: string;
  /** Of a task: HMAC of everything its process depends on, with the same key. */
  processHash?: string;
  /**
   * The sealed values of `spec.env`, which are empty there. In the store always; in memory only if they
   * cannot be unsealed.
   */
  sealedEnv?: string;
  /** Absent: it inherits the daemon's own. */
  baseEnv?: StoredBaseEnv;
}

/** The end of the last process, stored so that a later daemon still shows it. */
export interface LastEnd {
  run: string;
  /** `completed`: a task that has ended by itself with exit code 0. */
  status: 'stopped' | 'crashed' | 'completed';
  exitCode: number | null;
  signal: string | null;
  exitUnknown: boolean;
  /** Epoch milliseconds. */
  at: number;
  /**
   * Its whole process tree ended with it, by a stop or with the machine. Otherwise leftover processes are
   * stopped before the next start.
   */
  whole?: true;
  /** No client has asked for it, or stopped the service since: a change of its files starts the service. */
  unasked?: true;
  /** Of a completed task: how long it ran, in milliseconds, and the hash of what it was built from. */
  completed?: { ms: number; content: string };
  /** Of a task that had completed: what it made counts as no longer there, so its status is `stopped`. */
  undone?: true;
  /** Of a task: the last scheduled time it ran for. */
  slot?: number;
  /** Why it was ended, if neither by itself nor on request. */
  cause?: EndCause;
  /** The pending restart, for which a later daemon waits. `times`: earlier ones that count for its rule. */
  restart?: { attempt: number; at: number; times?: number[] };
  /** How often it had been restarted since a client started it; absent: never. */
  restarts?: number;
  /** The first half of a requested restart. A daemon that finds it starts the service again. */
  relaunch?: true;
  /** It was restarted so often that its restart rule gives up. */
  exhausted?: true;
}

/** The row that the service actor sends to the views after each change. */
export interface ServiceState {
  name: string;
  status: ServiceStatus;
  restarts: number;
  /** The run whose process is being started. */
  launching?: string;
  /** The process, if there is one. `port` and `revision` are those of its start. */
  process: {
    run: string;
    pid: number;
    /** Epoch milliseconds. */
    startedAt: number;
    port: number | null;
    revision: number;
    rssMB: number;
    /** The process's own port behind its door; null: it has no door. */
    innerPort: number | null;
  } | null;
  end: LastEnd | null;
  /** Its door is open: its port accepts connections, whether there is a process or not. */
  isDoorOpen: boolean;
}

/** The state of a service without a process whose last one ended as in `end`; null: it never had one. */
export function restingState(name: string, end: LastEnd | null): ServiceState {
  const [status, restarts] = [end?.status ?? 'stopped', end?.restarts ?? 0];
  return { name, status, restarts, process: null, end, isDoorOpen: false };
}

export interface StartReply {
  name: string;
  status: ServiceStatus;
  /** null: a task that has completed. */
  pid: number | null;
  /** Of a completed task: how long it ran, in milliseconds. */
  ms?: number;
  /** It was not run, because it has already completed with the same content. */
  unchanged?: true;
}

export interface SleepReply {
  name: string;
  status: ServiceStatus;
}

export interface StopReply {
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

export interface SignalReply {
  name: string;
  signal: string;
  /** The number of processes that got it. */
  processes: number;
}

/** The result of a probe. `url` is what was probed, as shown to people. */
export interface LastCheck {
  url: string;
  /** Epoch milliseconds. */
  at: number;
  status: number | null;
  error: string | null;
}

export interface ServiceExplanation {
  status: ServiceStatus;
  reason: string;
  waitingFor: string | null;
  lastCheck: LastCheck | null;
  portHolder: string | null;
  backoff: { attempt: number; delayMs: number; nextAt: number } | null;
  exit: { exitCode: number | null; signal: string | null; at: number; cause?: EndCause } | null;
  watching: WatchState | null;
  lastLines: string[];
  next: string;
}

/** A run that has ended. The host sends it repeatedly until it is acknowledged. */
export interface RunEnd {
  service: string;
  run: string;
  exitCode: number | null;
  signal: string | null;
  /** It ended while no host was watching, so its exit code is unknown. */
  exitUnknown: boolean;
  /** Of an earlier boot (`reboot`) or another state directory (`foreign`), or ended at its `memory` limit. */
  cause: 'exit' | 'reboot' | 'foreign' | 'memory';
  at: number;
}

export interface ServiceProtocol {
  /**
   * At start-up, and whenever the process host comes back: adopts the host's run of this service and
   * publishes it to the views. Harmless at any time. A new end is on disk before the reply, if the disk
   * accepts it.
   */
  adopt(message: Record<string, never>): null;
  /** The registry changed the record; the process is left alone. A pending restart is cancelled. */
  changed(message: { stored: StoredService }): null;
  /**
   * `timeoutMs` null: the service's own startTimeout. `wait` false: replies when the process exists. `join`:
   * leaves a running process alone and joins a start under way, instead of failing already_running. The reply
   * for a task comes when it has ended. `ifChanged`: skips a task that has completed with the same content.
   * `wake`: first waits for a stop under way. `autostart`: likewise for a stop that an earlier daemon began,
   * unless that puts the service to sleep. `awake`: the process never sleeps when idle. `slot`: the
   * scheduled time; a task runs once for each. `force`: an agent begins a new
   * conversation; without it, a wake that would have to begin one fails no_session. `askedAt`: the
   * monotonic time of the request that starts several services; fails start_failed if a client has stopped
   * this one or put it to sleep since. Fails hook_refused before the hook `create` of its stack has
   * completed, unless it is up.
   */
  start(message: {
    timeoutMs: number | null;
    wait: boolean;
    join?: boolean;
    ifChanged?: boolean;
    wake?: boolean;
    autostart?: boolean;
    awake?: boolean;
    slot?: number;
    force?: boolean;
    askedAt?: number;
  }): StartReply;
  /**
   * Harmless when it is asleep. Fails sleep_refused for a service without `sleep`. An agent goes to sleep
   * only while idle: otherwise fails agent_working or agent_blocked, and no_session without a known
   * conversation unless `force`.
   */
  sleep(message: { force?: boolean }): SleepReply;
  /**
   * `graceMs` null: its own stopGrace. `last`: refuses later starts, because the daemon is shutting down.
   * `forRestart`: the monotonic time of a restart of its group. What is put to sleep after it stays asleep.
   */
  stop(message: { graceMs: number | null; last?: boolean; forRestart?: number }): StopReply;
  restart(message: { timeoutMs: number | null; graceMs: number | null }): StartReply;
  /** A completed task is `undone` from now on, also for a later daemon. Fails storage_full. */
  undo(message: Record<string, never>): null;
  /** Stops it if necessary and deletes its logs. The actor ends after the reply. */
  retire(message: { graceMs: number | null }): null;
  /** A JSON array of strings, which the front sends unchanged. */
  logs(message: LogsQuery): Uint8Array;
  /** The logical offset of the first of the last `lines`; the end of the log for 0 lines. */
  tailStart(message: Pick<LogsQuery, 'lines' | 'stream'>): number;
  /** Reads from `offset` on, at most `limit` bytes of the log and of one run; with times if `timestamps`. */
  read(message: Pick<LogsQuery, 'stream' | 'timestamps'> & { offset: number; limit: number }): LogSlice;
  explain(message: Record<string, never>): ServiceExplanation;
  /** Sends `signal` to the process group. Fails not_running without a process. */
  signal(message: { signal: string }): SignalReply;
  /** From the statistics: the run exceeds its memory limit. */
  overMemory(message: { run: string; rssMB: number }): null;
  /** While on, the views get `grew` whenever the log grows. Counted: each `on` needs one `off`. */
  follow(message: { on: boolean }): null;
  /** `restartRunning` will follow. If the daemon is killed before, the next one restarts the service. */
  expectRestart(message: Record<string, never>): null;
  /** Restarts it if it has a process. Replies when it is ready or has failed to become ready. */
  restartRunning(message: Record<string, never>): null;
  /** From its door: a client is waiting for the service. */
  knocked(message: Record<string, never>): null;
  /** From its door: it has been idle for the time set in `sleep`. */
  idle(message: Record<string, never>): null;
  /** From its door, which has restarted and needs its settings again. */
  doorLost(message: Record<string, never>): null;
  /** From groups: the wake requested for a waiting client failed. */
  wakeFailed(message: { reason: string }): null;
  /** From the host. */
  exited(message: RunEnd): null;
  /** From the host, while followed: the logical end of the log is now `end`. */
  grew(message: { end: number }): null;
}

/** What the starts of a set have in common. */
export type MemberStart = Pick<
  MessageOf<ServiceProtocol, 'start'>,
  'timeoutMs' | 'wake' | 'autostart' | 'askedAt'
>;

/**
 * Starts a service as part of a set: leaves a running one alone, joins a start under way, and skips a task
 * that has completed with the same content. Resolves when it is ready, or the task has completed.
 * `onStarted`: called when its process exists; null if nobody needs to know. `request` as in `start`.
 */
export function startMember(
  service: Ref<ServiceProtocol>,
  request: MemberStart,
  onStarted: (() => void) | null,
): Promise<StartReply> {
  const message = { ...request, join: true, ifChanged: true };
  const limit = { deadlineMs: SERVICE.askDeadlineMs };
  const ready = service.ask('start', { ...message, wait: true }, limit);
  // Joins the start above. Its failure is reported by that start, so it is ignored here.
  const there = onStarted && service.ask('start', { ...message, wait: false }, limit);
  there?.then(onStarted, () => {});
  return ready;
}
