// Splits a stream of bytes into lines, wherever the chunks are cut: nothing is decoded before a line is
// complete. Unlike the cutter of logs (src/logs/line_cutter.ts), an overlong line is an error here rather
// than being split, and empty lines are skipped.
import { WireError } from './kube_errors.ts';

const NEWLINE = 0x0a;

/** A line that exceeds the limit. */
export class LineTooLong extends WireError {
  override readonly name = 'LineTooLong';
}

/**
 * Returns a function that takes chunks and returns the lines they complete, without newlines and without
 * empty lines. Throws LineTooLong as soon as a line exceeds `maxBytes`.
 */
export function lineSplitter(maxBytes: number): (chunk: Uint8Array) => Uint8Array[] {
  let parts: Uint8Array[] = [];
  let size = 0;
  const add = (part: Uint8Array): void => {
    size += part.length;
    if (size > maxBytes) throw new LineTooLong(`a line has more than ${maxBytes} bytes`);
    if (part.length > 0) parts.push(part);
  };
  const take = (): Uint8Array => {
    const [only] = parts;
    const line = parts.length === 1 && only ? only : Buffer.concat(parts, size);
    parts = [];
    size = 0;
    return line;
  };
  return (chunk) => {
    const lines: Uint8Array[] = [];
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
      add(chunk.subarray(from, at));
      from = at + 1;
      if (size > 0) lines.push(take());
    }
    add(chunk.subarray(from));
    return lines;
  };
}
