// A journal of lines in numbered files, bounded in bytes and age, and read in pages. Lines that `write` has
// confirmed are on disk, so no number is assigned twice. Every line begins with `{"id":N,`; numbers are
// consecutive, and each file is named after the number of its first line.
import {
  closeSync,
  constants,
  fdatasync,
  ftruncateSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { openRegularFile } from '../../settings/state_files.ts';
import { type CloudHistory, HistoryError } from './cloud_history.ts';

const APPEND = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT;

export interface EventHistoryLimits {
  /** A file takes no further lines once it reaches this size, or its first line this age. */
  readonly fileBytes: number;
  readonly fileMs: number;
  /**
   * The oldest files are removed when all files together exceed this size, or when their last line is older.
   */
  readonly totalBytes: number;
  readonly maxAgeMs: number;
}

/** The bytes of a file. Never blocks, whatever kind of file is at the path. */
function wholeFile(path: string): Buffer {
  const fd = openRegularFile(path, constants.O_RDONLY);
  try {
    return readFileSync(fd);
  } finally {
    closeSync(fd);
  }
}

interface HistoryFile {
  readonly firstId: number;
  bytes: number;
  /** When its first and its last line were written; epoch milliseconds. */
  readonly startedAt: number;
  endedAt: number;
}

const NEWLINE = 0x0a;
const DIGITS = 16;
const NAME = /^events-(\d{16})\.jsonl$/;
const sync = promisify(fdatasync);

/** The number of a line; 0 for a damaged one. */
const lineId = (line: string): number => Number(/^\{"id":(\d{1,16}),/.exec(line)?.[1] ?? 0);

export class EventHistory implements CloudHistory {
  lastId = 0;
  private readonly folder: string;
  private readonly limits: EventHistoryLimits;
  /** Oldest first; the last one is being written. */
  private readonly files: HistoryFile[];
  private fd: number | null = null;
  /** How far the file and the numbers were before the last `append`. */
  private before = { bytes: 0, lastId: 0 };

  /** Creates the folder (0700) if necessary, and cuts off a last line without a newline, torn by a kill. */
  constructor(folder: string, limits: EventHistoryLimits) {
    this.folder = folder;
    this.limits = limits;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const ids = readdirSync(folder)
      .flatMap((name) => NAME.exec(name)?.[1] ?? [])
      .map(Number)
      .sort((one, other) => one - other);
    this.files = ids.map((firstId) => {
      const { size, birthtimeMs, mtimeMs } = statSync(this.pathOf(firstId));
      return { firstId, bytes: size, startedAt: Math.min(birthtimeMs, mtimeMs), endedAt: mtimeMs };
    });
    this.mend();
  }

  get firstId(): number {
    return this.lastId === 0 ? 0 : (this.files[0]?.firstId ?? 0);
  }

  async write(lines: readonly string[], now: number): Promise<void> {
    try {
      this.append(lines, now);
      if (this.fd !== null) await sync(this.fd);
    } catch (error) {
      if (!(error instanceof Error && 'syscall' in error)) throw error;
      this.undo();
      throw new HistoryError(error.message);
    }
  }

  /** Throws the system's error; nothing is appended then. */
  private append(lines: readonly string[], now: number): void {
    const file = this.current(now);
    const content = Buffer.from(lines.map((line) => `${line}\n`).join(''));
    const fd = this.openFile(file);
    this.before = { bytes: file.bytes, lastId: this.lastId };
    try {
      for (let done = 0; done < content.length; ) done += writeSync(fd, content, done, content.length - done);
    } catch (error) {
      ftruncateSync(fd, file.bytes);
      throw error;
    }
    file.bytes += content.length;
    file.endedAt = now;
    this.lastId += lines.length;
  }

  /** Reverts the last `append`, which could not be written or synced. */
  private undo(): void {
    const file = this.files.at(-1);
    if (!file || this.lastId === this.before.lastId) return;
    ftruncateSync(this.openFile(file), this.before.bytes);
    file.bytes = this.before.bytes;
    this.lastId = this.before.lastId;
  }

  prune(now: number): void {
    const { totalBytes, maxAgeMs } = this.limits;
    let bytes = this.files.reduce((sum, file) => sum + file.bytes, 0);
    for (let oldest = this.files[0]; oldest && this.files.length > 1; oldest = this.files[0]) {
      if (bytes <= totalBytes && now - oldest.endedAt <= maxAgeMs) return;
      rmSync(this.pathOf(oldest.firstId), { force: true });
      bytes -= oldest.bytes;
      this.files.shift();
    }
  }

  async *newestFirst(before: number): AsyncGenerator<string[], void> {
    for (const { firstId } of this.files.filter((file) => file.firstId < before).reverse()) {
      const lines = await this.read(firstId);
      yield lines.filter((line) => lineId(line) < before).reverse();
    }
  }

  async *oldestFirst(after: number): AsyncGenerator<string[], void> {
    const { files } = this;
    for (const { firstId } of files.filter(
      (_, at) => (files[at + 1]?.firstId ?? Number.MAX_VALUE) > after + 1,
    )) {
      const lines = await this.read(firstId);
      yield lines.filter((line) => lineId(line) > after);
    }
  }

  close(): void {
    if (this.fd !== null) closeSync(this.fd);
    this.fd = null;
  }

  private pathOf(firstId: number): string {
    return join(this.folder, `events-${String(firstId).padStart(DIGITS, '0')}.jsonl`);
  }

  /** Finds the newest number, and cuts off a line torn by a kill. */
  private mend(): void {
    const newest = this.files.at(-1);
    if (!newest) return;
    const content = wholeFile(this.pathOf(newest.firstId));
    const end = content.lastIndexOf(NEWLINE) + 1;
    newest.bytes = end;
    if (end < content.length) ftruncateSync(this.openFile(newest), end);
    const lines = content.toString('utf8', 0, end).split('\n');
    // Without a line, the name of the file tells the next number.
    this.lastId = lines.map(lineId).findLast((id) => id > 0) ?? newest.firstId - 1;
  }

  /** The file that the next line goes to. */
  private current(now: number): HistoryFile {
    const last = this.files.at(-1);
    const isOpen = last && last.bytes < this.limits.fileBytes && now - last.startedAt < this.limits.fileMs;
    if (last && (isOpen || last.bytes === 0)) return last;
    this.close();
    const file = { firstId: this.lastId + 1, bytes: 0, startedAt: now, endedAt: now };
    this.files.push(file);
    return file;
  }

  private openFile({ firstId }: HistoryFile): number {
    this.fd ??= openRegularFile(this.pathOf(firstId), APPEND, 0o600);
    return this.fd;
  }

  private async read(firstId: number): Promise<string[]> {
    try {
      const content = await readFile(this.pathOf(firstId), 'utf8');
      const lines = content.split('\n');
      // The text after the last newline is still being written.
      lines.pop();
      return lines;
    } catch (error) {
      // Pruned meanwhile.
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
      throw error;
    }
  }
}
