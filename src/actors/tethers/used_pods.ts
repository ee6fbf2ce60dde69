// Which pod gets the next connection of a tether, and the connections of the API server to those that have
// some.
import type { ClusterDialer } from '../../adapters/cluster_dialer.ts';
import type { PodRow } from '../../adapters/kube/pods.ts';
import { PodConnections } from '../../adapters/portforward/pod_connections.ts';
import { ClusterTransports } from '../../adapters/portforward/transports.ts';
import type { Clock } from '../../runtime/actor.ts';

/** A pod that is used. */
export interface UsedPod {
  readonly uid: string;
  readonly connections: PodConnections;
  /** Sessions on it. */
  sessions: number;
  /** Other pods are preferred until then, in monotonic milliseconds. */
  avoidUntil: number;
}

/** The pods that one tether uses. Owned by its SessionRouter. */
export class UsedPods {
  private readonly clock: Clock;
  private readonly pods = new Map<string, UsedPod>();
  /** Of pods that are no longer ready: they end with their sessions. */
  private readonly retired = new Set<PodConnections>();
  private cluster: ClusterTransports | null = null;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** The one of `pods` that has fewest sessions; null if there are no pods. */
  choose(pods: readonly PodRow[], dialer: ClusterDialer): UsedPod | null {
    const now = this.clock.monotonic();
    const cost = ({ uid }: PodRow): number => {
      const used = this.pods.get(uid);
      if (!used) return 0.5;
      return (
        used.sessions + (used.connections.hasFreeConnection ? 0 : 0.5) + (used.avoidUntil > now ? 1e6 : 0)
      );
    };
    const [first, ...others] = pods;
    if (!first) return null;
    const pod = others.reduce((best, other) => (cost(other) < cost(best) ? other : best), first);
    return this.entryFor(pod, dialer);
  }

  /** The pod could not be reached for `ms`. */
  avoid(pod: UsedPod, ms: number): void {
    pod.avoidUntil = this.clock.monotonic() + ms;
  }

  /** Retires the connections to the other pods. */
  retain(isUsable: (uid: string) => boolean): void {
    for (const [uid, { connections }] of this.pods) {
      if (isUsable(uid)) continue;
      this.pods.delete(uid);
      connections.retire();
      this.retired.add(connections);
    }
    for (const connections of this.retired) if (connections.isEmpty) this.retired.delete(connections);
  }

  close(): void {
    for (const { connections } of this.pods.values()) connections.close();
    for (const connections of this.retired) connections.close();
    this.pods.clear();
    this.retired.clear();
    this.cluster?.close();
    this.cluster = null;
  }

  private entryFor(pod: PodRow, dialer: ClusterDialer): UsedPod {
    const present = this.pods.get(pod.uid);
    if (present) return present;
    if (this.cluster?.dialer !== dialer) {
      this.cluster?.close();
      this.cluster = new ClusterTransports(dialer, this.clock);
    }
    const connections = new PodConnections(this.cluster, pod);
    const entry: UsedPod = { uid: pod.uid, connections, sessions: 0, avoidUntil: 0 };
    this.pods.set(pod.uid, entry);
    return entry;
  }
}
