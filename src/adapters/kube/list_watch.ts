// A list and a watch that never give up: whatever the server does, they go on until they are told to stop.

import type { Clock } from '../../runtime/actor.ts';
import { CLOUD } from '../../settings/limits.ts';
import type { KubeCluster, KubeListing, Resource } from './kube_cluster.ts';
import { KubeError } from './kube_http.ts';
import { isOlderVersion } from './parse_objects.ts';

export interface ListWatchHandler<Row> {
  /** All there are, from a listing that was begun at `startedAt` (monotonic milliseconds). */
  onListed(rows: Row[], startedAt: number): void;
  /** In the order of the cluster; `gone`: the row was deleted. */
  onChanged(row: Row, gone: boolean): void;
  /** The server answers again, or an attempt has failed and the next one follows. */
  onHealth(error: unknown): void;
}

export interface ListWatchOptions {
  clock: Clock;
  /** From 0 to below 1; spreads the attempts of many. */
  random?: () => number;
}

/** The version is too old for the server (410), or from a future it does not know. */
function isVersionUnusable(error: unknown): boolean {
  if (!(error instanceof KubeError)) return false;
  const { status, reason, message } = error.status;
  return (
    status === 410 || reason === 'Expired' || reason === 'Gone' || /too large resource version/i.test(message)
  );
}

/** Waits, or until `signal` aborts. */
function pauseOrAbort(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      cancel();
      signal.removeEventListener('abort', done);
      resolve();
    };
    const cancel = clock.after(ms, done);
    if (signal.aborted) done();
    else signal.addEventListener('abort', done);
  });
}

/** A watch that has lasted so long was worth beginning: the next one follows soon. */
const LASTING_WATCH_MS = 10_000;

class Reflector<Row> {
  private readonly cluster: KubeCluster;
  private readonly resource: Resource<Row>;
  private readonly handler: ListWatchHandler<Row>;
  private readonly clock: Clock;
  private readonly random: () => number;
  private readonly signal: AbortSignal;
  private version: string | null;
  /** Attempts in a row that brought nothing. */
  private fruitlessAttempts = 0;
  /** The last watch ended with an error: the server may be another one now, or one restored from a backup. */
  private mustCheckVersion = false;
  /** What the follower itself has thrown: not an error of the cluster. */
  private defect: { error: unknown } | undefined;

  constructor(
    cluster: KubeCluster,
    resource: Resource<Row>,
    from: string | null,
    follower: ListWatchHandler<Row>,
    signal: AbortSignal,
    { clock, random = Math.random }: ListWatchOptions,
  ) {
    this.cluster = cluster;
    this.resource = resource;
    this.version = from;
    this.handler = follower;
    this.clock = clock;
    this.random = random;
    this.signal = signal;
  }

  async run(): Promise<void> {
    while (!this.signal.aborted) {
      let error: unknown = null;
      try {
        if (this.mustCheckVersion && this.version !== null) await this.checkVersion(this.version);
        this.version ??= await this.list();
        this.mustCheckVersion = false;
        await this.watch(this.version);
      } catch (caught) {
        error = caught;
      }
      if (this.defect) throw this.defect.error;
      if (this.signal.aborted) return;
      const isFirst = this.fruitlessAttempts === 0;
      this.fruitlessAttempts += 1;
      this.mustCheckVersion ||= error !== null;
      if (isVersionUnusable(error)) {
        this.version = null;
        // Listed anew at once, but not in a circle with a server that calls every version too old.
        if (isFirst) continue;
      } else if (error !== null) this.notify(() => this.handler.onHealth(error));
      await pauseOrAbort(this.clock, this.delay(error), this.signal);
    }
  }

  private delay(error: unknown): number {
    const { initialDelayMs, maxDelayMs } = CLOUD.watch.retry;
    const asked = error instanceof KubeError ? (error.status.retryAfterMs ?? 0) : 0;
    return asked + this.random() * Math.min(initialDelayMs * 2 ** (this.fruitlessAttempts - 1), maxDelayMs);
  }

  private async list(): Promise<string> {
    const startedAt = this.clock.monotonic();
    const listing: KubeListing<Row> = await this.cluster.list(this.resource, this.signal);
    this.notify(() => {
      this.handler.onHealth(null);
      this.handler.onListed(listing.rows, startedAt);
    });
    return listing.version;
  }

  /** A server restored from a backup keeps a watch from its future open and says nothing: then a listing must come first. */
  private async checkVersion(version: string): Promise<void> {
    if (isOlderVersion(await this.cluster.currentVersion(this.resource, this.signal), version))
      this.version = null;
    // The watch that follows may have nothing to say for a minute.
    else this.notify(() => this.handler.onHealth(null));
  }

  /** One watch, until it ends or nothing has come for so long that it must be dead. */
  private async watch(from: string): Promise<void> {
    const abort = new AbortController();
    const stop = (): void => abort.abort();
    this.signal.addEventListener('abort', stop);
    const begun = this.clock.monotonic();
    let cancelSilence = this.clock.after(CLOUD.watch.silenceTimeoutMs, stop);
    try {
      await this.cluster.watch(
        this.resource,
        from,
        (event) => {
          if (abort.signal.aborted) return;
          cancelSilence();
          cancelSilence = this.clock.after(CLOUD.watch.silenceTimeoutMs, stop);
          if (this.fruitlessAttempts > 0) this.notify(() => this.handler.onHealth(null));
          this.fruitlessAttempts = 0;
          if (event === null) return;
          this.version = event.version;
          if (event.type !== 'bookmark')
            this.notify(() => this.handler.onChanged(event.row, event.type === 'deleted'));
        },
        abort.signal,
      );
    } catch (error) {
      if (!abort.signal.aborted || this.defect) throw error;
    } finally {
      cancelSilence();
      this.signal.removeEventListener('abort', stop);
      // It was a good one, if perhaps a quiet one.
      if (this.clock.monotonic() - begun >= LASTING_WATCH_MS) this.fruitlessAttempts = 0;
    }
  }

  private notify(call: () => void): void {
    if (this.signal.aborted) return;
    try {
      call();
    } catch (error) {
      this.defect = { error };
      throw error;
    }
  }
}

/**
 * Follows `resource` until `signal` aborts: from the version `from` of an earlier listing, or with a listing first. After
 * an error it tries again with full jitter, up to 30 s apart, for ever; the server's Retry-After is added. It never
 * rejects but for what the follower itself throws.
 */
export function listAndWatch<Row>(
  cluster: KubeCluster,
  resource: Resource<Row>,
  fromVersion: string | null,
  handler: ListWatchHandler<Row>,
  signal: AbortSignal,
  options: ListWatchOptions,
): Promise<void> {
  return new Reflector(cluster, resource, fromVersion, handler, signal, options).run();
}
