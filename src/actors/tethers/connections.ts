// Which pod gets the next connection of a tether, and the connections of the API server to those that have
// some.
import type { ClusterDialer } from '../../adapters/cluster_dialer.ts';
import type { PodRow } from '../../adapters/kube/pods.ts';
import { PodConnections } from '../../adapters/portforward/pod_connections.ts';
import { ForwardCluster } from '../../adapters/portforward/transports.ts';
import type { Clock } from '../../runtime/actor.ts';
import { TETHER } from '../../settings/limits.ts';

/** A pod that is used. */
export interface PodEntry {
  readonly uid: string;
  readonly connections: PodConnections;
  /** Sessions on it. */
  sessions: number;
  /** Other pods are preferred until then, in monotonic milliseconds. */
  avoidUntil: number;
}

/** The pods that one tether uses. Owned by its ForwardPool. */
export class TetherConnections {
  private readonly clock: Clock;
  private readonly pods = new Map<string, PodEntry>();
  /** Of pods that are no longer ready: they end with their sessions. */
  private readonly retired = new Set<PodConnections>();
  private cluster: ForwardCluster | null = null;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** The one of `pods` that has fewest sessions; null if there are no pods. */
  choose(pods: readonly PodRow[], dialer: ClusterDialer): PodEntry | null {
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

  /** The pod could not be reached. */
  avoid(pod: PodEntry): void {
    pod.avoidUntil = this.clock.monotonic() + TETHER.podAvoidMs;
  }

  /** Retires the connections to pods that are not ready. */
  retainReady(isReady: (uid: string) => boolean): void {
    for (const [uid, { connections }] of this.pods) {
      if (isReady(uid)) continue;
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

  private entryFor(pod: PodRow, dialer: ClusterDialer): PodEntry {
    const present = this.pods.get(pod.uid);
    if (present) return present;
    if (this.cluster?.dialer !== dialer) {
      this.cluster?.close();
      this.cluster = new ForwardCluster(dialer, this.clock);
    }
    const connections = new PodConnections(this.cluster, pod);
    const entry: PodEntry = { uid: pod.uid, connections, sessions: 0, avoidUntil: 0 };
    this.pods.set(pod.uid, entry);
    return entry;
  }
}
