// The pods that the connections of a tether may go to, watched while somebody uses it.
import type { AddressRule } from '../../adapters/address_rule.ts';
import { type ClusterDialer, createClusterDialer } from '../../adapters/cluster_dialer.ts';
import { createKubeCluster, type KubeCluster } from '../../adapters/kube/kube_cluster.ts';
import { kubeFailure } from '../../adapters/kube/kube_errors.ts';
import { createKubeHttp } from '../../adapters/kube/kube_http.ts';
import { listAndWatch } from '../../adapters/kube/list_watch.ts';
import { type PodRow, podsResource, podsTrouble, type SelectedWorkload } from '../../adapters/kube/pods.ts';
import type { TetherTarget } from '../../protocol/cloud.ts';
import type { Clock } from '../../runtime/actor.ts';
import { TETHER } from '../../settings/cloud_limits.ts';

/** Why connections should not wait any longer. `since`: monotonic time; after `graceMs` they are reset. */
export interface Trouble {
  reason: string;
  since: number;
  graceMs: number;
}

interface RunningWatch {
  dialer: ClusterDialer;
  cluster: KubeCluster;
  workload: SelectedWorkload;
  abort: AbortController;
  /** Monotonic milliseconds. */
  startedAt: number;
  /** The last attempt has failed; the next one may be half a minute away. */
  isFailing: boolean;
  isListed: boolean;
}

/** The pods of one tether's workload, and why none of them is ready. Owned by the tether's SessionRouter. */
export class PodWatch {
  private readonly clock: Clock;
  private readonly rule: AddressRule;
  private readonly onChange: () => void;
  private readonly onDefect: (error: unknown) => void;
  private readonly rows = new Map<string, PodRow>();
  private watch: RunningWatch | null = null;
  private lastTrouble: Trouble | null = null;

  constructor(clock: Clock, rule: AddressRule, onChange: () => void, onDefect: (error: unknown) => void) {
    this.clock = clock;
    this.rule = rule;
    this.onChange = onChange;
    this.onDefect = onDefect;
  }

  /** The dialer of the cluster; null while nothing is watched. */
  get dialer(): ClusterDialer | null {
    return this.watch?.dialer ?? null;
  }

  get ready(): PodRow[] {
    return [...this.rows.values()].filter(({ isReady }) => isReady);
  }

  /** Whether the cluster has reported that there are no pods but those that end. */
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
   * Watches the pods of the target's workload. Harmless while they are watched, but if the last attempt has
   * failed the next one is made now. A workload that is created again may select other pods.
   */
  start({ access, workload }: TetherTarget): void {
    if (this.watch?.workload.selector === workload.selector) {
      if (this.watch.isFailing) this.relist();
      return;
    }
    this.stop();
    this.startWatch(createClusterDialer(access, this.rule), workload);
  }

  /**
   * A pod that is known here does not exist: the watch may be dead. Lists again over new connections, and
   * keeps what is known until then.
   */
  reportAbsent(uid: string): void {
    if (this.isReady(uid)) this.relist();
  }

  stop(): void {
    const watch = this.watch;
    this.watch = null;
    this.rows.clear();
    this.lastTrouble = null;
    if (watch) this.closeWatch(watch);
  }

  private relist(): void {
    const watch = this.watch;
    if (!watch || this.clock.monotonic() - watch.startedAt < TETHER.minRelistIntervalMs) return;
    this.closeWatch(watch);
    // What was denied may be allowed by now. The wait for a cluster that does not answer goes on.
    if (this.lastTrouble?.graceMs === 0) this.lastTrouble = null;
    this.startWatch(watch.dialer, watch.workload);
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
        // The workload may have released a pod that was its own.
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

  private closeWatch({ abort, cluster }: RunningWatch): void {
    abort.abort();
    cluster.close().catch(this.onDefect);
  }

  private update(): void {
    const trouble = podsTrouble(this.rows.values());
    // Trouble that may pass resets nobody early, but is the reason in the end.
    this.setTrouble(trouble && { ...trouble, graceMs: trouble.mayPass ? TETHER.podWaitTimeoutMs : 0 });
  }

  /** The cluster has stopped answering, or answers again. Known pods are still tried. */
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
