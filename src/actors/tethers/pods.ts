// The pods that a tether may carry to, followed while somebody uses it.
import type { AddressRule } from '../../adapters/address_rule.ts';
import { type ClusterDialer, createClusterDialer } from '../../adapters/cluster_dialer.ts';
import { createKubeCluster, type KubeCluster } from '../../adapters/kube/kube_cluster.ts';
import { kubeFailure } from '../../adapters/kube/kube_errors.ts';
import { createKubeHttp } from '../../adapters/kube/kube_http.ts';
import { listAndWatch } from '../../adapters/kube/list_watch.ts';
import { type PodRow, podsResource, podsTrouble, type SelectedWorkload } from '../../adapters/kube/pods.ts';
import type { ForwardTarget } from '../../protocol/cloud.ts';
import type { Clock } from '../../runtime/actor.ts';
import { TETHER } from '../../settings/limits.ts';

/** Why connections should not be held any longer, and how long it must have been so. */
export interface Trouble {
  reason: string;
  since: number;
  graceMs: number;
}

interface PodWatch {
  dialer: ClusterDialer;
  cluster: KubeCluster;
  workload: SelectedWorkload;
  abort: AbortController;
  /** Monotonic milliseconds. */
  startedAt: number;
  /** Its last attempt has failed: the next one may be half a minute away. */
  isFailing: boolean;
  isListed: boolean;
}

/** Knows the pods of one tether's workload, and why there is none that is ready; its carrier owns it. */
export class TetherPods {
  private readonly clock: Clock;
  private readonly rule: AddressRule;
  private readonly onChange: () => void;
  private readonly onDefect: (error: unknown) => void;
  private readonly rows = new Map<string, PodRow>();
  private watch: PodWatch | null = null;
  private lastTrouble: Trouble | null = null;

  constructor(clock: Clock, rule: AddressRule, onChange: () => void, onDefect: (error: unknown) => void) {
    this.clock = clock;
    this.rule = rule;
    this.onChange = onChange;
    this.onDefect = onDefect;
  }

  /** The way into the cluster; null while nothing is followed. */
  get dialer(): ClusterDialer | null {
    return this.watch?.dialer ?? null;
  }

  get ready(): PodRow[] {
    return [...this.rows.values()].filter(({ isReady }) => isReady);
  }

  /** The cluster has said that no pod is there but those that end. */
  get isEmpty(): boolean {
    const isKnown = this.watch?.isListed === true && !this.watch.isFailing;
    return isKnown && [...this.rows.values()].every(({ isEnding }) => isEnding);
  }

  isReady(uid: string): boolean {
    return this.rows.get(uid)?.isReady === true;
  }

  get trouble(): Trouble | null {
    return this.lastTrouble;
  }

  /**
   * Follows the pods of the route's workload; harmless when they are followed. One made anew may select others. Somebody
   * needs them now: if the last attempt has failed the next one is due.
   */
  start({ access, workload }: ForwardTarget): void {
    if (this.watch?.workload.selector === workload.selector) {
      if (this.watch.isFailing) this.relist();
      return;
    }
    this.stop();
    this.startWatch(createClusterDialer(access, this.rule), workload);
  }

  /**
   * A pod that is listed here is not there: the watch may have died unnoticed. Lists anew over new connections; what is
   * known is kept until then.
   */
  reportAbsent(uid: string): void {
    if (this.isReady(uid)) this.relist();
  }

  stop(): void {
    const following = this.watch;
    this.watch = null;
    this.rows.clear();
    this.lastTrouble = null;
    if (following) this.closeWatch(following);
  }

  private relist(): void {
    const following = this.watch;
    if (!following || this.clock.monotonic() - following.startedAt < TETHER.minRelistIntervalMs) return;
    this.closeWatch(following);
    // What was denied may be allowed by now; who waits for a cluster that does not answer has waited since.
    if (this.lastTrouble?.graceMs === 0) this.lastTrouble = null;
    this.startWatch(following.dialer, following.workload);
  }

  private startWatch(dialer: ClusterDialer, workload: SelectedWorkload): void {
    const cluster = createKubeCluster(createKubeHttp(dialer, this.clock));
    const abort = new AbortController();
    const podWatch = {
      dialer,
      cluster,
      workload,
      abort,
      startedAt: this.clock.monotonic(),
      isFailing: false,
      isListed: false,
    };
    this.watch = podWatch;
    const follower = {
      onListed: (rows: PodRow[]) => {
        podWatch.isListed = true;
        this.rows.clear();
        for (const row of rows) if (row.isOwn) this.rows.set(row.uid, row);
        this.update();
      },
      onChanged: (row: PodRow, gone: boolean) => {
        // One that was the workload's may have been let go by it.
        if (gone || !row.isOwn) this.rows.delete(row.uid);
        else this.rows.set(row.uid, row);
        this.update();
      },
      onHealth: (error: unknown) => {
        podWatch.isFailing = error !== null;
        this.reportHealth(error);
      },
    };
    listAndWatch(cluster, podsResource(workload), null, follower, abort.signal, { clock: this.clock }).catch(
      this.onDefect,
    );
  }

  private closeWatch({ abort, cluster }: PodWatch): void {
    abort.abort();
    cluster.close().catch(this.onDefect);
  }

  private update(): void {
    const trouble = podsTrouble(this.rows.values());
    // Nobody is let go early for what may pass, but then it is why.
    this.setTrouble(trouble && { ...trouble, graceMs: trouble.mayPass ? TETHER.podWaitTimeoutMs : 0 });
  }

  /** The cluster has stopped answering, or answers again. Pods that are known are tried all the same. */
  private reportHealth(error: unknown): void {
    if (error === null) {
      this.update();
      return;
    }
    const { code, message } = kubeFailure(error);
    this.setTrouble({ reason: message, graceMs: code === 'cluster_denied' ? 0 : TETHER.retryWindowMs });
  }

  private setTrouble(trouble: { reason: string; graceMs: number } | null): void {
    const since =
      this.lastTrouble?.graceMs === trouble?.graceMs && this.lastTrouble
        ? this.lastTrouble.since
        : this.clock.monotonic();
    this.lastTrouble = trouble && { reason: trouble.reason, graceMs: trouble.graceMs, since };
    this.onChange();
  }
}
