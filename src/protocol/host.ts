// The process host: a small process of its own that owns every child process and outlives the daemon.
import type { Ref } from '../runtime/actor.ts';
import { SERVICE } from '../settings/limits.ts';
import type { RunEnd } from './service.ts';

/** Hello carries it; a daemon speaks to a host of its own version or of the one before. */
export const HOST_PROTOCOL_VERSION = 1;

export interface SpawnRequest {
  service: string;
  run: string;
  /** Given to `/bin/sh -c`. */
  cmd: string;
  cwd: string;
  /** The whole environment of the child. */
  env: [key: string, value: string][];
  port: number;
  /** The user's own umask, not the daemon's 077. */
  umask: number;
  /** null: stdout and stderr are FIFOs. */
  pty: { cols: number; rows: number } | null;
  /** The daemon's own notes on this run; the host keeps them and gives them back. */
  memo: RunMetadata;
}

/** What a later daemon must know to go on with a run. */
export interface RunMetadata {
  revision: number;
  port: number;
  ready: string | null;
  /** It has passed its ready-check. */
  passed: boolean;
  /** Epoch milliseconds at which the start gives up; null: never. */
  deadline: number | null;
  restarts: number;
}

export interface SpawnReply {
  pid: number;
  /** Field 22 of /proc/<pid>/stat: with the pid and the boot id, the identity of a process. */
  startTicks: number;
  /** Epoch milliseconds. */
  startedAt: number;
  rssMB: number;
}

export interface StopRequest {
  service: string;
  run: string;
  signal: string;
  graceMs: number;
  port: number;
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
  /** A stop under way: the host finishes it without a daemon. */
  stopping: boolean;
  end: RunEnd | null;
}

export interface LogLimits {
  maxBytes: number;
  keep: number;
}

export interface HostProtocol {
  /**
   * Replies every run the ledger holds. After it, ends are told to `service:<name>` (`exited`) until
   * acknowledged.
   */
  runs(message: Record<string, never>): { runs: LedgerRun[] };
  /** As `runs` it waits for a start that was asked for before, so that no process is missed. */
  runOf(message: { service: string }): { run: LedgerRun | null };
  /** The ledger has the run before the reply. Fails start_failed with the reason. */
  spawn(message: SpawnRequest): SpawnReply;
  /**
   * Ends the whole tree of a run; joins a stop under way. The report when it is gone, at the latest 2 s after
   * SIGKILL.
   */
  stop(message: StopRequest): StopReport;
  note(message: { service: string; run: string; memo: RunMetadata }): null;
  /** The daemon has this end on disk: the ledger may drop it. */
  acknowledge(message: { service: string; run: string }): null;
  /** Deletes the logs and what else is kept of a service without a process. */
  forget(message: { service: string }): null;
  /**
   * From now on `service:<name>` gets `grew` when its log grows, at most once per turn.
   */
  follow(message: { service: string; on: boolean }): null;
  /** Input to the terminal of a run. */
  write(message: { service: string; run: string; data: Uint8Array }): null;
  resize(message: { service: string; run: string; cols: number; rows: number }): null;
  logLimits(message: LogLimits): null;
  /** Bytes of output dropped because the disk was full, per service. */
  dropped(message: Record<string, never>): { rows: { service: string; bytes: number }[] };
}

/**
 * Ends the whole tree of a run, even of one that has ended itself. Waits for the report as long as the host
 * may take.
 */
export function stopProcessTree(host: Ref<HostProtocol>, stop: StopRequest): Promise<StopReport> {
  const deadlineMs = stop.graceMs + SERVICE.killTimeoutMs + SERVICE.hostStopMarginMs;
  return host.ask('stop', stop, { deadlineMs });
}
