// One stream of a relay's connection. Its window is what one side may write without permission from the
// other. The window grows while it is what limits the sender.
import { RELAY } from '../../settings/cloud_limits.ts';
import {
  creditFrame,
  FRAME,
  FRAME_HEAD_BYTES,
  muxFrame,
  muxReset,
  newFrame,
  type ResetCode,
} from './frames.ts';

/** The connection, as its streams use it. */
export interface StreamCarrier {
  /** Sends the stream's data when its turn comes. */
  schedule(stream: MuxStream): void;
  /** Sends a frame ahead of waiting data. */
  sendFrame(frame: Buffer): void;
  /** Whether a window may grow by `bytes`, which are then counted. */
  takeRoom(bytes: number): boolean;
  /** The stream is over. */
  forget(stream: MuxStream): void;
}

/** The events of a stream. `onReset` or `onClosed` comes last; none comes after `reset`. */
export interface MuxStreamEvents {
  /** The receiver owns `bytes`. */
  onData(bytes: Buffer): void;
  /** The other side will write no more. */
  onEnd(): void;
  /** `write` may be called again after it has returned false. */
  onDrained(): void;
  /** Both sides have ended. */
  onClosed(): void;
  /** The stream has ended at once; `lost`: together with the connection. */
  onReset(code: ResetCode | 'lost', text: string): void;
}

const ignore = (): void => undefined;

/** The events of a stream whose user has gone. */
const NOBODY: MuxStreamEvents = {
  onData: ignore,
  onEnd: ignore,
  onDrained: ignore,
  onClosed: ignore,
  onReset: ignore,
};

const MAX_CREDIT = 2 ** 31 - 1;
const MAX_MERGED_BYTES = 4 * 1024;

/** One stream. It may be written to at once; received data is kept until `listen`. */
export class MuxStream {
  readonly id: number;
  private readonly carrier: StreamCarrier;
  private events: MuxStreamEvents | null = null;
  private isOver = false;
  private readonly unsent: Buffer[] = [];
  private unsentBytes = 0;
  /** How much may be sent before more credit arrives. */
  private credit: number = RELAY.windowBytes;
  private isFull = false;
  private isEnding = false;
  private isEndSent = false;
  private flushed: () => void = ignore;
  private readonly unread: Buffer[] = [];
  private isStopped = false;
  private isDelivering = false;
  /** How much the other side may still send. */
  private window: number = RELAY.windowBytes;
  private windowSize: number = RELAY.windowBytes;
  /** Bytes read since the last credit. */
  private readBytes = 0;
  /** The window has limited the sender since the last credit. */
  private isLimited = false;
  private hasEndCome = false;
  private isEndRead = false;
  /** Its user has gone, but unsent data is still sent. */
  private isLeaving = false;
  /** The other side's user has gone, but what it sent remains to be read. */
  private leftText: string | null = null;

  constructor(carrier: StreamCarrier, id: number) {
    this.carrier = carrier;
    this.id = id;
  }

  get isPaused(): boolean {
    return this.isStopped;
  }

  /** Bytes written but not sent. */
  get bufferedBytes(): number {
    return this.unsentBytes;
  }

  /** Whether the user of the other side has gone, though not everything it sent has been read. */
  get isLeft(): boolean {
    return this.leftText !== null;
  }

  /** Whether there is something that may be sent. */
  get isReady(): boolean {
    if (this.isOver || this.isEndSent || this.isLeft) return false;
    return this.unsentBytes > 0 ? this.credit > 0 : this.isEnding;
  }

  /** How far the window has grown. */
  get grownBytes(): number {
    return this.windowSize - RELAY.windowBytes;
  }

  /** Starts the events. */
  listen(events: MuxStreamEvents): void {
    this.events = events;
    this.deliver();
  }

  /** False: wait for `onDrained` before writing more. */
  write(bytes: Buffer): boolean {
    if (this.isOver || this.isEnding || this.isLeft) return true;
    if (bytes.length > 0) this.unsent.push(bytes);
    this.unsentBytes += bytes.length;
    this.carrier.schedule(this);
    this.isFull ||= this.unsentBytes > RELAY.maxUnsentOfStream;
    return !this.isFull;
  }

  /** Nothing more will be written. `flushed` is called when everything is sent. */
  end(flushed: () => void = ignore): void {
    if (this.isOver || this.isEnding) return;
    this.isEnding = true;
    this.flushed = flushed;
    this.carrier.schedule(this);
  }

  pause(): void {
    this.isStopped = true;
  }

  resume(): void {
    this.isStopped = false;
    this.deliver();
  }

  /** Ends the stream at once, in both directions. No event follows. */
  reset(code: ResetCode, text: string): void {
    if (this.isOver) return;
    this.carrier.sendFrame(muxReset(this.id, code, text));
    this.finish();
  }

  /** The user has gone: what was written is still sent, received data is dropped, and no event follows. */
  leave(): void {
    this.events = NOBODY;
    if (this.unsentBytes === 0) {
      this.reset('closed', '');
      return;
    }
    this.isLeaving = true;
    this.resume();
  }

  /** For the connection: sends a frame when it is this stream's turn. */
  sendNext(): void {
    if (this.unsentBytes > 0) this.sendData();
    if (this.unsentBytes === 0 && this.isEnding && !this.isOver) this.sendEnd();
    if (this.unsentBytes === 0 && this.isLeaving) this.reset('closed', '');
    if (!this.isFull || this.unsentBytes > RELAY.maxUnsentOfStream / 2) return;
    this.isFull = false;
    this.events?.onDrained();
  }

  /** For the connection, like the following methods: returns the protocol violation; null if none. */
  takeData(bytes: Buffer, isLimited: boolean): string | null {
    if (this.hasEndCome || this.isLeft) return 'data after its end';
    if (bytes.length > this.window) return 'more data than the window takes';
    this.window -= bytes.length;
    this.isLimited ||= isLimited;
    this.keep(bytes);
    this.deliver();
    return null;
  }

  takeCredit(bytes: number): string | null {
    if (this.credit + bytes > MAX_CREDIT) return 'more credit than there may be';
    this.credit += bytes;
    this.carrier.schedule(this);
    return null;
  }

  takeEnd(): string | null {
    if (this.hasEndCome || this.isLeft) return 'a second end';
    this.hasEndCome = true;
    this.deliver();
    return null;
  }

  takeReset(code: ResetCode, text: string): void {
    if (code === 'closed' && this.unread.length > 0 && !this.isLeft) {
      this.leftText = text;
      this.unsent.length = 0;
      this.unsentBytes = 0;
      return;
    }
    this.finish();
    this.events?.onReset(code, text);
  }

  /** The connection is over. */
  onLost(text: string): void {
    this.finish();
    this.events?.onReset('lost', text);
  }

  private sendData(): void {
    const length = Math.min(this.unsentBytes, this.credit, RELAY.maxDataBytes);
    const isLimited = length === this.credit && length < this.unsentBytes;
    const frame = newFrame(isLimited ? FRAME.limited : FRAME.data, this.id, length);
    let at = FRAME_HEAD_BYTES;
    for (let first = this.unsent[0]; first && at < frame.length; first = this.unsent[0]) {
      const copied = first.copy(frame, at);
      at += copied;
      if (copied === first.length) this.unsent.shift();
      else this.unsent[0] = first.subarray(copied);
    }
    this.unsentBytes -= length;
    this.credit -= length;
    this.carrier.sendFrame(frame);
  }

  private sendEnd(): void {
    this.isEndSent = true;
    this.carrier.sendFrame(muxFrame(FRAME.end, this.id));
    this.flushed();
    this.closeIfEnded();
  }

  /**
   * A window counts bytes, not frames. Small frames are joined, because otherwise they would take more
   * memory.
   */
  private keep(bytes: Buffer): void {
    const last = this.unread.at(-1);
    if (last && last.length + bytes.length <= MAX_MERGED_BYTES)
      this.unread[this.unread.length - 1] = Buffer.concat([last, bytes]);
    else if (bytes.length > 0) this.unread.push(bytes);
  }

  /** Delivers received data in order, until the user pauses. */
  private deliver(): void {
    if (this.isDelivering) return;
    this.isDelivering = true;
    const { events } = this;
    while (events && !this.isOver && !this.isStopped) {
      const bytes = this.unread.shift();
      if (!bytes) break;
      this.readBytes += bytes.length;
      events.onData(bytes);
    }
    this.isDelivering = false;
    if (!events || this.isOver || this.isStopped) return;
    if (this.leftText !== null) {
      this.finish();
      events.onReset('closed', this.leftText);
    } else if (!this.hasEndCome) this.giveCredit();
    else if (!this.isEndRead) {
      this.isEndRead = true;
      events.onEnd();
      this.closeIfEnded();
    }
  }

  private giveCredit(): void {
    if (this.readBytes < this.windowSize / 2) return;
    let credit = this.readBytes;
    const canGrow = this.isLimited && this.windowSize < RELAY.maxWindowBytes;
    if (canGrow && this.carrier.takeRoom(this.windowSize)) {
      credit += this.windowSize;
      this.windowSize *= 2;
    }
    this.readBytes = 0;
    this.isLimited = false;
    this.window += credit;
    this.carrier.sendFrame(creditFrame(this.id, credit));
  }

  private closeIfEnded(): void {
    if (this.isOver || !this.isEndSent || !this.isEndRead) return;
    this.finish();
    this.events?.onClosed();
  }

  private finish(): void {
    this.isOver = true;
    this.unsent.length = 0;
    this.unsentBytes = 0;
    this.unread.length = 0;
    this.carrier.forget(this);
  }
}
