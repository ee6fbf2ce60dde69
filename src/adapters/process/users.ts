// The users of this machine, as its list of them has it. macOS keeps no such list: nobody seems to be there.
import { readFileSync } from 'node:fs';

const PASSWD_FILE = '/etc/passwd';
/** From the first number that is given to people to the last: below and above are those of the system. */
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

/** The names of the other people who can log in. */
export function otherUsers(path: string = PASSWD_FILE): string[] {
  return usersIn(path)
    .filter(
      ({ uid, shell }) => uid >= LOGIN_UIDS.from && uid <= LOGIN_UIDS.to && !/(nologin|false)$/.test(shell),
    )
    .filter(({ uid }) => uid !== process.getuid?.())
    .map(({ name }) => name);
}

/** The name of a user, else the number. */
export function userName(uid: number): string {
  return usersIn(PASSWD_FILE).find((user) => user.uid === uid)?.name ?? String(uid);
}
