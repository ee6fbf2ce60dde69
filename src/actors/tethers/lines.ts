// Which pod gets the next connection of a tether, and the lines to those that have some.
import type { Door } from '../../adapters/dial.ts';
import type { PodRow } from '../../adapters/kube/pods.ts';
import { PodLines } from '../../adapters/portforward/pool.ts';
import { ForwardCluster } from '../../adapters/portforward/ways.ts';
import { TETHER } from '../../limits.ts';
import type { Session } from './session.ts';

interface Used {
  lines: PodLines;
  /** Connections on it. */
  open: number;
  /** Until then others are preferred, in monotonic milliseconds. */
  avoidUntil: number;
}

/** The lines of one tether to all of its pods, and which session is on which; its carrier owns it. */
export class TetherLines {
  private readonly port: number;
  private readonly now: () => number;
  private readonly pods = new Map<string, Used>();
  /** Of pods that are no longer ready: they end with their connections. */
  private readonly retired = new Set<PodLines>();
  private readonly where = new Map<Session, Used>();
  private cluster: ForwardCluster | null = null;

  constructor(port: number, now: () => number) {
    this.port = port;
    this.now = now;
  }

  /** Gives the connection to one of `pods`, the one that has fewest; false when there are none. */
  carry(session: Session, pods: readonly PodRow[], door: Door): boolean {
    const now = this.now();
    const cost = (pod: PodRow): number => {
      const used = this.pods.get(pod.uid);
      if (!used) return 0.5;
      return used.open + (used.lines.isWarm ? 0 : 0.5) + (used.avoidUntil > now ? 1e6 : 0);
    };
    const [first, ...others] = pods;
    if (!first) return false;
    const pod = others.reduce((best, other) => (cost(other) < cost(best) ? other : best), first);
    const used = this.use(pod, door);
    used.open += 1;
    this.where.set(session, used);
    session.pod = pod.uid;
    session.carry((events) => used.lines.open(this.port, events));
    return true;
  }

  /** The connection has left its pod; `failed`: it could not be reached. */
  leave(session: Session, failed: boolean): void {
    const used = this.where.get(session);
    if (!used) return;
    this.where.delete(session);
    used.open -= 1;
    if (failed) used.avoidUntil = this.now() + TETHER.avoidMs;
  }

  /** Lets go of the pods of which `isReady` does not hold. */
  keep(isReady: (uid: string) => boolean): void {
    for (const [uid, { lines }] of this.pods) {
      if (isReady(uid)) continue;
      this.pods.delete(uid);
      lines.retire();
      this.retired.add(lines);
    }
    for (const lines of this.retired) if (lines.isEmpty) this.retired.delete(lines);
  }

  close(): void {
    for (const { lines } of this.pods.values()) lines.close();
    for (const lines of this.retired) lines.close();
    this.pods.clear();
    this.retired.clear();
    this.cluster?.close();
    this.cluster = null;
  }

  private use(pod: PodRow, door: Door): Used {
    const there = this.pods.get(pod.uid);
    if (there) return there;
    if (this.cluster?.door !== door) {
      this.cluster?.close();
      this.cluster = new ForwardCluster(door);
    }
    const used: Used = { lines: new PodLines(this.cluster, pod), open: 0, avoidUntil: 0 };
    this.pods.set(pod.uid, used);
    return used;
  }
}
