// ULIDs: 48 bits of milliseconds and 80 further bits, as 26 characters of Crockford's base 32. The ids of the
// cloud API.
import { createHash, randomBytes } from 'node:crypto';

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const TIME_CHARS = 10;
const TAIL_BYTES = 10;

export const ULID_PATTERN = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;

function encodeBase32(value: bigint, chars: number): string {
  let text = '';
  for (let rest = value; text.length < chars; rest >>= 5n) text = ALPHABET[Number(rest & 31n)] + text;
  return text;
}

const randomPart = (bytes: Buffer): string =>
  encodeBase32(BigInt(`0x${bytes.toString('hex', 0, TAIL_BYTES)}`), (TAIL_BYTES * 8) / 5);

/** A new id made at `now` (epoch milliseconds). */
export const newUlid = (now: number): string =>
  encodeBase32(BigInt(now), TIME_CHARS) + randomPart(randomBytes(TAIL_BYTES));

/**
 * The id of the object that `parts` name below `owner` (a ULID): deterministic, with the owner's time. A
 * workload that is deleted and recreated keeps its id without a record of the deleted one:
 * docs/reference.md "Workloads".
 */
export const derivedUlid = (owner: string, parts: readonly string[]): string =>
  owner.slice(0, TIME_CHARS) +
  randomPart(
    createHash('sha256')
      .update([owner, ...parts].join('\0'))
      .digest(),
  );
