// Positions in many logs as a cursor, which is the id of an event in a stream.
import type { LogPlace } from '../protocol/logs.ts';
import { encodeCursor } from './log_cursor.ts';

/** The parts of a position in a cursor, after the name of the service. Names contain no blanks. */
const PARTS = { marks: ' marks', stdout: ' stdout', stderr: ' stderr', around: ' around' } as const;

/** A cursor that contains the position in each log. */
export function placesCursor(places: Iterable<readonly [name: string, place: LogPlace]>): string {
  const numbers: [string, number][] = [];
  for (const [name, { offset, marks, open, around }] of places) {
    if (offset > 0 || marks > 0) numbers.push([name, offset]);
    if (marks > 0) numbers.push([name + PARTS.marks, marks]);
    if (open[0] !== null) numbers.push([name + PARTS.stdout, open[0]]);
    if (open[1] !== null) numbers.push([name + PARTS.stderr, open[1]]);
    // The numbers in a cursor must not be negative.
    if (around !== 0) numbers.push([name + PARTS.around, around > 0 ? 2 * around : 1 - 2 * around]);
  }
  return encodeCursor(numbers);
}

const aroundOf = (number: number): number => (number % 2 === 0 ? number / 2 : (1 - number) / 2);

/** The position of a log in a cursor; its beginning if the log was empty then. */
export const placeOf = (cursor: (name: string) => number | undefined, name: string): LogPlace => ({
  offset: cursor(name) ?? 0,
  marks: cursor(name + PARTS.marks) ?? 0,
  open: [cursor(name + PARTS.stdout) ?? null, cursor(name + PARTS.stderr) ?? null],
  around: aroundOf(cursor(name + PARTS.around) ?? 0),
});
