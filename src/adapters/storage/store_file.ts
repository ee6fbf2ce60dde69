// The file of the store, beside lmdb: its checks before lmdb opens it, its place in the folder, and the room
// that is allocated in it ahead of use.
import {
  chmodSync,
  closeSync,
  fchmodSync,
  fstatSync,
  openSync,
  readSync,
  type Stats,
  statfsSync,
  statSync,
  writeSync,
} from 'node:fs';
import { constants } from 'node:os';
import { fail } from '../../protocol/errors.ts';
import type { Failure } from '../../runtime/actor.ts';

/** The fields of lmdb's two meta pages that are read. */
const META_PAGE = {
  bytes: 4096,
  magicAt: 24,
  magic: 0xbeefc0de,
  versionAt: 28,
  version: 2,
  pageSizeAt: 48,
  rootsAt: [88, 136],
  lastPageAt: 144,
  transactionAt: 152,
} as const;
const NO_PAGE = 0xffffffffffffffffn;
const MIN_PAGE_BYTES = 512;

/** Another thread may be making the file right now. */
const HEADER_ATTEMPTS = 10;
const HEADER_PAUSE_MS = 10;

/** lmdb maps its lock file and writes to it, which kills the process if the disk has no block for it. */
const LOCK_FILE_BYTES = 12_288;

const ZEROS = Buffer.alloc(65_536);

const { EDQUOT, EFBIG, EIO, ENOSPC } = constants.errno;
const MAP_FULL = -30792;
/** lmdb reports a page that fits only in part as EIO. */
const DISK_FULL_NUMBERS: readonly unknown[] = [ENOSPC, EDQUOT, EFBIG, EIO, MAP_FULL];
const DISK_FULL_CODES: readonly unknown[] = ['ENOSPC', 'EDQUOT', 'EFBIG', 'EIO'];

/** Whether `error`, from Node or lmdb, says that the disk is full. */
export const isDiskFull = (error: unknown): error is Error =>
  error instanceof Error &&
  'code' in error &&
  (DISK_FULL_NUMBERS.includes(error.code) || DISK_FULL_CODES.includes(error.code));

/** File systems that need a free block to overwrite an allocated one: btrfs, zfs, bcachefs, f2fs. */
const COPY_ON_WRITE: ReadonlySet<number> = new Set([0x9123683e, 0x2fc12fc1, 0xca451a4e, 0xf2f52010]);

/** The Failure of a store that cannot be used; `why` follows the name of its file. */
export const storeUnusable = (path: string, why: string): Failure => fail('storage_lost', `${path}: ${why}`);

/** What someone else may do to the file while it is in use. */
export type FileLoss = 'removed or replaced' | 'truncated';

/** The open file of a store. */
export class StoreFile {
  readonly path: string;
  readonly pageBytes: number;
  private readonly fd: number;
  private readonly inode: number;
  private readonly isCopyOnWrite: boolean;
  /** The size when it was last looked at. Neither lmdb nor this program makes the file smaller. */
  private bytes: number;
  private isShortened = false;

  /** The file at `path`, which is open as `fd` and which lmdb has opened too. */
  constructor(path: string, fd: number) {
    this.path = path;
    this.fd = fd;
    const { ino, size } = fstatSync(fd);
    this.inode = ino;
    this.bytes = size;
    this.isCopyOnWrite = COPY_ON_WRITE.has(statfsSync(path).type);
    this.pageBytes = readMetaPage(fd, 0)?.pageBytes ?? META_PAGE.bytes;
  }

  /** null: the file is still the one at its path, and has never become smaller. */
  loss(): FileLoss | null {
    const { ino, size = 0 } = statSync(this.path, { throwIfNoEntry: false }) ?? {};
    if (ino !== this.inode) return 'removed or replaced';
    // Another thread may have enlarged a truncated file since.
    this.isShortened ||= size < this.bytes;
    this.bytes = size;
    return this.isShortened ? 'truncated' : null;
  }

  /** Pages up to the last one in use, by the newer of the two meta pages. */
  usedPages(): number {
    return this.newest(META_PAGE.lastPageAt) + 1;
  }

  /** The last transaction that was committed. */
  transaction(): number {
    return this.newest(META_PAGE.transactionAt);
  }

  /** Bytes after the last page in use whose blocks are already allocated. */
  spareBytes(): number {
    return fstatSync(this.fd).size - this.usedPages() * this.pageBytes;
  }

  /**
   * Allocates at least `bytes` at the end of the file, as far as the disk has room. Appended zeros never meet
   * a page of lmdb: it writes its pages at their positions, before or after.
   */
  grow(bytes: number): void {
    try {
      for (let left = bytes; left > 0; )
        left -= writeSync(this.fd, ZEROS, 0, Math.min(left, ZEROS.length), null);
    } catch (error) {
      if (!isDiskFull(error)) throw error;
    }
  }

  /** Whether `bytes` of allocated blocks can be overwritten. */
  canOverwrite(bytes: number): boolean {
    if (!this.isCopyOnWrite) return true;
    const { bavail, bsize } = statfsSync(this.path);
    return bavail * bsize >= bytes;
  }

  close(): void {
    closeSync(this.fd);
  }

  /** The larger value of a field of both meta pages. */
  private newest(at: number): number {
    const field = Buffer.alloc(8);
    const read = (page: number): number => {
      readSync(this.fd, field, 0, 8, page * this.pageBytes + at);
      return Number(field.readBigUInt64LE(0));
    };
    return Math.max(read(0), read(1));
  }
}

/** The bytes of a file; undefined without one. Throws storage_lost when there is something else. */
export function fileBytes(path: string): number | undefined {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat && !stat.isFile()) throw storeUnusable(path, 'is no regular file');
  return stat?.size;
}

/**
 * Opens the file of a store for lmdb (0600, its lock file too), and creates it if necessary and allowed.
 * Throws storage_lost when it is missing, damaged or no file.
 */
export function openStoreFile(path: string, mayCreate: boolean): number {
  try {
    if (fileBytes(path) === undefined && !mayCreate) throw storeUnusable(path, 'is missing');
    prepareLockFile(`${path}-lock`);
    const fd = openSync(path, 'a+', 0o600);
    try {
      // A link may lead to a file that is no store, and whose mode is not ours to change.
      checkHeader(path, fd);
      if (isOpenToOthers(fstatSync(fd))) fchmodSync(fd, 0o600);
      return fd;
    } catch (error) {
      closeSync(fd);
      throw error;
    }
  } catch (error) {
    if (error instanceof Error && 'syscall' in error) throw storeUnusable(path, error.message);
    throw error;
  }
}

/** Throws storage_lost when there is a file at `path` that is no store, or damaged. Changes nothing. */
export function checkStoreFile(path: string): void {
  if (fileBytes(path) === undefined) return;
  const fd = openSync(path, 'r');
  try {
    checkHeader(path, fd);
  } finally {
    closeSync(fd);
  }
}

const isOpenToOthers = ({ mode }: Stats): boolean => (mode & 0o077) !== 0;

/** Creates the lock file with its blocks. Closing a descriptor of one in use would release lmdb's lock. */
function prepareLockFile(path: string): void {
  const bytes = fileBytes(path);
  if (bytes === undefined || bytes === 0) {
    const fd = openSync(path, 'a', 0o600);
    try {
      if (writeSync(fd, ZEROS, 0, LOCK_FILE_BYTES) < LOCK_FILE_BYTES)
        throw storeUnusable(path, 'cannot be made: no space left on device');
    } finally {
      closeSync(fd);
    }
  }
  if (isOpenToOthers(statSync(path))) chmodSync(path, 0o600);
}

/**
 * lmdb-js ends the process with a segmentation fault when the file is not its own, so the header is checked
 * first.
 */
function checkHeader(path: string, fd: number): void {
  for (let look = 1; !isLmdbFile(fd); look += 1) {
    if (look === HEADER_ATTEMPTS) throw storeUnusable(path, 'is damaged, or no store of berth');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, HEADER_PAUSE_MS);
  }
}

function isLmdbFile(fd: number): boolean {
  if (fstatSync(fd).size === 0) return true;
  const first = readMetaPage(fd, 0);
  return first !== undefined && readMetaPage(fd, first.pageBytes) !== undefined;
}

/** The meta page at `at`; undefined without a valid one. */
function readMetaPage(fd: number, at: number): { pageBytes: number; lastPage: number } | undefined {
  const page = Buffer.alloc(META_PAGE.bytes);
  if (readSync(fd, page, 0, page.length, at) !== page.length) return undefined;
  if (page.readUInt32LE(META_PAGE.magicAt) !== META_PAGE.magic) return undefined;
  if ((page.readUInt32LE(META_PAGE.versionAt) & 0xffff) !== META_PAGE.version) return undefined;
  const pageBytes = page.readUInt32LE(META_PAGE.pageSizeAt);
  if (pageBytes < MIN_PAGE_BYTES) return undefined;
  // Read the size last: the file grows before a meta page refers to the new part, and other threads commit
  // meanwhile.
  const { size } = fstatSync(fd);
  const roots = META_PAGE.rootsAt.map((root) => page.readBigUInt64LE(root));
  if (roots.some((root) => root !== NO_PAGE && (root + 1n) * BigInt(pageBytes) > size)) return undefined;
  return { pageBytes, lastPage: Number(page.readBigUInt64LE(META_PAGE.lastPageAt)) };
}

/**
 * Whether the file at `path` is shorter than its last page requires. A store that allocates room ahead never
 * is; one in an earlier format may be.
 */
export function isTruncated(path: string): boolean {
  const fd = openSync(path, 'r');
  try {
    const first = readMetaPage(fd, 0);
    const second = first && readMetaPage(fd, first.pageBytes);
    if (!first || !second) return false;
    return (Math.max(first.lastPage, second.lastPage) + 1) * first.pageBytes > fstatSync(fd).size;
  } finally {
    closeSync(fd);
  }
}
