// The journal of cloud events, as `cloudevents` needs it: lines of JSON that begin with `{"id":N,`, numbered
// consecutively. The state directory has one, and so does a shared database.

/** A line could not be stored for lack of space. Nothing was written; a later attempt may succeed. */
export class HistoryError extends Error {
  override readonly name = 'HistoryError';
}

export interface CloudHistory {
  /** The number of the oldest line; 0 without one. */
  readonly firstId: number;
  /** The number of the newest line; 0 without one. */
  readonly lastId: number;
  /**
   * Appends lines without newlines, numbered from `lastId + 1`. All or none are durable when it resolves.
   * Rejects with a HistoryError. `now`: epoch milliseconds.
   */
  write(lines: readonly string[], now: number): Promise<void>;
  /** Removes lines beyond the limits, now or soon. */
  prune(now: number): void;
  /** The lines numbered below `before`, newest first, in batches. */
  newestFirst(before: number): AsyncIterable<readonly string[]>;
  /** The lines numbered above `after`, oldest first, in batches. */
  oldestFirst(after: number): AsyncIterable<readonly string[]>;
  close(): void;
}
