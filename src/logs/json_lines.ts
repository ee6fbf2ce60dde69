// Formats lines as JSON. Most are plain ASCII and are copied byte by byte, without ever becoming a string.
// All work uses one shared buffer, at a tenth of the cost of fresh memory; only the result is new.
import { KIB } from '../settings/limits.ts';
import type { CutLine } from './line_cutter.ts';
import { type LineFormat, lineText, mapInBatches } from './line_text.ts';

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const CARRIAGE_RETURN = 0x0d;
/** A buffer that has grown beyond this size is released. */
const KEEP_SCRATCH_BYTES = 512 * KIB;
/** Room for two quotes, a comma and a bracket. */
const OVERHEAD_BYTES = 4;
/** Longest UTF-8 form of one UTF-16 unit. Escapes are ASCII already. */
const MAX_UNIT_BYTES = 3;

let scratch = Buffer.allocUnsafeSlow(KEEP_SCRATCH_BYTES);

/** Makes room for `bytes` more after the first `used` bytes. */
function reserve(used: number, bytes: number): void {
  if (used + bytes <= scratch.length) return;
  const larger = Buffer.allocUnsafeSlow(2 * (used + bytes));
  scratch.copy(larger, 0, 0, used);
  scratch = larger;
}

/**
 * Writes `[from, to)` of `bytes` in quotes at `at`. Returns the bytes written; 0 if a plain copy is not
 * enough.
 */
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

/** The end of a line without the carriage returns before its newline. */
function endWithoutReturns({ bytes, from, to }: CutLine): number {
  let end = to;
  while (end > from && bytes[end - 1] === CARRIAGE_RETURN) end -= 1;
  return end;
}

/** Writes the line at `at` as a JSON string. Returns the bytes written. */
function writeLine(line: CutLine, format: LineFormat, at: number): number {
  const { bytes, from, to } = line;
  reserve(at, to - from + OVERHEAD_BYTES);
  const plain = format.stamp ? 0 : writePlain(bytes, from, format.raw ? to : endWithoutReturns(line), at);
  if (plain > 0) return plain;
  const text = JSON.stringify(lineText(line, format));
  reserve(at, text.length * MAX_UNIT_BYTES + OVERHEAD_BYTES);
  return scratch.write(text, at);
}

/** A JSON array of the lines as strings. */
function batchToJson(lines: readonly CutLine[], format: LineFormat): Buffer {
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

/**
 * A JSON array of the lines as strings. Many lines are formatted in several turns, so that other work of the
 * thread can run.
 */
export async function linesToJson(lines: readonly CutLine[], format: LineFormat): Promise<Buffer> {
  const parts = await mapInBatches(lines, (batch) => batchToJson(batch, format));
  if (parts.length <= 1) return parts[0] ?? batchToJson([], format);
  for (const part of parts.slice(1)) part[0] = COMMA;
  return Buffer.concat(parts.map((part, at) => (at < parts.length - 1 ? part.subarray(0, -1) : part)));
}
