// An entry of a log as clients see it: docs/reference.md "Logs of many services".
import { localTime } from '../protocol/timestamps.ts';
import type { ScannedEntry } from './log_scan.ts';
import { colouredLine } from './terminal_text.ts';

const STREAM_NAMES = { 1: 'stdout', 2: 'stderr' } as const;

/** The JSON of an entry of the service `name`. `ansi`: the text keeps its colours. */
export function entryJson(
  name: string,
  { time, line, mark, around, gap }: ScannedEntry,
  ansi: boolean,
): string {
  const at = localTime(time);
  if (line) {
    const { run, stream, level, fields, offset } = line;
    const text = ansi ? colouredLine(line.printed) : line.text;
    const start = { name, run, at, stream: STREAM_NAMES[stream], level, text };
    return JSON.stringify({ ...start, ...(fields && { fields }), offset, around, gap });
  }
  const { run, event, pid, exitCode, signal } = mark ?? { run: null };
  return JSON.stringify({ name, run, at, event, pid, exitCode, signal });
}
