// Writes the last use of workloads on the objects themselves, because another Berth that may put them to
// sleep cannot see the connections through this one. docs/reference.md "Auto-sleep".
import { ACTIVITY_ANNOTATION } from '../../adapters/kube/annotations.ts';
import type { KubeCluster } from '../../adapters/kube/kube_cluster.ts';
import type { ObservedWorkload, StoredWorkload } from '../../protocol/cloud.ts';
import type { WorkloadActivity } from '../../protocol/receipts.ts';
import type { Clock } from '../../runtime/actor.ts';
import { annotationSteps, sameObject } from './workload_patch.ts';

/** The shortest interval between writes to one workload; a third of its idle timeout if that is shorter. */
const MAX_INTERVAL_MS = 300_000;

export interface ActivityReportsOptions {
  clock: Clock;
  /** The name of this Berth. */
  self: string;
  /** Changes the workload and records the result. Rejects only for defects. */
  change(
    row: StoredWorkload,
    change: (cluster: KubeCluster) => Promise<ObservedWorkload | null>,
  ): Promise<void>;
  onDefect(error: unknown): void;
}

/** The shortest idle timeout set for it in any Berth; null if there is none. */
function idleMinutesOf({ autoSleep, idleMinutes, seen }: StoredWorkload): number | null {
  const known = [...(autoSleep ? [idleMinutes] : []), ...(seen.activity ? [seen.activity.minutes] : [])];
  return known.length === 0 ? null : Math.min(...known);
}

/** `withdrawal`: this Berth no longer puts it to sleep. */
interface Write {
  row: StoredWorkload;
  kind: 'use' | 'withdrawal';
}

export class ActivityReports {
  private readonly options: ActivityReportsOptions;
  /** When each workload was last written (monotonic milliseconds). */
  private readonly writtenAt = new Map<string, number>();
  /** Pending writes by cluster and workload. They are made one after the other. */
  private readonly waiting = new Map<string, Map<string, Write>>();

  constructor(options: ActivityReportsOptions) {
    this.options = options;
  }

  /** Writes the use of a workload, unless that was done recently or no Berth needs it. */
  report(row: StoredWorkload): void {
    const minutes = idleMinutesOf(row);
    if (minutes === null || row.seen.replicas === 0) return;
    const intervalMs = Math.min(MAX_INTERVAL_MS, (minutes * 60_000) / 3);
    const now = this.options.clock.monotonic();
    if (now - (this.writtenAt.get(row.id) ?? Number.NEGATIVE_INFINITY) < intervalMs) return;
    this.write(row);
  }

  /** Tells other Berths that this one may put the workload to sleep, so that they report its use. */
  announce(row: StoredWorkload): void {
    const { autoSleep, idleMinutes, seen } = row;
    const isKnown = seen.activity !== null && seen.activity.minutes <= idleMinutes;
    if (autoSleep && seen.replicas > 0 && !isKnown) this.report(row);
  }

  /** This Berth no longer puts it to sleep. Others that still do announce themselves at their next sweep. */
  withdraw(row: StoredWorkload): void {
    this.writtenAt.delete(row.id);
    if (row.seen.activity !== null) this.enqueue(row, 'withdrawal');
  }

  private write(row: StoredWorkload): void {
    this.writtenAt.set(row.id, this.options.clock.monotonic());
    this.enqueue(row, 'use');
  }

  private enqueue(row: StoredWorkload, kind: Write['kind']): void {
    const queue = this.waiting.get(row.clusterId);
    if (queue) {
      queue.set(row.id, { row, kind });
      return;
    }
    this.waiting.set(row.clusterId, new Map([[row.id, { row, kind }]]));
    this.writeAll(row.clusterId).catch((error: unknown) => this.options.onDefect(error));
  }

  private async writeAll(clusterId: string): Promise<void> {
    const queue = this.waiting.get(clusterId);
    for (const [id, write] of queue ?? []) {
      queue?.delete(id);
      await this.options.change(write.row, (cluster) => this.annotate(cluster, write));
    }
    this.waiting.delete(clusterId);
  }

  /** Resolves with null when the object is gone, asleep, or was recreated. */
  private async annotate(cluster: KubeCluster, { row, kind }: Write): Promise<ObservedWorkload | null> {
    const fresh = await cluster.getWorkload(row.seen);
    const minutes = idleMinutesOf({ ...row, seen: fresh?.seen ?? row.seen });
    if (fresh?.seen.uid !== row.seen.uid || fresh.seen.replicas === 0 || minutes === null) return null;
    const { clock, self } = this.options;
    const activity: WorkloadActivity = { at: clock.now(), from: self, minutes };
    const values = { [ACTIVITY_ANNOTATION]: kind === 'use' ? JSON.stringify(activity) : null };
    return await cluster.patchWorkload(row.seen, [sameObject(fresh), ...annotationSteps(fresh, values)]);
  }
}
