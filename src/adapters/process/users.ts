// The users of this machine, from /etc/passwd. macOS does not list its users there, so there appear to be
// none.
import { readFileSync } from 'node:fs';

const PASSWD_FILE = '/etc/passwd';
/** The range of uids for people; all others belong to the system. */
const LOGIN_UIDS = { from: 1_000, to: 59_999 } as const;

interface User {
  name: string;
  uid: number;
  shell: string;
}

function usersIn(path: string): User[] {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    return [];
  }
  return text.split('\n').map((line) => {
    const [name = '', , uid = '', , , , shell = ''] = line.split(':');
    return { name, uid: Number.parseInt(uid, 10), shell };
  });
}

/** The names of all other users that can log in. */
export function otherUsers(path: string = PASSWD_FILE): string[] {
  return usersIn(path)
    .filter(
      ({ uid, shell }) => uid >= LOGIN_UIDS.from && uid <= LOGIN_UIDS.to && !/(nologin|false)$/.test(shell),
    )
    .filter(({ uid }) => uid !== process.getuid?.())
    .map(({ name }) => name);
}

/** The name of a user, or the uid as text where it has none. */
export function userName(uid: number): string {
  return usersIn(PASSWD_FILE).find((user) => user.uid === uid)?.name ?? String(uid);
}
