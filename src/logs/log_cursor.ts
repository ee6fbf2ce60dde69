// A position in the logs of many services, as text for clients: a number for each service. It is short enough
// for a header, and stays valid for later daemons.
import { createHash } from 'node:crypto';

const VERSION = 1;
const HASH_BYTES = 4;
/** Bits of a number per byte. */
const GROUP = 128;
/** A longer cursor is refused. */
export const MAX_CURSOR_LENGTH = 8_192;
const hashes = new Map<string, number>();
/** The number of names whose hash is cached. */
const MAX_HASHES = 4_096;

function hashOf(name: string): number {
  let hash = hashes.get(name);
  if (hash === undefined) {
    hash = createHash('sha256').update(name).digest().readUInt32BE(0);
    if (hashes.size >= MAX_HASHES) hashes.clear();
    hashes.set(name, hash);
  }
  return hash;
}

/** Encodes the numbers of services, which are non-negative integers, as base64url. */
export function encodeCursor(numbers: Iterable<readonly [name: string, number: number]>): string {
  const bytes = [VERSION];
  for (const [name, number] of numbers) {
    const hash = hashOf(name);
    bytes.push(hash >>> 24, (hash >>> 16) & 0xff, (hash >>> 8) & 0xff, hash & 0xff);
    let left = number;
    for (; left >= GROUP; left = Math.floor(left / GROUP)) bytes.push(GROUP + (left % GROUP));
    bytes.push(left);
  }
  return Buffer.from(bytes).toString('base64url');
}

/**
 * Decodes the text of `encodeCursor`. The function returns the number of a service, or undefined if it had
 * none. null: the text is not a cursor.
 */
export function decodeCursor(text: string): ((name: string) => number | undefined) | null {
  const bytes = Buffer.from(text, 'base64url');
  if (text.length > MAX_CURSOR_LENGTH || bytes[0] !== VERSION || bytes.toString('base64url') !== text)
    return null;
  const numbers = new Map<number, number>();
  for (let at = 1; at < bytes.length; ) {
    if (at + HASH_BYTES >= bytes.length) return null;
    const hash = bytes.readUInt32BE(at);
    at += HASH_BYTES;
    let number = 0;
    for (let unit = 1; ; unit *= GROUP) {
      const byte = bytes[at];
      at += 1;
      if (byte === undefined || unit > Number.MAX_SAFE_INTEGER / GROUP) return null;
      number += (byte % GROUP) * unit;
      if (byte < GROUP) break;
    }
    numbers.set(hash, number);
  }
  return (name) => numbers.get(hashOf(name));
}
