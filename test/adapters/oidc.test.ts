// An issuer whose keys change: docs/reference.md "OpenID Connect".
import { expect, it } from 'vitest';
import { IssuerError, OidcIssuer } from '../../src/adapters/oidc.ts';
import { MIB } from '../../src/settings/limits.ts';
import { type Issuer, jwt, newKey, startIssuer } from '../kit/oidc_issuer.ts';

const settingsOf = ({ url }: Issuer) => ({
  ...{ issuer: url, audience: 'berth', subjectClaim: 'sub', groupsClaim: 'roles' },
});
const claimsOf = ({ url }: Issuer, more: object = {}) => {
  const now = Math.floor(Date.now() / 1_000);
  return { iss: url, aud: ['other', 'berth'], sub: '17', iat: now, exp: now + 600, ...more };
};

it('an issuer that changes its key has tokens of the new key accepted, and those of the old one refused', async () => {
  const [first, next] = [newKey('one'), newKey('two', 'RS256')];
  const issuer = await startIssuer(first);
  const known = new OidcIssuer(settingsOf(issuer), 0);
  expect(await known.verify(jwt(first, claimsOf(issuer, { roles: ['a', 7, 'b c', 'd'] })))).toMatchObject({
    subject: '17',
    groups: ['a', 'd'],
  });
  issuer.keys = [next];
  expect(await known.verify(jwt(next, claimsOf(issuer)))).toMatchObject({ subject: '17', groups: [] });
  expect(await known.verify(jwt(first, claimsOf(issuer)))).toBeNull();
});

it('a document of another issuer is refused, and read again later', async () => {
  const key = newKey('one');
  const issuer = await startIssuer(key);
  const { url } = issuer;
  const known = new OidcIssuer(settingsOf(issuer));
  issuer.url = 'https://evil.example';
  await expect(known.verify(jwt(key, claimsOf({ ...issuer, url })))).rejects.toThrow(IssuerError);
  issuer.url = url;
  expect(await known.verify(jwt(key, claimsOf(issuer)))).not.toBeNull();
});

it.each<[what: string, path: string, answer: (issuer: Issuer) => unknown]>([
  ['a document that is nothing', '/.well-known/openid-configuration', () => null],
  [
    'no address of its keys',
    '/.well-known/openid-configuration',
    ({ url }) => ({ issuer: url, jwks_uri: 'x' }),
  ],
  ['a document without end', '/.well-known/openid-configuration', () => `{"a":"${'x'.repeat(2 * MIB)}"}`],
  ['keys without end', '/keys', () => `{"keys":[],"a":"${'x'.repeat(2 * MIB)}"}`],
  ['other than keys', '/keys', () => '<html>'],
])('says so where it gives %s, and reads no more than it must', async (_, path, answer) => {
  const key = newKey('one');
  const issuer = await startIssuer(key);
  const known = new OidcIssuer(settingsOf(issuer));
  issuer.routes.set(path, () => ({ status: 200, body: answer(issuer) }));
  await expect(known.verify(jwt(key, claimsOf(issuer)))).rejects.toThrow(IssuerError);
  issuer.routes.clear();
  expect(await known.verify(jwt(key, claimsOf(issuer)))).not.toBeNull();
});

it('an issuer that does not listen is reported as such', async () => {
  const key = newKey('one');
  const issuer = { ...(await startIssuer(key)), url: 'http://127.0.0.1:1' };
  const known = new OidcIssuer(settingsOf(issuer));
  await expect(known.verify(jwt(key, claimsOf(issuer)))).rejects.toThrow(IssuerError);
});
