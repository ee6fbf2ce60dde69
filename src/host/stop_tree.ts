// One stop of the whole tree of a run, docs/reference.md "Stop": the stop signal, a grace period, then
// SIGSTOP and SIGKILL, until two scans find nothing and the port is free. Advanced by the scans of
// tree_stops.ts.
import type { ListeningSocket } from '../adapters/process/listeners.ts';
import type { ProcessRow } from '../adapters/process/process_table.ts';
import type { RunRoot } from '../adapters/process/process_tree.ts';
import type { StopReport } from '../protocol/host.ts';
import type { RunEnd } from '../protocol/service.ts';
import { deferred } from '../runtime/deferred.ts';
import { SERVICE } from '../settings/limits.ts';
import { needsHangUp, sendSignal, signalRun } from './signals.ts';
import { stopReportOf } from './stop_report.ts';

export interface TreeStopOptions {
  signal: NodeJS.Signals;
  graceMs: number;
  port: number;
  /** An earlier host has already sent the signal. */
  isSent: boolean;
  /** Called once the signal has been sent. */
  onSent?: () => void;
}

/** The run whose tree is stopped. */
export interface StopTarget {
  readonly root: RunRoot;
  readonly hasTerminal: boolean;
  /** The end of its first process; null while it is unknown. */
  end(): Pick<RunEnd, 'exitCode' | 'signal' | 'exitUnknown'> | null;
  /** Called when no process of the tree is left. An end unknown by then may stay unknown. */
  onGone(): void;
}

/** The result of the latest scan. */
export interface TreeStopScan {
  /** The live processes of the tree. */
  members: readonly ProcessRow[];
  /** Whether there is a process that may turn out to be a member: see `TreeScan`. */
  hasBlankOrphan: boolean;
  /** The listeners on the port of the run. */
  portListeners: () => readonly ListeningSocket[];
  /** Monotonic milliseconds, like all times here. */
  now: number;
}

type StopPhase =
  /** The stop signal must be sent. */
  | { is: 'requested' }
  /** The grace period is running. */
  | { is: 'waiting' }
  /** Processes are frozen, so that none forks unseen before the kill. */
  | { is: 'freezing'; round: number }
  | { is: 'killing'; since: number };

/** Consecutive empty scans that prove that the tree is gone. */
const EMPTY_SCANS = 2;
/**
 * A process may fork just before it is frozen: the maximum number of rounds that search for its children
 * before the kill.
 */
const MAX_FREEZE_ROUNDS = 10;
/**
 * A port is free as soon as its process has ended. A listener outside the tree gets this long before it is
 * reported.
 */
const PORT_FREE_MS = 50;
/** How long a process without an environment may be in the middle of exec. Others never had one. */
const BLANK_MS = 50;
/** Pauses between scans: minimum, maximum, and share of the time waited; after SIGKILL. */
const POLL = { minMs: 5, maxMs: 250, share: 1 / 8, afterKillMs: 3 };

/** A stop under way: a state machine that each scan advances. */
export class TreeStop {
  readonly target: StopTarget;
  readonly options: TreeStopOptions;
  private readonly startedAt: number;
  /** When what is left is killed. */
  private killAt: number;
  private readonly reported = deferred<StopReport>();
  private phase: StopPhase = { is: 'requested' };
  /** Every process of the tree so far, by pid, and those that got the stop signal, SIGHUP or SIGSTOP. */
  private readonly seen = new Map<number, ProcessRow>();
  private readonly signalled = new Set<number>();
  private readonly hungUp = new Set<number>();
  private readonly frozen = new Set<number>();
  /** Consecutive empty scans; null after a scan that found something. */
  private empty: { scans: number; since: number } | null = null;

  constructor(target: StopTarget, options: TreeStopOptions, now: number) {
    this.target = target;
    this.options = options;
    this.startedAt = now;
    this.killAt = now + options.graceMs;
  }

  /** Resolves when the stop is over. */
  get report(): Promise<StopReport> {
    return this.reported.promise;
  }

  /** Kills what is left at `killAt`, in monotonic milliseconds, unless it does so earlier. */
  hurry(killAt: number): void {
    this.killAt = Math.min(this.killAt, killAt);
  }

  /**
   * Takes one step after a scan. Returns the milliseconds until the next scan, or null when the stop is over.
   */
  advance(scan: TreeStopScan): number | null {
    const { members, now } = scan;
    if (members.length === 0) return this.advanceEmpty(scan);
    this.empty = null;
    for (const row of members) this.seen.set(row.pid, row);
    const { phase } = this;
    if (phase.is === 'killing' && now - phase.since >= SERVICE.killTimeoutMs) return this.finish(scan);
    const isInGrace = phase.is === 'waiting' && now < this.killAt;
    return phase.is === 'requested' || isInGrace ? this.terminate(scan) : this.kill(scan);
  }

  private advanceEmpty(scan: TreeStopScan): number | null {
    const { now } = scan;
    this.empty ??= { scans: 0, since: now };
    if (scan.hasBlankOrphan && now - this.empty.since < BLANK_MS) return POLL.minMs;
    this.empty.scans += 1;
    if (this.empty.scans < EMPTY_SCANS) return 0;
    this.target.onGone();
    const waitedMs = now - this.empty.since;
    // The end of the first process becomes known shortly after the process is gone.
    if (!this.target.end() && waitedMs < SERVICE.killTimeoutMs) return POLL.minMs;
    if (scan.portListeners().length > 0 && waitedMs < PORT_FREE_MS) return POLL.minMs;
    return this.finish(scan);
  }

  /** Sends the signals of the grace period. */
  private terminate({ members, now }: TreeStopScan): number {
    this.sendStopSignal(members);
    this.phase = { is: 'waiting' };
    const waitedMs = now - this.startedAt;
    const graceMs = this.killAt - this.startedAt;
    const halfMs = graceMs / 2;
    if (this.target.hasTerminal && waitedMs >= halfMs) this.hangUp(members);
    const nextStepMs = waitedMs < halfMs ? halfMs : graceMs;
    const pollMs = Math.min(Math.max(waitedMs * POLL.share, POLL.minMs), POLL.maxMs);
    return Math.min(pollMs, Math.max(0, nextStepMs - waitedMs));
  }

  /**
   * Sends the stop signal, once to each process, and SIGCONT, because a stopped process does not act on
   * signals.
   */
  private sendStopSignal(members: readonly ProcessRow[]): void {
    const { target, options, signalled } = this;
    const isFirst = this.phase.is === 'requested';
    // A process that joins the group later is the response to the signal, such as a command of a trap.
    const isResponse = (row: ProcessRow) => !isFirst && target.root.grouped && row.pgid === target.root.pid;
    const fresh = members.filter((row) => !signalled.has(row.pid) && !isResponse(row));
    for (const row of fresh) signalled.add(row.pid);
    if (fresh.length === 0 || options.isSent) return;
    signalRun(target.root, fresh, options.signal);
    if (target.hasTerminal && options.signal === 'SIGTERM') this.hangUp(fresh.filter(needsHangUp));
    signalRun(target.root, fresh, 'SIGCONT');
    if (isFirst) options.onSent?.();
  }

  private hangUp(rows: readonly ProcessRow[]): void {
    for (const row of rows) {
      if (this.hungUp.has(row.pid)) continue;
      this.hungUp.add(row.pid);
      sendSignal(row, 'SIGHUP');
    }
  }

  /** Sends SIGKILL to all processes, once none of them can have unseen children. */
  private kill({ members, now }: TreeStopScan): number {
    const { target, phase } = this;
    const round = phase.is === 'freezing' ? phase.round + 1 : 1;
    const moving = members.filter((row) => !this.frozen.has(row.pid));
    if (phase.is !== 'killing' && moving.length > 0 && round <= MAX_FREEZE_ROUNDS) {
      this.phase = { is: 'freezing', round };
      for (const row of moving) this.frozen.add(row.pid);
      signalRun(target.root, moving, 'SIGSTOP');
      return 0;
    }
    if (phase.is !== 'killing') this.phase = { is: 'killing', since: now };
    signalRun(target.root, members, 'SIGKILL');
    return POLL.afterKillMs;
  }

  /** Resolves the report; the members of `scan` could not be ended. */
  private finish({ members, portListeners, now }: TreeStopScan): null {
    const report = stopReportOf({
      end: this.target.end(),
      isEscalated: this.phase.is === 'killing',
      seenCount: this.seen.size,
      survivors: members,
      portListeners: portListeners(),
      ms: now - this.startedAt,
    });
    report.then(this.reported.resolve, this.reported.reject);
    return null;
  }
}
