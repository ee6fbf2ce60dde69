// Whether anything that was written to a line may be stuck in the node. The reference implementation hands the frames of a
// line to five workers, streams by their id and pings in turn, and a worker waits for the pod to take what it has. So a ping
// tells of one worker, which is known, and five pings tell of all.
//
// One small frame needs no proof: the node reads it whatever becomes of the pod, and no pod has so little room for it.
import { ping } from './frames.ts';

export const WORKERS = 5;
/** Less than any system buffers for a connection. */
const ROOM_BYTES = 16 * 1024;

export class Proof {
  private readonly send: (bytes: Buffer) => void;
  private pings = 0;
  private out = 0;
  /** Something has been written since the pings that are out. */
  private stale = false;
  private clear = true;
  private frames = 0;

  constructor(send: (bytes: Buffer) => void) {
    this.send = send;
  }

  /** The worker that gets the next ping. */
  get worker(): number {
    return this.pings % WORKERS;
  }

  /** Pings are out. */
  get isPending(): boolean {
    return this.out > 0;
  }

  /** The node has taken all that was written. */
  get isClear(): boolean {
    return this.clear;
  }

  /** A stream has begun. */
  begin(): void {
    this.frames = 0;
  }

  /** A frame of `bytes` has been written to the stream. */
  wrote(bytes: number): void {
    this.frames += 1;
    if (this.frames === 1 && bytes <= ROOM_BYTES) return;
    this.clear = false;
    this.stale = true;
  }

  /** Asks one worker, or all; not while an answer is outstanding. */
  ask(workers: 1 | typeof WORKERS): void {
    if (this.out > 0) return;
    this.out = workers;
    this.stale = false;
    const pings = Array.from({ length: workers }, () => {
      this.pings += 1;
      return ping((this.pings * 2 - 1) % 0x7fffffff);
    });
    this.send(Buffer.concat(pings));
  }

  /** A ping has come back. True: it was the last one that was out. */
  came(): boolean {
    if (this.out === 0) return false;
    this.out -= 1;
    if (this.out > 0) return false;
    this.clear = !this.stale;
    return true;
  }
}
