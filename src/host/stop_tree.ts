// Ends the whole tree of a run, docs/reference.md "Stop": the stop signal, a grace period, then SIGSTOP and
// SIGKILL, until two scans find nothing and the port is free. All stops under way share their scans.
import { constants } from 'node:os';
import { openListenerTable } from '../adapters/process/listener_table.ts';
import { isLocalAddress, type ListeningSocket } from '../adapters/process/listeners.ts';
import { type ProcessRow, processRow, signalDisposition } from '../adapters/process/process_table.ts';
import type { ProcessTree, RunRoot } from '../adapters/process/process_tree.ts';
import type { ReservedDescriptor } from '../adapters/process/reserved_descriptor.ts';
import type { StopReport } from '../protocol/host.ts';
import type { RunEnd } from '../protocol/service.ts';
import type { Clock } from '../runtime/actor.ts';
import { SERVICE } from '../settings/limits.ts';
import { stopReportOf } from './stop_report.ts';

export interface TreeStopOptions {
  signal: NodeJS.Signals;
  graceMs: number;
  port: number;
  /** An earlier host has sent the signal already. */
  sent: boolean;
}

/** What is to end. */
export interface StopTarget {
  readonly root: RunRoot;
  readonly pty: boolean;
  /** How its first process ended; null while that is not known. */
  end(): Pick<RunEnd, 'exitCode' | 'signal' | 'exitUnknown'> | null;
  /** Nothing of it runs any more: if its end cannot become known, it is unknown from now on. */
  onGone(): void;
}

interface TreeStop {
  target: StopTarget;
  options: TreeStopOptions;
  /** Monotonic milliseconds, as are all times here. */
  startedAt: number;
  phase: 'asked' | 'waiting' | 'freezing' | 'killing';
  /** Every process of the tree that was seen, and those that have had the stop signal, SIGHUP or SIGSTOP. */
  seen: Map<number, ProcessRow>;
  signalled: Set<ProcessRow['pid']>;
  hungUp: Set<ProcessRow['pid']>;
  frozen: Set<ProcessRow['pid']>;
  freezeRounds: number;
  killedAt: number | null;
  /** Scans in a row that found nothing, and since when. */
  emptyScans: number;
  emptySince: number;
  resolve: (report: StopReport) => void;
  report: Promise<StopReport>;
}

export interface TreeStops {
  /** Ends the tree of `target`, or joins the stop of it that is under way. */
  stop(target: StopTarget, options: TreeStopOptions): Promise<StopReport>;
  /** Something has ended: looks soon. */
  checkSoon(): void;
  /** The trees that are being ended. */
  roots(): RunRoot[];
}

export interface TreeStopsConfig {
  clock: Clock;
  tree: ProcessTree;
  /** The runs there are, so that nobody's process is taken for another's. */
  roots: () => RunRoot[];
  /** Pids that are never ended: the host itself and the daemon. */
  protectedPids: () => ReadonlySet<number>;
  /** Lent to every look: with no descriptor left a tree would seem to be gone. */
  reservedDescriptor: ReservedDescriptor;
  /** Told when a look has failed after one that did not: nothing is concluded from it, and it is tried again. */
  onScanFailed: (error: unknown) => void;
}

/** To `kill` what is below means the host's own group, init, or everybody: such a number is never sent a signal. */
const FIRST_PID = 2;
const EMPTY_SCANS = 2;
/** What is frozen may have had a child the moment before: it is looked for so often before the kill. */
const MAX_FREEZE_ROUNDS = 10;
/** A port is free as soon as its process is gone; a foreign one is given this long before it is named. */
const PORT_FREE_MS = 50;
const POLL = { soonMs: 1, minMs: 5, maxMs: 250, share: 1 / 8, killMs: 3, scanFailedMs: 250 };

/** Sends `signal` to a process, if it is still the one that was seen. */
function sendSignal(row: ProcessRow, signal: NodeJS.Signals): void {
  const now = processRow(row.pid);
  if (row.pid < FIRST_PID || (now && now.startTicks !== row.startTicks)) return;
  try {
    process.kill(row.pid, signal);
  } catch {
    // Gone, or of another user: the next scan tells.
  }
}

/** Sends `signal` to the group of the run, and to each member outside of it. */
function signalAll(root: RunRoot, rows: readonly ProcessRow[], signal: NodeJS.Signals): void {
  const inGroup = (row: ProcessRow) => root.grouped && root.pid >= FIRST_PID && row.pgid === root.pid;
  if (rows.some(inGroup)) {
    try {
      process.kill(-root.pid, signal);
    } catch {
      // Gone meanwhile.
    }
  }
  for (const row of rows) if (!inGroup(row)) sendSignal(row, signal);
}

/**
 * Whether SIGHUP should follow SIGTERM at once: to those that SIGTERM cannot end, and to those that know what a hang-up
 * means, which are shells. To a program that is just ending in order it would be a second blow.
 */
function needsHangUp(row: ProcessRow): boolean {
  return (
    signalDisposition(row.pid, constants.signals.SIGTERM) === 'ignored' ||
    signalDisposition(row.pid, constants.signals.SIGHUP) === 'caught'
  );
}

/** Sends the stop signal, once to each. A stopped process must go on to act on it. */
function sendStopSignal(stop: TreeStop, members: readonly ProcessRow[]): void {
  const { target, options } = stop;
  const first = stop.phase === 'asked';
  // What joins the group later is the answer to the signal, such as a command of a trap.
  const fresh = members.filter(
    (row) => !stop.signalled.has(row.pid) && (first || row.pgid !== target.root.pid || !target.root.grouped),
  );
  for (const row of fresh) stop.signalled.add(row.pid);
  if (fresh.length === 0 || options.sent) return;
  signalAll(target.root, fresh, options.signal);
  if (target.pty && options.signal === 'SIGTERM') hangUp(stop, fresh.filter(needsHangUp));
  signalAll(target.root, fresh, 'SIGCONT');
}

function hangUp(stop: TreeStop, rows: readonly ProcessRow[]): void {
  for (const row of rows) {
    if (stop.hungUp.has(row.pid)) continue;
    stop.hungUp.add(row.pid);
    sendSignal(row, 'SIGHUP');
  }
}

/** SIGKILL to all, once none of them can have children that were not seen. */
function kill(stop: TreeStop, members: readonly ProcessRow[], now: number): void {
  const { root } = stop.target;
  const moving = members.filter((row) => !stop.frozen.has(row.pid));
  stop.freezeRounds += 1;
  if (stop.killedAt === null && moving.length > 0 && stop.freezeRounds <= MAX_FREEZE_ROUNDS) {
    stop.phase = 'freezing';
    for (const row of moving) stop.frozen.add(row.pid);
    signalAll(root, moving, 'SIGSTOP');
    return;
  }
  stop.phase = 'killing';
  stop.killedAt ??= now;
  signalAll(root, members, 'SIGKILL');
}

/** Resolves a stop: `members` are what could not be ended. */
function finish(
  stop: TreeStop,
  members: readonly ProcessRow[],
  held: readonly ListeningSocket[],
  now: number,
): void {
  stop.resolve(
    stopReportOf({
      end: stop.target.end(),
      escalated: stop.killedAt !== null,
      seenCount: stop.seen.size,
      survivors: members,
      portListeners: held,
      ms: now - stop.startedAt,
    }),
  );
}

/** Two scans in a row have found nothing. Returns when to look again, or null when the stop is done. */
function finishWhenPortFree(stop: TreeStop, held: readonly ListeningSocket[], now: number): number | null {
  stop.target.onGone();
  const waited = now - stop.emptySince;
  // Its end is on its way to us.
  if (!stop.target.end() && waited < SERVICE.killTimeoutMs) return POLL.minMs;
  if (held.length > 0 && waited < PORT_FREE_MS) return POLL.minMs;
  finish(stop, [], held, now);
  return null;
}

/** One step after a scan. Returns when to look again, or null when the stop is done. */
function advance(
  stop: TreeStop,
  members: readonly ProcessRow[],
  held: () => readonly ListeningSocket[],
  now: number,
): number | null {
  const { options, startedAt } = stop;
  for (const row of members) stop.seen.set(row.pid, row);
  if (members.length === 0) {
    if (stop.emptyScans === 0) stop.emptySince = now;
    stop.emptyScans += 1;
    return stop.emptyScans < EMPTY_SCANS ? 0 : finishWhenPortFree(stop, held(), now);
  }
  stop.emptyScans = 0;
  if (stop.killedAt !== null && now - stop.killedAt >= SERVICE.killTimeoutMs) {
    finish(stop, members, held(), now);
    return null;
  }
  const waited = now - startedAt;
  if (stop.phase === 'asked' || (stop.phase === 'waiting' && waited < options.graceMs)) {
    sendStopSignal(stop, members);
    stop.phase = 'waiting';
    const half = options.graceMs / 2;
    if (stop.target.pty && waited >= half) hangUp(stop, members);
    const next = waited < half ? half : options.graceMs;
    const poll = Math.min(Math.max(waited * POLL.share, POLL.minMs), POLL.maxMs);
    return Math.min(poll, Math.max(0, next - waited));
  }
  kill(stop, members, now);
  return stop.phase === 'freezing' ? 0 : POLL.killMs;
}

/** The stops of one host: each look is one scan for all of them, as often as the most urgent needs it. Never throws. */
export function createTreeStops({
  clock,
  tree,
  roots,
  protectedPids,
  reservedDescriptor,
  onScanFailed,
}: TreeStopsConfig): TreeStops {
  const stops = new Map<string, TreeStop>();
  const listeners = openListenerTable();
  let cancel: (() => void) | null = null;
  let dueAt = Number.POSITIVE_INFINITY;
  /** Scans take at most half of the time. */
  let restUntil = 0;
  let isBlind = false;

  const schedule = (inMs: number) => {
    if (stops.size === 0) return;
    const at = Math.max(clock.monotonic() + inMs, restUntil);
    if (cancel && at >= dueAt) return;
    cancel?.();
    dueAt = at;
    cancel = clock.after(Math.max(0, at - clock.monotonic()), look);
  };
  /** One scan, and a step of every stop. Returns when to look again. */
  const round = () => {
    const all = new Map(
      [...roots(), ...[...stops.values()].map((stop) => stop.target.root)].map((r) => [r.run, r]),
    );
    const { members } = tree.scan([...all.values()], protectedPids());
    let rows: ListeningSocket[] | undefined;
    const heldBy = (port: number) => {
      rows ??= listeners.rows().filter((row) => isLocalAddress(row.address));
      return rows.filter((row) => row.port === port);
    };
    let next = Number.POSITIVE_INFINITY;
    for (const [run, stop] of stops) {
      const wish = advance(stop, members.get(run) ?? [], () => heldBy(stop.options.port), clock.monotonic());
      if (wish === null) stops.delete(run);
      else next = Math.min(next, wish);
    }
    return next;
  };
  const look = () => {
    cancel = null;
    const began = clock.monotonic();
    let next: number = POLL.scanFailedMs;
    try {
      next = reservedDescriptor.lend(round);
      isBlind = false;
    } catch (error) {
      if (!isBlind) onScanFailed(error);
      isBlind = true;
    }
    const ended = clock.monotonic();
    restUntil = ended + (ended - began);
    if (Number.isFinite(next)) schedule(next);
  };

  return {
    stop(target, order) {
      const { run } = target.root;
      const under = stops.get(run);
      if (under) return under.report;
      let done: TreeStop['resolve'] = () => {};
      const report = new Promise<StopReport>((resolve) => {
        done = resolve;
      });
      stops.set(run, {
        target,
        options: order,
        startedAt: clock.monotonic(),
        phase: 'asked',
        seen: new Map(),
        signalled: new Set(),
        hungUp: new Set(),
        frozen: new Set(),
        freezeRounds: 0,
        killedAt: null,
        emptyScans: 0,
        emptySince: 0,
        resolve: done,
        report,
      });
      schedule(0);
      return report;
    },
    checkSoon: () => schedule(POLL.soonMs),
    roots: () => [...stops.values()].map((stop) => stop.target.root),
  };
}
