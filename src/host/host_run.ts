// One run of the host, and its descriptions.
import { constants } from 'node:os';
import { residentBytes, settingOf } from '../adapters/process/process_table.ts';
import type { LedgerRow } from '../adapters/storage/ledger_file.ts';
import type { LogRunMark } from '../logs/format.ts';
import { fail } from '../protocol/errors.ts';
import type { LedgerRun, SpawnReply } from '../protocol/host.ts';
import { SERVICE_NAME_PATTERN } from '../protocol/names.ts';
import type { RunEnd } from '../protocol/service.ts';
import { MIB } from '../settings/limits.ts';
import type { HostTerminal } from './pty.ts';
import type { RunSetting } from './run_commands.ts';
import type { StopTarget } from './stop_tree.ts';

/** A stop under way. */
interface RunStop {
  /** How long its command took, and what precedes it, once both have ended. */
  readonly commandMs: Promise<number>;
  /** When the latest stop that shortens it has what is left killed: monotonic ms, infinite without one. */
  killAt: number;
}

/** A run in the ledger of this host. */
export interface HostRun extends StopTarget {
  /** The service. */
  readonly name: string;
  /** `row.end` is null while the process lives. */
  row: LedgerRow;
  /**
   * A spawned process is a child of this host. An adopted one is not, so only its disappearance can be
   * noticed.
   */
  readonly origin: 'spawned' | 'adopted';
  terminal: HostTerminal | null;
  /** What its process was started with; null: only an earlier host knew. */
  setting: RunSetting | null;
  /** The stop under way; null: none, or one that an earlier host began. */
  stopping: RunStop | null;
}

export type HostRunOutcome = Pick<RunEnd, 'exitCode' | 'signal' | 'exitUnknown' | 'cause'>;
/** The outcome of a run whose exit code cannot be known. */
export const UNKNOWN_OUTCOME: HostRunOutcome = {
  exitCode: null,
  signal: null,
  exitUnknown: true,
  cause: 'exit',
};

/** Checks a name, because names of services and runs become file names. */
export function checkName(name: string): void {
  if (!SERVICE_NAME_PATTERN.test(name))
    throw fail('invalid_spec', `${JSON.stringify(name)} is not a valid name`);
}

/** The log entry of a start; `time` in epoch milliseconds. */
export const startMark = (run: string, pid: number, time: number): LogRunMark => ({
  event: 'started',
  time,
  run,
  pid,
  exitCode: null,
  signal: null,
});

/** The log entry of an end. */
export const endMark = ({ run, exitCode, signal, at }: RunEnd, pid: number): LogRunMark => ({
  event: 'ended',
  time: at,
  run,
  pid,
  exitCode,
  signal,
});

/** Whether the system knows a signal by this name. */
export const isSignalName = (name: string): name is NodeJS.Signals => Object.hasOwn(constants.signals, name);

/** A run as the daemon sees it. */
export function runRowOf({ row }: HostRun): LedgerRun {
  const { boot: _boot, stateId: _stateId, stop, ...shown } = row;
  return { ...shown, stopping: stop !== null, ...(stop && { stopGraceMs: stop.graceMs }) };
}

/**
 * The milliseconds that are left of the grace period of `stop` at `now`, in epoch milliseconds. While its
 * command runs: if the signal were sent now.
 */
export function graceLeftMs(stop: NonNullable<LedgerRow['stop']>, now: number): number {
  const { at, graceMs, isCommand, killAt = Number.POSITIVE_INFINITY } = stop;
  const leftMs = Math.min(isCommand ? graceMs : at + graceMs - now, killAt - now);
  // If the clock was set back, no more is left than at the start.
  return Math.min(graceMs, Math.max(0, leftMs));
}

/** The row once the command that stops the run has ended, at `at`. Signals follow. */
export function rowAfterCommand(row: LedgerRow, at: number): LedgerRow {
  if (!row.stop) return row;
  const { isCommand: _, ...rest } = row.stop;
  return { ...row, stop: { ...rest, at, isSent: false } };
}

/** `row` once the signal of its stop has been sent, so that a later host does not repeat it. */
export function signalledRow(row: LedgerRow): LedgerRow {
  if (!row.stop) return row;
  const { isSent: _, ...stop } = row.stop;
  return { ...row, stop };
}

/** The answer to a start. */
export const spawnReplyOf = ({ cgroup, pid, startTicks, startedAt }: LedgerRow): SpawnReply => ({
  pid,
  startTicks,
  startedAt,
  ...(cgroup !== undefined && { contained: true }),
  rssMB: Math.ceil(residentBytes(pid) / MIB),
});

/** What the process of a run was started with; null if the system does not say. */
export function settingOfRun(run: HostRun): RunSetting | null {
  try {
    run.setting ??= settingOf(run.row.pid);
  } catch {
    return null;
  }
  return run.setting;
}

/** A target for a run that is no longer in the ledger: only processes with its mark can be found. */
export function forgottenTarget(name: string, run: string): StopTarget {
  const end = { service: name, run, ...UNKNOWN_OUTCOME, at: 0 };
  return {
    root: { run, pid: 0, startTicks: 0, grouped: false },
    hasTerminal: false,
    end: () => end,
    onGone: () => {},
  };
}
