// The state directory, docs/reference.md "State directory": private to the user. Secrets in it are created
// exclusively, and refused if others can read them.
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { isAbsolute, resolve } from 'node:path';
import { SettingsError, xdgDir } from './config.ts';
import { openRegularFile } from './state_files.ts';
import { statePaths } from './state_paths.ts';
import { untrustedPart } from './trusted_path.ts';

const { O_CREAT, O_EXCL, O_WRONLY } = constants;

type Env = Readonly<Record<string, string | undefined>>;

/** `--state-dir`, `$BERTH_STATE_DIR`, else the XDG state home. */
export function stateDirPath(named: string | undefined, env: Env): string {
  const path = named ?? (env['BERTH_STATE_DIR'] || undefined);
  if (path === undefined) return xdgDir(env, 'XDG_STATE_HOME', '.local/state');
  return isAbsolute(path) ? path : resolve(path);
}

/**
 * Creates the directory if necessary. Throws a SettingsError when another user owns it, can write to it, or
 * can put another in its place.
 */
export function openStateDir(path: string): void {
  const untrusted = untrustedPart(path);
  if (untrusted !== null) throw new SettingsError(`${path}: cannot be the state directory: ${untrusted}`);
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new SettingsError(`${path}: the state directory cannot be made: ${(error as Error).message}`);
  }
  const stat = statSync(path);
  if (!stat.isDirectory()) throw new SettingsError(`${path}: the state directory is no directory`);
  if (stat.uid !== process.getuid?.())
    throw new SettingsError(`${path}: the state directory belongs to another user (uid ${stat.uid})`);
  if (stat.mode & 0o022)
    throw new SettingsError(`${path}: others can write to the state directory: chmod 700 it`);
}

/**
 * Reads a secret file; undefined when it is absent. Throws a SettingsError when others can read it, when it
 * is a link, or when it is empty: then `remedy` says what to do.
 */
export function readSecret(path: string, remedy = 'remove it, and a new one is made'): Buffer | undefined {
  let fd: number;
  try {
    // Not waiting for the other side of a FIFO.
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new SettingsError(`${path}: cannot be read: ${(error as Error).message}`);
  }
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile() || stat.uid !== process.getuid?.())
      throw new SettingsError(`${path}: is no file of this user`);
    if (stat.mode & 0o077) throw new SettingsError(`${path}: others can read it: chmod 600 it`);
    const secret = readFileSync(fd);
    // As a token, an empty secret would admit every request without one.
    if (secret.toString('latin1').trim() === '') throw new SettingsError(`${path}: is empty: ${remedy}`);
    return secret;
  } finally {
    closeSync(fd);
  }
}

/**
 * The secret in `path`. If it is absent, `make` creates it, and the file appears whole or not at all. Throws
 * a SettingsError.
 */
export function ensureSecret(
  path: string,
  make: () => Buffer = () => Buffer.from(randomBytes(32).toString('base64url')),
): Buffer {
  const there = readSecret(path);
  if (there) return there;
  const secret = make();
  const fresh = `${path}.${process.pid}`;
  try {
    writeNewFile(fresh, secret);
    linkSync(fresh, path);
    return secret;
  } catch (error) {
    // Another process created it first.
    const other = (error as NodeJS.ErrnoException).code === 'EEXIST' ? readSecret(path) : undefined;
    if (other) return other;
    throw new SettingsError(`${path}: cannot be made: ${(error as Error).message}`, { cause: error });
  } finally {
    rmSync(fresh, { force: true });
  }
}

function writeNewFile(path: string, bytes: Buffer): void {
  // A temporary file with this pid is left over from a killed process.
  rmSync(path, { force: true });
  const fd = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
  try {
    writeFileSync(fd, bytes);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** The key file of the cloud part: `cloud.key_file`, or `<state>/cloud.key`. */
export const cloudKeyPath = (named: string, stateDir: string): string =>
  named || statePaths(stateDir).cloudKey;

export interface AddressRecord {
  pid: number;
  startTime: number;
  port: number;
  gatewayPort: number | null;
  version: string;
}

/**
 * Writes `<state>/daemon.json` by rename, so that a reader never sees a partial file. Throws the system's
 * error.
 */
export function writeAddressFile(stateDir: string, content: AddressRecord): void {
  const path = statePaths(stateDir).addressFile;
  // Whatever was left there, or linked: it is not written into.
  rmSync(`${path}.new`, { force: true });
  const fd = openRegularFile(`${path}.new`, O_WRONLY | O_CREAT | O_EXCL, 0o600);
  try {
    writeFileSync(fd, `${JSON.stringify(content)}\n`);
  } finally {
    closeSync(fd);
  }
  renameSync(`${path}.new`, path);
}

/** Without effect where something else is in its place: the daemon ends all the same. */
export function removeAddressFile(stateDir: string): void {
  try {
    rmSync(statePaths(stateDir).addressFile, { force: true });
  } catch {
    // A folder, say, which no reader takes for the file.
  }
}
