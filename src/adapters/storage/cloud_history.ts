// The journal of cloud events, as `cloudevents` needs it: lines of JSON that begin with `{"id":N,`, whose
// numbers grow by one. The state directory has one, and so has a shared database.

/** A line found no room. Nothing was written; a later attempt may succeed. */
export class HistoryError extends Error {
  override readonly name = 'HistoryError';
}

export interface CloudHistory {
  /** The number of the oldest line; 0 without one. */
  readonly firstId: number;
  /** The number of the newest line; 0 without one. */
  readonly lastId: number;
  /**
   * Appends lines without newlines, the first of which has the number `lastId + 1`. They are durable, all or
   * none, when it resolves. Rejects with a HistoryError. `now`: epoch milliseconds.
   */
  write(lines: readonly string[], now: number): Promise<void>;
  /** Removes what is past the bounds, now or soon. */
  prune(now: number): void;
  /** The lines with numbers below `before`, newest first, some at a time. */
  newestFirst(before: number): AsyncIterable<readonly string[]>;
  /** The lines with numbers above `after`, oldest first, some at a time. */
  oldestFirst(after: number): AsyncIterable<readonly string[]>;
  close(): void;
}
