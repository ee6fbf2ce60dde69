// Renewals of a login while its issuer is silent: docs/reference.md "Login".
import { expect, it } from 'vitest';
import { readLogin, writeLogin } from '../../src/client/login_file.ts';
import { renewLogin } from '../../src/client/login_renewal.ts';
import { loginToken } from '../../src/client/login_token.ts';
import { tempDir } from '../kit/actors.ts';
import { eventually } from '../kit/eventually.ts';
import { type LoginIssuer, startLoginIssuer } from '../kit/login_issuer.ts';

const URL = 'https://berth.example.com';
const DOCUMENT = '/.well-known/openid-configuration';

/** A state directory with a login that is due for renewal, and whose token is valid until `expires_at`. */
function dueLogin(issuer: LoginIssuer, expires_at: number): string {
  const stateDir = tempDir();
  const source = { issuer: issuer.url, client_id: 'berth', audience: 'berth', refresh_at: 0, expires_at };
  issuer.live.add('the-refresh-token');
  writeLogin(stateDir, { url: URL, token: 'old', source: { ...source, refresh_token: 'the-refresh-token' } });
  return stateDir;
}

it('several that wait for a silent issuer ask it once, and a later one asks it again', async () => {
  const issuer = await startLoginIssuer();
  const stateDir = dueLogin(issuer, 0);
  issuer.live.clear();
  let answer = (): void => {};
  issuer.held = new Promise((resolve) => {
    answer = resolve;
  });
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

it('a valid token is used while the issuer is silent, which is then not asked by each request', async () => {
  const issuer = await startLoginIssuer();
  issuer.routes.set(DOCUMENT, () => new Promise(() => undefined));
  const [valid, expired] = [dueLogin(issuer, Date.now() + 60_000), dueLogin(issuer, 0)];
  const settled: string[] = [];
  const failure = loginToken(expired, URL)
    .catch(({ code }) => code)
    .then((code) => settled.push(code));
  settled.push(await loginToken(valid, URL));
  expect(settled, 'before the time limit of the issuer').toEqual(['old']);
  await eventually(() => readLogin(valid)?.source?.failed !== undefined);
  const { length } = issuer.asked;
  expect(await loginToken(valid, URL)).toBe('old');
  expect(issuer.asked).toHaveLength(length);
  await failure;
  expect(settled).toEqual(['old', 'issuer_unreachable']);
});

it('an answer that comes after a request has gone on with its valid token is stored', async () => {
  const issuer = await startLoginIssuer();
  const stateDir = dueLogin(issuer, Date.now() + 60_000);
  let answer = (): void => {};
  issuer.held = new Promise((resolve) => {
    answer = resolve;
  });
  expect(await loginToken(stateDir, URL)).toBe('old');
  expect(issuer.shown).toEqual(['the-refresh-token']);
  answer();
  await eventually(() => readLogin(stateDir)?.token !== 'old');
  expect([...issuer.live]).toEqual([readLogin(stateDir)?.source?.refresh_token]);
});
