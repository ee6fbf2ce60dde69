// A terminal that is looked at, docs/reference.md "Terminals": messages between the service that owns it and
// the viewers on the front.

/**
 * Handled by `service:<name>` of an agent. `viewer` is a name the front gives; it is unique over its life.
 */
export interface TerminalProtocol {
  /**
   * From now on `viewers` is told of size, screen and output. Fails not_running when no terminal is there.
   */
  attach(message: { viewer: string }): null;
  detach(message: { viewer: string }): null;
  input(message: { data: Uint8Array }): null;
  /** The last one wins; every viewer gets the new size. */
  resize(message: { cols: number; rows: number }): null;
  /** The viewer has taken so many bytes of output. */
  ack(message: { viewer: string; bytes: number }): null;
}

/** Handled by the front. */
export interface TerminalViewersProtocol {
  /** First the screen as it is, then output as it comes. */
  output(message: { viewer: string; bytes: Uint8Array }): null;
  size(message: { viewer: string; cols: number; rows: number }): null;
  /** Nobody shows it anything any more, for no fault of its own: it may come again. */
  detached(message: { viewer: string }): null;
  /** The process has ended; nothing follows. */
  exit(message: { viewer: string; exitCode: number | null; signal: string | null }): null;
}
