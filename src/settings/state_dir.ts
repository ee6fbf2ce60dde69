// The state directory, docs/reference.md "State directory": private to the user. Secrets in it are created
// exclusively, and refused if others can read them.
import { createHash, randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import { SettingsError, xdgDir } from './config.ts';
import { openRegularFile } from './state_files.ts';
import { stateDirId, statePaths } from './state_paths.ts';
import { untrustedPart } from './trusted_path.ts';

const { O_CREAT, O_EXCL, O_RDONLY, O_WRONLY } = constants;
const ROOT_USER = 0;

type Env = Readonly<Record<string, string | undefined>>;

/** `--state-dir`, `$BERTH_STATE_DIR`, or else the XDG state home. */
export function stateDirPath(named: string | undefined, env: Env): string {
  const path = named ?? (env['BERTH_STATE_DIR'] || undefined);
  if (path === undefined) return xdgDir(env, 'XDG_STATE_HOME', '.local/state');
  return isAbsolute(path) ? path : resolve(path);
}

/**
 * Creates the directory if necessary. Throws a SettingsError when another user owns it, can write to it, or
 * can put another in its place, and when this user cannot write to it. `inVolume`: it may lie in a volume of
 * a container.
 */
export function openStateDir(path: string, inVolume = false): void {
  checkStateDir(path, inVolume);
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new SettingsError(`${path}: the state directory cannot be made: ${(error as Error).message}`);
  }
  checkStateDir(path, inVolume);
  checkWritable(path);
}

/** Errors of a folder in which nothing can be made. A full disk is none: a daemon starts on one. */
const UNWRITABLE: ReadonlySet<unknown> = new Set(['EACCES', 'EPERM', 'EROFS']);

/**
 * Throws a SettingsError when no file can be made in `folder`, as on a file system mounted read-only. It is
 * tried, because the mode of the folder does not say so.
 */
export function checkWritable(folder: string): void {
  const probe = join(folder, `.writable.${process.pid}`);
  try {
    closeSync(openRegularFile(probe, O_WRONLY | O_CREAT, 0o600));
    rmSync(probe);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (!UNWRITABLE.has(code)) return;
    throw new SettingsError(`${folder}: cannot be written to: ${message.replace(/, open .*/s, '')}`);
  }
}

/** Throws as `openStateDir` does, and creates nothing: a directory that is missing is no fault. */
export function checkStateDir(path: string, inVolume = false): void {
  const untrusted = untrustedPart(path, inVolume);
  if (untrusted !== null) throw new SettingsError(`${path}: cannot be the state directory: ${untrusted}`);
  const stat = statSync(path, { throwIfNoEntry: false });
  if (!stat) return;
  if (!stat.isDirectory()) throw new SettingsError(`${path}: the state directory is no directory`);
  if (stat.uid !== process.getuid?.())
    throw new SettingsError(`${path}: the state directory belongs to another user (uid ${stat.uid})`);
  if (stat.mode & 0o022)
    throw new SettingsError(`${path}: others can write to the state directory: chmod 700 it`);
}

/** Whether a file belongs to root, and not just because this process is root too. */
const isRootsAlone = (uid: number): boolean => uid === ROOT_USER && process.getuid?.() !== ROOT_USER;

/**
 * Opens a secret file, without waiting for the other side of a FIFO. A link must be root's, in folders that
 * no one else can write to, which is how Kubernetes mounts Secrets.
 */
function openSecret(path: string): number {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
  const link = lstatSync(path, { throwIfNoEntry: false });
  const isMounted = link?.isSymbolicLink() && isRootsAlone(link.uid) && untrustedPart(path) === null;
  return openSync(isMounted ? realpathSync(path) : path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
}

/**
 * Why others could read a secret file or replace it; null: they cannot. The group may read a file of root's.
 */
function exposureOf({ uid, mode }: Stats): string | null {
  const own = process.getuid?.();
  if (uid === own) return mode & 0o077 ? 'others can read it: chmod 600 it' : null;
  if (!isRootsAlone(uid)) return 'is no file of this user';
  return mode & 0o037 ? 'others can read it: mount it with the mode 0440' : null;
}

/**
 * Reads a secret file; undefined if it does not exist. Throws a SettingsError when others can read it, when
 * it is the user's own link, or when it is empty: then `remedy` says what to do.
 */
export function readSecret(path: string, remedy = 'remove it, and a new one is made'): Buffer | undefined {
  let fd: number;
  try {
    fd = openSecret(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new SettingsError(`${path}: cannot be read: ${(error as Error).message}`);
  }
  try {
    const stat = fstatSync(fd);
    const exposure = stat.isFile() ? exposureOf(stat) : 'is no file of this user';
    if (exposure !== null) throw new SettingsError(`${path}: ${exposure}`);
    const secret = readFileSync(fd);
    // An empty secret, used as a token, would admit every request without one.
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

/** Replaces the file at `path` with a secret, completely or not at all. Throws a SettingsError. */
export function replaceSecret(path: string, secret: string): void {
  const fresh = `${path}.${process.pid}`;
  try {
    writeNewFile(fresh, Buffer.from(secret));
    renameSync(fresh, path);
  } catch (error) {
    rmSync(fresh, { force: true });
    throw new SettingsError(`${path}: cannot be written: ${(error as Error).message}`, { cause: error });
  }
}

/** The name of a Berth in a cluster, for people: its machine, and a hash of its state directory. */
export const berthName = (stateDir: string): string =>
  `${hostname()}/${createHash('sha256').update(stateDir).digest('hex').slice(0, 8)}`;

/** The key file of the cloud part: `cloud.key_file`, or `<state>/cloud.key`. */
export const cloudKeyPath = (named: string, stateDir: string): string =>
  named || statePaths(stateDir).cloudKey;

export interface AddressRecord {
  pid: number;
  startTime: number;
  port: number;
  gatewayPort: number | null;
  version: string;
  /** The id of the daemon's state directory (`stateDirId`); absent in files of earlier versions. */
  stateId?: string;
  /** Whether it is `berth cloud serve`; absent in the file of an earlier version. */
  isCloudServer?: boolean;
}

/**
 * Writes `<state>/daemon.json` by rename, so that a reader never sees a partial file. Throws the system's
 * error.
 */
export function writeAddressFile(stateDir: string, content: Omit<AddressRecord, 'stateId'>): void {
  const path = statePaths(stateDir).addressFile;
  // Whatever was left or linked there must not be written into.
  rmSync(`${path}.new`, { force: true });
  const fd = openRegularFile(`${path}.new`, O_WRONLY | O_CREAT | O_EXCL, 0o600);
  try {
    const record: AddressRecord = { ...content, stateId: stateDirId(stateDir) };
    writeFileSync(fd, `${JSON.stringify(record)}\n`);
  } finally {
    closeSync(fd);
  }
  renameSync(`${path}.new`, path);
}

/** The content of `<state>/daemon.json`. Throws if there is none, or something else is in its place. */
export function readAddressFile(stateDir: string): AddressRecord {
  const fd = openRegularFile(statePaths(stateDir).addressFile, O_RDONLY);
  try {
    return JSON.parse(readFileSync(fd, 'utf8'));
  } finally {
    closeSync(fd);
  }
}

/**
 * Removes the file if it is that of this process. The directory may have been renamed, and another daemon may
 * run in its place. Has no effect if something else is there, because the daemon must end anyway.
 */
export function removeAddressFile(stateDir: string): void {
  try {
    if (readAddressFile(stateDir).pid === process.pid) rmSync(statePaths(stateDir).addressFile);
  } catch {
    // For example a folder, which no reader takes for the file.
  }
}
