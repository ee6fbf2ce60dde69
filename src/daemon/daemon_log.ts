// The daemon's log, which is its stderr.
import type { EventRecord } from '../protocol/events.ts';
import { escapeUnsafe } from '../protocol/unsafe_characters.ts';
import { isThreadEnd } from './end_thread.ts';

/** Writes a line to the daemon's log. A worker's lines go through the main thread. */
export const report = (line: string): void => void process.stderr.write(`berth: ${line}\n`);

/** An error with its stack. */
export const describeError = (error: unknown): string =>
  error instanceof Error ? (error.stack ?? error.message) : String(error);

/** Reports a defect: an exception that is not a Failure. */
export const reportDefect = (error: unknown): void => report(`defect: ${describeError(error)}`);

/** Reports the crash of an actor. */
export const reportCrash = (address: string, error: unknown, ended: boolean): void =>
  report(`${address} crashed${ended ? ' and does not start again' : ''}: ${describeError(error)}`);

/** Reports that a thread has died: for the reason with which it ended itself, or a crash. */
export const reportDeath = (name: string, error: unknown, ended: boolean): void =>
  isThreadEnd(error) ? report(error.message) : reportCrash(`the thread ${name}`, error, ended);

/** Reports that a part of the program does not load. `what` is tried again until it does. */
export const reportUnloaded = (what: string, error: unknown): void => {
  const [reason] = (error instanceof Error ? error.message : String(error)).split('\n');
  report(`${what} does not load and is tried again, as while Berth is being updated: ${reason}`);
};

/** Reports events, one line each. Statistics are left out, because they would drown everything else. */
export function reportEvents(records: readonly EventRecord[]): void {
  for (const { type, data } of records) if (type !== 'service.stats') report(`${type} ${escapeUnsafe(data)}`);
}
