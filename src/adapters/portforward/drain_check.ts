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
const MAX_QUEUED_FRAMES = 34;
const MAX_ROUNDS = 12;
/**
 * So many frames, or bytes, without proof call for a round of pings. On a slow path with large buffers a ping
 * waits behind what was written before it, so the fewer bytes are between two, the sooner the next answer.
 */
const FRAMES_PER_ROUND = 16;
const BYTES_PER_ROUND = 256 * 1024;

/** How much was written, or taken. */
interface Amount {
  readonly frames: number;
  readonly bytes: number;
}

/** Pings sent together. */
interface Round {
  /** Those without an answer. */
  readonly outstanding: Set<number>;
  /** What was written before. */
  readonly written: Amount;
}

const NOTHING: Amount = { frames: 0, bytes: 0 };

export class DrainCheck {
  private readonly send: (pings: Buffer) => void;
  private pingCount = 0;
  /** The rounds with outstanding pings, oldest first. */
  private rounds: Round[] = [];
  /** What needs proof, and what of it the node has proved to have taken. */
  private written = NOTHING;
  private taken = NOTHING;
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
    return this.taken.frames === this.written.frames;
  }

  /** Whether to write no more until a ping is answered. */
  get isFull(): boolean {
    const { taken, written } = this;
    return (
      written.frames - taken.frames >= MAX_QUEUED_FRAMES ||
      written.bytes - taken.bytes >= MAX_ROUNDS * BYTES_PER_ROUND
    );
  }

  /** Whether so much was written since the last pings that the node should be asked what it has taken. */
  get isRoundDue(): boolean {
    const { rounds, written } = this;
    const asked = rounds.at(-1)?.written ?? this.taken;
    const isMuch =
      written.frames - asked.frames >= FRAMES_PER_ROUND || written.bytes - asked.bytes >= BYTES_PER_ROUND;
    return isMuch && rounds.length < MAX_ROUNDS;
  }

  /** Whether a ping is outstanding that no pod can delay. */
  get mustAnswer(): boolean {
    return this.awaited >= 0;
  }

  /** The bytes that the path has yet to carry before the next answer that no pod can delay. */
  get awaitedBytes(): number {
    const { awaited, rounds } = this;
    const before = rounds[awaited - 1]?.written ?? this.taken;
    return (rounds[awaited]?.written ?? before).bytes - before.bytes;
  }

  /** The index of the oldest round that no pod can delay: at most one worker is blocked. -1: none. */
  private get awaited(): number {
    const blockable = this.isDrained ? 0 : 1;
    return this.rounds.findIndex(({ outstanding }) => outstanding.size > blockable);
  }

  /** A stream has begun. */
  onStreamOpened(): void {
    this.frameCount = 0;
  }

  /** A frame of `bytes` has been written to the stream. */
  onWritten(bytes: number): void {
    this.frameCount += 1;
    if (this.frameCount === 1 && bytes <= SOCKET_BUFFER_BYTES) return;
    this.written = { frames: this.written.frames + 1, bytes: this.written.bytes + bytes };
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
