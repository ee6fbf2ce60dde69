// A node that takes the frames of a connection as the reference implementation does: five workers, each with
// a queue. A worker blocks on data that its pod does not read; behind a full queue, nothing more is read.
import { type Far, frame, reply, word } from './far_end.ts';

const WORKERS = 5;
const QUEUE_FRAMES = 50;
const SYN_STREAM = 1;
const PING = 6;

/** What the pods and the nodes of a test do at the moment. */
export interface NodeState {
  /** Connections that carry nothing more, in either direction. */
  frozen: Set<Far>;
  /** Whether the pods read. */
  isRead: boolean;
  /** How many bytes the path has carried to each node; the rest is in its buffers. Absent: all. */
  carriedBytes?: number;
}

type Queued = { ping: Buffer } | { data: number };

export class ReferenceNode {
  /** Bytes that the pod has read. */
  readBytes = 0;
  /** The data frames that have arrived, by their lengths; 0: the end of the data. */
  readonly frames: number[] = [];
  /** The most frames that have waited for one worker. */
  maxQueued = 0;
  private readonly far: Far;
  private readonly state: NodeState;
  private readonly queues: Queued[][] = Array.from({ length: WORKERS }, () => []);
  private nextWorker = 0;
  private parsedBytes = 0;

  constructor(far: Far, state: NodeState) {
    this.far = far;
    this.state = state;
    far.socket.on('data', () => this.work());
  }

  /** Takes what it can. To be called when the state has changed. */
  work(): void {
    if (this.state.frozen.has(this.far)) return;
    do for (const queue of this.queues) this.take(queue);
    while (this.readFrame());
  }

  private take(queue: Queued[]): void {
    for (let [head] = queue; head; [head] = queue) {
      if ('data' in head && !this.state.isRead) return;
      if ('ping' in head) this.far.socket.write(frame(PING, head.ping));
      else this.readBytes += head.data;
      queue.shift();
    }
  }

  /** Reads the next frame. Returns false if it has not arrived, or if the queue of its worker is full. */
  private readFrame(): boolean {
    const bytes = this.far.received().subarray(this.parsedBytes, this.state.carriedBytes);
    const length = bytes.length < 8 ? Number.POSITIVE_INFINITY : bytes.readUIntBE(5, 3);
    if (bytes.length < 8 + length) return false;
    const [isControl, type] = [(bytes[0] ?? 0) >= 0x80, bytes.readUInt16BE(2)];
    const isPing = isControl && type === PING;
    const id = bytes.readUInt32BE(isControl ? 8 : 0);
    const queue = this.queues[isPing ? this.nextWorker : id % WORKERS] ?? [];
    if (queue.length >= QUEUE_FRAMES) return false;
    this.parsedBytes += 8 + length;
    if (isPing) this.nextWorker = (this.nextWorker + 1) % WORKERS;
    if (isPing) queue.push({ ping: word(id) });
    else if (!isControl) {
      this.frames.push(length);
      queue.push({ data: length });
    } else if (type === SYN_STREAM) this.far.socket.write(reply(id));
    this.maxQueued = Math.max(this.maxQueued, queue.length);
    return true;
  }
}
