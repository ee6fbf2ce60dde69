// Streamed answers on uWebSockets.js.
import type { HttpResponse } from 'uWebSockets.js';
import { KIB } from '../../settings/limits.ts';
import type { ResponseStream } from './http_server.ts';

/**
 * The largest piece in one write. uWebSockets.js buffers what the connection does not take, and does not say
 * how much. With its framing a piece must fit into the 16 KiB collected before a write: a larger one is lost
 * entirely if the connection does not take the framing at once.
 */
const SLICE_BYTES = 15 * KIB;

/**
 * `blocked`: the last write was not fully taken. uWebSockets.js would buffer further data without limit, so
 * it is queued here until the response is writable.
 */
type StreamState = 'open' | 'blocked' | 'closed';

/**
 * A write smaller than the cork buffer of uWebSockets.js may be blocked and still return true; only the next
 * one shows it.
 */
export class UwsStream implements ResponseStream {
  bufferedBytes = 0;
  onDrain: (() => void) | null = null;
  onClose: (() => void) | null = null;
  private readonly res: HttpResponse;
  private readonly keepAliveBytes: Uint8Array;
  private readonly closesConnection: boolean;
  private readonly onEnded: () => void;
  private state: StreamState = 'open';
  private queue: Uint8Array[] = [];
  /** Argument and result of `writeCorked`. */
  private nextWrite: Uint8Array = new Uint8Array();
  private wasAccepted = true;

  /**
   * `closesConnection`: the connection ends with the stream. `onEnded` is called when this side ends the
   * stream; the response must not be used afterwards.
   */
  constructor(res: HttpResponse, keepAliveBytes: Uint8Array, closesConnection: boolean, onEnded: () => void) {
    this.res = res;
    this.keepAliveBytes = keepAliveBytes;
    this.closesConnection = closesConnection;
    this.onEnded = onEnded;
  }

  /** Sets the status and headers that go out with the first write. */
  start(statusAndHeaders: string): void {
    this.res.onWritable(() => this.drainQueue());
    this.res.cork(() => this.res.writeStatus(statusAndHeaders));
  }

  get isOpen(): boolean {
    return this.state !== 'closed';
  }

  write(bytes: Uint8Array): void {
    if (this.state === 'closed') return;
    let written = 0;
    while (this.state === 'open' && written < bytes.length) {
      const from = written;
      written = Math.min(bytes.length, from + SLICE_BYTES);
      if (!this.tryWrite(bytes.subarray(from, written))) this.bufferedBytes += written - from;
    }
    if (written === bytes.length || !this.isOpen) return;
    this.queue.push(bytes.subarray(written));
    this.bufferedBytes += bytes.length - written;
  }

  /** uWebSockets.js closes a blocked connection after ten seconds without a write. */
  keepAlive(): void {
    if (this.state === 'closed') return;
    if (this.tryWrite(this.keepAliveBytes) && this.bufferedBytes > 0) this.drainQueue();
  }

  end(): void {
    if (this.state === 'closed') return;
    const rest = this.queue;
    this.markClosed();
    this.onEnded();
    this.res.cork(() => {
      for (const bytes of rest) this.res.write(bytes);
      this.res.end('', this.closesConnection);
    });
  }

  destroy(): void {
    if (this.state === 'closed') return;
    this.markClosed();
    this.onEnded();
    this.res.close();
  }

  /** The connection was closed. */
  markClosed(): void {
    if (this.state === 'closed') return;
    this.state = 'closed';
    this.queue = [];
    this.bufferedBytes = 0;
    this.onClose?.();
  }

  // One closure for the whole stream instead of one per write: fan-outs write a million times.
  private readonly writeCorked = (): void => {
    this.wasAccepted = this.res.write(this.nextWrite);
  };

  /** Writes `bytes`, and returns whether everything written so far has been taken. */
  private tryWrite(bytes: Uint8Array): boolean {
    this.nextWrite = bytes;
    this.res.cork(this.writeCorked);
    if (this.state !== 'closed') this.state = this.wasAccepted ? 'open' : 'blocked';
    return this.wasAccepted;
  }

  /**
   * Continues writing. uWebSockets.js empties its own buffer only during a write, so this writes even without
   * a queue.
   */
  private drainQueue(): boolean {
    while (this.state !== 'closed') {
      const bytes = this.queue.length > 0 ? this.takeSlice() : this.keepAliveBytes;
      if (!this.tryWrite(bytes)) return false;
      this.bufferedBytes = this.queue.reduce((sum, part) => sum + part.length, 0);
      if (this.queue.length > 0) continue;
      this.onDrain?.();
      return true;
    }
    return true;
  }

  /** The next queued bytes, at most `SLICE_BYTES`, from one write or several. */
  private takeSlice(): Uint8Array {
    const [first] = this.queue;
    if (first && first.length > SLICE_BYTES) {
      this.queue[0] = first.subarray(SLICE_BYTES);
      return first.subarray(0, SLICE_BYTES);
    }
    let count = 1;
    let size = first?.length ?? 0;
    while (count < this.queue.length && size + (this.queue[count]?.length ?? 0) <= SLICE_BYTES) {
      size += this.queue[count]?.length ?? 0;
      count += 1;
    }
    const parts = this.queue.splice(0, count);
    return parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts);
  }
}
