// Entries of logs, told apart.
import type { LogEntry } from '../client/records.ts';

/** A line is the only one of its service at its place; marks of a run are told by the run. */
export const entryKey = (entry: LogEntry): string =>
  'text' in entry ? `${entry.name} ${entry.offset}` : `${entry.name} ${entry.run} ${entry.event}`;
