// Wakes the workload of a tether for waiting connections, and finds its pods.
import type { TetherTarget, WorkloadsProtocol } from '../../protocol/cloud.ts';
import { isFailure, type Ref } from '../../runtime/actor.ts';
import { TETHER } from '../../settings/cloud_limits.ts';
import type { Trouble, Waiters, WakeTarget } from './pending_connections.ts';
import type { PodWatch } from './pod_watch.ts';

export interface WorkloadWakerOptions {
  workloads: Ref<WorkloadsProtocol>;
  workloadId: string;
  /** Whether the workload may be woken. */
  wake: boolean;
  /** Whose quota a wake counts for; undefined: nobody's. */
  subject: string | undefined;
  pods: PodWatch;
}

/** Codes that say nothing about the cluster: the cloud thread is busy or restarting. */
const TRANSIENT_CODES: ReadonlySet<string> = new Set([
  'overloaded',
  'deadline',
  'crashed',
  'gone',
  'daemon_busy',
]);

const isAsleep = ({ state, replicas }: TetherTarget): boolean =>
  state === 'asleep' || state === 'sleeping' || replicas === 0;

/** The workload of a tether, as the target of connections that wait for a pod. */
export class WorkloadWaker implements WakeTarget {
  private readonly options: WorkloadWakerOptions;

  constructor(options: WorkloadWakerOptions) {
    this.options = options;
  }

  get trouble(): Trouble | null {
    return this.options.pods.trouble;
  }

  get timeoutReason(): string {
    return `${this.options.pods.absence} within ${TETHER.podWaitTimeoutMs / 1000} s`;
  }

  /** Finds the workload, watches its pods, and wakes it if it sleeps. */
  async ensureAwake(waiters: Waiters): Promise<Omit<Trouble, 'since'> | null | undefined> {
    const { workloads, workloadId, wake, subject, pods } = this.options;
    try {
      const target = await workloads.ask('tetherTarget', { id: workloadId });
      if (waiters.areGone) return null;
      if (target.workload.selector === '')
        return { reason: 'the selector of the workload is not understood', graceMs: 0 };
      pods.start(target);
      pods.readEvents();
      // Without a pod, the state may predate a sleep by another client. A wake leaves an awake workload
      // alone.
      const isDoubtful = wake && target.state === 'awake' && pods.isEmpty;
      if (!isAsleep(target) && !isDoubtful) return null;
      if (!wake) return { reason: 'the workload is asleep, and this tether does not wake it', graceMs: 0 };
      if (await waiters.areStillThere())
        await workloads.ask('wake', {
          ...{ id: workloadId, by: 'connection', waitMs: null },
          ...(subject !== undefined && { subject }),
        });
      return null;
    } catch (error) {
      if (!isFailure(error)) throw error;
      if (TRANSIENT_CODES.has(error.code)) return undefined;
      const graceMs = error.code === 'cluster_unreachable' ? TETHER.retryWindowMs : 0;
      return { reason: error.message, graceMs };
    }
  }
}
