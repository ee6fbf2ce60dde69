// An entry of a log as clients see it: docs/reference.md "Logs of many services".
import { localTime } from '../protocol/timestamps.ts';
import type { ScannedEntry } from './log_scan.ts';
import { colouredLine } from './terminal_text.ts';

const STREAM_NAMES = { 1: 'stdout', 2: 'stderr' } as const;

/** The last time and its text: many lines share one, and formatting it takes as long as the rest. */
let last = { time: Number.NaN, text: '' };

function textOf(time: number): string {
  if (time !== last.time) last = { time, text: localTime(time) };
  return last.text;
}

/** The JSON of an entry of the service `name`. `ansi`: the text keeps its colours. */
export function entryJson(
  name: string,
  { time, line, mark, around, gap }: ScannedEntry,
  ansi: boolean,
): string {
  const at = textOf(time);
  if (line) {
    const { run, stream, level, fields, offset } = line;
    const text = ansi ? colouredLine(line.printed) : line.text;
    // Made in one piece: with spread objects it takes twice as long.
    return JSON.stringify({
      name,
      run,
      at,
      stream: STREAM_NAMES[stream],
      level,
      text,
      fields: fields ?? undefined,
      offset,
      around,
      gap,
    });
  }
  const { run, event, pid, exitCode, signal } = mark ?? { run: null };
  return JSON.stringify({ name, run, at, event, pid, exitCode, signal });
}
