// Where removed logs have ended. The next log of a name begins there. So a place in the earlier one, where a
// follower may resume, is no place within a line of the new one. Nothing fails for want of this.
import { closeSync, constants, mkdirSync, readdirSync, rmSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { COMMAND_ID_PATTERN } from '../protocol/commands.ts';
import { openRegularFile, readUtf8File } from '../settings/state_files.ts';

const { O_CREAT, O_NOFOLLOW, O_TRUNC, O_WRONLY } = constants;
/** Nobody resumes a stream after this time. */
const KEPT_MS = 30 * 24 * 3_600_000;

export class LogEnds {
  /** May change: it was renamed. */
  folder: string;

  /** Forgets what was noted long before `now`, epoch milliseconds. */
  constructor(folder: string, now: number) {
    this.folder = folder;
    try {
      for (const name of readdirSync(folder)) {
        const path = join(folder, name);
        if (statSync(path).mtimeMs < now - KEPT_MS) rmSync(path, { force: true, recursive: true });
      }
    } catch {
      // There is none yet, or something else is in its place.
    }
  }

  /** The offset at which the log `name` may begin; 0 if nothing is known. */
  of(name: string): number {
    try {
      const end = Number(readUtf8File(join(this.folder, name)));
      return Number.isSafeInteger(end) && end > 0 ? end : 0;
    } catch {
      return 0;
    }
  }

  /** Notes the end of a log that is about to be removed. No other command has the name of a command. */
  note(name: string, end: number): void {
    if (end === 0 || COMMAND_ID_PATTERN.test(name)) return;
    try {
      mkdirSync(this.folder, { recursive: true, mode: 0o700 });
      const fd = openRegularFile(join(this.folder, name), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o600);
      try {
        writeSync(fd, String(end));
      } finally {
        closeSync(fd);
      }
    } catch {
      // The disk is full: a follower of the removed log may miss lines of the next one.
    }
  }
}
