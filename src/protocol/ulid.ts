// ULIDs: 48 bits of milliseconds and 80 further bits, as 26 characters of Crockford's base 32. The ids of the
// cloud API.
import { createHash, randomBytes } from 'node:crypto';

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const TIME_CHARS = 10;
const TAIL_BYTES = 10;
const TAIL_CHARS = 16;

export const ULID_PATTERN = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;

function encodeBase32(value: bigint, chars: number): string {
  let text = '';
  for (let rest = value; text.length < chars; rest >>= 5n) text = ALPHABET[Number(rest & 31n)] + text;
  return text;
}

let lastMs = -1;
let lastTail = 0n;

/**
 * A new id for `now` (epoch milliseconds). Ids of one thread increase in the order in which they are made,
 * even within a millisecond or after the clock was set back.
 */
export function newUlid(now: number): string {
  if (now > lastMs) {
    lastMs = now;
    // Halving the random part leaves room to count up within a millisecond.
    lastTail = BigInt(`0x${randomBytes(TAIL_BYTES).toString('hex')}`) >> 1n;
  } else lastTail += 1n;
  return encodeBase32(BigInt(lastMs), TIME_CHARS) + encodeBase32(lastTail, TAIL_CHARS);
}

/** The time part of an id. The ids that `derivedUlid` makes from it begin with the same characters. */
export const timeOfUlid = (id: string): string => id.slice(0, TIME_CHARS);

/** The hexadecimal digits of the part after the time. */
const tailOf = (owner: string, parts: readonly string[]): string =>
  createHash('sha256')
    .update([owner, ...parts].join('\0'))
    .digest('hex')
    .slice(0, 2 * TAIL_BYTES);

/**
 * The id of the object named by `parts` below `owner` (a ULID): deterministic, with the owner's time. So a
 * workload that is deleted and recreated keeps its id without a record of the old one:
 * docs/reference.md "Workloads".
 */
export const derivedUlid = (owner: string, parts: readonly string[]): string =>
  timeOfUlid(owner) + encodeBase32(BigInt(`0x${tailOf(owner, parts)}`), TAIL_CHARS);
