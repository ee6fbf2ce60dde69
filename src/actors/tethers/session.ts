// One client of a tether: what it sends is held until a pod takes it, then both directions are carried, each only as fast as
// the other end takes it.
import type { Socket } from 'node:net';
import type { Setback, SetbackCode, Stream, StreamEvents } from '../../adapters/portforward/way.ts';
import type { Peers } from '../../adapters/process/peer.ts';
import { TETHER } from '../../limits.ts';

/** Who has the sessions of one tether. */
export interface SessionOwner {
  readonly peers: Peers;
  /** Monotonic milliseconds. */
  now(): number;
  /** Bytes from the client, and to it. */
  moved(fromClient: number, toClient: number): void;
  /** A pod could not be reached, and nothing has been lost: `carry` may be called again. */
  failed(session: Session, setback: Setback): void;
  /** The session is over; `reason` when the client was reset for it. */
  over(session: Session, reason: string | null): void;
}

/** The pod has certainly seen nothing of the connection. */
const UNSEEN: ReadonlySet<SetbackCode> = new Set(['absent', 'refused']);
/** It has not if nothing had been written. */
const UNSEEN_IF_EMPTY: ReadonlySet<SetbackCode> = new Set(['unreachable', 'lost']);

type Phase = 'held' | 'opening' | 'open' | 'closing' | 'over';

/** One connection from its accept to its end. Its owner says which pod gets it; it ends by itself and then says so. */
export class Session implements StreamEvents {
  readonly since: number;
  /** The uid of the pod that carries it, or was to; for the owner's use. */
  pod = '';
  /** When the first attempt failed since it last waited for a pod. */
  failingSince: number | null = null;
  private readonly socket: Socket;
  private readonly owner: SessionOwner;
  private phase: Phase = 'held';
  private stream: Stream | null = null;
  /** What the client has sent and the pod has not yet answered; null when it is too much to be sent again. */
  private held: Buffer[] | null = [];
  private heldBytes = 0;
  private isEnded = false;
  private goneAt: number | null = null;
  private isCorked = false;
  private clientAt: number;
  private podAt = 0;
  /** The node has been told that the client has half-closed. */
  private isCutOff = false;

  constructor(socket: Socket, owner: SessionOwner) {
    this.socket = socket;
    this.owner = owner;
    this.since = owner.now();
    this.clientAt = this.since;
    socket.on('data', (bytes: Buffer) => this.fromClient(bytes));
    socket.on('end', () => this.clientEnded());
    socket.on('drain', () => this.stream?.resume());
    socket.on('error', () => this.leave());
    socket.on('close', () => this.leave());
  }

  /** Waits for a pod. */
  get isHeld(): boolean {
    return this.phase === 'held';
  }

  /** Hands the client to the stream that `open` gives. Only when `isHeld`. */
  carry(open: (events: StreamEvents) => Stream): void {
    this.phase = 'opening';
    this.stream = open(this);
  }

  /** Ends the client's connection with a reset, so that it does not take what it has for a whole reply. null: no fault. */
  reset(reason: string | null): void {
    if (this.phase === 'over') return;
    this.stream?.leave();
    this.socket.resetAndDestroy();
    this.finish(reason);
  }

  /** The client has closed, and only what it had sent is left to be carried. */
  get isGone(): boolean {
    return this.goneAt !== null;
  }

  /** Once a second: looks after clients that may have gone without a sign. */
  tick(now: number): void {
    const isOpen = this.phase === 'open';
    if (this.goneAt !== null && now - this.goneAt >= TETHER.goneMs) this.leave();
    else if (this.isEnded) this.clientEnded();
    else if (this.socket.isPaused() && (!isOpen || now - this.clientAt >= TETHER.halfClosedMs)) {
      // What it has sent and nobody takes holds up the sign that it has gone.
      if (this.owner.peers.isGone(this.socket)) this.leave();
    }
    if (this.isEnded && isOpen) this.quiet(now);
  }

  opened(): void {
    this.phase = 'open';
    let more = true;
    for (const bytes of this.held ?? []) more = this.stream?.write(bytes) ?? true;
    if (this.goneAt !== null) this.leave();
    else if (more) this.socket.resume();
  }

  data(bytes: Buffer): void {
    this.held = null;
    this.podAt = this.owner.now();
    this.owner.moved(0, bytes.length);
    if (!this.isCorked) {
      this.isCorked = true;
      // What comes in one turn of the loop goes out in one call.
      this.socket.cork();
      setImmediate(() => {
        this.isCorked = false;
        this.socket.uncork();
      });
    }
    this.socket.write(bytes);
    if (this.socket.writableLength > TETHER.bufferBytes) this.stream?.pause();
  }

  drained(): void {
    this.socket.resume();
  }

  ended(): void {
    this.stream = null;
    if (this.isCutOff) {
      // Nobody knows whether that was the whole reply.
      this.reset(`the pod was silent for ${TETHER.halfClosedMs / 1000} s after its client had half-closed`);
      return;
    }
    this.phase = 'closing';
    // What the client still sends has nowhere to go.
    this.socket.resume();
    this.socket.end(() => {
      const late = setTimeout(() => this.socket.destroy(), TETHER.lingerMs);
      this.socket.once('close', () => clearTimeout(late));
    });
  }

  failed(setback: Setback): void {
    const isEmpty = this.phase === 'opening';
    const isUnseen = UNSEEN.has(setback.code) || (isEmpty && UNSEEN_IF_EMPTY.has(setback.code));
    this.stream = null;
    if (!isUnseen || this.held === null) {
      this.reset(setback.text);
      return;
    }
    this.phase = 'held';
    this.failingSince ??= this.owner.now();
    this.owner.failed(this, setback);
  }

  private fromClient(bytes: Buffer): void {
    this.clientAt = this.owner.now();
    if (this.phase === 'closing') return;
    this.owner.moved(bytes.length, 0);
    const isOpen = this.phase === 'open';
    if (this.held) {
      this.heldBytes += bytes.length;
      if (isOpen && this.heldBytes > TETHER.heldBytes) this.held = null;
      else this.held.push(bytes);
    }
    if (isOpen) {
      if (!this.stream?.write(bytes)) this.socket.pause();
    } else if (this.heldBytes >= TETHER.heldBytes) this.socket.pause();
  }

  /**
   * A FIN: the client may still read. If it has gone for good, what it has sent is still carried where a pod is at hand, but
   * nothing is woken for it.
   */
  private clientEnded(): void {
    this.isEnded = true;
    if (this.phase === 'closing' || this.goneAt !== null) return;
    if (!this.owner.peers.isGone(this.socket)) return;
    if (this.phase === 'open' || this.heldBytes === 0) this.leave();
    else this.goneAt = this.owner.now();
  }

  /**
   * The client has half-closed. Nodes close the pod's side about a second after they hear of it, whatever the pod still has
   * to say, so they hear of it when the pod has long been silent.
   */
  private quiet(now: number): void {
    // A pod that its client holds back is not silent.
    if (this.socket.writableLength > 0) this.podAt = now;
    if (now - Math.max(this.podAt, this.clientAt) <= TETHER.halfClosedMs) return;
    this.isCutOff = true;
    this.stream?.end();
  }

  private leave(): void {
    if (this.phase === 'over') return;
    this.stream?.leave();
    this.socket.destroy();
    this.finish(null);
  }

  private finish(reason: string | null): void {
    this.phase = 'over';
    this.stream = null;
    this.held = null;
    this.owner.over(this, reason);
  }
}
