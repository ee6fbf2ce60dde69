// The copy of the last good state of the store: its undamaged rows in one file beside it, readable without
// lmdb. A copy is always complete: it is renamed into place, and its end is marked.
import { closeSync, fsync, openSync, readFileSync, renameSync, rmSync, statSync, writeSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { crc32 } from 'node:zlib';
import type { LastEnd } from '../../protocol/service.ts';
import { decodeMsgpack, encodeMsgpack } from '../../runtime/msgpack.ts';
import { STORE } from '../../settings/limits.ts';
import { decodeRow, encodeRow } from './row_codec.ts';
import { type EncodedRow, type Store, TABLES } from './store_tables.ts';

/** Rows of one block; the thread serves messages between two blocks. */
const ROWS_PER_BLOCK = 500;
/** The length of a block, and its checksum. */
const HEAD_BYTES = 8;

function blockOf(rows: readonly EncodedRow[]): Buffer {
  const payload = encodeMsgpack(rows.map(({ table, key, bytes }) => [table, key, bytes]));
  const block = Buffer.alloc(HEAD_BYTES + payload.length);
  block.writeUInt32LE(payload.length, 0);
  block.writeUInt32LE(crc32(payload), 4);
  block.set(payload, HEAD_BYTES);
  return block;
}

/**
 * Writes the copy of `rows` at `path` and resolves with its bytes. Rejects with the system's error; an older
 * copy is then untouched.
 */
export async function writeStoreCopy(path: string, rows: Iterable<EncodedRow>): Promise<number> {
  const fresh = `${path}.new`;
  const fd = openSync(fresh, 'w', 0o600);
  let bytes = 0;
  const write = (part: readonly EncodedRow[]): void => {
    const block = blockOf(part);
    for (let done = 0; done < block.length; ) done += writeSync(fd, block, done);
    bytes += block.length;
  };
  try {
    let part: EncodedRow[] = [];
    for (const row of rows) {
      part.push(row);
      if (part.length < ROWS_PER_BLOCK) continue;
      write(part);
      part = [];
      await nextTurn();
    }
    if (part.length > 0) write(part);
    // A block without rows marks the end.
    write([]);
    await promisify(fsync)(fd);
    renameSync(fresh, path);
    return bytes;
  } catch (error) {
    rmSync(fresh, { force: true });
    throw error;
  } finally {
    closeSync(fd);
  }
}

const isRow = (row: unknown): row is [EncodedRow['table'], string, Uint8Array] =>
  Array.isArray(row) &&
  typeof row[0] === 'string' &&
  Object.hasOwn(TABLES, row[0]) &&
  typeof row[1] === 'string' &&
  row[2] instanceof Uint8Array;

/** The rows of the copy at `path`. Throws an Error when it is damaged, and the system's error. */
export function readStoreCopy(path: string): EncodedRow[] {
  const content = readFileSync(path);
  const rows: EncodedRow[] = [];
  for (let at = 0; at + HEAD_BYTES <= content.length; ) {
    const payload = content.subarray(at + HEAD_BYTES, at + HEAD_BYTES + content.readUInt32LE(at));
    if (crc32(payload) !== content.readUInt32LE(at + 4)) break;
    at += HEAD_BYTES + payload.length;
    const block = decodeMsgpack(payload);
    if (!Array.isArray(block)) break;
    if (block.length === 0) return rows;
    rows.push(...block.filter(isRow).map(([table, key, bytes]) => ({ table, key, bytes })));
  }
  throw new Error(`${path}: is damaged`);
}

/**
 * The row of the copy as far as it repeats nothing that is over. Ends stay, without what a start follows:
 * tasks that have completed do not run again, such as the hook `create` of a stack, and agents stay asleep.
 */
function restorable(row: EncodedRow): EncodedRow | undefined {
  if (row.table !== 'ends') return TABLES[row.table].isRestored ? row : undefined;
  const { restart, relaunch, unasked, ...end } = decodeRow(row.bytes) as LastEnd;
  // Its files are watched after a crash: a change starts it.
  if (end.status === 'crashed') return undefined;
  return { ...row, bytes: encodeRow(end, TABLES.ends.isText) };
}

/** The rows of the copy at `path` that may be used again. Throws as `readStoreCopy` does. */
export const restorableRows = (path: string): EncodedRow[] =>
  readStoreCopy(path).flatMap((row) => restorable(row) ?? []);

/** A row of the copy, and the time of the copy. */
export interface CopiedRow {
  bytes: Uint8Array;
  at: Date;
}

/**
 * Finds the row of the copy at `path` that may stand in for a damaged one, if there is such a copy. Rows are
 * damaged by the page, so what was read of the copy is kept until the end of the turn.
 */
export function copiedRows(path: string): (row: EncodedRow) => CopiedRow | undefined {
  let copy: Map<string, CopiedRow> | undefined;
  return ({ table, key }) => {
    if (!copy) setImmediate(() => (copy = undefined));
    copy ??= readCopiedRows(path);
    return copy.get(`${table}.${key}`);
  };
}

function readCopiedRows(path: string): Map<string, CopiedRow> {
  try {
    const at = statSync(path).mtime;
    return new Map(restorableRows(path).map(({ table, key, bytes }) => [`${table}.${key}`, { bytes, at }]));
  } catch {
    // Without a copy, or with a damaged one, the row is left out.
    return new Map();
  }
}

/** The time of the copy at `path`; undefined without one. */
export const storeCopyTime = (path: string): Date | undefined =>
  statSync(path, { throwIfNoEntry: false })?.mtime;

/**
 * Milliseconds from a start to the writing of the copy at `path`. The interval of a large one goes on over
 * restarts.
 */
function firstPauseMs(path: string): number {
  const { firstCopyMs, largeCopyBytes, largeCopyIntervalMs } = STORE;
  try {
    const { size, mtimeMs } = statSync(path);
    if (size <= largeCopyBytes) return firstCopyMs;
    const age = Math.max(Date.now() - mtimeMs, 0);
    return Math.max(largeCopyIntervalMs - age, firstCopyMs);
  } catch {
    // There is none, or writing it will report why it cannot be read.
    return firstCopyMs;
  }
}

/** Keeps the copy at `path` close to the store. */
export class StoreCopier {
  private readonly store: Store;
  private readonly path: string;
  private readonly report: (text: string) => void;
  private timer: NodeJS.Timeout;
  private copied: number | undefined;
  private copying = Promise.resolve();
  private isFailing = false;
  private isClosed = false;

  /** `report` is called when copies cannot be written, and when they can again. */
  constructor(store: Store, path: string, report: (text: string) => void) {
    this.store = store;
    this.path = path;
    this.report = report;
    this.timer = setTimeout(() => this.run(), firstPauseMs(path)).unref();
  }

  /**
   * Copies the store, unless nothing has changed since the last copy. Resolves once copied, or on failure.
   */
  copy(): Promise<void> {
    this.copying = this.copying.then(() => this.update());
    return this.copying;
  }

  /** Waits for a copy under way. */
  async close(): Promise<void> {
    this.isClosed = true;
    clearTimeout(this.timer);
    await this.copying;
  }

  private run(): void {
    void this.copy();
  }

  private async update(): Promise<void> {
    clearTimeout(this.timer);
    const version = this.store.version();
    let bytes = 0;
    try {
      if (version !== this.copied) bytes = await writeStoreCopy(this.path, this.store.rows());
      this.copied = version;
      if (this.isFailing) this.report('store: its copy is written again');
      this.isFailing = false;
    } catch (error) {
      if (!(error instanceof Error && 'syscall' in error)) throw error;
      if (!this.isFailing) this.report(`store: its copy cannot be written: ${error.message}`);
      this.isFailing = true;
    }
    const { copyIntervalMs, largeCopyBytes, largeCopyIntervalMs } = STORE;
    const pause = bytes > largeCopyBytes ? largeCopyIntervalMs : copyIntervalMs;
    if (!this.isClosed) this.timer = setTimeout(() => this.run(), pause).unref();
  }
}
