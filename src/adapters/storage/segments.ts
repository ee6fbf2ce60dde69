// Append-only lines in bounded files: the newest lines of a series are always present, the oldest are dropped
// a file at a time. Each line is whole in one file, so lines are cut at newlines only, without the rules of
// logs for people.
import {
  closeSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';

const NEWLINE = 0x0a;

/**
 * One series of lines in the files `<name>-<number>.log` of a folder: the current file and the full one
 * before it, so at least `perFile` lines are kept and at most twice as many. One process writes at a time.
 */
export class Segments {
  private readonly folder: string;
  private readonly name: string;
  private readonly perFile: number;
  private number = 0;
  private fd: number;
  private bytes = 0;
  private lines = 0;

  /** Creates the folder (0700) if necessary, and cuts off a last line without a newline, torn by a kill. */
  constructor(folder: string, name: string, perFile: number) {
    this.folder = folder;
    this.name = name;
    this.perFile = perFile;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.number = this.numbers().at(-1) ?? 1;
    this.fd = this.open(this.number);
    const content = this.read(this.number);
    this.bytes = content.lastIndexOf(NEWLINE) + 1;
    if (this.bytes < content.length) ftruncateSync(this.fd, this.bytes);
    for (let at = 0; at < this.bytes; at = content.indexOf(NEWLINE, at) + 1) this.lines += 1;
  }

  /** The newest lines, at most `count`, oldest first, without their newlines. */
  newest(count: number): string[] {
    const found: string[] = [];
    for (const number of this.numbers().reverse()) {
      const content = this.read(number);
      let end = content.lastIndexOf(NEWLINE);
      while (end >= 0 && found.length < count) {
        const before = end === 0 ? -1 : content.lastIndexOf(NEWLINE, end - 1);
        found.push(content.toString('utf8', before + 1, end));
        end = before;
      }
    }
    return found.reverse();
  }

  /**
   * Appends `count` lines, each with its newline: written, not synced. Throws the system's error when they
   * cannot be written (a full disk); the file is then unchanged. Synchronous, because a write to the page
   * cache is faster than a message to another thread, and because nothing can come between two appends.
   */
  append(text: string, count: number): void {
    if (this.lines >= this.perFile) this.rotate();
    const content = Buffer.from(text);
    try {
      for (let done = 0; done < content.length; )
        done += writeSync(this.fd, content, done, content.length - done);
    } catch (error) {
      ftruncateSync(this.fd, this.bytes);
      throw error;
    }
    this.bytes += content.length;
    this.lines += count;
  }

  /** Waits until everything appended is on disk. */
  sync(): void {
    fsyncSync(this.fd);
  }

  close(): void {
    closeSync(this.fd);
  }

  private rotate(): void {
    const next = this.open(this.number + 1);
    closeSync(this.fd);
    this.fd = next;
    this.number += 1;
    this.bytes = 0;
    this.lines = 0;
    for (const number of this.numbers()) if (number < this.number - 1) rmSync(this.path(number));
  }

  private numbers(): number[] {
    return readdirSync(this.folder)
      .filter((file) => file.startsWith(`${this.name}-`) && file.endsWith('.log'))
      .map((file) => Number(file.slice(this.name.length + 1, -4)))
      .filter(Number.isInteger)
      .sort((a, b) => a - b);
  }

  private path(number: number): string {
    return join(this.folder, `${this.name}-${number}.log`);
  }

  private open(number: number): number {
    return openSync(this.path(number), 'a+', 0o600);
  }

  private read(number: number): Buffer {
    return readFileSync(this.path(number));
  }
}
