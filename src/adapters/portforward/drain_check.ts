// What the node has taken of the data written to a connection, and when it must answer a ping.
//
// The reference implementation distributes the frames of a connection over five workers, streams by their id
// and pings in turn, so the worker of each ping is known. A worker blocks until the pod takes what it has.
// Up to 50 frames queue behind it; then the node stops reading the connection. This has two consequences:
// * The answer to one ping proves that its worker is drained, and the answers to five prove it for all.
// * As long as the queue is not full, the four other workers answer, even if the pod takes nothing. `isFull`
//   keeps the queue from filling, so silence after five pings means that the connection is dead.
//
// A single small frame needs no proof: the node always reads it, and the pod's socket always has room for it.
import { pingFrame } from './spdy_frames.ts';

export const NODE_WORKERS = 5;
/** Less than any system buffers for a connection. */
const SOCKET_BUFFER_BYTES = 16 * 1024;
/** Frames that may queue for a worker, and rounds of pings beside them: with the last frames less than 50. */
const MAX_QUEUED_FRAMES = 38;
const MAX_ROUNDS = 8;
/** So many frames without proof call for a round of pings. */
const FRAMES_PER_ROUND = 16;

/** Pings sent together. */
interface Round {
  /** Those without an answer. */
  readonly outstanding: Set<number>;
  /** The number of frames written before. */
  readonly written: number;
}

export class DrainCheck {
  private readonly send: (pings: Buffer) => void;
  private pingCount = 0;
  /** The rounds with outstanding pings, oldest first. */
  private rounds: Round[] = [];
  /** Frames that need proof, and those of them that the node has proved to have taken. */
  private written = 0;
  private taken = 0;
  /** Frames of the latest stream. */
  private frameCount = 0;

  constructor(send: (pings: Buffer) => void) {
    this.send = send;
  }

  /** The worker that will get the next ping. */
  get nextWorker(): number {
    return this.pingCount % NODE_WORKERS;
  }

  /** The number of rounds with outstanding pings. */
  get pendingRounds(): number {
    return this.rounds.length;
  }

  /** Whether the node has taken everything that was written. */
  get isDrained(): boolean {
    return this.taken === this.written;
  }

  /** Whether to write no more until a ping is answered. */
  get isFull(): boolean {
    return this.written - this.taken >= MAX_QUEUED_FRAMES;
  }

  /** Whether so much was written since the last pings that the node should be asked what it has taken. */
  get isRoundDue(): boolean {
    const asked = this.rounds.at(-1)?.written ?? this.taken;
    return this.written - asked >= FRAMES_PER_ROUND && this.rounds.length < MAX_ROUNDS;
  }

  /** Whether a ping is outstanding that no pod can delay: at most one worker is blocked. */
  get mustAnswer(): boolean {
    const isBlockable = this.isDrained ? 0 : 1;
    return this.rounds.some(({ outstanding }) => outstanding.size > isBlockable);
  }

  /** A stream has begun. */
  onStreamOpened(): void {
    this.frameCount = 0;
  }

  /** A frame of `bytes` has been written to the stream. */
  onWritten(bytes: number): void {
    this.frameCount += 1;
    if (this.frameCount > 1 || bytes > SOCKET_BUFFER_BYTES) this.written += 1;
  }

  /** Pings one worker, or all. Harmless while the answers to earlier pings are still to come. */
  sendPings(workers: 1 | typeof NODE_WORKERS): void {
    const isAsked = this.rounds.length > 0 && (workers === 1 || this.mustAnswer);
    if (!isAsked) this.sendRound(workers);
  }

  /** Pings one worker, or all, also while answers are still to come. */
  sendRound(workers: 1 | typeof NODE_WORKERS): void {
    if (this.rounds.length === MAX_ROUNDS) return;
    const ids = Array.from({ length: workers }, () => {
      this.pingCount += 1;
      return (this.pingCount * 2 - 1) % 0x7fffffff;
    });
    this.rounds.push({ outstanding: new Set(ids), written: this.written });
    this.send(Buffer.concat(ids.map(pingFrame)));
  }

  /** A ping was answered. Returns whether it was the last outstanding one. */
  onPong(id: number): boolean {
    if (!this.rounds.some(({ outstanding }) => outstanding.delete(id))) return false;
    while (this.rounds[0]?.outstanding.size === 0) this.taken = this.rounds.shift()?.written ?? this.taken;
    return this.rounds.length === 0;
  }
}
