// Chooses the pod for a tether's next connection, and keeps the API server connections to pods in use.
import type { ClusterDialer } from '../../adapters/cluster_dialer.ts';
import type { PodRow } from '../../adapters/kube/pods.ts';
import { PodConnections } from '../../adapters/portforward/pod_connections.ts';
import type { Destroyable, ForwardError, ForwardStreamEvents } from '../../adapters/portforward/transport.ts';
import { ClusterTransports } from '../../adapters/portforward/transports.ts';
import type { Clock } from '../../runtime/actor.ts';
import { TETHER } from '../../settings/cloud_limits.ts';
import type { SessionTarget, SessionTargets } from './session_router.ts';

/** The pods that sessions may go to. */
export interface PodSource {
  /** The dialer of the cluster; null while nothing is known about it. */
  readonly dialer: ClusterDialer | null;
  readonly usable: readonly PodRow[];
  /** Whether open connections to the pod may be used again. */
  isUsable(uid: string): boolean;
  /** Whether the pod has been deleted, so that its programs have ended or are being ended. */
  isGone(uid: string): boolean;
  /** Whether the pod has become Ready so recently that its program may not listen yet. */
  isFresh(uid: string): boolean;
  /** The pod does not exist. */
  reportAbsent(uid: string): void;
  /** The pods are not needed any more. */
  stop(): void;
}

export interface UsedPodsOptions {
  /** The clock of the connections to the pods. */
  clock: Clock;
  pods: PodSource;
  /** Port of the pods. */
  port: number;
}

/** A pod that is used. */
class UsedPod implements SessionTarget {
  readonly connections: PodConnections;
  sessions = 0;
  /** Other pods are preferred until then, in monotonic milliseconds. */
  avoidUntil = 0;
  private readonly options: UsedPodsOptions;
  private readonly uid: string;

  constructor(options: UsedPodsOptions, cluster: ClusterTransports, pod: PodRow) {
    this.options = options;
    this.uid = pod.uid;
    this.connections = new PodConnections(cluster, pod);
  }

  get isFresh(): boolean {
    return this.options.pods.isFresh(this.uid);
  }

  get isGone(): boolean {
    return this.options.pods.isGone(this.uid);
  }

  open(events: ForwardStreamEvents): Destroyable {
    return this.connections.open(this.options.port, events);
  }

  noteFailure({ code }: ForwardError): void {
    const { clock, pods } = this.options;
    const avoidMs = code === 'unreachable' ? TETHER.unreachableAvoidMs : TETHER.podAvoidMs;
    this.avoidUntil = clock.monotonic() + avoidMs;
    if (code === 'absent') pods.reportAbsent(this.uid);
  }
}

/** The pods that one tether uses. Owned by its SessionRouter. */
export class UsedPods implements SessionTargets {
  private readonly options: UsedPodsOptions;
  private readonly used = new Map<string, UsedPod>();
  /** Connections to pods that are no longer ready. They end with their sessions. */
  private readonly retired = new Set<PodConnections>();
  private cluster: ClusterTransports | null = null;

  constructor(options: UsedPodsOptions) {
    this.options = options;
  }

  get isOpen(): boolean {
    return this.options.pods.dialer !== null;
  }

  /** The usable pod with the fewest sessions. */
  choose(): SessionTarget | null {
    const { clock, pods } = this.options;
    const { dialer } = pods;
    const now = clock.monotonic();
    const cost = ({ uid }: PodRow): number => {
      const used = this.used.get(uid);
      if (!used) return 0.5;
      return (
        used.sessions + (used.connections.hasFreeConnection ? 0 : 0.5) + (used.avoidUntil > now ? 1e6 : 0)
      );
    };
    const [first, ...others] = dialer ? pods.usable : [];
    if (!first || !dialer) return null;
    const pod = others.reduce((best, other) => (cost(other) < cost(best) ? other : best), first);
    return this.entryFor(pod, dialer);
  }

  retainUsable(): void {
    this.retain((uid) => this.options.pods.isUsable(uid));
  }

  renew(): void {
    this.retain(() => false);
    this.options.pods.stop();
  }

  close(): void {
    for (const { connections } of this.used.values()) connections.close();
    for (const connections of this.retired) connections.close();
    this.used.clear();
    this.retired.clear();
    this.cluster?.close();
    this.cluster = null;
    this.options.pods.stop();
  }

  /** Retires the connections to the other pods. */
  private retain(isKept: (uid: string) => boolean): void {
    for (const [uid, { connections }] of this.used) {
      if (isKept(uid)) continue;
      this.used.delete(uid);
      connections.retire();
      this.retired.add(connections);
    }
    for (const connections of this.retired) if (connections.isEmpty) this.retired.delete(connections);
  }

  private entryFor(pod: PodRow, dialer: ClusterDialer): UsedPod {
    const present = this.used.get(pod.uid);
    if (present) return present;
    if (this.cluster?.dialer !== dialer) {
      this.cluster?.close();
      this.cluster = new ClusterTransports(dialer, this.options.clock);
    }
    const entry = new UsedPod(this.options, this.cluster, pod);
    this.used.set(pod.uid, entry);
    return entry;
  }
}
