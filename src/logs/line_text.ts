// Formats lines as text. Reading terminal output takes up to 100 ns per byte, so long logs are formatted in
// batches.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { KIB } from '../settings/limits.ts';
import type { CutLine } from './line_cutter.ts';
import { readableLine } from './terminal_text.ts';

/** The format of lines. */
export interface LineFormat {
  /** True: as written. False: as a person would have read them. */
  raw: boolean;
  /** Returns the prefix of each line, from its time in epoch milliseconds; null: no prefix. */
  stamp: ((time: number) => string) | null;
}

/** A line as text. */
export function lineText({ time, bytes, from, to }: CutLine, { raw, stamp }: LineFormat): string {
  const printed = bytes.toString('utf8', from, to);
  const text = raw ? printed : readableLine(printed);
  return stamp ? `${stamp(time)} ${text}` : text;
}

/** More than 1,000 lines usually take. Yielding more often would slow down the reader by a third. */
const BATCH_BYTES = 256 * KIB;

/** Maps lines batch by batch, in order. Other work of the thread gets a turn after each full batch. */
export async function mapInBatches<L extends CutLine, T>(
  lines: readonly L[],
  map: (batch: readonly L[]) => T,
): Promise<T[]> {
  const results: T[] = [];
  let batch: L[] = [];
  let bytes = 0;
  for (const line of lines) {
    batch.push(line);
    bytes += line.to - line.from;
    if (bytes < BATCH_BYTES) continue;
    results.push(map(batch));
    batch = [];
    bytes = 0;
    await nextTurn();
  }
  if (batch.length > 0) results.push(map(batch));
  return results;
}
