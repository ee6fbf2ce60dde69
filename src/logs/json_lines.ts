// Lines as JSON, made where they lie: most are plain, and what is plain is copied byte by byte and never becomes a text.
// Memory that is used again costs a tenth of fresh memory, so of all that this takes only the result is new.
import { KIB } from '../settings/limits.ts';
import { type LineFormat, type LogLine, lineText, mapInBatches } from './lines.ts';

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const CARRIAGE_RETURN = 0x0d;
/** What is kept for the next time; more is given back. */
const KEEP_SCRATCH_BYTES = 512 * KIB;
/** Two quotes, a comma and a bracket. */
const OVERHEAD_BYTES = 4;
/** Of one unit of a text in UTF-8, at most; what is escaped is longer in the text already. */
const MAX_UNIT_BYTES = 3;

let scratch = Buffer.allocUnsafeSlow(KEEP_SCRATCH_BYTES);

/** Makes room for `bytes` more behind the `used` ones. */
function reserve(used: number, bytes: number): void {
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
function endWithoutReturns({ bytes, from, to }: LogLine): number {
  let end = to;
  while (end > from && bytes[end - 1] === CARRIAGE_RETURN) end -= 1;
  return end;
}

/** Writes the line at `at` as JSON; returns how many bytes that takes. */
function writeLine(line: LogLine, format: LineFormat, at: number): number {
  const { bytes, from, to } = line;
  reserve(at, to - from + OVERHEAD_BYTES);
  const plain = format.stamp ? 0 : writePlain(bytes, from, format.raw ? to : endWithoutReturns(line), at);
  if (plain > 0) return plain;
  const text = JSON.stringify(lineText(line, format));
  reserve(at, text.length * MAX_UNIT_BYTES + OVERHEAD_BYTES);
  return scratch.write(text, at);
}

/** The lines as an array of strings in JSON. */
function batchToJson(lines: readonly LogLine[], format: LineFormat): Buffer {
  scratch[0] = OPEN_BRACKET;
  let at = 1;
  for (const line of lines) {
    if (at > 1) {
      scratch[at] = COMMA;
      at += 1;
    }
    at += writeLine(line, format, at);
  }
  scratch[at] = CLOSE_BRACKET;
  const json = Buffer.from(scratch.subarray(0, at + 1));
  if (scratch.length > KEEP_SCRATCH_BYTES) scratch = Buffer.allocUnsafeSlow(KEEP_SCRATCH_BYTES);
  return json;
}

/** The lines as an array of strings in JSON; where that takes long everybody else has turns in between. */
export async function linesToJson(lines: readonly LogLine[], format: LineFormat): Promise<Buffer> {
  const parts = await mapInBatches(lines, (some) => batchToJson(some, format));
  if (parts.length <= 1) return parts[0] ?? batchToJson([], format);
  for (const part of parts.slice(1)) part[0] = COMMA;
  return Buffer.concat(parts.map((part, at) => (at < parts.length - 1 ? part.subarray(0, -1) : part)));
}
