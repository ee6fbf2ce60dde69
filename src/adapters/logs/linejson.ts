// Lines as JSON, made where they lie: most are plain, and what is plain is copied byte by byte and never becomes a text.
// Memory that is used again costs a tenth of fresh memory, so of all that this takes only the result is new.
import { KIB } from '../../limits.ts';
import { inTurns, type Line, type Showing, textOf } from './linecut.ts';

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE = 0x5d;
const RETURN = 0x0d;
/** What is kept for the next time; more is given back. */
const KEPT_BYTES = 512 * KIB;
/** Two quotes, a comma and a bracket. */
const AROUND = 4;
/** Of one unit of a text in UTF-8, at most; what is escaped is longer in the text already. */
const UNIT_BYTES = 3;

let scratch = Buffer.allocUnsafeSlow(KEPT_BYTES);

/** Makes room for `bytes` more behind the `used` ones. */
function makeRoom(used: number, bytes: number): void {
  if (used + bytes <= scratch.length) return;
  const larger = Buffer.allocUnsafeSlow(2 * (used + bytes));
  scratch.copy(larger, 0, 0, used);
  scratch = larger;
}

/** Writes the bytes from `from` to `to` between quotes at `at`; 0, and rubbish there, if they read otherwise than they lie. */
function writePlain(bytes: Buffer, from: number, to: number, at: number): number {
  const into = scratch;
  let next = at + 1;
  for (let index = from; index < to; index += 1) {
    const byte = bytes[index] ?? 0;
    if (byte < 0x20 || byte > 0x7e || byte === QUOTE || byte === BACKSLASH) return 0;
    into[next] = byte;
    next += 1;
  }
  into[at] = QUOTE;
  into[next] = QUOTE;
  return next + 1 - at;
}

/** Where a line ends that is read by a person: the returns before a newline belong to that. */
function readEnd({ bytes, from, to }: Line): number {
  let end = to;
  while (end > from && bytes[end - 1] === RETURN) end -= 1;
  return end;
}

/** Writes the line at `at` as JSON; returns how many bytes that takes. */
function writeLine(line: Line, showing: Showing, at: number): number {
  const { bytes, from, to } = line;
  makeRoom(at, to - from + AROUND);
  const plain = showing.stamp ? 0 : writePlain(bytes, from, showing.raw ? to : readEnd(line), at);
  if (plain > 0) return plain;
  const text = JSON.stringify(textOf(line, showing));
  makeRoom(at, text.length * UNIT_BYTES + AROUND);
  return scratch.write(text, at);
}

/** The lines as an array of strings in JSON. */
function arrayOf(lines: readonly Line[], showing: Showing): Buffer {
  scratch[0] = OPEN;
  let at = 1;
  for (const line of lines) {
    if (at > 1) {
      scratch[at] = COMMA;
      at += 1;
    }
    at += writeLine(line, showing, at);
  }
  scratch[at] = CLOSE;
  const json = Buffer.from(scratch.subarray(0, at + 1));
  if (scratch.length > KEPT_BYTES) scratch = Buffer.allocUnsafeSlow(KEPT_BYTES);
  return json;
}

/** The lines as an array of strings in JSON; where that takes long everybody else has turns in between. */
export async function jsonOf(lines: readonly Line[], showing: Showing): Promise<Buffer> {
  const parts = await inTurns(lines, (some) => arrayOf(some, showing));
  if (parts.length <= 1) return parts[0] ?? arrayOf([], showing);
  for (const part of parts.slice(1)) part[0] = COMMA;
  return Buffer.concat(parts.map((part, at) => (at < parts.length - 1 ? part.subarray(0, -1) : part)));
}
