// What ends the use of a login, or of a token in a file: docs/reference.md "Login", "Remote tethers".
import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { removeLogin, type StoredLogin, writeLogin } from '../../src/client/login_file.ts';
import { watchHolder } from '../../src/client/remote_berth.ts';
import { statePaths } from '../../src/settings/state_paths.ts';
import { tempDir } from '../kit/actors.ts';
import { jwt, newKey } from '../kit/oidc_issuer.ts';

const URL = 'https://berth.example.com';
const key = newKey('one');
let issued = 0;

/** A login of `sub` with a token of its own. */
function loginOf(sub: string, iss = 'https://issuer.example.com', url = URL): StoredLogin {
  issued += 1;
  const source = { issuer: iss, client_id: 'berth', audience: 'berth', refresh_token: 'r' };
  const token = jwt(key, { iss, sub, aud: 'berth', jti: String(issued) });
  return { url, token, source: { ...source, refresh_at: 0, expires_at: 0 } };
}
const apiToken = (token: string): StoredLogin => ({ url: URL, token, source: null });

it.each<[what: string, before: StoredLogin, after: StoredLogin | null, isSame: boolean]>([
  ['a renewed token', loginOf('anna'), loginOf('anna'), true],
  ['another user', loginOf('anna'), loginOf('bob'), false],
  ['the user of that name at another issuer', loginOf('anna'), loginOf('anna', 'https://other'), false],
  ['a login at another Berth', loginOf('anna'), loginOf('anna', 'https://i', 'https://b.example'), false],
  ['no login', loginOf('anna'), null, false],
  ['an API token', loginOf('anna'), apiToken('brt_1'), false],
  ['the same API token', apiToken('brt_1'), apiToken('brt_1'), true],
  ['another API token', apiToken('brt_1'), apiToken('brt_2'), false],
])('%s', (_what, before, after, isSame) => {
  const stateDir = tempDir();
  writeLogin(stateDir, before);
  const isSameHolder = watchHolder({ url: URL, token: { stateDir } });
  expect(isSameHolder()).toBe(true);
  if (after) writeLogin(stateDir, after);
  else removeLogin(stateDir);
  expect(isSameHolder()).toBe(isSame);
});

it('a login that cannot be read for a while is the same', () => {
  const stateDir = tempDir();
  writeLogin(stateDir, loginOf('anna'));
  const isSameHolder = watchHolder({ url: URL, token: { stateDir } });
  chmodSync(join(stateDir, 'login.json'), 0o644);
  expect(isSameHolder()).toBe(true);
});

it('a token in remote-token is its own holder, and comes before a login', () => {
  const stateDir = tempDir();
  const path = statePaths(stateDir).remoteToken;
  const watch = () => watchHolder({ url: URL, token: { stateDir } });
  writeLogin(stateDir, loginOf('anna'));
  const ofLogin = watch();
  writeFileSync(path, 'brt_1\n', { mode: 0o600 });
  expect(ofLogin()).toBe(false);
  const ofToken = watch();
  writeLogin(stateDir, loginOf('bob'));
  writeFileSync(path, 'brt_1');
  expect(ofToken()).toBe(true);
  chmodSync(path, 0o644);
  expect(ofToken(), 'not readable for a while').toBe(true);
  chmodSync(path, 0o600);
  writeFileSync(path, 'brt_2');
  expect(ofToken()).toBe(false);
  const ofOther = watch();
  rmSync(path);
  expect(ofOther()).toBe(false);
});
