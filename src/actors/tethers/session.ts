// One client of a tether: what it sends is held until a pod takes it, then both directions are carried, each only as fast as
// the other end takes it.
import type { Socket } from 'node:net';
import type {
  ForwardError,
  ForwardErrorCode,
  ForwardStream,
  ForwardStreamEvents,
} from '../../adapters/portforward/transport.ts';
import type { LoopbackPeers } from '../../adapters/process/loopback_peers.ts';
import { TETHER } from '../../settings/limits.ts';

/** Who has the sessions of one tether. */
export interface SessionOwner {
  readonly peers: LoopbackPeers;
  /** Monotonic milliseconds. */
  now(): number;
  /** Bytes from the client, and to it. */
  onBytes(fromClient: number, toClient: number): void;
  /** A pod could not be reached, and nothing has been lost: `carry` may be called again. */
  onForwardFailed(session: Session, setback: ForwardError): void;
  /** The session is over; `reason` when the client was reset for it. */
  onClosed(session: Session, reason: string | null): void;
}

/** The pod has certainly seen nothing of the connection. */
const RETRYABLE: ReadonlySet<ForwardErrorCode> = new Set(['absent', 'refused']);
/** It has not if nothing had been written. */
const RETRYABLE_IF_NOTHING_SENT: ReadonlySet<ForwardErrorCode> = new Set(['unreachable', 'lost']);

type SessionPhase = 'held' | 'opening' | 'open' | 'closing' | 'over';

/** One connection from its accept to its end. Its owner says which pod gets it; it ends by itself and then says so. */
export class Session implements ForwardStreamEvents {
  readonly acceptedAt: number;
  /** The uid of the pod that carries it, or was to; for the owner's use. */
  podUid = '';
  /** When the first attempt failed since it last waited for a pod. */
  failingSince: number | null = null;
  private readonly socket: Socket;
  private readonly owner: SessionOwner;
  private phase: SessionPhase = 'held';
  private stream: ForwardStream | null = null;
  /** What the client has sent and the pod has not yet answered; null when it is too much to be sent again. */
  private replayBuffer: Buffer[] | null = [];
  private replayBytes = 0;
  private isHalfClosed = false;
  private clientGoneAt: number | null = null;
  private isCorked = false;
  private lastClientDataAt: number;
  private lastPodDataAt = 0;
  /** The node has been told that the client has half-closed. */
  private isHalfCloseForwarded = false;

  constructor(socket: Socket, owner: SessionOwner) {
    this.socket = socket;
    this.owner = owner;
    this.acceptedAt = owner.now();
    this.lastClientDataAt = this.acceptedAt;
    socket.on('data', (bytes: Buffer) => this.onClientData(bytes));
    socket.on('end', () => this.onClientEnd());
    socket.on('drain', () => this.stream?.resume());
    socket.on('error', () => this.abandon());
    socket.on('close', () => this.abandon());
  }

  /** Waits for a pod. */
  get isPending(): boolean {
    return this.phase === 'held';
  }

  /** Hands the client to the stream that `open` gives. Only when `isHeld`. */
  forward(open: (events: ForwardStreamEvents) => ForwardStream): void {
    this.phase = 'opening';
    this.stream = open(this);
  }

  /** Ends the client's connection with a reset, so that it does not take what it has for a whole reply. null: no fault. */
  reset(reason: string | null): void {
    if (this.phase === 'over') return;
    this.stream?.destroy();
    this.socket.resetAndDestroy();
    this.finish(reason);
  }

  /** The client has closed, and only what it had sent is left to be carried. */
  get isClientGone(): boolean {
    return this.clientGoneAt !== null;
  }

  /** Once a second: looks after clients that may have gone without a sign. */
  tick(now: number): void {
    const isOpen = this.phase === 'open';
    if (this.clientGoneAt !== null && now - this.clientGoneAt >= TETHER.clientGoneGraceMs) this.abandon();
    else if (this.isHalfClosed) this.onClientEnd();
    else if (this.socket.isPaused() && (!isOpen || now - this.lastClientDataAt >= TETHER.halfClosedIdleMs)) {
      // What it has sent and nobody takes holds up the sign that it has gone.
      if (this.owner.peers.isPeerGone(this.socket)) this.abandon();
    }
    if (this.isHalfClosed && isOpen) this.checkSilence(now);
  }

  onOpened(): void {
    this.phase = 'open';
    let more = true;
    for (const bytes of this.replayBuffer ?? []) more = this.stream?.write(bytes) ?? true;
    if (this.clientGoneAt !== null) this.abandon();
    else if (more) this.socket.resume();
  }

  onData(bytes: Buffer): void {
    this.replayBuffer = null;
    this.lastPodDataAt = this.owner.now();
    this.owner.onBytes(0, bytes.length);
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
    if (this.socket.writableLength > TETHER.maxBufferedBytes) this.stream?.pause();
  }

  onDrained(): void {
    this.socket.resume();
  }

  onEnded(): void {
    this.stream = null;
    if (this.isHalfCloseForwarded) {
      // Nobody knows whether that was the whole reply.
      this.reset(
        `the pod was silent for ${TETHER.halfClosedIdleMs / 1000} s after its client had half-closed`,
      );
      return;
    }
    this.phase = 'closing';
    // What the client still sends has nowhere to go.
    this.socket.resume();
    this.socket.end(() => {
      const late = setTimeout(() => this.socket.destroy(), TETHER.closeLingerMs);
      this.socket.once('close', () => clearTimeout(late));
    });
  }

  onFailed(setback: ForwardError): void {
    const isEmpty = this.phase === 'opening';
    const isUnseen = RETRYABLE.has(setback.code) || (isEmpty && RETRYABLE_IF_NOTHING_SENT.has(setback.code));
    this.stream = null;
    if (!isUnseen || this.replayBuffer === null) {
      this.reset(setback.text);
      return;
    }
    this.phase = 'held';
    this.failingSince ??= this.owner.now();
    this.owner.onForwardFailed(this, setback);
  }

  private onClientData(bytes: Buffer): void {
    this.lastClientDataAt = this.owner.now();
    if (this.phase === 'closing') return;
    this.owner.onBytes(bytes.length, 0);
    const isOpen = this.phase === 'open';
    if (this.replayBuffer) {
      this.replayBytes += bytes.length;
      if (isOpen && this.replayBytes > TETHER.maxPendingBytes) this.replayBuffer = null;
      else this.replayBuffer.push(bytes);
    }
    if (isOpen) {
      if (!this.stream?.write(bytes)) this.socket.pause();
    } else if (this.replayBytes >= TETHER.maxPendingBytes) this.socket.pause();
  }

  /**
   * A FIN: the client may still read. If it has gone for good, what it has sent is still carried where a pod is at hand, but
   * nothing is woken for it.
   */
  private onClientEnd(): void {
    this.isHalfClosed = true;
    if (this.phase === 'closing' || this.clientGoneAt !== null) return;
    if (!this.owner.peers.isPeerGone(this.socket)) return;
    if (this.phase === 'open' || this.replayBytes === 0) this.abandon();
    else this.clientGoneAt = this.owner.now();
  }

  /**
   * The client has half-closed. Nodes close the pod's side about a second after they hear of it, whatever the pod still has
   * to say, so they hear of it when the pod has long been silent.
   */
  private checkSilence(now: number): void {
    // A pod that its client holds back is not silent.
    if (this.socket.writableLength > 0) this.lastPodDataAt = now;
    if (now - Math.max(this.lastPodDataAt, this.lastClientDataAt) <= TETHER.halfClosedIdleMs) return;
    this.isHalfCloseForwarded = true;
    this.stream?.end();
  }

  private abandon(): void {
    if (this.phase === 'over') return;
    this.stream?.destroy();
    this.socket.destroy();
    this.finish(null);
  }

  private finish(reason: string | null): void {
    this.phase = 'over';
    this.stream = null;
    this.replayBuffer = null;
    this.owner.onClosed(this, reason);
  }
}
