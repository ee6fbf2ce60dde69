// The embedded store: tables of msgpack rows in one lmdb file. The only file that imports lmdb. Rows without bytes in them are
// one msgpack string of JSON: a start reads hundreds of them before any code is hot, and JSON.parse need not get hot.
//
// Two settings carry the promise "a reply that says a change was made is sent after it is on disk":
// - `overlappingSync: false`. With lmdb-js's default a put resolves before fdatasync has returned; without it the order is
//   pages, fdatasync, a meta page written with O_DSYNC, and then the promise (seen with strace).
// - `eventTurnBatching: false` and batches of our own. With its default each turn has a promise that nobody holds, so that
//   a full disk ended the process by an unhandled rejection. Our batches also make the largest groups: everything asked for
//   while one commit is on its way to the disk goes into the next one.
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

/** Every table and what its rows hold; the keys are names and ids. */
export interface StoreTables {
  services: StoredService;
  /** How the last process of a service ended, by service. */
  ends: LastEnd;
  /** Secrets that belong to this state directory. */
  keys: Uint8Array;
  /** One row, `events`. */
  marks: EventCheckpoint;
  /** Of the cloud part (cloudstore.ts), by id. */
  clusters: StoredCluster;
  workloads: StoredWorkload;
  tethers: StoredTether;
  /** One row, `canary`: what proves that a key file belongs to this store. */
  vault: SealedSecret;
  /** One row, `format`: the number of this layout. */
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

/** Those whose rows have bytes in them. */
const BINARY_TABLES: ReadonlySet<keyof StoreTables> = new Set(['keys', 'clusters', 'vault', 'meta']);

export interface StoreTable<V> {
  /** As last committed by any thread. */
  get(key: string): V | undefined;
  /** Every row, ordered by key. */
  all(): [key: string, value: V][];
  /**
   * Resolves when the row is on disk. Changes asked for in one turn, in whatever tables, are one commit: all of them are
   * made or none. Fails storage_full; the store then stays as it was.
   */
  put(key: string, value: V): Promise<void>;
  remove(key: string): Promise<void>;
}

export interface Store {
  table<N extends keyof StoreTables>(name: N): StoreTable<StoreTables[N]>;
  /** Resolves when what was asked for is settled and this thread has let go of the file. */
  close(): Promise<void>;
}

/** What is written; 1, in which no row was text, is read too. */
const STORE_FORMAT = 2;
/** Address space, not memory and not disk; lmdb moves the map when it must grow past it. */
const MAP_BYTES = 1024 ** 3;
const MAX_TABLES = 32;

/**
 * Opens the store in the file `path` (0600), making it if need be. Every thread opens it for itself. Throws an Error that
 * names the file when it is no store, or that of a newer version.
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
    const there = tables.get(name) ?? env.openDB<Uint8Array, string>({ name, encoding: 'binary' });
    tables.set(name, there);
    return there;
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
  // What is read back is what was put: `checkFormat` has refused every other file.
  const rowOf = (bytes: Uint8Array): V => {
    const row = decodeMsgpack(bytes);
    return (typeof row === 'string' ? JSON.parse(row) : row) as V;
  };
  return {
    get(key) {
      // lmdb-js keeps a snapshot until a timer fires; a letter may come before the timer.
      db.resetReadTxn();
      const bytes = db.getBinary(key);
      return bytes && rowOf(bytes);
    },
    all() {
      db.resetReadTxn();
      return Array.from(db.getRange(), ({ key, value }): [string, V] => [key, rowOf(value)]);
    },
    put(key, value) {
      // Copied out of the encoder's pool: lmdb reads it later, from another thread.
      const bytes = Uint8Array.from(encodeMsgpack(isText ? JSON.stringify(value) : value));
      return commits.add(() => db.put(key, bytes));
    },
    remove: (key) => commits.add(() => db.remove(key)),
  };
}

const ignore = (): void => {};

/** One commit at a time; what comes while it is on its way to the disk is the next one. */
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
    // The letters that arrived in this turn still have their changes to ask for.
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

/** lmdb-js rejects with a promise of the reason, which is itself a rejection that has to be caught. */
async function commitCause(error: unknown): Promise<unknown> {
  if (!(error instanceof Error && 'commitError' in error)) return error;
  return Promise.resolve(error.commitError).then(
    () => error,
    (cause: unknown) => cause,
  );
}

const { ENOSPC, EDQUOT, EFBIG, EIO } = constants.errno;
const MAP_FULL = -30792;
/** A page that fits only in part is EIO for lmdb. */
const DISK_FULL_CODES: readonly unknown[] = [ENOSPC, EDQUOT, EFBIG, EIO, MAP_FULL];

function commitFailure(cause: unknown): unknown {
  const full = cause instanceof Error && 'code' in cause && DISK_FULL_CODES.includes(cause.code);
  return full ? fail('storage_full', `The store could not be written: ${cause.message}.`) : cause;
}

/** Makes `file` with 0600 before lmdb would make it with whatever the umask says. */
function makePrivate(file: string): void {
  const fd = openSync(file, 'a', 0o600);
  try {
    if (fstatSync(fd).mode & 0o077) fchmodSync(fd, 0o600);
  } finally {
    closeSync(fd);
  }
}

/** The layout of lmdb's two meta pages as far as it is looked at. */
const META_PAGE = { bytes: 4096, magicAt: 24, magic: 0xbeefc0de, versionAt: 28, version: 2, pageSizeAt: 48 };
const ROOTS_AT = [88, 136];
const NO_PAGE = 0xffffffffffffffffn;
const MIN_PAGE_BYTES = 512;

/** Another thread may be making the file at this very moment. */
const HEADER_ATTEMPTS = 10;
const HEADER_PAUSE_MS = 10;

/** lmdb-js ends the process with a segmentation fault when the file is anything but its own, so we look first. */
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
  /** Gives the size of a page; 0 when there is no meta page of lmdb. */
  const read = (at: number): number => {
    if (readSync(fd, page, 0, page.length, at) !== page.length) return 0;
    if (page.readUInt32LE(META_PAGE.magicAt) !== META_PAGE.magic) return 0;
    if ((page.readUInt32LE(META_PAGE.versionAt) & 0xffff) !== META_PAGE.version) return 0;
    const pageSize = page.readUInt32LE(META_PAGE.pageSizeAt);
    // Only now: the file grows before a meta page points there, and other threads commit meanwhile.
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
  // All tables in one commit: each by itself would wait for the disk.
  env.transactionSync(() => {
    for (const name of TABLE_NAMES) database(name);
    database('meta').putSync('format', Uint8Array.from(encodeMsgpack(STORE_FORMAT)));
  });
}
