// The host's memory on disk: its runs, and the ends that no daemon has acknowledged yet. Each change is one
// line of JSON with the whole row; the newest line of a run counts. A torn last line counts as never written:
// its change was not reported.
import {
  closeSync,
  constants,
  existsSync,
  fdatasync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { type LedgerRow, ledgerLink, readLedger } from '../adapters/storage/ledger_file.ts';

/** A file that exceeds both this size and this multiple of its compact size is rewritten. */
const COMPACT_ABOVE = { bytes: 256 * 1024, times: 4 };

/** The file being appended to. */
interface OpenFile {
  fd: number;
  size: number;
  /** Its size after the latest rewrite, which omits superseded lines. */
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

/** Syncs the newest file in the background, one call at a time, and closes files that were replaced. */
class BackgroundSync {
  private fd: number | null = null;
  /** The call under way. `isOutdated`: more was written since it began. */
  private call: { fd: number; isOutdated: boolean } | null = null;

  /** Syncs `fd`. An earlier file is no longer in use. */
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
      // A file replaced meanwhile is closed here, once it is no longer in use.
      if (fd !== this.fd) closeSync(fd);
      if (call.isOutdated && this.fd !== null) this.start(this.fd);
    });
  }
}

/** The ledger, in memory and on disk. */
export class RunLedger {
  /** May change: its folder was renamed. */
  path: string;
  private readonly all: Map<string, LedgerRow>;
  private readonly sync = new BackgroundSync();
  private file: OpenFile | null = null;
  /** Whether a change is missing from the file. */
  private isBehind = true;
  /** Whether the last `flush` found no file. */
  private wasMissing = false;

  /** Opens the ledger at `path`. Throws when it cannot be read. */
  constructor(path: string) {
    this.path = path;
    this.all = readLedger(path);
    this.write('');
  }

  get rows(): ReadonlyMap<string, LedgerRow> {
    return this.all;
  }

  /**
   * Adds or replaces the row of its run. Returns false when the disk is full; the write is then retried
   * later.
   */
  put(row: LedgerRow): boolean {
    this.all.set(row.run, row);
    return this.write(putLine(row));
  }

  drop(run: string): void {
    if (this.all.delete(run)) this.write(`${JSON.stringify({ drop: run })}\n`);
  }

  /**
   * Tries to write missing changes, or all rows if the file has been gone since the last call. Returns
   * whether all are written, at least to the page cache.
   */
  flush(): boolean {
    const isMissing = !existsSync(this.path);
    // Not at once, because the whole state directory may be being removed.
    if (isMissing && this.wasMissing) this.isBehind = true;
    this.wasMissing = isMissing;
    // A removed folder will never be read again.
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
    // Written at an explicit position, so that the next line overwrites half a line left by a full disk.
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
    const link = ledgerLink(this.path);
    // Not every file system has links.
    succeeds(() => {
      rmSync(link, { force: true });
      linkSync(this.path, link);
    });
    const size = Buffer.byteLength(text);
    this.file = { fd, size, compactSize: size };
    this.sync.request(fd);
  }
}
