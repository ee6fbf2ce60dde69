// The pods that the connections of a tether may go to, watched while somebody uses it.
import type { AddressRule } from '../../adapters/address_rule.ts';
import { type ClusterDialer, createClusterDialer } from '../../adapters/cluster_dialer.ts';
import { createKubeCluster, type KubeCluster } from '../../adapters/kube/kube_cluster.ts';
import { isCallError, kubeFailure } from '../../adapters/kube/kube_errors.ts';
import { createKubeHttp } from '../../adapters/kube/kube_http.ts';
import { listAndWatch } from '../../adapters/kube/list_watch.ts';
import { type PodRow, podsResource, podsTrouble, type SelectedWorkload } from '../../adapters/kube/pods.ts';
import { eventTroubles } from '../../adapters/kube/workload_events.ts';
import type { TetherTarget } from '../../protocol/cloud.ts';
import type { Clock } from '../../runtime/actor.ts';
import { TETHER } from '../../settings/cloud_limits.ts';
import type { Trouble } from './pending_connections.ts';
import type { PodSource } from './used_pods.ts';

/** Which pods of the workload connections may go to. */
export interface PodChoice {
  /** The name of the only one; null: any. */
  pod: string | null;
  /** Whether one that runs will do while none is Ready. */
  allowNotReady: boolean;
}

export interface PodWatchOptions {
  clock: Clock;
  rule: AddressRule;
  choice: PodChoice;
  /** The pods or the trouble with them have changed. */
  onChange(): void;
  onDefect(error: unknown): void;
}

const NO_EVENTS = { text: null, readAt: Number.NEGATIVE_INFINITY };

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
export class PodWatch implements PodSource {
  private readonly options: PodWatchOptions;
  private readonly clock: Clock;
  private readonly rows = new Map<string, PodRow>();
  /** When each has become Ready, or has ceased to be, in monotonic milliseconds. */
  private readonly readyChangedAt = new Map<string, number>();
  /** Pods that are about to be ended, though the cluster has not said so yet. */
  private condemned: ReadonlySet<string> = new Set();
  private cancelReprieve: () => void = () => undefined;
  private watch: RunningWatch | null = null;
  private lastTrouble: Trouble | null = null;
  /** What the events of the cluster say of pods that do not come, and when they were last asked for. */
  private events: { text: string | null; readAt: number } = NO_EVENTS;

  constructor(options: PodWatchOptions) {
    this.options = options;
    this.clock = options.clock;
  }

  get dialer(): ClusterDialer | null {
    return this.watch?.dialer ?? null;
  }

  get usable(): PodRow[] {
    const staying = this.chosen.filter(({ uid }) => !this.condemned.has(uid));
    const ready = staying.filter(({ isReady }) => isReady);
    if (ready.length > 0 || !this.options.choice.allowNotReady) return ready;
    return staying.filter(({ isRunning }) => isRunning);
  }

  /** That none of them came, for people. */
  get absence(): string {
    const { pod } = this.options.choice;
    return pod === null ? 'no pod became ready' : `the pod ${pod} did not become ready`;
  }

  /** Whether the cluster has reported that there are no pods but those that end. */
  get isEmpty(): boolean {
    const isKnown = this.watch?.isListed === true && !this.watch.isFailing;
    return (
      isKnown && [...this.rows.values()].every(({ uid, isEnding }) => isEnding || this.condemned.has(uid))
    );
  }

  isUsable(uid: string): boolean {
    const row = this.rows.get(uid);
    if (row === undefined || this.condemned.has(uid)) return false;
    return row.isReady || (this.options.choice.allowNotReady && row.isRunning);
  }

  /**
   * The pods that are there now are about to be ended: no connection goes to them until the cluster has
   * said more. Those that still live after a while stay, since a wake has come in between. False: they are
   * not ended.
   */
  condemn(isSleeping: boolean): void {
    this.cancelReprieve();
    this.condemned = new Set(isSleeping ? this.rows.keys() : []);
    if (this.condemned.size > 0)
      this.cancelReprieve = this.clock.after(TETHER.condemnedMs, () => this.condemn(false));
    this.options.onChange();
  }

  isFresh(uid: string): boolean {
    const changedAt = this.readyChangedAt.get(uid) ?? Number.NEGATIVE_INFINITY;
    return this.clock.monotonic() - changedAt < TETHER.freshPodMs;
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
    this.startWatch(createClusterDialer(access, this.options.rule), workload);
  }

  /**
   * A pod that is known here does not exist: the watch may be dead. Lists again over new connections, and
   * keeps what is known until then.
   */
  reportAbsent(uid: string): void {
    if (this.isUsable(uid)) this.relist();
  }

  stop(): void {
    const watch = this.watch;
    this.watch = null;
    this.rows.clear();
    this.readyChangedAt.clear();
    this.cancelReprieve();
    this.condemned = new Set();
    this.lastTrouble = null;
    this.events = NO_EVENTS;
    if (watch) this.closeWatch(watch);
  }

  /**
   * Finds out, now and then, what the events of the cluster say of pods that do not come: a status does not
   * tell of a quota or a volume. To be called while somebody waits.
   */
  readEvents(): void {
    const { watch } = this;
    const now = this.clock.monotonic();
    if (!watch?.isListed || this.usable.length > 0 || podsTrouble(this.chosen)) return;
    if (now - Math.max(this.events.readAt, watch.startedAt) < TETHER.eventsIntervalMs) return;
    this.events = { ...this.events, readAt: now };
    this.readEventsOf(watch).catch(this.options.onDefect);
  }

  private async readEventsOf({ cluster, workload, abort }: RunningWatch): Promise<void> {
    try {
      const found = await eventTroubles(cluster, workload, this.chosen);
      if (abort.signal.aborted) return;
      this.events = { ...this.events, text: found.length === 0 ? null : found.join('; ') };
      this.update();
    } catch (error) {
      // The account may not list events: then nothing more is known.
      if (!isCallError(error)) throw error;
    }
  }

  private get chosen(): PodRow[] {
    const { pod } = this.options.choice;
    return [...this.rows.values()].filter(({ name }) => pod === null || name === pod);
  }

  /** Takes over what is known of a pod. A first look tells by the cluster's clock how old its state is. */
  private put(row: PodRow, changedAt: number): void {
    const before = this.rows.get(row.uid);
    this.rows.set(row.uid, row);
    if (before?.isReady !== row.isReady) this.readyChangedAt.set(row.uid, changedAt);
  }

  private forget(uid: string): void {
    this.rows.delete(uid);
    this.readyChangedAt.delete(uid);
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
        const own = new Map(rows.filter(({ isOwn }) => isOwn).map((row) => [row.uid, row]));
        for (const uid of this.rows.keys()) if (!own.has(uid)) this.forget(uid);
        const now = this.clock.monotonic();
        for (const row of own.values()) {
          const ageMs = this.clock.now() - (row.readyChangedAt ?? Number.NEGATIVE_INFINITY);
          this.put(row, now - Math.max(0, ageMs));
        }
        this.update();
      },
      onChanged: (row: PodRow, gone: boolean) => {
        // The workload may have released a pod that was its own.
        if (gone || !row.isOwn) this.forget(row.uid);
        else this.put(row, this.clock.monotonic());
        this.update();
      },
      onHealth: (error: unknown) => {
        podWatch.isFailing = error !== null;
        this.reportHealth(error);
      },
    };
    listAndWatch(cluster, podsResource(workload), null, follower, abort.signal, { clock: this.clock }).catch(
      this.options.onDefect,
    );
  }

  private closeWatch({ abort, cluster }: RunningWatch): void {
    abort.abort();
    cluster.close().catch(this.options.onDefect);
  }

  private update(): void {
    if (this.usable.length > 0) this.events = NO_EVENTS;
    const trouble = podsTrouble(this.chosen);
    const { text } = this.events;
    // Trouble that may pass resets nobody early, but is the reason in the end.
    if (trouble) this.setTrouble({ ...trouble, graceMs: trouble.mayPass ? TETHER.podWaitTimeoutMs : 0 });
    else this.setTrouble(text === null ? null : { reason: text, graceMs: TETHER.podWaitTimeoutMs });
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
    this.options.onChange();
  }
}
