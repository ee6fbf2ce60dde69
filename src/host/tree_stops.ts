// All stops under way: each scan of the process table serves all of them, at the pace of the most urgent one.
import { openListenerTable } from '../adapters/process/listener_table.ts';
import { isLocalAddress, type ListeningSocket } from '../adapters/process/listeners.ts';
import type { ProcessTree, RunRoot } from '../adapters/process/process_tree.ts';
import type { ReservedDescriptor } from '../adapters/process/reserved_descriptor.ts';
import type { StopReport } from '../protocol/host.ts';
import type { Clock } from '../runtime/actor.ts';
import { type StopTarget, TreeStop, type TreeStopOptions } from './stop_tree.ts';

export interface TreeStopsConfig {
  clock: Clock;
  tree: ProcessTree;
  /** All runs, so that no process is attributed to the wrong one. */
  roots: () => RunRoot[];
  /** Pids that are never ended: the host itself and the daemon. */
  protectedPids: () => ReadonlySet<number>;
  /** Used for every scan: without a descriptor, a tree would seem to have ended. */
  reservedDescriptor: ReservedDescriptor;
  /** Called when a scan fails after a successful one. Its result is ignored, and it is repeated. */
  onScanFailed: (error: unknown) => void;
}

const SOON_MS = 1;
const SCAN_RETRY_MS = 250;

/** Starts stops, and scans while any is under way. */
export class TreeStops {
  private readonly config: TreeStopsConfig;
  private readonly stops = new Map<string, TreeStop>();
  private readonly listeners = openListenerTable();
  /** The next scan, in monotonic milliseconds. */
  private scheduled: { at: number; cancel: () => void } | null = null;
  /** No scan before this time, so that scans take at most half of the processor time. */
  private restUntil = 0;
  private isBlind = false;

  constructor(config: TreeStopsConfig) {
    this.config = config;
  }

  /** Stops the tree of `target`, or joins the stop under way and may shorten it. Never rejects. */
  stop(target: StopTarget, options: TreeStopOptions): Promise<StopReport> {
    const { run } = target.root;
    const now = this.config.clock.monotonic();
    const stop = this.stops.get(run) ?? new TreeStop(target, options, now);
    stop.hurry(now + options.graceMs);
    this.stops.set(run, stop);
    this.schedule(0);
    return stop.report;
  }

  /** A process has ended: scan again soon. */
  checkSoon(): void {
    this.schedule(SOON_MS);
  }

  /** The trees that are being stopped. */
  roots(): RunRoot[] {
    return [...this.stops.values()].map((stop) => stop.target.root);
  }

  private schedule(inMs: number): void {
    if (this.stops.size === 0) return;
    const { clock } = this.config;
    const at = Math.max(clock.monotonic() + inMs, this.restUntil);
    if (this.scheduled && at >= this.scheduled.at) return;
    this.scheduled?.cancel();
    const cancel = clock.after(Math.max(0, at - clock.monotonic()), () => this.look());
    this.scheduled = { at, cancel };
  }

  private look(): void {
    const { clock, reservedDescriptor, onScanFailed } = this.config;
    this.scheduled = null;
    const began = clock.monotonic();
    let nextMs = SCAN_RETRY_MS;
    try {
      nextMs = reservedDescriptor.lend(() => this.scan());
      this.isBlind = false;
    } catch (error) {
      if (!this.isBlind) onScanFailed(error);
      this.isBlind = true;
    }
    const ended = clock.monotonic();
    this.restUntil = ended + (ended - began);
    if (Number.isFinite(nextMs)) this.schedule(nextMs);
  }

  /**
   * Scans once and advances every stop. Returns the milliseconds until the next scan; infinite without a
   * stop.
   */
  private scan(): number {
    const { clock, tree, roots, protectedPids } = this.config;
    const all = new Map([...roots(), ...this.roots()].map((root) => [root.run, root]));
    const { members, hasBlankOrphan } = tree.scan([...all.values()], protectedPids());
    let rows: ListeningSocket[] | undefined;
    const listenersOn = (port: number): ListeningSocket[] => {
      rows ??= this.listeners.rows().filter((row) => isLocalAddress(row.address));
      return rows.filter((row) => row.port === port);
    };
    let nextMs = Number.POSITIVE_INFINITY;
    for (const [run, stop] of this.stops) {
      const wishMs = stop.advance({
        members: members.get(run) ?? [],
        hasBlankOrphan,
        portListeners: () => listenersOn(stop.options.port),
        now: clock.monotonic(),
      });
      if (wishMs === null) this.stops.delete(run);
      else nextMs = Math.min(nextMs, wishMs);
    }
    return nextMs;
  }
}
