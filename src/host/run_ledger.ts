// The host's memory on disk: which runs there are, and how those ended that no daemon has acknowledged yet.
// One line of JSON per change, the whole row each time; the newest line of a run holds. A torn last line never happened:
// whoever would have been told of it was not.
import {
  closeSync,
  constants,
  existsSync,
  fdatasync,
  openSync,
  renameSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { type LedgerRow, readLedger } from '../adapters/storage/ledger_file.ts';

export interface RunLedger {
  readonly rows: ReadonlyMap<string, LedgerRow>;
  /** Keeps the row in place of the one with the same run. False: it is not on disk (full) and will be tried again. */
  put(row: LedgerRow): boolean;
  drop(run: string): void;
  /** Whether everything is on disk, at least in the page cache. Tries to write what is not. */
  flush(): boolean;
}

/** A file larger than this, and than so many times its rows, is written anew. */
const COMPACT_ABOVE = { bytes: 256 * 1024, times: 4 };

const putLine = (row: LedgerRow): string => `${JSON.stringify({ put: row })}\n`;

/** Opens the ledger at `path`. Throws when it cannot be read. */
export function openRunLedger(path: string): RunLedger {
  const rows = readLedger(path);
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
    const large = size > COMPACT_ABOVE.bytes && size > COMPACT_ABOVE.times * liveBytes;
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
    flush: () => !behind || write('') || !existsSync(dirname(path)),
  };
}
