// The room of the store on a disk that may be full. lmdb-js must never meet a full disk: its error path
// writes past the end of a buffer, and the process aborts. So a commit begins only when the file has
// allocated blocks for all that it may write. The blocks that are allocated ahead are also the reserve: on
// a full disk, changes that are essential still use them.
import { fail } from '../../protocol/errors.ts';
import type { Failure } from '../../runtime/actor.ts';
import { STORE } from '../../settings/limits.ts';
import { type FileLoss, type StoreFile, storeUnusable } from './store_file.ts';

/** What one commit changes. */
export interface CommitSize {
  changes: number;
  /** Bytes of the new rows. */
  bytes: number;
  isEssential: boolean;
}

/** Pages of the free list and of the roots, beside those of the rows. */
const FIXED_PAGES = 16;
/** Copied pages per change, in the worst case: the paths to two leaves, and their splits. */
const PAGES_PER_CHANGE = 12;

/** The most pages that a commit writes behind the last page in use, of which there are `used`. */
export function pagesOfCommit({ changes, bytes }: CommitSize, used: number, pageBytes: number): number {
  const copied = Math.min(PAGES_PER_CHANGE * changes, 3 * used);
  const rows = 2 * changes + Math.ceil((2 * bytes) / pageBytes);
  const freeList = Math.ceil((8 * (copied + used)) / pageBytes);
  return FIXED_PAGES + copied + rows + freeList;
}

/** The pages that the commits under way in all threads may write. */
export type PagesInFlight = SharedArrayBuffer;

/** For the threads of one process, which share a store. */
export const newPagesInFlight = (): PagesInFlight => new SharedArrayBuffer(4);

/** Allocates blocks ahead of commits. */
export class StoreRoom {
  private readonly file: StoreFile;
  private readonly inFlight: Int32Array;
  private readonly onLost: (loss: FileLoss) => void;
  /** Renews the reserve as soon as there is room. */
  private renewal: NodeJS.Timeout | undefined;

  constructor(file: StoreFile, inFlight: PagesInFlight, onLost: (loss: FileLoss) => void) {
    this.file = file;
    this.inFlight = new Int32Array(inFlight);
    this.onLost = onLost;
  }

  /**
   * Runs `commit` with room for all that it may write. Fails storage_full, before it runs, without enough
   * room. Fails storage_lost when the file is no longer in its place, before or after: the change would be
   * gone at the next start. The same when the file was truncated, before anything reads its missing pages.
   */
  async during(size: CommitSize, commit: () => Promise<void>): Promise<void> {
    const pages = this.begin(size);
    try {
      await commit();
      this.checkPlace();
    } finally {
      this.end(pages);
    }
  }

  /** The same for a commit that blocks this thread. */
  duringSync(size: CommitSize, commit: () => void): void {
    const pages = this.begin(size);
    try {
      commit();
    } finally {
      this.end(pages);
    }
  }

  /** The failure storage_lost of every commit, if the file is no longer in its place; otherwise null. */
  loss(): Failure | null {
    const loss = this.file.loss();
    if (loss === null) return null;
    this.onLost(loss);
    return storeUnusable(this.file.path, `was ${loss} while the daemon runs`);
  }

  close(): void {
    clearInterval(this.renewal);
  }

  private begin(size: CommitSize): number {
    this.checkPlace();
    const { file } = this;
    const pages = pagesOfCommit(size, file.usedPages(), file.pageBytes);
    // Counted first: of two commits that begin at the same time, one at least sees the other.
    const all = Atomics.add(this.inFlight, 0, pages) + pages;
    if (this.allocate(all * file.pageBytes, size.isEssential)) return pages;
    this.end(pages);
    throw fail('storage_full', `The store could not be written: the disk of ${file.path} is full.`);
  }

  private end(pages: number): void {
    Atomics.sub(this.inFlight, 0, pages);
  }

  private checkPlace(): void {
    const failure = this.loss();
    if (failure) throw failure;
  }

  /** Whether `bytes` are allocated now, and the reserve too unless the change is essential. */
  private allocate(bytes: number, isEssential: boolean): boolean {
    const { file } = this;
    const wanted = bytes + STORE.reserveBytes;
    if (file.spareBytes() < wanted) this.growTo(wanted + STORE.growthBytes);
    const needed = isEssential ? bytes : wanted;
    return file.spareBytes() >= needed && file.canOverwrite(needed);
  }

  /** Grows the spare room to `bytes`; on a full disk, keeps trying. */
  private growTo(bytes: number): void {
    const { file } = this;
    file.grow(bytes - file.spareBytes());
    if (file.spareBytes() >= bytes) {
      clearInterval(this.renewal);
      this.renewal = undefined;
    } else {
      this.renewal ??= setInterval(() => this.growTo(STORE.reserveBytes), STORE.renewalMs).unref();
    }
  }
}
