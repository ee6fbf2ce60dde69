// The bytes of a stream as data frames. The node queues only so many frames, of any length (drain_check.ts),
// so while a frame is on its way, further bytes wait, and go out together.
import type { Duplex } from 'node:stream';
import { TETHER } from '../../settings/cloud_limits.ts';
import { type DrainCheck, NODE_WORKERS } from './drain_check.ts';
import { dataFrameHeader } from './spdy_frames.ts';

/**
 * Payloads up to this size are copied behind their frame header, which is cheaper than a second buffer for
 * the socket.
 */
const MAX_COPIED_BYTES = 4 * 1024;
/** The node holds a frame in memory as a whole. */
const MAX_FRAME_BYTES = 256 * 1024;

export class DataFrames {
  private readonly socket: Duplex;
  private readonly drainCheck: DrainCheck;
  private readonly onSent: () => void;
  /** The id of the stream that has the bytes. */
  private dataId = 0;
  private waiting: Buffer[] = [];
  private waitingBytes = 0;
  private isSending = false;

  /** `onSent` is called when bytes have left, and there may be room for more. */
  constructor(socket: Duplex, drainCheck: DrainCheck, onSent: () => void) {
    this.socket = socket;
    this.drainCheck = drainCheck;
    this.onSent = onSent;
  }

  /** Whether more bytes should be written now. */
  get hasRoom(): boolean {
    const bytes = this.socket.writableLength + this.waitingBytes;
    return bytes < TETHER.maxBufferedBytes && !this.drainCheck.isFull;
  }

  /** Sends bytes of the stream `dataId`, or keeps them until there is room. */
  write(dataId: number, bytes: Buffer): void {
    this.dataId = dataId;
    this.waiting.push(bytes);
    this.waitingBytes += bytes.length;
    this.send();
  }

  /** Sends what waits, if the node may have room. */
  send(): void {
    if (!this.isSending && this.waitingBytes > 0 && !this.drainCheck.isFull) this.sendFrame();
  }

  /** Sends all that waits: no more follows. */
  flush(): void {
    while (this.waitingBytes > 0) this.sendFrame();
  }

  private sendFrame(): void {
    const { drainCheck, socket } = this;
    const chunks = this.take();
    const length = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
    drainCheck.onWritten(length);
    const header = dataFrameHeader(this.dataId, length, false);
    this.isSending = true;
    const onWritten = (): void => {
      this.isSending = false;
      this.send();
      this.onSent();
    };
    if (length <= MAX_COPIED_BYTES) socket.write(Buffer.concat([header, ...chunks]), onWritten);
    else {
      const last = chunks.pop();
      socket.cork();
      socket.write(header);
      for (const chunk of chunks) socket.write(chunk);
      socket.write(last, onWritten);
      socket.uncork();
    }
    if (drainCheck.isRoundDue) drainCheck.sendRound(NODE_WORKERS);
  }

  /** Takes as many of the waiting chunks as one frame may have. */
  private take(): Buffer[] {
    let bytes = 0;
    const isOver = (chunk: Buffer): boolean => {
      bytes += chunk.length;
      return bytes > MAX_FRAME_BYTES;
    };
    const over = this.waiting.findIndex(isOver);
    // A single chunk may be longer.
    const taken = this.waiting.splice(0, over < 0 ? this.waiting.length : Math.max(over, 1));
    for (const chunk of taken) this.waitingBytes -= chunk.length;
    return taken;
  }
}
