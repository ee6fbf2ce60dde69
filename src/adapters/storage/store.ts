// The embedded store: tables of msgpack rows in one lmdb file. The only file that imports lmdb. A row without
// bytes is one msgpack string of JSON: a start reads hundreds of rows before any code is hot, and JSON.parse
// is native.
//
// Two settings ensure that a reply which confirms a change is sent after the change is on disk:
// - `overlappingSync: false`. With lmdb-js's default a put resolves before fdatasync has returned; without it
//   the order is pages, fdatasync, a meta page written with O_DSYNC, and then the promise (seen with strace).
// - `eventTurnBatching: false` and our own batches. By default each turn has a promise without a holder, so a
//   full disk ends the process with an unhandled rejection. Our batches are also the largest possible: all
//   changes requested while one commit is being written form the next one.
import { closeSync, fchmodSync, fstatSync, openSync, readSync } from 'node:fs';
import { constants } from 'node:os';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Database, open, type RootDatabase } from 'lmdb';
import type { SealedSecret, StoredCluster, StoredWorkload } from '../../protocol/cloud.ts';
import { fail } from '../../protocol/errors.ts';
import type { EventCheckpoint } from '../../protocol/events.ts';
import type { LastEnd, StoredService } from '../../protocol/service.ts';
import type { StoredTether } from '../../protocol/tethers.ts';
import { decodeMsgpack, encodeMsgpack } from '../../runtime/msgpack.ts';

/** Every table with the type of its rows. The keys are names and ids. */
export interface StoreTables {
  services: StoredService;
  /** The end of the last process of each service. */
  ends: LastEnd;
  /** Secrets of this state directory. */
  keys: Uint8Array;
  /** One row, `events`. */
  marks: EventCheckpoint;
  /** The cloud part (cloud_store.ts), by id. */
  clusters: StoredCluster;
  workloads: StoredWorkload;
  tethers: StoredTether;
  /** One row, `canary`: proves that a key file belongs to this store. */
  vault: SealedSecret;
  /** One row, `format`: the version of this layout. */
  meta: number;
}

const TABLE_NAMES: readonly (keyof StoreTables)[] = [
  'services',
  'ends',
  'keys',
  'marks',
  'clusters',
  'workloads',
  'tethers',
  'vault',
  'meta',
];

/** The tables whose rows contain bytes. */
const BINARY_TABLES: ReadonlySet<keyof StoreTables> = new Set(['keys', 'clusters', 'vault', 'meta']);

export interface StoreTable<V> {
  /** The row as last committed by any thread. */
  get(key: string): V | undefined;
  /** Every row, ordered by key. */
  all(): [key: string, value: V][];
  /**
   * Resolves when the row is on disk. Changes requested in one turn, to any tables, form one commit: all are
   * made or none. Fails storage_full; the store is then unchanged.
   */
  put(key: string, value: V): Promise<void>;
  remove(key: string): Promise<void>;
}

export interface Store {
  table<N extends keyof StoreTables>(name: N): StoreTable<StoreTables[N]>;
  /**
   * Resolves when every requested change has been committed or has failed, and this thread has closed the
   * file.
   */
  close(): Promise<void>;
}

/** The version that is written. Version 1, without JSON rows, is read too. */
const STORE_FORMAT = 2;
/** Address space, not memory or disk. lmdb moves the map when it must grow past this size. */
const MAP_BYTES = 1024 ** 3;
const MAX_TABLES = 32;

/**
 * Opens the store in the file `path` (0600), and creates it if necessary. Every thread opens it for itself.
 * Throws an Error that names the file when it is not a store, or has a newer version.
 */
export function openStore(path: string): Store {
  for (const file of [path, `${path}-lock`]) makePrivate(file);
  checkHeader(path);
  const env = open<Uint8Array, string>({
    path,
    noSubdir: true,
    encoding: 'binary',
    maxDbs: MAX_TABLES,
    mapSize: MAP_BYTES,
    overlappingSync: false,
    eventTurnBatching: false,
  });
  const commits = new CommitQueue(env);
  const tables = new Map<string, Database<Uint8Array, string>>();
  const database = (name: string): Database<Uint8Array, string> => {
    const db = tables.get(name) ?? env.openDB<Uint8Array, string>({ name, encoding: 'binary' });
    tables.set(name, db);
    return db;
  };
  const table = <N extends keyof StoreTables>(name: N): StoreTable<StoreTables[N]> =>
    openTable(database(name), commits, !BINARY_TABLES.has(name));
  checkFormat(path, env, database);
  return {
    table,
    async close() {
      await commits.idle();
      await env.close();
    },
  };
}

function openTable<V>(
  db: Database<Uint8Array, string>,
  commits: CommitQueue,
  isText: boolean,
): StoreTable<V> {
  // The row has the type that was put: `checkFormat` has refused every other file.
  const rowOf = (bytes: Uint8Array): V => {
    const row = decodeMsgpack(bytes);
    return (typeof row === 'string' ? JSON.parse(row) : row) as V;
  };
  return {
    get(key) {
      // lmdb-js keeps a snapshot until a timer fires; a message may come before the timer.
      db.resetReadTxn();
      const bytes = db.getBinary(key);
      return bytes && rowOf(bytes);
    },
    all() {
      db.resetReadTxn();
      return Array.from(db.getRange(), ({ key, value }): [string, V] => [key, rowOf(value)]);
    },
    put(key, value) {
      // A copy outside the encoder's pool: lmdb reads it later, from another thread.
      const bytes = Uint8Array.from(encodeMsgpack(isText ? JSON.stringify(value) : value));
      return commits.add(() => db.put(key, bytes));
    },
    remove: (key) => commits.add(() => db.remove(key)),
  };
}

const ignore = (): void => {};

/** Makes one commit at a time. Changes that arrive while one is being written form the next. */
class CommitQueue {
  private readonly env: RootDatabase<Uint8Array, string>;
  private pendingBatch: { changes: (() => unknown)[]; done: Promise<void> } | undefined;
  private lastCommit = Promise.resolve();

  constructor(env: RootDatabase<Uint8Array, string>) {
    this.env = env;
  }

  add(change: () => unknown): Promise<void> {
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

  private async commit(changes: readonly (() => unknown)[]): Promise<void> {
    try {
      await this.env.batch(() => {
        for (const change of changes) change();
      });
    } catch (error) {
      throw commitFailure(await commitCause(error));
    }
  }
}

/** The cause of a failed commit: lmdb-js rejects with a promise of it, itself rejected. */
async function commitCause(error: unknown): Promise<unknown> {
  if (!(error instanceof Error && 'commitError' in error)) return error;
  return Promise.resolve(error.commitError).then(
    () => error,
    (cause: unknown) => cause,
  );
}

const { ENOSPC, EDQUOT, EFBIG, EIO } = constants.errno;
const MAP_FULL = -30792;
/** lmdb reports a page that fits only in part as EIO. */
const DISK_FULL_CODES: readonly unknown[] = [ENOSPC, EDQUOT, EFBIG, EIO, MAP_FULL];

function commitFailure(cause: unknown): unknown {
  const isFull = cause instanceof Error && 'code' in cause && DISK_FULL_CODES.includes(cause.code);
  return isFull ? fail('storage_full', `The store could not be written: ${cause.message}.`) : cause;
}

/** Creates `file` with mode 0600, before lmdb would create it with the umask's. */
function makePrivate(file: string): void {
  const fd = openSync(file, 'a', 0o600);
  try {
    if (fstatSync(fd).mode & 0o077) fchmodSync(fd, 0o600);
  } finally {
    closeSync(fd);
  }
}

/** The fields of lmdb's two meta pages that are checked. */
const META_PAGE = { bytes: 4096, magicAt: 24, magic: 0xbeefc0de, versionAt: 28, version: 2, pageSizeAt: 48 };
const ROOTS_AT = [88, 136];
const NO_PAGE = 0xffffffffffffffffn;
const MIN_PAGE_BYTES = 512;

/** Another thread may be making the file right now. */
const HEADER_ATTEMPTS = 10;
const HEADER_PAUSE_MS = 10;

/**
 * lmdb-js ends the process with a segmentation fault when the file is not its own, so the header is checked
 * first.
 */
function checkHeader(path: string): void {
  const fd = openSync(path, 'r');
  try {
    for (let look = 1; !isLmdbFile(fd); look += 1) {
      if (look === HEADER_ATTEMPTS) throw new Error(`${path}: is damaged, or no store of berth`);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, HEADER_PAUSE_MS);
    }
  } finally {
    closeSync(fd);
  }
}

function isLmdbFile(fd: number): boolean {
  if (fstatSync(fd).size === 0) return true;
  const page = Buffer.alloc(META_PAGE.bytes);
  /** The page size in the meta page at `at`; 0 without a valid one. */
  const read = (at: number): number => {
    if (readSync(fd, page, 0, page.length, at) !== page.length) return 0;
    if (page.readUInt32LE(META_PAGE.magicAt) !== META_PAGE.magic) return 0;
    if ((page.readUInt32LE(META_PAGE.versionAt) & 0xffff) !== META_PAGE.version) return 0;
    const pageSize = page.readUInt32LE(META_PAGE.pageSizeAt);
    // Read the size last: the file grows before a meta page refers to the new part, and other threads commit
    // meanwhile.
    const { size } = fstatSync(fd);
    const roots = ROOTS_AT.map((root) => page.readBigUInt64LE(root));
    return roots.every((root) => root === NO_PAGE || (root + 1n) * BigInt(pageSize) <= size) ? pageSize : 0;
  };
  const pageSize = read(0);
  return pageSize >= MIN_PAGE_BYTES && read(pageSize) > 0;
}

function checkFormat(
  path: string,
  env: RootDatabase<Uint8Array, string>,
  database: (name: string) => Database<Uint8Array, string>,
): void {
  const names = [...env.getKeys()];
  if (names.length > 0 && !names.includes('meta')) throw new Error(`${path}: is no store of berth`);
  const bytes = names.length > 0 ? database('meta').getBinary('format') : undefined;
  const format = bytes ? decodeMsgpack(bytes) : STORE_FORMAT;
  if (typeof format !== 'number' || format < 1 || format > STORE_FORMAT)
    throw new Error(`${path}: has format ${format}, this version of berth reads up to ${STORE_FORMAT}`);
  if (bytes && format === STORE_FORMAT) return;
  // All tables in one commit, because each commit waits for the disk.
  env.transactionSync(() => {
    for (const name of TABLE_NAMES) database(name);
    database('meta').putSync('format', Uint8Array.from(encodeMsgpack(STORE_FORMAT)));
  });
}
