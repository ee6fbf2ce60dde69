// What a watch has reported, until its reader in another thread fetches it.

import type { WatchHandler } from '../../adapters/kube/kube_cluster.ts';
import type { WatchPart } from '../../protocol/cluster_calls.ts';
import { type Deferred, deferred } from '../../runtime/deferred.ts';

/** Events that may wait. Beyond these, the watch is no longer read, and the cluster waits. */
const MAX_WAITING = 500;
/** Events in a part. Watches take turns by parts, so small ones keep the turns short. */
const PART_EVENTS = 100;

export class WatchFeed implements WatchHandler<object> {
  /** Resolves when the server has accepted the watch; rejects with the error that ended it before. */
  readonly opened = deferred<null>();
  private events: WatchPart['events'] = [];
  private end: { error: unknown } | null = null;
  /** Of the reader, while there is nothing to fetch. */
  private wanted: Deferred<void> | null = null;
  private room: Deferred<void> | null = null;

  readonly onOpen = (): void => this.opened.resolve(null);

  readonly onEvent = (event: WatchPart['events'][number]): void => {
    this.events.push(event);
    this.wanted?.resolve();
  };

  readonly whenReady = async (): Promise<void> => {
    if (this.events.length < MAX_WAITING || this.end) return;
    this.room ??= deferred();
    await this.room.promise;
  };

  /** Nothing more follows. `error`: the reason; null: the server has ended the watch. */
  finish(error: unknown): void {
    this.end ??= { error };
    if (error !== null) this.opened.reject(error);
    this.wanted?.resolve();
    this.giveRoom();
  }

  /**
   * Some of what has arrived since the last call, once there is something. Rejects with the error that ended
   * it.
   */
  async next(): Promise<WatchPart> {
    if (this.events.length === 0 && !this.end) {
      this.wanted = deferred();
      await this.wanted.promise;
      this.wanted = null;
    }
    const events = this.events.splice(0, PART_EVENTS);
    if (this.events.length < MAX_WAITING) this.giveRoom();
    if (events.length === 0 && this.end?.error) throw this.end.error;
    return { events, isEnded: this.events.length === 0 && this.end !== null && this.end.error === null };
  }

  private giveRoom(): void {
    this.room?.resolve();
    this.room = null;
  }
}
