import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { derivedUlid, newUlid, ULID_PATTERN } from '../../src/protocol/ulid.ts';

it('ids increase in the order in which they are made, also when the clock stands still or was set back', () => {
  const times = [...Array.from({ length: 1_000 }, () => 1_900_000_000_000), 1_000, 1_900_000_000_001];
  const ids = times.map(newUlid);
  expect(ids.toSorted()).toEqual(ids);
  expect(new Set(ids).size).toBe(ids.length);
  for (const id of ids) expect(id).toMatch(ULID_PATTERN);
});

it('a derived id has the time of its owner, and is always the same', () => {
  const owner = '01HZZZZZZZ0000000000000000';
  const id = derivedUlid(owner, ['Deployment', 'shop', 'web']);
  expect(id).toMatch(ULID_PATTERN);
  expect(id.slice(0, 10)).toBe(owner.slice(0, 10));
  const digest = createHash('sha256').update([owner, 'Deployment', 'shop', 'web'].join('\0')).digest();
  const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
  let rest = BigInt(`0x${digest.toString('hex', 0, 10)}`);
  let tail = '';
  for (; tail.length < 16; rest >>= 5n) tail = alphabet[Number(rest & 31n)] + tail;
  expect(id.slice(10)).toBe(tail);
});
