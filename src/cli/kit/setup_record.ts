// What `berth agent init` has found in each file that it has changed, so that `--remove` gives exactly that
// back.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmdirSync, unlinkSync } from 'node:fs';
import { dirname } from 'node:path';
import { replaceFile } from '../../settings/replace_file.ts';

interface RecordedFile {
  /** null: there was none. */
  before: string | null;
  /** A hash of what was written. */
  after: string;
  /** The first folder that was made for it; null: none. */
  made: string | null;
}

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex');

export const textOfFile = (path: string): string | null =>
  existsSync(path) ? readFileSync(path, 'utf8') : null;

/** The record of one state directory, at `path`. */
export class SetupRecord {
  private readonly path: string;
  private readonly files: Map<string, RecordedFile>;

  constructor(path: string) {
    this.path = path;
    this.files = new Map(Object.entries(readRecord(path)));
  }

  /** Writes `text` to `file`, and notes what was there before the first change. */
  write(file: string, text: string): void {
    const now = textOfFile(file);
    const known = this.files.get(file);
    const isOurs = known !== undefined && now !== null && hashOf(now) === known.after;
    const made = mkdirSync(dirname(file), { recursive: true }) ?? null;
    const first = isOurs ? known : { before: now, made };
    // Before the file: after a crash in between it is still what it was, and nothing is to be given back.
    this.files.set(file, { ...first, after: hashOf(text) });
    this.save();
    replaceFile(file, text);
  }

  /** What `file` was before it was changed, if it has not been changed since; undefined: it has. */
  original(file: string): string | null | undefined {
    const known = this.files.get(file);
    const now = textOfFile(file);
    return known && now !== null && hashOf(now) === known.after ? known.before : undefined;
  }

  /** Leaves `text` in `file`; null: removes it, with the folders that were made for it, if they are empty. */
  giveBack(file: string, text: string | null): void {
    if (text !== null) replaceFile(file, text);
    else {
      unlinkSync(file);
      const { made = null } = this.files.get(file) ?? {};
      for (let folder = dirname(file); made?.length; folder = dirname(folder)) {
        if (folder.length < made.length || !removeEmpty(folder)) break;
      }
    }
    this.files.delete(file);
    this.save();
  }

  private save(): void {
    mkdirSync(dirname(this.path), { recursive: true, mode: 0o700 });
    replaceFile(this.path, JSON.stringify(Object.fromEntries(this.files)), 0o600);
  }
}

/** A record that cannot be read is none: files are then edited back, instead of restored. */
function readRecord(path: string): Record<string, RecordedFile> {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return {};
  }
}

function removeEmpty(folder: string): boolean {
  try {
    rmdirSync(folder);
    return true;
  } catch {
    return false;
  }
}
