// Groups the changes of a store into commits.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { fail } from '../../protocol/errors.ts';
import { isDiskFull } from './store_file.ts';
import type { StoreRoom } from './store_room.ts';

export interface Change {
  /** Requests the change from lmdb. */
  apply: () => unknown;
  /** Bytes of the new row; 0 for a removal. */
  bytes: number;
  isEssential: boolean;
}

/** Makes one commit at a time. Changes that arrive while one is being written form the next. */
export class CommitQueue {
  private readonly batch: (apply: () => void) => Promise<unknown>;
  private readonly room: StoreRoom;
  private pendingBatch: { changes: Change[]; done: Promise<void> } | undefined;
  private lastCommit = Promise.resolve();

  /** `batch` commits what is requested in `apply`. */
  constructor(batch: (apply: () => void) => Promise<unknown>, room: StoreRoom) {
    this.batch = batch;
    this.room = room;
  }

  add(change: Change): Promise<void> {
    if (this.pendingBatch) {
      this.pendingBatch.changes.push(change);
      return this.pendingBatch.done;
    }
    const changes = [change];
    // Other messages of this turn may still request changes.
    const done = this.lastCommit.then(nextTurn).then(() => {
      this.pendingBatch = undefined;
      return this.commit(changes);
    });
    this.pendingBatch = { changes, done };
    this.lastCommit = done.catch(ignore);
    return done;
  }

  async idle(): Promise<void> {
    await this.lastCommit;
  }

  private commit(changes: readonly Change[]): Promise<void> {
    const size = {
      changes: changes.length,
      bytes: changes.reduce((sum, { bytes }) => sum + bytes, 0),
      isEssential: changes.every(({ isEssential }) => isEssential),
    };
    return this.room.during(size, async () => {
      try {
        await this.batch(() => {
          for (const { apply } of changes) apply();
        });
      } catch (error) {
        throw commitFailure(await commitCause(error));
      }
    });
  }
}

const ignore = (): void => {};

/** The cause of a failed commit: lmdb-js rejects with a promise of it, itself rejected. */
async function commitCause(error: unknown): Promise<unknown> {
  if (!(error instanceof Error && 'commitError' in error)) return error;
  return Promise.resolve(error.commitError).then(
    () => error,
    (cause: unknown) => cause,
  );
}

const commitFailure = (cause: unknown): unknown =>
  isDiskFull(cause) ? fail('storage_full', `The store could not be written: ${cause.message}.`) : cause;
