// A list and a watch that never give up: whatever the server does, they continue until they are stopped.

import type { Clock } from '../../runtime/actor.ts';
import { CLOUD } from '../../settings/cloud_limits.ts';
import { abortablePause } from './abortable_pause.ts';
import type { KubeCluster, KubeListing, Resource, WatchHandler } from './kube_cluster.ts';
import { isCallError, KubeError } from './kube_errors.ts';
import { isOlderVersion } from './parse_objects.ts';

/** Whatever its methods throw is a defect, and ends the list and watch. */
export interface ListWatchHandler<Row extends object> {
  /** All rows, from a listing begun at `startedAt` (monotonic milliseconds). */
  onListed(rows: Row[], startedAt: number): void;
  /** In the cluster's order. */
  onChanged(row: Row, isDeleted: boolean): void;
  /** Everything up to this version has been reported. */
  onVersion?(version: string): void;
  /** null: the server answers. An error: an attempt has failed, and another follows. */
  onHealth(error: unknown): void;
  /** A watch is open: changes arrive as they happen, until `onHealth` reports an error. */
  onLive?(): void;
  /** Something has arrived over the open watch. */
  onSign?(): void;
}

/** A known version from which to resume a watch. */
export interface WatchStart {
  version: string;
  /** The server may have been replaced, or restored from a backup older than `version`. */
  isDoubtful: boolean;
}

export interface ListWatchOptions {
  clock: Clock;
  /** Returns numbers from 0 to below 1, which spread the attempts of many watches. */
  random?: () => number;
  /** Gets the function that ends it for each watch under way, so that it is made again. */
  openWatches?: Set<() => void>;
}

/** Whether the server considers the version too old (410), or from a future it does not know. */
function isVersionUnusable(error: unknown): boolean {
  if (!(error instanceof KubeError)) return false;
  const { status, reason, message } = error.status;
  return (
    status === 410 || reason === 'Expired' || reason === 'Gone' || /too large resource version/i.test(message)
  );
}

/** Whether the account may not watch, so that periodic listings must do. */
const isWatchDenied = (error: unknown): boolean =>
  error instanceof KubeError && error.status.status === 403 && error.action.startsWith('watch ');

/** A watch that lasted this long counts as a success, so the next one follows soon. */
const LASTING_WATCH_MS = 10_000;

/** What is known about the collection, and so how the next attempt begins. */
type Position =
  /** Nothing is known: begin with a listing. */
  | { kind: 'unlisted' }
  /** Begin with a watch from `version`. */
  | { kind: 'listed'; version: string }
  /**
   * An attempt has failed: the server may have been replaced, or restored from a backup older than `version`.
   */
  | { kind: 'doubtful'; version: string };

const UNLISTED: Position = { kind: 'unlisted' };

class Reflector<Row extends object> {
  private readonly cluster: KubeCluster;
  private readonly resource: Resource<Row>;
  private readonly handler: ListWatchHandler<Row>;
  private readonly clock: Clock;
  private readonly random: () => number;
  private readonly signal: AbortSignal;
  private readonly openWatches: Set<() => void>;
  private position: Position;
  /** The number of consecutive attempts without any result. */
  private fruitlessAttempts = 0;
  /** How long the last listing took. */
  private listingMs = 0;
  /** Whether it resumes from a listing of long ago. */
  private isResumed: boolean;
  /** Cancels the listing that is due some time after an outage. */
  private cancelRelisting: (() => void) | null = null;
  /** Ends the watch under way, so that it is made again. */
  private endWatch: () => void = () => undefined;

  constructor(
    cluster: KubeCluster,
    resource: Resource<Row>,
    from: WatchStart | null,
    handler: ListWatchHandler<Row>,
    signal: AbortSignal,
    { clock, random = Math.random, openWatches = new Set() }: ListWatchOptions,
  ) {
    this.cluster = cluster;
    this.resource = resource;
    this.position = from
      ? { kind: from.isDoubtful ? 'doubtful' : 'listed', version: from.version }
      : UNLISTED;
    this.isResumed = from?.isDoubtful ?? false;
    this.handler = handler;
    this.clock = clock;
    this.random = random;
    this.signal = signal;
    this.openWatches = openWatches;
  }

  async run(): Promise<void> {
    try {
      await this.follow();
    } finally {
      this.cancelRelisting?.();
    }
  }

  private async follow(): Promise<void> {
    while (!this.signal.aborted) {
      const error = await this.attempt();
      if (this.signal.aborted) return;
      const isFirst = this.fruitlessAttempts === 0;
      this.fruitlessAttempts += 1;
      if (isWatchDenied(error)) {
        this.position = UNLISTED;
        this.handler.onHealth(error);
        if (this.isResumed) continue;
      } else if (isVersionUnusable(error)) {
        this.position = UNLISTED;
        // Lists again at once, but not in a loop if a server calls every version too old.
        if (isFirst) continue;
      } else if (error !== null) {
        if (this.position.kind === 'listed') this.position = { ...this.position, kind: 'doubtful' };
        this.handler.onHealth(error);
      }
      await abortablePause(this.clock, this.delay(error), this.signal);
    }
  }

  /** One watch, with what must precede it. Resolves with the error that ended it; null: it ended normally. */
  private async attempt(): Promise<unknown> {
    try {
      await this.watch(await this.startVersion());
      return null;
    } catch (error) {
      if (!isCallError(error)) throw error;
      return error;
    }
  }

  private delay(error: unknown): number {
    if (isWatchDenied(error))
      return Math.max(CLOUD.poll.intervalMs, this.listingMs * CLOUD.poll.listingsShare);
    const { initialDelayMs, maxDelayMs, maxRetryAfterMs } = CLOUD.watch.retry;
    const askedMs = error instanceof KubeError ? (error.status.retryAfterMs ?? 0) : 0;
    // A server that was overloaded may have asked for an hour, and be well long before.
    return (
      Math.min(askedMs, maxRetryAfterMs) +
      this.random() * Math.min(initialDelayMs * 2 ** (this.fruitlessAttempts - 1), maxDelayMs)
    );
  }

  private async startVersion(): Promise<string> {
    const { position } = this;
    if (position.kind === 'listed') return position.version;
    const version =
      position.kind === 'doubtful' && (await this.isStillGood(position.version))
        ? position.version
        : await this.list();
    this.position = { kind: 'listed', version };
    return version;
  }

  private async list(): Promise<string> {
    const startedAt = this.clock.monotonic();
    const listing: KubeListing<Row> = await this.cluster.list(this.resource, this.signal);
    this.listingMs = this.clock.monotonic() - startedAt;
    this.isResumed = false;
    this.cancelRelisting?.();
    this.cancelRelisting = null;
    if (!this.signal.aborted) {
      this.handler.onHealth(null);
      this.handler.onListed(listing.rows, startedAt);
      this.handler.onVersion?.(listing.version);
    }
    return listing.version;
  }

  /**
   * A server restored from a backup keeps a watch from its future open but silent, so a listing must come
   * first in that case.
   */
  private async isStillGood(version: string): Promise<boolean> {
    const current = await this.cluster.currentVersion(this.resource, this.signal);
    if (isOlderVersion(current, version)) {
      this.position = UNLISTED;
      return false;
    }
    // The following watch may be silent for a minute.
    if (!this.signal.aborted) this.handler.onHealth(null);
    this.relistLater();
    return true;
  }

  /**
   * The version of a restored server may have passed ours again before it was asked, so that the watch lacks
   * what changed up to there. Only a listing tells. It is put off, as many clusters resume at once.
   */
  private relistLater(): void {
    // A delay that began anew with each outage would never end with a server that fails often.
    this.cancelRelisting ??= this.clock.after(
      (0.1 + 0.9 * this.random()) * CLOUD.watch.maxRelistDelayMs,
      () => {
        this.cancelRelisting = null;
        this.position = UNLISTED;
        this.endWatch();
      },
    );
  }

  /** One watch, until it ends or has been silent for so long that it must be dead. */
  private async watch(from: string): Promise<void> {
    const abort = new AbortController();
    const stop = (): void => abort.abort();
    this.endWatch = stop;
    // An aborted signal has no further event: the caller may have given up while the listing ended.
    if (this.signal.aborted) stop();
    else this.signal.addEventListener('abort', stop);
    this.openWatches.add(stop);
    const startedAt = this.clock.monotonic();
    let cancelSilence = this.clock.after(CLOUD.watch.silenceTimeoutMs, stop);
    const watched: WatchHandler<Row> = {
      onOpen: () => {
        if (!abort.signal.aborted) this.handler.onLive?.();
      },
      onEvent: (event) => {
        if (abort.signal.aborted) return;
        cancelSilence();
        cancelSilence = this.clock.after(CLOUD.watch.silenceTimeoutMs, stop);
        this.handler.onSign?.();
        this.onEvent(event);
      },
    };
    try {
      await this.cluster.watch(this.resource, from, watched, abort.signal);
    } catch (error) {
      if (!abort.signal.aborted || !isCallError(error)) throw error;
    } finally {
      cancelSilence();
      this.openWatches.delete(stop);
      this.signal.removeEventListener('abort', stop);
      // The watch was good, if perhaps quiet.
      if (this.clock.monotonic() - startedAt >= LASTING_WATCH_MS) this.fruitlessAttempts = 0;
    }
  }

  private onEvent(event: Parameters<WatchHandler<Row>['onEvent']>[0]): void {
    if (this.fruitlessAttempts > 0) this.handler.onHealth(null);
    this.fruitlessAttempts = 0;
    if (event === null) return;
    this.position = { kind: 'listed', version: event.version };
    if (event.type !== 'bookmark') this.handler.onChanged(event.row, event.type === 'deleted');
    this.handler.onVersion?.(event.version);
  }
}

/**
 * Follows `resource` until `signal` aborts: from `from`, or (null) after an initial listing. If watching is
 * denied, lists periodically (CLOUD.poll). After errors it retries forever, with full jitter and up to 30 s
 * apart plus the server's Retry-After, of which it honours a minute. Rejects only for defects, such as
 * whatever `handler` throws.
 */
export function listAndWatch<Row extends object>(
  cluster: KubeCluster,
  resource: Resource<Row>,
  from: WatchStart | null,
  handler: ListWatchHandler<Row>,
  signal: AbortSignal,
  options: ListWatchOptions,
): Promise<void> {
  return new Reflector(cluster, resource, from, handler, signal, options).run();
}
