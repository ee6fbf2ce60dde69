// The messages of `threads`, on the front thread.

/** Starts threads. */
export interface ThreadsProtocol {
  /** Answers when the thread that holds `address` is up, and starts it unless it runs. Fails gone. */
  ensure(message: { address: string }): null;
}
