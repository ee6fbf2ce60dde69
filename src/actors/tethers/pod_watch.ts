// The pods that a tether's connections may go to, watched while the tether is in use.
import type { AddressRule } from '../../adapters/address_rule.ts';
import { type ClusterDialer, createClusterDialer } from '../../adapters/cluster_dialer.ts';
import { createKubeCluster, type KubeCluster } from '../../adapters/kube/kube_cluster.ts';
import { isCallError, kubeFailure } from '../../adapters/kube/kube_errors.ts';
import { createKubeHttp } from '../../adapters/kube/kube_http.ts';
import { listAndWatch } from '../../adapters/kube/list_watch.ts';
import { type PodRow, podsResource, podsTrouble } from '../../adapters/kube/pods.ts';
import { eventTroubles } from '../../adapters/kube/workload_events.ts';
import type { TetherTarget } from '../../protocol/cloud.ts';
import type { SelectedWorkload } from '../../protocol/cluster_calls.ts';
import type { Clock } from '../../runtime/actor.ts';
import { TETHER } from '../../settings/cloud_limits.ts';
import type { Trouble } from './pending_connections.ts';
import type { PodSource } from './used_pods.ts';

/** Which pods of the workload connections may go to. */
export interface PodChoice {
  /** The name of the only pod to use; null: any. */
  pod: string | null;
  /** Whether a running pod may be used while none is Ready. */
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
  /** The last attempt failed; the next one may be half a minute away. */
  isFailing: boolean;
  isListed: boolean;
}

/** The pods of one tether's workload, and why none is ready. Owned by the tether's SessionRouter. */
export class PodWatch implements PodSource {
  private readonly options: PodWatchOptions;
  private readonly clock: Clock;
  private readonly rows = new Map<string, PodRow>();
  /** When each pod became Ready or stopped being Ready, in monotonic milliseconds. */
  private readonly readyChangedAt = new Map<string, number>();
  /** The pods that have been deleted, latest last. */
  private readonly gone = new Set<string>();
  /** Pods about to be ended, although the cluster has not reported that yet. */
  private condemned: ReadonlySet<string> = new Set();
  private cancelReprieve: () => void = () => undefined;
  private watch: RunningWatch | null = null;
  private lastTrouble: Trouble | null = null;
  /** What the cluster's events say about missing pods, and when they were last read. */
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

  /** A message for people that no pod has appeared. */
  get absence(): string {
    const { pod } = this.options.choice;
    return pod === null ? 'no pod became ready' : `the pod ${pod} did not become ready`;
  }

  /** Whether the cluster has reported that there are no pods except those that are ending. */
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

  isGone(uid: string): boolean {
    return this.gone.has(uid);
  }

  /**
   * The current pods are about to be ended, so no connection goes to them until the cluster has reported
   * more. Those still alive after a while are used again, because a wake has intervened. False: they are not
   * ended after all.
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
   * Watches the pods of the target's workload. Harmless while they are watched, except that after a failed
   * attempt the next one is made at once. A recreated workload may select other pods.
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
   * A known pod does not exist, so the watch may be dead. Lists again over new connections, and keeps the
   * known pods until then.
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
    this.gone.clear();
    this.lastTrouble = null;
    this.events = NO_EVENTS;
    if (watch) this.closeWatch(watch);
  }

  /**
   * Reads the cluster's events about missing pods from time to time, because a status does not mention quotas
   * or volumes. Must be called while clients are waiting.
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
      // The account may not list events, so nothing more is known.
      if (!isCallError(error)) throw error;
    }
  }

  private get chosen(): PodRow[] {
    const { pod } = this.options.choice;
    return [...this.rows.values()].filter(({ name }) => pod === null || name === pod);
  }

  /**
   * Stores what is known about a pod. At first sight, the age of its state comes from the cluster's clock.
   */
  private put(row: PodRow, changedAt: number): void {
    const before = this.rows.get(row.uid);
    this.rows.set(row.uid, row);
    if (before?.isReady !== row.isReady) this.readyChangedAt.set(row.uid, changedAt);
  }

  private forget(uid: string): void {
    this.rows.delete(uid);
    this.readyChangedAt.delete(uid);
  }

  private noteGone(uid: string): void {
    this.gone.add(uid);
    const [oldest] = this.gone;
    if (oldest !== undefined && this.gone.size > TETHER.maxGonePods) this.gone.delete(oldest);
  }

  private relist(): void {
    const watch = this.watch;
    if (!watch || this.clock.monotonic() - watch.startedAt < TETHER.minRelistIntervalMs) return;
    this.closeWatch(watch);
    // A denied request may be allowed by now. The wait for a cluster that does not answer continues.
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
        // The workload may have released one of its pods.
        // One that only lost its labels is not ending.
        if (gone && row.isEnding) this.noteGone(row.uid);
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
    // Temporary trouble resets nobody early, but is the reason given in the end.
    if (trouble) this.setTrouble({ ...trouble, graceMs: trouble.mayPass ? TETHER.podWaitTimeoutMs : 0 });
    else this.setTrouble(text === null ? null : { reason: text, graceMs: TETHER.podWaitTimeoutMs });
  }

  /** The cluster has stopped or resumed answering. Known pods are still tried. */
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
