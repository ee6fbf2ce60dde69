// Positions in many logs as a cursor, which is the id of an event in a stream.
import type { LogPlace } from '../protocol/logs.ts';
import { encodeCursor } from './log_cursor.ts';

/** The parts of a position in a cursor, after the name of the service. Names contain no blanks. */
const PARTS = {
  marks: ' marks',
  stdout: ' stdout',
  stderr: ' stderr',
  around: ' around',
  runHigh: ' run high',
  runLow: ' run low',
} as const;

/** Of the 64 bits of a run's id; the numbers in a cursor have at most 53. */
const HALF_BITS = 32;
const HALF_DIGITS = HALF_BITS / 4;

/** A position in the log of a service, and the only run that is read; null: every run, or the last one. */
export interface RunPlace {
  place: LogPlace;
  run: string | null;
}

/**
 * A cursor that contains the position in each log, and which run is read: a request that counts runs would
 * find another one later.
 */
export function placesCursor(logs: Iterable<readonly [name: string, at: RunPlace]>): string {
  const numbers: [string, number][] = [];
  for (const [name, { place, run }] of logs) {
    const { offset, marks, open, around } = place;
    if (offset > 0 || marks > 0) numbers.push([name, offset]);
    if (marks > 0) numbers.push([name + PARTS.marks, marks]);
    if (open[0] !== null) numbers.push([name + PARTS.stdout, open[0]]);
    if (open[1] !== null) numbers.push([name + PARTS.stderr, open[1]]);
    // The numbers in a cursor must not be negative.
    if (around !== 0) numbers.push([name + PARTS.around, around > 0 ? 2 * around : 1 - 2 * around]);
    if (run === null || !isRunId(run)) continue;
    numbers.push([name + PARTS.runHigh, Number.parseInt(run.slice(0, HALF_DIGITS), 16)]);
    numbers.push([name + PARTS.runLow, Number.parseInt(run.slice(HALF_DIGITS), 16)]);
  }
  return encodeCursor(numbers);
}

const isRunId = (run: string): boolean => run.length === 2 * HALF_DIGITS;

/** The run of a log in a cursor; null: the cursor names none. */
export function runAt(cursor: (name: string) => number | undefined, name: string): string | null {
  const halves = [cursor(name + PARTS.runHigh), cursor(name + PARTS.runLow)];
  const digits = halves.map((half) => half?.toString(16).padStart(HALF_DIGITS, '0') ?? '').join('');
  return isRunId(digits) ? digits : null;
}

const aroundOf = (number: number): number => (number % 2 === 0 ? number / 2 : (1 - number) / 2);

/** The position of a log in a cursor; its beginning if the log was empty then. */
export const placeOf = (cursor: (name: string) => number | undefined, name: string): LogPlace => ({
  offset: cursor(name) ?? 0,
  marks: cursor(name + PARTS.marks) ?? 0,
  open: [cursor(name + PARTS.stdout) ?? null, cursor(name + PARTS.stderr) ?? null],
  around: aroundOf(cursor(name + PARTS.around) ?? 0),
});
