// Whether the file system of a path answers. On one whose server has gone (a network mount, FUSE), every call
// with such a path blocks its thread until the server is back, and so all other work of that thread. A
// separate process tries first, where that can happen: docs/reference.md "File systems that do not answer".
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
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

/** The process that tries each mount, while it runs. */
const attempts = new Map<string, { child: ChildProcess; answer: Promise<boolean> }>();

/** The children that libuv will reap. */
export const attemptPids = (): number[] =>
  [...attempts.values()].flatMap(({ child: { pid } }) => (pid === undefined ? [] : [pid]));

/** Whether a look-up of `path`, which enters `mount`, returns in time. A pending one answers for others. */
function answers(path: string, mount: string, timeoutMs: number): Promise<boolean> {
  const known = attempts.get(mount);
  if (known) return known.answer;
  const child = spawn('/bin/sh', ['-c', 'test -e "$0"', path], { cwd: '/', stdio: 'ignore' });
  const answer = new Promise<boolean>((done) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      // Until its call returns, it cannot end.
      child.unref();
      done(false);
    }, timeoutMs);
    const over = (isAnswered: boolean): void => {
      clearTimeout(timer);
      attempts.delete(mount);
      done(isAnswered);
    };
    child.once('exit', () => over(true)).once('error', () => over(true));
  });
  attempts.set(mount, { child, answer });
  return answer;
}

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
  if (mount === undefined || (await answers(path, mount, timeoutMs))) return null;
  return `${path} is on ${mount}, a file system that does not answer`;
}
