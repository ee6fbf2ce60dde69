// Identifies entries of logs.
import type { LogEntry } from '../client/records.ts';

/** A line is identified by its service and offset; an event of a run, by its service, run and event. */
export const entryKey = (entry: LogEntry): string =>
  'text' in entry ? `${entry.name} ${entry.offset}` : `${entry.name} ${entry.run} ${entry.event}`;
