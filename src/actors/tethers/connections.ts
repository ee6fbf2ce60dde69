// Which pod gets the next connection of a tether, and the lines to those that have some.
import type { ClusterDialer } from '../../adapters/cluster_dialer.ts';
import type { PodRow } from '../../adapters/kube/pods.ts';
import { PodConnections } from '../../adapters/portforward/pod_connections.ts';
import { ForwardCluster } from '../../adapters/portforward/transports.ts';
import { TETHER } from '../../settings/limits.ts';
import type { Session } from './session.ts';

interface PodEntry {
  connections: PodConnections;
  /** Connections on it. */
  sessions: number;
  /** Until then others are preferred, in monotonic milliseconds. */
  avoidUntil: number;
}

/** The lines of one tether to all of its pods, and which session is on which; its carrier owns it. */
export class TetherConnections {
  private readonly port: number;
  private readonly now: () => number;
  private readonly pods = new Map<string, PodEntry>();
  /** Of pods that are no longer ready: they end with their connections. */
  private readonly retired = new Set<PodConnections>();
  private readonly podBySession = new Map<Session, PodEntry>();
  private cluster: ForwardCluster | null = null;

  constructor(port: number, now: () => number) {
    this.port = port;
    this.now = now;
  }

  /** Gives the connection to one of `pods`, the one that has fewest; false when there are none. */
  assign(session: Session, pods: readonly PodRow[], dialer: ClusterDialer): boolean {
    const now = this.now();
    const cost = (pod: PodRow): number => {
      const used = this.pods.get(pod.uid);
      if (!used) return 0.5;
      return (
        used.sessions + (used.connections.hasFreeConnection ? 0 : 0.5) + (used.avoidUntil > now ? 1e6 : 0)
      );
    };
    const [first, ...others] = pods;
    if (!first) return false;
    const pod = others.reduce((best, other) => (cost(other) < cost(best) ? other : best), first);
    const used = this.entryFor(pod, dialer);
    used.sessions += 1;
    this.podBySession.set(session, used);
    session.podUid = pod.uid;
    session.forward((events) => used.connections.open(this.port, events));
    return true;
  }

  /** The connection has left its pod; `failed`: it could not be reached. */
  release(session: Session, failed: boolean): void {
    const used = this.podBySession.get(session);
    if (!used) return;
    this.podBySession.delete(session);
    used.sessions -= 1;
    if (failed) used.avoidUntil = this.now() + TETHER.podAvoidMs;
  }

  /** Lets go of the pods of which `isReady` does not hold. */
  retainReady(isReady: (uid: string) => boolean): void {
    for (const [uid, { connections }] of this.pods) {
      if (isReady(uid)) continue;
      this.pods.delete(uid);
      connections.retire();
      this.retired.add(connections);
    }
    for (const lines of this.retired) if (lines.isEmpty) this.retired.delete(lines);
  }

  close(): void {
    for (const { connections } of this.pods.values()) connections.close();
    for (const lines of this.retired) lines.close();
    this.pods.clear();
    this.retired.clear();
    this.cluster?.close();
    this.cluster = null;
  }

  private entryFor(pod: PodRow, dialer: ClusterDialer): PodEntry {
    const there = this.pods.get(pod.uid);
    if (there) return there;
    if (this.cluster?.dialer !== dialer) {
      this.cluster?.close();
      this.cluster = new ForwardCluster(dialer);
    }
    const used: PodEntry = { connections: new PodConnections(this.cluster, pod), sessions: 0, avoidUntil: 0 };
    this.pods.set(pod.uid, used);
    return used;
  }
}
