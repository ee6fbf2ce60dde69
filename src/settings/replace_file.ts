// Writes users' files safely, because they could not be restored: a full disk, or a kill in between, leaves
// the existing file.
import {
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { assertRegularFile } from './state_files.ts';

const { O_CREAT, O_EXCL, O_WRONLY } = constants;
const PERMISSIONS = 0o7777;

function writeNew(path: string, text: string, mode: number): void {
  // Left over from a killed process that had this pid.
  rmSync(path, { force: true });
  const fd = openSync(path, O_WRONLY | O_CREAT | O_EXCL, mode);
  try {
    writeFileSync(fd, text);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/**
 * Gives a file the mode of another and, if run as root, its owner: with `sudo`, the user's files must stay
 * the user's.
 */
function becomeLike(path: string, { mode, uid, gid }: { mode: number; uid: number; gid: number }): void {
  const fd = openSync(path, O_WRONLY);
  try {
    if (process.getuid?.() === 0) fchownSync(fd, uid, gid);
    fchmodSync(fd, mode & PERMISSIONS);
  } finally {
    closeSync(fd);
  }
}

/**
 * Replaces the file at `path` with `text`, completely or not at all. A link still leads to the file. The file
 * gets `mode`; without it, an existing file keeps its own, and a new one gets what the umask allows. Throws
 * the system's error, or a StateFileError for anything but a file, with the path before its message; then the
 * file is unchanged.
 */
export function replaceFile(path: string, text: string, mode?: number): void {
  const target = existsSync(path) ? realpathSync(path) : path;
  const fresh = `${target}.berth-${process.pid}`;
  try {
    const stat = statSync(target, { throwIfNoEntry: false });
    // Root could put a file in the place of a device, such as /dev/null.
    if (stat) assertRegularFile(stat);
    writeNew(fresh, text, stat ? 0o600 : (mode ?? 0o666));
    if (stat) becomeLike(fresh, { ...stat, mode: mode ?? stat.mode });
    renameSync(fresh, target);
  } catch (error) {
    rmSync(fresh, { force: true });
    throw Object.assign(error as Error, { message: `${path}: ${(error as Error).message}` });
  }
}
