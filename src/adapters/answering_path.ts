// Whether the file system of a path answers. On one whose server has gone (a network mount, FUSE), every call
// with such a path blocks its thread until the server is back, and so all other work of that thread. A
// separate process tries first, where that can happen: docs/reference.md "File systems that do not answer".
import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants, readFileSync, type Stats, statSync } from 'node:fs';
import { deferred } from '../runtime/deferred.ts';
import { lookUp } from './folder_links.ts';

/** The types of file systems that depend on a server or another process. */
const SERVED_TYPES =
  /^(?:fuse(?:blk|\..+)?|nfs4?|cifs|smb3|9p|ceph|afs|coda|lustre|gpfs|beegfs|glusterfs|ocfs2|virtiofs|vboxsf)$/;
const ANSWER_MS = 2_000;

/** A path in /proc/self/mountinfo has its blanks and backslashes as octal numbers. */
const unescaped = (path: string): string =>
  path.replace(/\\([0-7]{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8)));

/** Where file systems of `SERVED_TYPES` are mounted; none where the system does not say. */
export function servedMounts(table = '/proc/self/mountinfo'): ReadonlySet<string> {
  let text: string;
  try {
    text = readFileSync(table, 'utf8');
  } catch {
    return new Set();
  }
  const rows = text.split('\n').map((line) => line.split(' '));
  const served = rows.filter((row) => SERVED_TYPES.test(row[row.indexOf('-') + 1] ?? ''));
  return new Set(served.map((row) => unescaped(row[4] ?? '')));
}

/** The mount in `mounts` that a look-up of `path` would enter first; undefined if none. Enters no mount. */
export function mountOnTheWay(path: string, mounts: ReadonlySet<string>): string | undefined {
  if (mounts.size === 0) return undefined;
  for (const next of lookUp(path)) if (mounts.has(next)) return next;
  return undefined;
}

/** Whether a look-up of `path` may wait for a server. */
export const isServed = (path: string): boolean => mountOnTheWay(path, servedMounts()) !== undefined;

/** The processes that look something up. */
const lookUps = new Set<ChildProcess>();

/** The children that libuv will reap. */
export const lookUpPids = (): number[] => [...lookUps].flatMap(({ pid }) => (pid === undefined ? [] : [pid]));

interface LookUp {
  /** The exit code of its commands; null: there was none in time. */
  answer: Promise<number | null>;
  /** Resolves when its process is gone, which may be long after the answer. */
  gone: Promise<void>;
}

/** Runs commands of the shell, in which `$0` is `path`, in a separate process. */
function lookUpApart(path: string, commands: string, timeoutMs: number): LookUp {
  const child = spawn('/bin/sh', ['-c', commands, path], { cwd: '/', stdio: 'ignore' });
  lookUps.add(child);
  const answer = deferred<number | null>();
  const gone = deferred<void>();
  const timer = setTimeout(() => {
    child.kill('SIGKILL');
    // Until its call returns, it cannot end.
    child.unref();
    answer.resolve(null);
  }, timeoutMs);
  const over = (code: number | null): void => {
    clearTimeout(timer);
    lookUps.delete(child);
    answer.resolve(code ?? 0);
    gone.resolve();
  };
  // Where it cannot be started, nothing is known, and nothing is refused.
  child.once('exit', over).once('error', () => over(0));
  return { answer: answer.promise, gone: gone.promise };
}

/** The look-up that tries each mount, while its process lives. */
const attempts = new Map<string, LookUp>();

/** Whether a look-up of `path`, which enters `mount`, returns in time. A pending one answers for others. */
async function answers(path: string, mount: string, timeoutMs: number): Promise<boolean> {
  let attempt = attempts.get(mount);
  if (!attempt) {
    attempt = lookUpApart(path, 'test -e "$0"', timeoutMs);
    attempts.set(mount, attempt);
    void attempt.gone.then(() => attempts.delete(mount));
  }
  return (await attempt.answer) !== null;
}

const unanswered = (path: string, mount: string): string =>
  `${path} is on ${mount}, a file system that does not answer`;

export interface AnsweringPathOptions {
  mounts?: ReadonlySet<string>;
  timeoutMs?: number;
}

/** Why a call with `path` could block its thread; null: it returns. */
export async function unansweredReason(
  path: string,
  { mounts = servedMounts(), timeoutMs = ANSWER_MS }: AnsweringPathOptions = {},
): Promise<string | null> {
  const mount = mountOnTheWay(path, mounts);
  return mount === undefined || (await answers(path, mount, timeoutMs)) ? null : unanswered(path, mount);
}

/** Fails with an exit code of its own for each of `FOLDER_FAULTS`. */
const FOLDER_COMMANDS = 'test -e "$0" || exit 1; test -d "$0" || exit 2; test -x "$0" || exit 3';
const FOLDER_FAULTS: readonly (string | undefined)[] = [
  undefined,
  'does not exist or cannot be reached',
  'is no directory',
  'cannot be entered',
];

function localFolderFault(path: string): string | null {
  let place: Stats;
  try {
    place = statSync(path);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    // Besides those, a part of the path is too long, a loop of links, or closed to this user.
    const isMissing = code === 'ENOENT' || code === 'ENOTDIR';
    return isMissing ? `${path} does not exist` : `${path} cannot be reached: ${code}`;
  }
  if (!place.isDirectory()) return `${path} is no directory`;
  try {
    accessSync(path, constants.X_OK);
    return null;
  } catch {
    return `${path} cannot be entered`;
  }
}

/** Why `path` cannot be the working directory of a process; null: it can. */
export async function folderFault(path: string): Promise<string | null> {
  const mount = mountOnTheWay(path, servedMounts());
  if (mount === undefined) return localFolderFault(path);
  // It may stop answering after any answer, so this thread does not look either.
  const code = (await answers(path, mount, ANSWER_MS))
    ? await lookUpApart(path, FOLDER_COMMANDS, ANSWER_MS).answer
    : null;
  if (code === null) return unanswered(path, mount);
  const fault = FOLDER_FAULTS[code];
  return fault === undefined ? null : `${path} ${fault}`;
}
