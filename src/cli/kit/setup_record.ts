// Records the original content of each file that `berth agent init` changes, so that `--remove` restores
// exactly that content.
import { createHash } from 'node:crypto';
import { existsSync, lstatSync, mkdirSync, readFileSync, readlinkSync, rmdirSync, unlinkSync } from 'node:fs';
import { dirname } from 'node:path';
import { withFileLock } from '../../adapters/process/file_lock.ts';
import { replaceFile } from '../../settings/replace_file.ts';
import { readUtf8File } from '../../settings/state_files.ts';
import { statePaths } from '../../settings/state_paths.ts';
import { CommandError } from './exit_codes.ts';
import { UneditableError } from './file_edits.ts';

interface RecordedFile {
  /** null: the file did not exist. */
  before: string | null;
  /** A hash of what was written. */
  after: string;
  /** The topmost folder that was created for the file; null: none. */
  made: string | null;
}

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex');

const LOCK_TIMEOUT_MS = 10_000;

/**
 * null: the file does not exist. Throws an UneditableError if it cannot be read and given back as it was, and
 * for a link to a missing file: `replaceFile` would put a file in the place of the link.
 */
export function textOfFile(path: string): string | null {
  if (!existsSync(path)) {
    if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink())
      throw new UneditableError(`it is a link to ${readlinkSync(path)}, which does not exist`);
    return null;
  }
  try {
    return readUtf8File(path);
  } catch (error) {
    throw new UneditableError((error as Error).message);
  }
}

/** Runs `work` on the record of a state directory while no other process changes it. */
export async function changeSetup(stateDir: string, work: (record: SetupRecord) => void): Promise<void> {
  const { agentSetup, agentSetupLock } = statePaths(stateDir);
  mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  const late = (): Error => new CommandError('another `berth agent init` has been writing for 10 s');
  await withFileLock(agentSetupLock, { timeoutMs: LOCK_TIMEOUT_MS, late }, async () =>
    work(new SetupRecord(agentSetup)),
  );
}

/** The record of one state directory, at `path`. */
export class SetupRecord {
  private readonly path: string;
  private readonly files: Map<string, RecordedFile>;

  constructor(path: string) {
    this.path = path;
    this.files = new Map(Object.entries(readRecord(path)));
  }

  /** Writes `text` to `file`, and records its content before the first change. */
  write(file: string, text: string): void {
    const known = this.files.get(file);
    const now = textOfFile(file);
    const made = mkdirSync(dirname(file), { recursive: true }) ?? null;
    const first = known && this.isUnchanged(file) ? known : { before: now, made };
    // Saves the record first: after a crash in between, the file is unchanged and needs no restore.
    this.files.set(file, { ...first, after: hashOf(text) });
    this.save();
    replaceFile(file, text);
  }

  /** The content of `file` before the first change; null: it did not exist, or that is not known. */
  original(file: string): string | null {
    return this.files.get(file)?.before ?? null;
  }

  /** Whether `file` has the content that was last written to it. */
  isUnchanged(file: string): boolean {
    const now = textOfFile(file);
    return now !== null && hashOf(now) === this.files.get(file)?.after;
  }

  /** Restores `text` in `file`; null removes the file and the empty folders that were created for it. */
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
    replaceFile(this.path, JSON.stringify(Object.fromEntries(this.files)), 0o600);
  }
}

/** An unreadable record counts as empty: the edits in the files are then undone one by one. */
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
