// Ends the whole tree of a run, docs/reference.md "Stop": the stop signal, a grace period, then SIGSTOP and
// SIGKILL, until two scans find nothing and the port is free. All stops under way share their scans.
import { constants } from 'node:os';
import type { Spare } from '../adapters/process/descriptors.ts';
import { openListenerTable } from '../adapters/process/listener_table.ts';
import { isLocal, type Listener } from '../adapters/process/listeners.ts';
import { dispositionOf, type ProcessRow, processRow } from '../adapters/process/proctable.ts';
import type { Root, Tree } from '../adapters/process/tree.ts';
import { SERVICE } from '../limits.ts';
import type { StopReport } from '../protocol/host.ts';
import type { RunEnd } from '../protocol/service.ts';
import type { Clock } from '../runtime/actor.ts';
import { reportOf } from './stop_report.ts';

export interface StopOrder {
  signal: NodeJS.Signals;
  graceMs: number;
  port: number;
  /** An earlier host has sent the signal already. */
  sent: boolean;
}

/** What is to end. */
export interface Target {
  readonly root: Root;
  readonly pty: boolean;
  /** How its first process ended; null while that is not known. */
  end(): Pick<RunEnd, 'exitCode' | 'signal' | 'exitUnknown'> | null;
  /** Nothing of it runs any more: if its end cannot become known, it is unknown from now on. */
  gone(): void;
}

interface Stop {
  target: Target;
  order: StopOrder;
  /** Monotonic milliseconds, as are all times here. */
  began: number;
  phase: 'asked' | 'waiting' | 'freezing' | 'killing';
  /** Every process of the tree that was seen, and those that have had the stop signal, SIGHUP or SIGSTOP. */
  seen: Map<number, ProcessRow>;
  asked: Set<ProcessRow['pid']>;
  hungUp: Set<ProcessRow['pid']>;
  frozen: Set<ProcessRow['pid']>;
  rounds: number;
  killedAt: number | null;
  /** Scans in a row that found nothing, and since when. */
  empty: number;
  emptyAt: number;
  done: (report: StopReport) => void;
  report: Promise<StopReport>;
}

export interface Stops {
  /** Ends the tree of `target`, or joins the stop of it that is under way. */
  stop(target: Target, order: StopOrder): Promise<StopReport>;
  /** Something has ended: looks soon. */
  poke(): void;
  /** The trees that are being ended. */
  roots(): Root[];
}

export interface StopsConfig {
  clock: Clock;
  tree: Tree;
  /** The runs there are, so that nobody's process is taken for another's. */
  roots: () => Root[];
  /** Pids that are never ended: the host itself and the daemon. */
  spared: () => ReadonlySet<number>;
  /** Lent to every look: with no descriptor left a tree would seem to be gone. */
  spare: Spare;
  /** Told when a look has failed after one that did not: nothing is concluded from it, and it is tried again. */
  blind: (error: unknown) => void;
}

/** To `kill` what is below means the host's own group, init, or everybody: such a number is never sent a signal. */
const FIRST_PID = 2;
const EMPTY_SCANS = 2;
/** What is frozen may have had a child the moment before: it is looked for so often before the kill. */
const FREEZE_ROUNDS = 10;
/** A port is free as soon as its process is gone; a foreign one is given this long before it is named. */
const PORT_MS = 50;
const POLL = { soonMs: 1, leastMs: 5, mostMs: 250, share: 1 / 8, killMs: 3, blindMs: 250 };

/** Sends `signal` to a process, if it is still the one that was seen. */
function send(row: ProcessRow, signal: NodeJS.Signals): void {
  const now = processRow(row.pid);
  if (row.pid < FIRST_PID || (now && now.startTicks !== row.startTicks)) return;
  try {
    process.kill(row.pid, signal);
  } catch {
    // Gone, or of another user: the next scan tells.
  }
}

/** Sends `signal` to the group of the run, and to each member outside of it. */
function sendAll(root: Root, rows: readonly ProcessRow[], signal: NodeJS.Signals): void {
  const inGroup = (row: ProcessRow) => root.grouped && root.pid >= FIRST_PID && row.pgid === root.pid;
  if (rows.some(inGroup)) {
    try {
      process.kill(-root.pid, signal);
    } catch {
      // Gone meanwhile.
    }
  }
  for (const row of rows) if (!inGroup(row)) send(row, signal);
}

/**
 * Whether SIGHUP should follow SIGTERM at once: to those that SIGTERM cannot end, and to those that know what a hang-up
 * means, which are shells. To a program that is just ending in order it would be a second blow.
 */
function takesHangUp(row: ProcessRow): boolean {
  return (
    dispositionOf(row.pid, constants.signals.SIGTERM) === 'ignored' ||
    dispositionOf(row.pid, constants.signals.SIGHUP) === 'caught'
  );
}

/** Sends the stop signal, once to each. A stopped process must go on to act on it. */
function ask(stop: Stop, members: readonly ProcessRow[]): void {
  const { target, order } = stop;
  const first = stop.phase === 'asked';
  // What joins the group later is the answer to the signal, such as a command of a trap.
  const fresh = members.filter(
    (row) => !stop.asked.has(row.pid) && (first || row.pgid !== target.root.pid || !target.root.grouped),
  );
  for (const row of fresh) stop.asked.add(row.pid);
  if (fresh.length === 0 || order.sent) return;
  sendAll(target.root, fresh, order.signal);
  if (target.pty && order.signal === 'SIGTERM') hangUp(stop, fresh.filter(takesHangUp));
  sendAll(target.root, fresh, 'SIGCONT');
}

function hangUp(stop: Stop, rows: readonly ProcessRow[]): void {
  for (const row of rows) {
    if (stop.hungUp.has(row.pid)) continue;
    stop.hungUp.add(row.pid);
    send(row, 'SIGHUP');
  }
}

/** SIGKILL to all, once none of them can have children that were not seen. */
function kill(stop: Stop, members: readonly ProcessRow[], now: number): void {
  const { root } = stop.target;
  const moving = members.filter((row) => !stop.frozen.has(row.pid));
  stop.rounds += 1;
  if (stop.killedAt === null && moving.length > 0 && stop.rounds <= FREEZE_ROUNDS) {
    stop.phase = 'freezing';
    for (const row of moving) stop.frozen.add(row.pid);
    sendAll(root, moving, 'SIGSTOP');
    return;
  }
  stop.phase = 'killing';
  stop.killedAt ??= now;
  sendAll(root, members, 'SIGKILL');
}

/** Resolves a stop: `members` are what could not be ended. */
function finish(stop: Stop, members: readonly ProcessRow[], held: readonly Listener[], now: number): void {
  stop.done(
    reportOf({
      end: stop.target.end(),
      escalated: stop.killedAt !== null,
      seen: stop.seen.size,
      members,
      held,
      ms: now - stop.began,
    }),
  );
}

/** Two scans in a row have found nothing. Returns when to look again, or null when the stop is done. */
function settle(stop: Stop, held: readonly Listener[], now: number): number | null {
  stop.target.gone();
  const waited = now - stop.emptyAt;
  // Its end is on its way to us.
  if (!stop.target.end() && waited < SERVICE.afterKillMs) return POLL.leastMs;
  if (held.length > 0 && waited < PORT_MS) return POLL.leastMs;
  finish(stop, [], held, now);
  return null;
}

/** One step after a scan. Returns when to look again, or null when the stop is done. */
function step(
  stop: Stop,
  members: readonly ProcessRow[],
  held: () => readonly Listener[],
  now: number,
): number | null {
  const { order, began } = stop;
  for (const row of members) stop.seen.set(row.pid, row);
  if (members.length === 0) {
    if (stop.empty === 0) stop.emptyAt = now;
    stop.empty += 1;
    return stop.empty < EMPTY_SCANS ? 0 : settle(stop, held(), now);
  }
  stop.empty = 0;
  if (stop.killedAt !== null && now - stop.killedAt >= SERVICE.afterKillMs) {
    finish(stop, members, held(), now);
    return null;
  }
  const waited = now - began;
  if (stop.phase === 'asked' || (stop.phase === 'waiting' && waited < order.graceMs)) {
    ask(stop, members);
    stop.phase = 'waiting';
    const half = order.graceMs / 2;
    if (stop.target.pty && waited >= half) hangUp(stop, members);
    const next = waited < half ? half : order.graceMs;
    const poll = Math.min(Math.max(waited * POLL.share, POLL.leastMs), POLL.mostMs);
    return Math.min(poll, Math.max(0, next - waited));
  }
  kill(stop, members, now);
  return stop.phase === 'freezing' ? 0 : POLL.killMs;
}

/** The stops of one host: each look is one scan for all of them, as often as the most urgent needs it. Never throws. */
export function createStops({ clock, tree, roots, spared, spare, blind }: StopsConfig): Stops {
  const stops = new Map<string, Stop>();
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
    const { members } = tree.scan([...all.values()], spared());
    let rows: Listener[] | undefined;
    const heldBy = (port: number) => {
      rows ??= listeners.rows().filter((row) => isLocal(row.address));
      return rows.filter((row) => row.port === port);
    };
    let next = Number.POSITIVE_INFINITY;
    for (const [run, stop] of stops) {
      const wish = step(stop, members.get(run) ?? [], () => heldBy(stop.order.port), clock.monotonic());
      if (wish === null) stops.delete(run);
      else next = Math.min(next, wish);
    }
    return next;
  };
  const look = () => {
    cancel = null;
    const began = clock.monotonic();
    let next: number = POLL.blindMs;
    try {
      next = spare.lend(round);
      isBlind = false;
    } catch (error) {
      if (!isBlind) blind(error);
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
      let done: Stop['done'] = () => {};
      const report = new Promise<StopReport>((resolve) => {
        done = resolve;
      });
      stops.set(run, {
        target,
        order,
        began: clock.monotonic(),
        phase: 'asked',
        seen: new Map(),
        asked: new Set(),
        hungUp: new Set(),
        frozen: new Set(),
        rounds: 0,
        killedAt: null,
        empty: 0,
        emptyAt: 0,
        done,
        report,
      });
      schedule(0);
      return report;
    },
    poke: () => schedule(POLL.soonMs),
    roots: () => [...stops.values()].map((stop) => stop.target.root),
  };
}
