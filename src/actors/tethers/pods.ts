// The pods that a tether may carry to, followed while somebody uses it.
import type { AddressRule } from '../../adapters/addresses.ts';
import { type Door, doorOf } from '../../adapters/dial.ts';
import { follow } from '../../adapters/kube/follow.ts';
import { explain, kubeHttp } from '../../adapters/kube/http.ts';
import { type KubeCluster, kubeCluster } from '../../adapters/kube/kube.ts';
import { type PodOwner, type PodRow, podsOf, troubleOf } from '../../adapters/kube/pods.ts';
import { TETHER } from '../../limits.ts';
import type { Route } from '../../protocol/cloud.ts';
import type { Clock } from '../../runtime/actor.ts';

/** Why connections should not be held any longer, and how long it must have been so. */
export interface Trouble {
  reason: string;
  since: number;
  graceMs: number;
}

interface Following {
  door: Door;
  cluster: KubeCluster;
  workload: PodOwner;
  stop: AbortController;
  /** Monotonic milliseconds. */
  begunAt: number;
  /** Its last attempt has failed: the next one may be half a minute away. */
  isFailing: boolean;
  isListed: boolean;
}

/** Knows the pods of one tether's workload, and why there is none that is ready; its carrier owns it. */
export class TetherPods {
  private readonly clock: Clock;
  private readonly rule: AddressRule;
  private readonly changed: () => void;
  private readonly defect: (error: unknown) => void;
  private readonly rows = new Map<string, PodRow>();
  private following: Following | null = null;
  private lastTrouble: Trouble | null = null;

  constructor(clock: Clock, rule: AddressRule, changed: () => void, defect: (error: unknown) => void) {
    this.clock = clock;
    this.rule = rule;
    this.changed = changed;
    this.defect = defect;
  }

  /** The way into the cluster; null while nothing is followed. */
  get door(): Door | null {
    return this.following?.door ?? null;
  }

  get ready(): PodRow[] {
    return [...this.rows.values()].filter(({ isReady }) => isReady);
  }

  /** The cluster has said that no pod is there but those that end. */
  get isEmpty(): boolean {
    const isKnown = this.following?.isListed === true && !this.following.isFailing;
    return isKnown && [...this.rows.values()].every(({ isEnding }) => isEnding);
  }

  has(uid: string): boolean {
    return this.rows.get(uid)?.isReady === true;
  }

  get trouble(): Trouble | null {
    return this.lastTrouble;
  }

  /**
   * Follows the pods of the route's workload; harmless when they are followed. One made anew may select others. Somebody
   * needs them now: if the last attempt has failed the next one is due.
   */
  start({ access, workload }: Route): void {
    if (this.following?.workload.selector === workload.selector) {
      if (this.following.isFailing) this.anew();
      return;
    }
    this.stop();
    this.follow(doorOf(access, this.rule), workload);
  }

  /**
   * A pod that is listed here is not there: the watch may have died unnoticed. Lists anew over new connections; what is
   * known is kept until then.
   */
  doubt(uid: string): void {
    if (this.has(uid)) this.anew();
  }

  stop(): void {
    const following = this.following;
    this.following = null;
    this.rows.clear();
    this.lastTrouble = null;
    if (following) this.leave(following);
  }

  private anew(): void {
    const following = this.following;
    if (!following || this.clock.monotonic() - following.begunAt < TETHER.doubtMs) return;
    this.leave(following);
    // What was denied may be allowed by now; who waits for a cluster that does not answer has waited since.
    if (this.lastTrouble?.graceMs === 0) this.lastTrouble = null;
    this.follow(following.door, following.workload);
  }

  private follow(door: Door, workload: PodOwner): void {
    const cluster = kubeCluster(kubeHttp(door));
    const stop = new AbortController();
    const following = {
      door,
      cluster,
      workload,
      stop,
      begunAt: this.clock.monotonic(),
      isFailing: false,
      isListed: false,
    };
    this.following = following;
    const follower = {
      listed: (rows: PodRow[]) => {
        following.isListed = true;
        this.rows.clear();
        for (const row of rows) if (row.isOwn) this.rows.set(row.uid, row);
        this.update();
      },
      changed: (row: PodRow, gone: boolean) => {
        // One that was the workload's may have been let go by it.
        if (gone || !row.isOwn) this.rows.delete(row.uid);
        else this.rows.set(row.uid, row);
        this.update();
      },
      health: (error: unknown) => {
        following.isFailing = error !== null;
        this.health(error);
      },
    };
    follow(cluster, podsOf(workload), null, follower, stop.signal, { clock: this.clock }).catch(this.defect);
  }

  private leave({ stop, cluster }: Following): void {
    stop.abort();
    cluster.close().catch(this.defect);
  }

  private update(): void {
    const trouble = troubleOf(this.rows.values());
    // Nobody is let go early for what may pass, but then it is why.
    this.setTrouble(trouble && { ...trouble, graceMs: trouble.mayPass ? TETHER.holdMs : 0 });
  }

  /** The cluster has stopped answering, or answers again. Pods that are known are tried all the same. */
  private health(error: unknown): void {
    if (error === null) {
      this.update();
      return;
    }
    const { code, message } = explain(error);
    this.setTrouble({ reason: message, graceMs: code === 'cluster_denied' ? 0 : TETHER.retryMs });
  }

  private setTrouble(trouble: { reason: string; graceMs: number } | null): void {
    const since =
      this.lastTrouble?.graceMs === trouble?.graceMs && this.lastTrouble
        ? this.lastTrouble.since
        : this.clock.monotonic();
    this.lastTrouble = trouble && { reason: trouble.reason, graceMs: trouble.graceMs, since };
    this.changed();
  }
}
