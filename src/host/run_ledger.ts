// The host's memory on disk: which runs there are, and how those ended that no daemon has acknowledged yet.
// Each change is one line of JSON with the whole row; the newest line of a run holds. A torn last line counts
// as never written: its change was reported to nobody.
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

/** A file larger than this, and than so many times its rows, is rewritten. */
const COMPACT_ABOVE = { bytes: 256 * 1024, times: 4 };

/** The file being appended to. */
interface OpenFile {
  fd: number;
  size: number;
  /** Its size after the latest rewrite, which leaves out superseded lines. */
  compactSize: number;
}

const putLine = (row: LedgerRow): string => `${JSON.stringify({ put: row })}\n`;

const succeeds = (change: () => void): boolean => {
  try {
    change();
    return true;
  } catch {
    return false;
  }
};

/** Syncs the newest file in the background, one call at a time, and closes the files that it replaces. */
class BackgroundSync {
  private fd: number | null = null;
  /** The call under way; `isOutdated`: there is more to sync since it began. */
  private call: { fd: number; isOutdated: boolean } | null = null;

  /** Syncs `fd`. A file that was given before is not used any more. */
  request(fd: number): void {
    const previous = this.fd;
    this.fd = fd;
    if (previous !== null && previous !== fd && previous !== this.call?.fd) closeSync(previous);
    if (this.call) this.call.isOutdated = true;
    else this.start(fd);
  }

  private start(fd: number): void {
    const call = { fd, isOutdated: false };
    this.call = call;
    fdatasync(fd, () => {
      this.call = null;
      // A file that was replaced meanwhile is closed here, when nobody uses it any more.
      if (fd !== this.fd) closeSync(fd);
      if (call.isOutdated && this.fd !== null) this.start(this.fd);
    });
  }
}

/** The ledger, in memory and on disk. */
export class RunLedger {
  private readonly path: string;
  private readonly all: Map<string, LedgerRow>;
  private readonly sync = new BackgroundSync();
  private file: OpenFile | null = null;
  /** Some change is not in the file. */
  private isBehind = true;

  /** Opens the ledger at `path`. Throws when it cannot be read. */
  constructor(path: string) {
    this.path = path;
    this.all = readLedger(path);
    this.write('');
  }

  get rows(): ReadonlyMap<string, LedgerRow> {
    return this.all;
  }

  /** Adds or replaces the row of its run. False: the disk is full, and the write is tried again later. */
  put(row: LedgerRow): boolean {
    this.all.set(row.run, row);
    return this.write(putLine(row));
  }

  drop(run: string): void {
    if (this.all.delete(run)) this.write(`${JSON.stringify({ drop: run })}\n`);
  }

  /** Tries to write what is not on disk. Returns whether all is, at least in the page cache. */
  flush(): boolean {
    // A folder that somebody has removed will never be read again.
    return !this.isBehind || this.write('') || !existsSync(dirname(this.path));
  }

  private write(line: string): boolean {
    const { file } = this;
    const isLarge =
      file !== null && file.size > COMPACT_ABOVE.bytes && file.size > COMPACT_ABOVE.times * file.compactSize;
    // On a full disk the rows may fit without superseded lines.
    const isAppended = file !== null && !this.isBehind && !isLarge && succeeds(() => this.append(file, line));
    this.isBehind = !isAppended && !succeeds(() => this.rewrite());
    return !this.isBehind;
  }

  private append(file: OpenFile, line: string): void {
    const bytes = Buffer.from(line);
    // Written at an explicit position: the next line overwrites half a line that a full disk has left.
    for (let done = 0; done < bytes.length; ) {
      const count = writeSync(file.fd, bytes, done, bytes.length - done, file.size + done);
      if (count === 0) throw new Error('nothing written');
      done += count;
    }
    file.size += bytes.length;
    this.sync.request(file.fd);
  }

  private rewrite(): void {
    const temporary = `${this.path}.new`;
    const text = [...this.all.values()].map(putLine).join('');
    writeFileSync(temporary, text, { mode: 0o600 });
    const fd = openSync(temporary, constants.O_WRONLY);
    try {
      renameSync(temporary, this.path);
    } catch (error) {
      closeSync(fd);
      throw error;
    }
    const size = Buffer.byteLength(text);
    this.file = { fd, size, compactSize: size };
    this.sync.request(fd);
  }
}
