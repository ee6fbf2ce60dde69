// The host's memory on disk: which runs there are, and how those ended that no daemon has acknowledged yet.
// One line of JSON per change, the whole row each time; the newest line of a run holds. A torn last line never happened:
// whoever would have been told of it was not.
import {
  closeSync,
  constants,
  existsSync,
  fdatasync,
  openSync,
  readFileSync,
  renameSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import type { RunRow } from '../protocol/host.ts';

export interface LedgerRow extends Omit<RunRow, 'stopping'> {
  /** The boot of the machine in which it was started. */
  boot: string;
  /** The stop under way, or the one that ended it; `at` is epoch milliseconds. */
  stop: { signal: string; graceMs: number; at: number } | null;
}

export interface Ledger {
  readonly rows: ReadonlyMap<string, LedgerRow>;
  /** Keeps the row in place of the one with the same run. False: it is not on disk (full) and will be tried again. */
  put(row: LedgerRow): boolean;
  drop(run: string): void;
  /** Whether everything is on disk, at least in the page cache. Tries to write what is not. */
  settle(): boolean;
}

/** A file larger than this, and than so many times its rows, is written anew. */
const COMPACT = { bytes: 256 * 1024, times: 4 };

const FIELDS = {
  run: 'string',
  service: 'string',
  boot: 'string',
  pid: 'number',
  startTicks: 'number',
  startedAt: 'number',
  port: 'number',
  pty: 'boolean',
  memo: 'object',
  stop: 'object',
  end: 'object',
} as const satisfies { [K in keyof LedgerRow]: string };

function isRow(value: unknown): value is LedgerRow {
  if (typeof value !== 'object' || value === null) return false;
  const given: { [K in keyof LedgerRow]?: unknown } = value;
  const typed = Object.entries(FIELDS).every(([key, type]) => typeof given[key as keyof LedgerRow] === type);
  return typed && given.memo !== null;
}

/** Init is no run of ours. To `kill`, 0 and what is below 2 mean groups or everybody: no number of a row may be that. */
const isPid = (pid: number): boolean => Number.isSafeInteger(pid) && pid > 1;

/** A damaged number is that of no process yet: a run without one is looked for by its mark. */
const sound = (row: LedgerRow): LedgerRow => (isPid(row.pid) ? row : { ...row, pid: 0, startTicks: 0 });

/** A line: `{"put": row}` or `{"drop": run}`. */
function apply(line: string, rows: Map<string, LedgerRow>): void {
  let entry: { put?: unknown; drop?: unknown } | null;
  try {
    entry = JSON.parse(line);
  } catch {
    return;
  }
  if (isRow(entry?.put)) rows.set(entry.put.run, sound(entry.put));
  else if (typeof entry?.drop === 'string') rows.delete(entry.drop);
}

function read(path: string): Map<string, LedgerRow> {
  const rows = new Map<string, LedgerRow>();
  let text = '';
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    // None yet. Any other trouble must not be taken for an empty ledger: what runs would be forgotten.
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
  }
  for (const line of text.split('\n')) if (line) apply(line, rows);
  return rows;
}

const putLine = (row: LedgerRow): string => `${JSON.stringify({ put: row })}\n`;

/** Opens the ledger at `path`. Throws when it cannot be read. */
export function openLedger(path: string): Ledger {
  const rows = read(path);
  let fd = -1;
  let size = 0;
  let liveBytes = 0;
  /** What is in memory is not all in the file. */
  let behind = true;
  /** The descriptor that is being synced, or none. */
  let syncing = -1;
  let unsynced = false;

  const sync = () => {
    unsynced = syncing >= 0;
    if (unsynced) return;
    const synced = fd;
    syncing = synced;
    fdatasync(synced, () => {
      syncing = -1;
      // The file was replaced meanwhile: only now nobody uses the old one any more.
      if (synced !== fd) closeSync(synced);
      if (unsynced) sync();
    });
  };
  const rewrite = () => {
    const next = `${path}.new`;
    const text = [...rows.values()].map(putLine).join('');
    writeFileSync(next, text, { mode: 0o600 });
    const opened = openSync(next, constants.O_WRONLY);
    try {
      renameSync(next, path);
    } catch (error) {
      closeSync(opened);
      throw error;
    }
    if (fd >= 0 && fd !== syncing) closeSync(fd);
    fd = opened;
    size = Buffer.byteLength(text);
    liveBytes = size;
    sync();
  };
  const append = (line: string) => {
    const bytes = Buffer.from(line);
    // At a position of our own: half a line that the disk had room for is written over by the next.
    for (let done = 0; done < bytes.length; ) {
      const count = writeSync(fd, bytes, done, bytes.length - done, size + done);
      if (count === 0) throw new Error('nothing written');
      done += count;
    }
    size += bytes.length;
    sync();
  };
  const attempt = (change: () => void): boolean => {
    try {
      change();
      return true;
    } catch {
      return false;
    }
  };
  const write = (line: string): boolean => {
    const large = size > COMPACT.bytes && size > COMPACT.times * liveBytes;
    // What cannot be added may still fit without all that is over.
    const added = !behind && !large && attempt(() => append(line));
    behind = !added && !attempt(rewrite);
    return !behind;
  };

  write('');
  return {
    rows,
    put(row) {
      rows.set(row.run, row);
      return write(putLine(row));
    },
    drop(run) {
      if (rows.delete(run)) write(`${JSON.stringify({ drop: run })}\n`);
    },
    // Of a folder that somebody has removed nothing will ever be read again.
    settle: () => !behind || write('') || !existsSync(dirname(path)),
  };
}
