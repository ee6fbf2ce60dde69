// The messages of `threads`, on the front thread.

/** Starts threads. */
export interface ThreadsProtocol {
  /** Replies when the thread that holds `address` is up; starts it if necessary. Fails gone. */
  ensure(message: { address: string }): null;
}
