// The keys themselves, in virtual time: what they prove, what they accept, and when they end.
// docs/reference.md "Server authentication", "Dashboard sessions".
import { describe, expect, it } from 'vitest';
import { AccessKeys } from '../../../src/front/api/access_keys.ts';
import {
  type AccessKey,
  bearerText,
  formatBearer,
  proofText,
  storableKey,
} from '../../../src/protocol/access_key.ts';
import { PAGE } from '../../../src/settings/limits.ts';
import { virtualClock } from '../../kit/actors.ts';
import { must } from '../../kit/must.ts';
import { hmac } from '../../kit/server_proof.ts';

const HOST = '127.0.0.1:11611';
const NONCE = 'n'.repeat(22);

const keysOf = (token: string, clock = virtualClock()) => ({ keys: new AccessKeys(token, clock), clock });
const prove = (keys: AccessKeys, key: string | null = null, nonce = NONCE) =>
  keys.prove(HOST, { nonce, key });
const bearer = (keys: AccessKeys, { id, secret }: AccessKey): string =>
  formatBearer(id, hmac(secret, bearerText(prove(keys).life)));
const codeOf = (keys: AccessKeys, gone: string[] = []): AccessKey => keys.createCode((id) => gone.push(id));

describe('a proof', () => {
  it('is the HMAC of nonce, Host and life with the token', () => {
    const { keys } = keysOf('secret');
    const { proof, life } = prove(keys);
    expect(proof).toBe(hmac('secret', `berth proof\n${NONCE}\n${HOST}\n${life}`));
    expect(keys.prove('LocalHost:11611', { nonce: NONCE, key: null }).proof).toBe(
      hmac('secret', proofText(NONCE, 'localhost:11611', life)),
    );
    expect(prove(keysOf('secret').keys).life).not.toBe(life);
  });

  it.each(['', 'n'.repeat(21), 'n'.repeat(87), `${'n'.repeat(21)}+`, `${'n'.repeat(22)}\n`])(
    'is not given for the nonce %j',
    (nonce) => expect(() => prove(keysOf('secret').keys, null, nonce)).toThrow('nonce must be'),
  );

  it('is null without a token, and refused for an unknown key', () => {
    expect(prove(keysOf('').keys).proof).toBeNull();
    const { keys } = keysOf('secret');
    for (const id of ['', 'code-x', 'page-x', 'live-token', 'live-page-x', '__proto__', 'page-zzzzzz-x'])
      expect(() => prove(keys, id)).toThrow('unknown key');
    expect(() => prove(keys, `brt_${'0'.repeat(26)}`)).toThrow(
      'unknown token: it was revoked, or has expired',
    );
  });
});

describe('a bearer', () => {
  it('of the token is accepted only in the life of the daemon', () => {
    const { keys } = keysOf('secret');
    const key = { id: 'token', secret: 'secret' };
    expect(keys.accepts('secret')).toBe(true);
    expect(keys.accepts(bearer(keys, key))).toBe(true);
    expect(keysOf('secret').keys.accepts(bearer(keys, key))).toBe(false);
    expect(keys.accepts(bearer(keys, { id: 'token', secret: 'other' }))).toBe(false);
    for (const given of [
      '',
      'berth.token.',
      `berth.token.${'A'.repeat(43)}`,
      `berth.page-1-x.${'A'.repeat(43)}`,
    ])
      expect(keys.accepts(given)).toBe(false);
  });

  it('of an empty token is refused', () => {
    const { keys } = keysOf('');
    expect(keys.accepts('')).toBe(false);
    expect(keys.accepts(bearer(keys, { id: 'token', secret: '' }))).toBe(false);
    const page = 'page-zzzzzzz-aaaaaaaaaaaaaaaa';
    expect(keys.accepts(bearer(keys, { id: page, secret: hmac('', `berth page\n${page}`) }))).toBe(false);
  });
});

describe('a dashboard code', () => {
  it('can be used once, and only for a session', () => {
    const { keys } = keysOf('secret');
    const gone: string[] = [];
    const code = codeOf(keys, gone);
    const given = bearer(keys, code);
    expect(keys.accepts(given)).toBe(false);
    expect(prove(keys, code.id).proof).toBe(hmac(code.secret, proofText(NONCE, HOST, prove(keys).life)));
    expect(() => keys.openSession(bearer(keys, { ...code, secret: 'wrong' }))).toThrow('unknown code');
    const page = keys.openSession(given);
    expect(gone).toEqual([code.id]);
    expect(keys.accepts(bearer(keys, page))).toBe(true);
    expect(() => keys.openSession(given)).toThrow('unknown code');
    expect(() => prove(keys, code.id)).toThrow('unknown key');
  });

  it('expires after five minutes, with a new token, and when there are too many', async () => {
    const { keys, clock } = keysOf('secret');
    const gone: string[] = [];
    const late = codeOf(keys, gone);
    await clock.advance(PAGE.codeMs - 1);
    expect(gone).toEqual([]);
    await clock.advance(1);
    expect(gone).toEqual([late.id]);
    const oldest = codeOf(keys, gone);
    for (let made = 0; made < PAGE.maxCodes; made += 1) codeOf(keys, gone);
    expect(gone).toEqual([late.id, oldest.id]);
    expect([keys.reload('secret'), gone.length]).toEqual([false, 2]);
    expect([keys.reload('other'), gone.length]).toEqual([true, 2 + PAGE.maxCodes]);
  });
});

it('a code has expired although its timer stood still, as while the machine was suspended', () => {
  const { keys, clock } = keysOf('secret');
  const code = codeOf(keys);
  clock.standStill(PAGE.codeMs);
  expect(() => prove(keys, code.id)).toThrow('unknown key');
});

describe('the key of a dashboard session', () => {
  const pageOf = (keys: AccessKeys) => keys.openSession(bearer(keys, codeOf(keys)));

  it('outlives the daemon, and ends with the token or after seven days', async () => {
    const { keys, clock } = keysOf('secret');
    const page = pageOf(keys);
    const next = new AccessKeys('secret', clock);
    expect(next.accepts(bearer(next, page))).toBe(true);
    expect(next.accepts(bearer(keys, page))).toBe(false);
    const other = new AccessKeys('other', clock);
    expect(other.accepts(bearer(other, page))).toBe(false);
    await clock.advance(PAGE.sessionMs - 1_000);
    expect(next.accepts(bearer(next, page))).toBe(true);
    await clock.advance(1_000);
    expect(next.accepts(bearer(next, page))).toBe(false);
    expect(() => prove(next, page.id)).toThrow('unknown key');
  });

  it('is stored in a form that gives another key only while this daemon runs', () => {
    const { keys, clock } = keysOf('secret');
    const page = pageOf(keys);
    const stored = must(storableKey(bearer(keys, page)));
    expect(keys.accepts(bearer(keys, stored))).toBe(false);
    expect(keys.accepts(bearer(keys, keys.openSession(bearer(keys, stored))))).toBe(true);
    const next = new AccessKeys('secret', clock);
    expect(() => next.openSession(bearer(next, stored))).toThrow('unknown code');
    expect(prove(next, stored.id).proof).not.toBe(
      hmac(stored.secret, proofText(NONCE, HOST, prove(next).life)),
    );
    expect(storableKey(bearer(keys, { id: 'token', secret: 'secret' }))).toBeNull();
  });
});
