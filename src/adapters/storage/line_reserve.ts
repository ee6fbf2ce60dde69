// Lines in a file that was allocated while there was room. It is overwritten in place, as a full disk allows.
import { closeSync, fstatSync, openSync, readFileSync, writeSync } from 'node:fs';

const NEWLINE = 0x0a;

/** Opens the file for writing in place, and creates it if necessary. */
function openInPlace(path: string): number {
  closeSync(openSync(path, 'a', 0o600));
  return openSync(path, 'r+');
}

export class LineReserve {
  /** The lines found at first, each with its newline, the oldest first. */
  readonly found: readonly string[];
  private readonly fd: number;
  /** What is allocated. Copy-on-write file systems may need room all the same, and lines are refused then. */
  private size: number;
  private used: number;

  /** Allocates `bytes`, or what there is room for. */
  constructor(path: string, bytes: number) {
    this.fd = openInPlace(path);
    const content = readFileSync(path);
    const end = content.indexOf(0);
    const text = end < 0 ? content : content.subarray(0, end);
    // A kill may have torn the last line.
    this.used = text.lastIndexOf(NEWLINE) + 1;
    this.found = text.toString('utf8', 0, this.used).match(/[^\n]*\n/g) ?? [];
    this.size = content.length;
    if (this.size < bytes) this.write(Buffer.alloc(bytes - this.size), this.size);
    this.size = fstatSync(this.fd).size;
    this.erase(this.used, text.length);
  }

  /** Adds lines, each with its newline. Returns false if they do not fit. */
  add(text: string): boolean {
    const bytes = Buffer.from(text);
    if (this.used + bytes.length > this.size || !this.write(bytes, this.used)) return false;
    this.used += bytes.length;
    return true;
  }

  /** Forgets all lines. */
  clear(): void {
    this.erase(0, this.used);
    this.used = 0;
  }

  close(): void {
    closeSync(this.fd);
  }

  /** The end of the lines is the first zero byte. */
  private erase(from: number, to: number): void {
    if (to > from) this.write(Buffer.alloc(to - from), from);
  }

  private write(bytes: Buffer, at: number): boolean {
    try {
      for (let done = 0; done < bytes.length; )
        done += writeSync(this.fd, bytes, done, bytes.length - done, at + done);
      return true;
    } catch (error) {
      if (!(error instanceof Error && 'syscall' in error)) throw error;
      return false;
    }
  }
}
