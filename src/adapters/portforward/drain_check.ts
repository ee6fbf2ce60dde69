// Whether data written to a connection may be stuck in the node. The reference implementation distributes the
// frames of a connection over five workers, streams by their id and pings in turn, and a worker blocks until
// the pod takes what it has. So the answer to one ping proves that a known worker is drained, and the answers
// to five prove it for all.
//
// A single small frame needs no proof: the node always reads it, and the pod's socket always has room for it.
import { pingFrame } from './spdy_frames.ts';

export const NODE_WORKERS = 5;
/** Less than any system buffers for a connection. */
const SOCKET_BUFFER_BYTES = 16 * 1024;

export class DrainCheck {
  private readonly send: (bytes: Buffer) => void;
  private pingCount = 0;
  private outstandingPings = 0;
  /** Something was written after the outstanding pings. */
  private hasNewWrites = false;
  private drained = true;
  private frameCount = 0;

  constructor(send: (bytes: Buffer) => void) {
    this.send = send;
  }

  /** The worker that will get the next ping. */
  get nextWorker(): number {
    return this.pingCount % NODE_WORKERS;
  }

  /** Whether pings are outstanding. */
  get isPending(): boolean {
    return this.outstandingPings > 0;
  }

  /** Whether the node has taken everything that was written. */
  get isDrained(): boolean {
    return this.drained;
  }

  /** A stream has begun. */
  onStreamOpened(): void {
    this.frameCount = 0;
  }

  /** A frame of `bytes` has been written to the stream. */
  onWritten(bytes: number): void {
    this.frameCount += 1;
    if (this.frameCount === 1 && bytes <= SOCKET_BUFFER_BYTES) return;
    this.drained = false;
    this.hasNewWrites = true;
  }

  /** Pings one worker, or all. Harmless while pings are outstanding. */
  sendPings(workers: 1 | typeof NODE_WORKERS): void {
    if (this.outstandingPings > 0) return;
    this.outstandingPings = workers;
    this.hasNewWrites = false;
    const pings = Array.from({ length: workers }, () => {
      this.pingCount += 1;
      return pingFrame((this.pingCount * 2 - 1) % 0x7fffffff);
    });
    this.send(Buffer.concat(pings));
  }

  /** A ping was answered. Returns whether it was the last outstanding one. */
  onPong(): boolean {
    if (this.outstandingPings === 0) return false;
    this.outstandingPings -= 1;
    if (this.outstandingPings > 0) return false;
    this.drained = !this.hasNewWrites;
    return true;
  }
}
