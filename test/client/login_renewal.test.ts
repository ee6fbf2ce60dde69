// Renewals of a login while its issuer is silent: docs/reference.md "Login".
import { expect, it } from 'vitest';
import { type PersonLogin, readLogin, writeLogin } from '../../src/client/login_file.ts';
import { renewLogin } from '../../src/client/login_renewal.ts';
import { tempDir } from '../kit/actors.ts';
import { startLoginIssuer } from '../kit/login_issuer.ts';

const URL = 'https://berth.example.com';

it('several that wait for a silent issuer ask it once, and a later one asks it again', async () => {
  const issuer = await startLoginIssuer();
  const stateDir = tempDir();
  let answer = (): void => {};
  issuer.held = new Promise((resolve) => {
    answer = resolve;
  });
  const source = { issuer: issuer.url, client_id: 'berth', audience: 'berth', refresh_at: 0, expires_at: 0 };
  const login: PersonLogin = {
    url: URL,
    token: 'expired',
    source: { ...source, refresh_token: 'the-refresh-token' },
  };
  writeLogin(stateDir, login);
  const waiting = await Promise.allSettled([1, 2, 3].map(() => renewLogin(stateDir, URL)));
  for (const one of waiting)
    expect(one).toMatchObject({ status: 'rejected', reason: { code: 'issuer_unreachable' } });
  expect(issuer.shown).toHaveLength(1);
  answer();
  await issuer.held;
  issuer.live.add('the-refresh-token');
  const renewed = await renewLogin(stateDir, URL);
  expect(issuer.shown).toHaveLength(2);
  expect(readLogin(stateDir)).toEqual(renewed);
  expect(renewed.source).not.toHaveProperty('failed');
});
