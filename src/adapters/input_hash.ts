// Hashes the files that match globs, on a job thread: a user's glob may take any time to match, and files may
// be large.
import { createHash, type Hash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readdirSync, readlinkSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { fail } from '../protocol/errors.ts';
import { MIB, TASK } from '../settings/limits.ts';
import { type PathGlob, pathGlob } from './path_globs.ts';

/** What is hashed: the files of `globs`, which are relative to the absolute folder `cwd`. */
export interface InputHashTask {
  cwd: string;
  globs: string[];
}

const CHUNK = Buffer.alloc(MIB);
const SLASH = Buffer.from('/');

/** The bytes of absolute paths, which need not be UTF-8, by their names in the hash. */
type Found = Map<string, Buffer>;

function nameInHash(path: Buffer): string {
  const text = path.toString();
  return Buffer.from(text).equals(path) ? text : `bytes ${path.toString('hex')}`;
}

/** The paths below `glob.root` that match; folders are walked, and links are not followed. */
function collect(glob: PathGlob, found: Found): void {
  const root = Buffer.from(join(glob.root, '/'));
  const walk = (folder: Buffer): void => {
    let entries: ReturnType<typeof readdirNow>;
    try {
      entries = readdirNow(Buffer.concat([root, folder]));
    } catch (error) {
      // It disappeared during the walk, or never existed.
      if (['ENOENT', 'ENOTDIR'].includes(String((error as NodeJS.ErrnoException).code))) return;
      throw error;
    }
    for (const entry of entries) {
      const path = Buffer.concat([folder, entry.name]);
      if (entry.isDirectory()) {
        if (glob.mayContain(path.toString())) walk(Buffer.concat([path, SLASH]));
      } else if (glob.matches(path.toString())) {
        const whole = Buffer.concat([root, path]);
        found.set(nameInHash(whole), whole);
      }
      if (found.size > TASK.maxInputFiles)
        throw fail('start_failed', `its inputs are more than ${TASK.maxInputFiles} files`);
    }
  };
  walk(Buffer.alloc(0));
}

const readdirNow = (folder: Buffer) => readdirSync(folder, { withFileTypes: true, encoding: 'buffer' });

/** Adds the content of a regular file. Anything else, such as a device, is never read. */
function addFile(hash: Hash, path: Buffer): void {
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    if (!fstatSync(file).isFile()) return;
    for (let size = readSync(file, CHUNK); size > 0; size = readSync(file, CHUNK))
      hash.update(CHUNK.subarray(0, size));
  } finally {
    closeSync(file);
  }
}

function digestOf(path: Buffer): string {
  const hash = createHash('sha256');
  try {
    addFile(hash, path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ELOOP') hash.update('link ').update(readlinkSync(path, 'buffer'));
    else if (code === 'ENOENT' || code === 'ENXIO') hash.update(code);
    // An error while reading does not name the file.
    else throw Object.assign(error as Error, { path: path.toString() });
  }
  return hash.digest('hex');
}

/**
 * SHA-256 of the names and contents of the matching files. Fails start_failed when there are too many, or one
 * cannot be read.
 */
export function hashInputs({ cwd, globs }: InputHashTask): string {
  const found: Found = new Map();
  const whole = createHash('sha256');
  try {
    for (const glob of globs) collect(pathGlob(glob, cwd), found);
    for (const name of [...found.keys()].sort())
      whole.update(`${JSON.stringify(name)} ${digestOf(found.get(name) as Buffer)}\n`);
  } catch (error) {
    const { code, path } = error as NodeJS.ErrnoException;
    if (typeof path !== 'string') throw error;
    throw fail('start_failed', `its input ${path} cannot be read: ${code}`);
  }
  return whole.digest('hex');
}
