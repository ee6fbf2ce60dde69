// The terminal of an agent, docs/reference.md "Terminals": messages between the service that owns it and the
// viewers on the front.

/**
 * Handled by `service:<name>` of an agent. `viewer` is a name chosen by the front, unique over the front's
 * life.
 */
export interface TerminalProtocol {
  /** From now on `viewers` gets the size, the screen and the output. Fails not_running without a terminal. */
  attach(message: { viewer: string }): null;
  detach(message: { viewer: string }): null;
  input(message: { data: Uint8Array }): null;
  /** The last call wins; every viewer gets the new size. */
  resize(message: { cols: number; rows: number }): null;
  /** The viewer has processed this many bytes of output. */
  ack(message: { viewer: string; bytes: number }): null;
}

/** Handled by the front. */
export interface TerminalViewersProtocol {
  /** First the current screen, then output as it arrives. */
  output(message: { viewer: string; bytes: Uint8Array }): null;
  size(message: { viewer: string; cols: number; rows: number }): null;
  /** The terminal dropped the viewer, through no fault of its own: it may attach again. */
  detached(message: { viewer: string }): null;
  /** The process has ended; nothing follows. */
  exit(message: { viewer: string; exitCode: number | null; signal: string | null }): null;
}
