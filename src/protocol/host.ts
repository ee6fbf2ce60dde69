// The process host: a separate small process that owns every child process and outlives the daemon.
import type { Ref } from '../runtime/actor.ts';
import { SERVICE } from '../settings/limits.ts';
import type { RunSession } from './agent_sessions.ts';
import type { HookWord, TerminalReading, ToldState } from './agent_state.ts';
import type { LiveField, ReadyField } from './checks.ts';
import type { EndCause, RunEnd, RunLimits } from './service.ts';
import type { HostReading } from './system.ts';
import type { SizeMark } from './terminal.ts';

/** Sent in the hello. A daemon supports hosts of its own version and of the one before. */
export const HOST_PROTOCOL_VERSION = 1;

export interface SpawnRequest {
  service: string;
  run: string;
  /** The command for `/bin/sh -c`. */
  cmd: string;
  cwd: string;
  /** The complete environment of the child. */
  env: [key: string, value: string][];
  /** 0: it has none, here and below. */
  port: number;
  /** The user's own umask, not the daemon's 077. */
  umask: number;
  /** null: stdout and stderr are FIFOs. */
  pty: { cols: number; rows: number } | null;
  /** The daemon's own data about this run, which the host keeps and returns. */
  memo: RunMetadata;
  /**
   * The run gets a socket for sd_notify messages. `watchdogMs`: how often it must send WATCHDOG=1; null:
   * never.
   */
  notify?: { watchdogMs: number | null };
  limits?: RunLimits;
}

/** What a later daemon needs to take over a run. */
export interface RunMetadata {
  revision: number;
  /** null: the service has none. */
  port: number | null;
  ready: ReadyField | null;
  /** Changes of its files up to then have been handled. Epoch milliseconds; absent: none. */
  changedAt?: number;
  /** Its stop is the first half of a restart, requested by a client or a change of its files. */
  relaunch?: boolean;
  /** Once it is running, the services that depend on it are restarted. */
  cascade?: boolean;
  /** It was started by a change of its files, or by a restart that no client waited for. */
  byChange?: true;
  /** Absent in runs of earlier versions, as are the fields below. */
  live?: LiveField | null;
  /** Its memory limit, enforced by the daemon unless a cgroup does. */
  memoryMB?: number;
  /** Times of the restarts that count for its restart rule. */
  restartTimes?: number[];
  /** Why it is being ended, if no client asked for the stop. */
  fault?: EndCause;
  /** It has passed its ready-check, and the journal says so. */
  passed: boolean;
  /** Epoch milliseconds at which the start gives up; null: never. */
  deadline: number | null;
  restarts: number;
  /** Of a task: a hash of what it was built from, and the last scheduled time. Absent for a service. */
  task?: { content: string; slot?: number };
  /** The port of the door in front of `port`; absent: it has none. */
  doorPort?: number;
  /** It is not put to sleep when idle. */
  awake?: true;
  /** When the wake that started it began. Epoch milliseconds; absent: not started by a wake. */
  wokeAt?: number;
  /** Of an agent: the conversation it was given. */
  session?: RunSession;
  /** Of an agent: the sizes of its terminal, each with the log offset from which it applied. */
  sizes?: SizeMark[];
  /** Of an agent: the last published state. */
  told?: ToldState;
  /** Of an agent: the last report of its own hook, and the id of its conversation. */
  hook?: HookWord;
  sessionId?: string;
  /** Of an agent: when someone first typed after its last question. Epoch milliseconds. */
  typedAt?: number;
}

export interface SpawnReply {
  pid: number;
  /** Field 22 of /proc/<pid>/stat: with the pid and the boot id, the identity of a process. */
  startTicks: number;
  /** Epoch milliseconds. */
  startedAt: number;
  rssMB: number;
  /** A cgroup enforces its limits. */
  contained?: boolean;
}

export interface StopRequest {
  service: string;
  run: string;
  signal: string;
  graceMs: number;
  port: number;
  /** A shell command that is run first, for at most `graceMs`. */
  command?: string;
}

/** The result of a command run in the context of a run. */
export interface ExecReport {
  /** null: ended by a signal, or timed out. */
  exitCode: number | null;
  signal: string | null;
  timedOut: boolean;
  /** The beginning of its output. */
  output: string;
}

export interface StopReport {
  exitCode: number | null;
  signal: string | null;
  exitUnknown: boolean;
  escalated: boolean;
  reaped: number;
  left: { pid: number; command: string; reason: string }[];
  portFree: boolean;
  ms: number;
}

/** A run in the host's ledger: alive, or ended and not yet acknowledged. */
export interface LedgerRun {
  service: string;
  run: string;
  pid: number;
  startTicks: number;
  startedAt: number;
  port: number;
  pty: boolean;
  memo: RunMetadata;
  /** A stop is under way; the host completes it even without a daemon. */
  stopping: boolean;
  /** The grace period of that stop, as requested; absent without one, and from hosts of earlier versions. */
  stopGraceMs?: number;
  /** The cgroup that enforces its limits; absent if none does. */
  cgroup?: string;
  end: RunEnd | null;
}

/** What to wait for on a run's notification socket. */
export type Notice = { is: 'ready' } | { is: 'watchdog'; withinMs: number };

export interface LogLimits {
  maxBytes: number;
  keep: number;
}

export interface HostProtocol {
  /**
   * Replies with every run in the ledger. From then on, ends are sent to `service:<name>` (`exited`) until
   * they are acknowledged.
   */
  runs(message: Record<string, never>): { runs: LedgerRun[] };
  /** Like `runs`, waits for earlier start requests, so that it misses no process. */
  runOf(message: { service: string }): { run: LedgerRun | null };
  /** The run is in the ledger before the reply. Fails start_failed with the reason. */
  spawn(message: SpawnRequest): SpawnReply;
  /**
   * Stops the whole process tree of a run, or joins a stop under way, which a shorter grace period shortens.
   * Replies with the report when the tree is gone, at the latest 2 s after SIGKILL.
   */
  stop(message: StopRequest): StopReport;
  /**
   * Runs a shell command in the working directory and environment of a run. The command and everything it
   * started are ended after `timeoutMs`, or together with the run. One at a time per run. Fails not_running
   * and start_failed.
   */
  exec(message: { service: string; run: string; cmd: string; timeoutMs: number }): ExecReport;
  /**
   * Replies when the run has sent `READY=1`, or when its last `WATCHDOG=1` is younger than `withinMs`; after
   * `timeoutMs` in any case. `status` is the text of its last `STATUS=`.
   */
  notified(message: { run: string; what: Notice; timeoutMs: number }): { holds: boolean; status: string };
  /** Sends a signal to the process group of a run. Fails not_running and invalid_spec. */
  signal(message: { service: string; run: string; signal: string }): { processes: number };
  note(message: { service: string; run: string; memo: RunMetadata }): null;
  /** The daemon has stored this end, so the ledger may drop it. */
  acknowledge(message: { service: string; run: string }): null;
  /** Deletes the logs and all other data of a service that has no process. */
  forget(message: { service: string }): null;
  /** From now on `service:<name>` gets `grew` when its log grows, at most once per turn. */
  follow(message: { service: string; on: boolean }): null;
  /**
   * From now on `service:<name>` gets `terminalMoved` when the terminal output of a run starts, pauses or
   * resumes. Replies with what is known so far.
   */
  watchTerminal(message: { run: string; on: boolean }): TerminalReading;
  /**
   * Input for the terminal of a run. Replies with true when the terminal has taken it, with false when it is
   * gone; a host of an earlier version with null.
   */
  write(message: { service: string; run: string; data: Uint8Array }): boolean | null;
  resize(message: { service: string; run: string; cols: number; rows: number }): null;
  logLimits(message: LogLimits): null;
  /** Bytes of output dropped because the disk was full, per service. */
  dropped(message: Record<string, never>): { rows: { service: string; bytes: number }[] };
  /** The output of every service that has written since the host started, and the number of runs. */
  read(message: Record<string, never>): HostReading;
}

/**
 * Stops the whole process tree of a run, even if its first process has ended. Waits for the report for the
 * longest time that the host may need.
 */
export function stopProcessTree(host: Ref<HostProtocol>, stop: StopRequest): Promise<StopReport> {
  const commandMs = stop.command === undefined ? 0 : stop.graceMs;
  const deadlineMs = commandMs + stop.graceMs + SERVICE.killTimeoutMs + SERVICE.hostStopMarginMs;
  return host.ask('stop', stop, { deadlineMs });
}
