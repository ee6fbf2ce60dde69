// The input of one session, on its way to the terminal: docs/reference.md "Attach". A server closes a viewer
// whose input it would have to keep, so what it has not acknowledged stays below `WINDOW_BYTES`, and the rest
// waits here.

/** The most input in one message. A server refuses messages above a limit of its own. */
const PART_BYTES = 32 * 1024;
/** Well under what a server keeps for each viewer, which is less the more viewers there are. */
const WINDOW_BYTES = 64 * 1024;
/** Less than this may be the keys at which the program has ended, and is not missed. */
const MISSED_BYTES = 1024;

export class InputWindow {
  private readonly send: (part: Uint8Array) => void;
  private readonly onUnsent: (bytes: number) => void;
  private waiting: Uint8Array[] = [];
  private unsent = 0;
  private unacknowledged = 0;
  /** null: nothing is known about the server yet. */
  private isAcknowledged: boolean | null = null;
  private isClosed = false;

  /** `onUnsent` is called with the number of bytes that wait, whenever it has changed. */
  constructor(send: (part: Uint8Array) => void, onUnsent: (bytes: number) => void) {
    this.send = send;
    this.onUnsent = onUnsent;
  }

  write(input: string | Uint8Array): void {
    if (this.isClosed) return;
    // A copy, because it may wait.
    const bytes = typeof input === 'string' ? new TextEncoder().encode(input) : new Uint8Array(input);
    for (let at = 0; at < bytes.length; at += PART_BYTES)
      this.waiting.push(bytes.subarray(at, at + PART_BYTES));
    this.sendOn(bytes.length);
  }

  /**
   * Called for every text of the server, with the bytes that the terminal has taken since the last `ack`. A
   * server whose first text has no `ack` is of an older version, and acknowledges nothing.
   */
  hear(ack: number | undefined): void {
    this.isAcknowledged ??= ack !== undefined;
    this.unacknowledged = Math.max(0, this.unacknowledged - (ack ?? 0));
    this.sendOn(0);
  }

  /** Nothing more is sent. Returns the number of bytes that the terminal is not known to have taken. */
  close(): number {
    this.isClosed = true;
    const missed = this.unsent + (this.isAcknowledged ? this.unacknowledged : 0);
    return missed < MISSED_BYTES ? 0 : missed;
  }

  /** Sends what there is room for, after `added` bytes have been added. */
  private sendOn(added: number): void {
    const before = this.unsent;
    this.unsent += added;
    for (let part = this.waiting[0]; part && this.hasRoom(part.length); part = this.waiting[0]) {
      this.waiting.shift();
      this.unsent -= part.length;
      this.unacknowledged += part.length;
      this.send(part);
    }
    if (this.unsent !== before) this.onUnsent(this.unsent);
  }

  private hasRoom(bytes: number): boolean {
    if (this.isClosed) return false;
    return this.isAcknowledged === false || this.unacknowledged + bytes <= WINDOW_BYTES;
  }
}
