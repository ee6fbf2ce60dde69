// Whether another user could put a directory of their own in place of a path:
// docs/reference.md "State directory".
import { lstatSync, readFileSync, readlinkSync, type Stats } from 'node:fs';
import { join, resolve } from 'node:path';

const ROOT_USER = 0;
const STICKY = 0o1000;
const GROUP_WRITE = 0o020;
const OTHERS_WRITE = 0o002;
/** The same number of links that the system follows. */
const MAX_LINKS = 40;

/**
 * Whether a user of this namespace has the number. In a container, files of outside users show a number that
 * nobody inside has.
 */
function isUser(uid: number): boolean {
  let map: string;
  try {
    map = readFileSync('/proc/self/uid_map', 'latin1');
  } catch {
    return true;
  }
  return map.split('\n').some((line) => {
    const [first = Number.NaN, , count = 0] = line.trim().split(/\s+/).map(Number);
    return uid >= first && uid < first + count;
  });
}

const isTrusted = (uid: number): boolean => uid === ROOT_USER || uid === process.getuid?.() || !isUser(uid);

/**
 * Whether others can replace the contents of a folder. A group with the user's own number is private to the
 * user.
 */
function canOthersReplace({ mode, gid }: Stats): boolean {
  if (mode & STICKY) return false;
  const isOwnGroup = gid === ROOT_USER || (gid === process.getgid?.() && gid === process.getuid?.());
  return (mode & OTHERS_WRITE) !== 0 || ((mode & GROUP_WRITE) !== 0 && !isOwnGroup);
}

/** The mount points in this namespace. */
function mountPoints(): ReadonlySet<string> {
  const lines = readFileSync('/proc/self/mountinfo', 'utf8').split('\n');
  return new Set(lines.map((line) => line.split(' ')[4] ?? ''));
}

const namesOf = (path: string): string[] => path.split('/').filter((name) => name !== '');

/**
 * Why another user may be able to replace `path`, as far as it exists; null: none can. Follows links, which
 * must be the user's own or root's; for the last part, only the link itself counts. With `trustsMounts`,
 * others may write to a folder of root's that is a mount point: Kubernetes creates volumes that way, which no
 * process in another container sees.
 */
export function untrustedPart(path: string, trustsMounts = false): string | null {
  const mounts = trustsMounts ? mountPoints() : null;
  let rest = namesOf(resolve(path));
  let at = '/';
  for (let links = 0; rest.length > 0; ) {
    const [name = '', ...behind] = rest;
    const next = join(at, name);
    const stat = lstatSync(next, { throwIfNoEntry: false });
    if (!stat) return null;
    const isFolder = !stat.isSymbolicLink();
    if ((behind.length > 0 || !isFolder) && !isTrusted(stat.uid))
      return `${next} belongs to another user (uid ${stat.uid})`;
    const isVolume = stat.uid === ROOT_USER && (mounts?.has(next) ?? false);
    if (isFolder && behind.length > 0 && !isVolume && canOthersReplace(stat))
      return `others can write to ${next}`;
    if (isFolder) {
      at = next;
      rest = behind;
      continue;
    }
    links += 1;
    if (links > MAX_LINKS) return `${path} has too many links`;
    rest = [...namesOf(resolve(at, readlinkSync(next))), ...behind];
    at = '/';
  }
  return null;
}
