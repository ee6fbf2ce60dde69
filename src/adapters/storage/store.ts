// The embedded store: tables of rows (row_codec.ts) in one lmdb file. The only file that imports lmdb.
//
// Two settings ensure that a reply which confirms a change is sent after the change is on disk:
// - `overlappingSync: false`. With lmdb-js's default a put resolves before fdatasync has returned; without it
//   the order is pages, fdatasync, a meta page written with O_DSYNC, and then the promise.
// - `eventTurnBatching: false` and our own batches. By default each turn has a promise without a holder, so a
//   full disk ends the process with an unhandled rejection. Our batches are also the largest possible: all
//   changes requested while one commit is being written form the next one.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Database, open, type RootDatabase } from 'lmdb';
import { type Failure, isFailure } from '../../runtime/actor.ts';
import { encodeMsgpack } from '../../runtime/msgpack.ts';
import { CommitQueue } from './commit_queue.ts';
import { decodeRow, encodeRow } from './row_codec.ts';
import { type FileLoss, openStoreFile, StoreFile, storeUnusable } from './store_file.ts';
import { newPagesInFlight, type PagesInFlight, StoreRoom } from './store_room.ts';
import {
  type EncodedRow,
  type Store,
  type StoreTable,
  type StoreTables,
  TABLE_NAMES,
  TABLES,
  type TableName,
} from './store_tables.ts';

/**
 * The version of a new file. Versions 1 (no JSON) and 2 (no checksums, unencrypted environments) can be read
 * too; daemon_store.ts converts them.
 */
export const STORE_FORMAT = 3;
/** Address space, not memory or disk. lmdb moves the map when it must grow past this size. */
const MAP_BYTES = 1024 ** 3;
const MAX_TABLES = 32;
/** Rows of one part of a table; the thread serves messages between two parts. */
const ROWS_PER_PART = 500;

export interface StoreOptions {
  /** Whether to create a missing file; default true. */
  mayCreate?: boolean;
  /** Shared by all threads that have the store open. */
  inFlight?: PagesInFlight;
  /**
   * Gets each damaged row that is read, with the reason. Returns the bytes of an intact row that replaces it,
   * or else whether it is kept elsewhere: the store then drops it. Without it a damaged row is an error.
   */
  onDamaged?: (row: EncodedRow, reason: string) => Uint8Array | boolean;
  /** Whether to read the pages of all keys, and throw when one is damaged; default false. */
  isChecked?: boolean;
  /** Called when the file was found removed, replaced or truncated. */
  onLost?: (loss: FileLoss) => void;
}

type RawDatabase = Database<Uint8Array, string>;
type RawRoot = RootDatabase<Uint8Array, string>;

/**
 * Opens the store in the file `path` (0600). Every thread opens its own. Throws storage_lost, naming the
 * file, when the file is not a store, is damaged or has a newer version; storage_full when the store is new
 * and the disk is full.
 */
export function openStore(path: string, options: StoreOptions = {}): Store {
  const fd = openStoreFile(path, options.mayCreate ?? true);
  return new EmbeddedStore(path, openEnvironment(path), fd, options);
}

function openEnvironment(path: string): RawRoot {
  try {
    return open<Uint8Array, string>({
      path,
      noSubdir: true,
      encoding: 'binary',
      maxDbs: MAX_TABLES,
      mapSize: MAP_BYTES,
      overlappingSync: false,
      eventTurnBatching: false,
    });
  } catch (error) {
    throw storeUnusable(path, `is damaged, or no store of berth: ${(error as Error).message}`);
  }
}

class EmbeddedStore implements Store {
  readonly format: number;
  private readonly path: string;
  private readonly env: RawRoot;
  private readonly options: StoreOptions;
  private readonly file: StoreFile;
  private readonly room: StoreRoom;
  private readonly commits: CommitQueue;
  private closed: Promise<void> | undefined;
  private readonly databases = new Map<string, RawDatabase>();

  constructor(path: string, env: RawRoot, fd: number, options: StoreOptions) {
    const { inFlight = newPagesInFlight(), onLost = ignore } = options;
    this.path = path;
    this.env = env;
    this.options = options;
    this.file = new StoreFile(path, fd);
    this.room = new StoreRoom(this.file, inFlight, onLost);
    this.commits = new CommitQueue((apply) => env.batch(apply), this.room);
    this.format = this.checkFormat();
  }

  table<N extends TableName>(name: N): StoreTable<StoreTables[N]> {
    type Row = StoreTables[N];
    const { isText, isEssential } = TABLES[name];
    const db = this.database(name);
    return {
      get: (key) => {
        // lmdb-js keeps a snapshot until a timer fires; a message may come before the timer.
        db.resetReadTxn();
        const bytes = db.getBinary(key);
        return bytes && this.intact<Row>({ table: name, key, bytes })?.value;
      },
      all: () => {
        db.resetReadTxn();
        return this.intactRows<Row>(name, Array.from(db.getRange()));
      },
      put: (key, value) => {
        const bytes = encodeRow(value, isText);
        return this.commits.add({ apply: () => db.put(key, bytes), bytes: bytes.length, isEssential });
      },
      remove: (key) => this.commits.add({ apply: () => db.remove(key), bytes: 0, isEssential: true }),
    };
  }

  async *parts<N extends TableName>(
    table: N,
    prefix: string,
  ): AsyncIterable<[key: string, value: StoreTables[N]][]> {
    const db = this.database(table);
    // Above every key with that prefix: keys are ASCII.
    const end = `${prefix}\uffff`;
    let after: string | null = null;
    for (;;) {
      db.resetReadTxn();
      const start: string = after ?? prefix;
      const range = db.getRange({ start, exclusiveStart: after !== null, end, limit: ROWS_PER_PART });
      const read = Array.from(range);
      yield this.intactRows<StoreTables[N]>(table, read);
      const last = read.at(-1);
      if (!last || read.length < ROWS_PER_PART) return;
      after = last.key;
      await nextTurn();
    }
  }

  *rows(): Iterable<EncodedRow> {
    for (const table of TABLE_NAMES) {
      // Reading all rows takes a while, so copied positions could be ahead of the copied records.
      if (table === 'meta' || table === 'watches') continue;
      const db = this.database(table);
      db.resetReadTxn();
      for (const { key, value } of db.getRange()) {
        const row = this.intact({ table, key, bytes: Uint8Array.from(value) });
        if (row) yield { table, key, bytes: row.bytes };
      }
    }
  }

  async load(rows: readonly EncodedRow[]): Promise<void> {
    const written = rows.map(({ table, key, bytes }) => {
      const apply = () => this.database(table).put(key, bytes);
      return this.commits.add({ apply, bytes: bytes.length, isEssential: false });
    });
    await Promise.all(written);
  }

  version(): number {
    return this.file.transaction();
  }

  loss(): Failure | null {
    return this.room.loss();
  }

  close(): Promise<void> {
    this.closed ??= this.closeFiles();
    return this.closed;
  }

  private async closeFiles(): Promise<void> {
    await this.commits.idle();
    this.room.close();
    await this.env.close();
    this.file.close();
  }

  private database(name: string): RawDatabase {
    const known = this.databases.get(name);
    const db = known ?? this.env.openDB<Uint8Array, string>({ name, encoding: 'binary' });
    if (!known) this.databases.set(name, db);
    return db;
  }

  private intactRows<V>(table: TableName, rows: { key: string; value: Uint8Array }[]): [string, V][] {
    return rows.flatMap(({ key, value: bytes }): [string, V][] => {
      const row = this.intact<V>({ table, key, bytes });
      return row ? [[key, row.value]] : [];
    });
  }

  /** The row, or what replaces a damaged one; undefined for a damaged one that is set aside. */
  private intact<V>(row: EncodedRow): { value: V; bytes: Uint8Array } | undefined {
    const read = (bytes: Uint8Array) => ({ value: decodeRow(bytes) as V, bytes });
    try {
      // The row has the type that was put: `checkFormat` has refused every other file.
      return read(row.bytes);
    } catch (error) {
      const { onDamaged } = this.options;
      if (!onDamaged || !(error instanceof Error)) throw error;
      const kept = { ...row, bytes: Uint8Array.from(row.bytes) };
      const substitute = onDamaged(kept, error.message);
      this.replace(kept, substitute);
      return typeof substitute === 'boolean' ? undefined : read(substitute);
    }
  }

  /** Replaces a damaged row, removes it (true) or leaves it (false), unless another one is there by now. */
  private replace({ table, key, bytes }: EncodedRow, substitute: Uint8Array | boolean): void {
    const db = this.database(table);
    const write = (): void => {
      this.env.transactionSync(() => {
        if (Buffer.compare(db.getBinary(key) ?? Buffer.alloc(0), bytes) !== 0) return;
        if (typeof substitute !== 'boolean') db.putSync(key, substitute);
        else if (substitute) db.removeSync(key);
        // No position of a watch describes a workload that is missing or old: its cluster is listed again.
        if (table === 'workloads') this.database('watches').clearSync();
      });
    };
    try {
      const size = typeof substitute === 'boolean' ? 0 : substitute.length;
      this.room.duringSync({ changes: 1, bytes: size, isEssential: true }, write);
    } catch (error) {
      // The row stays in the table, and is damaged again at the next start.
      if (!isFailure(error)) throw error;
    }
  }

  /** Throws storage_lost for a file that cannot be read, or that another version or program has written. */
  private checkFormat(): number {
    try {
      return this.readFormat();
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('MDB_')) throw error;
      throw storeUnusable(this.path, `is damaged: ${error.message}`);
    }
  }

  private readFormat(): number {
    const { env, path } = this;
    const names = [...env.getKeys()];
    if (names.length > 0 && !names.includes('meta')) throw storeUnusable(path, 'is no store of berth');
    const bytes = names.length > 0 ? this.database('meta').getBinary('format') : undefined;
    const format = bytes ? decodeRow(bytes) : STORE_FORMAT;
    if (typeof format !== 'number' || format < 1 || format > STORE_FORMAT)
      throw storeUnusable(path, `has format ${format}, this version of berth reads up to ${STORE_FORMAT}`);
    if (!bytes) this.createTables();
    if (this.options.isChecked) this.readKeys();
    return format;
  }

  /** Throws storage_lost when a page of a table is damaged: whatever reads the table would crash. */
  private readKeys(): void {
    try {
      for (const name of TABLE_NAMES) for (const _key of this.database(name).getKeys());
    } catch (error) {
      // A damaged key has errors of its own, such as those of a number.
      throw storeUnusable(this.path, `is damaged: ${(error as Error).message}`);
    }
  }

  /** All tables in one commit, because each commit waits for the disk. */
  private createTables(): void {
    // As earlier versions wrote it, so that they can say which version they refuse.
    const row = Uint8Array.from(encodeMsgpack(STORE_FORMAT));
    this.room.duringSync({ changes: TABLE_NAMES.length, bytes: row.length, isEssential: false }, () => {
      this.env.transactionSync(() => {
        for (const name of TABLE_NAMES) this.database(name);
        this.database('meta').putSync('format', row);
      });
    });
  }
}

const ignore = (): void => {};
