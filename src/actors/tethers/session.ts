// One client of a tether. What it sends is held until a pod takes it. Then both directions are carried, each
// at the pace of its receiver.
import type {
  Destroyable,
  ForwardError,
  ForwardErrorCode,
  ForwardStream,
  ForwardStreamEvents,
} from '../../adapters/portforward/transport.ts';
import type { Clock } from '../../runtime/actor.ts';
import { TETHER } from '../../settings/cloud_limits.ts';
import { type HeldConnections, Replay } from './held_connections.ts';
import type { SessionClient, SessionClientEvents } from './session_client.ts';

/** What the sessions of one tether report to. */
export interface SessionOwner {
  readonly clock: Clock;
  readonly held: HeldConnections;
  /**
   * A connection whose client has half-closed is ended after this many ms of silence from the pod; null: the
   * path to the pod carries half-closes, which handles that.
   */
  readonly halfClosedTimeoutMs: number | null;
  /** Bytes from the client, and to it. */
  onBytes(fromClient: number, toClient: number): void;
  /** A pod could not be reached, and nothing was lost: `forward` may be called again. */
  onForwardFailed(session: Session, error: ForwardError): void;
  /** The pod has answered for the first time, or has closed cleanly. */
  onAnswered(session: Session): void;
  /** The session has ended. `reason`: why the client was reset; null if not because of an error. */
  onClosed(session: Session, reason: string | null): void;
}

/** Errors after which the pod has certainly seen nothing of the connection. */
const RETRYABLE: ReadonlySet<ForwardErrorCode> = new Set(['absent', 'refused']);
/** Errors after which the pod has seen nothing, provided that nothing had been written. */
const RETRYABLE_IF_NOTHING_SENT: ReadonlySet<ForwardErrorCode> = new Set(['unreachable', 'lost']);

type SessionState =
  /** No pod has been available since then. */
  | { phase: 'waiting'; replay: Replay; since: number }
  | { phase: 'connecting'; replay: Replay; request: Destroyable }
  /** `replay` is null once the pod has answered, or when there is too much to send again. */
  | { phase: 'open'; stream: ForwardStream; replay: Replay | null; isEndSent: boolean }
  /** The pod has closed; the client gets the remaining bytes. */
  | { phase: 'closing' }
  | { phase: 'closed' };

/** The client's side of the connection. After a FIN it may still read, or be gone for good. */
type ClientState = { side: 'open' | 'halfClosed' } | { side: 'gone'; since: number };

/** What each event does in a phase with state `S`. */
interface SessionRow<S> {
  clientData(session: Session, state: S, bytes: Buffer): void;
  /** The client accepts bytes again. */
  clientDrained(session: Session, state: S): void;
  /** The client has closed for good, and this was not known before. */
  clientGone(session: Session, state: S): void;
  opened(session: Session, state: S, stream: ForwardStream): void;
  podData(session: Session, state: S, bytes: Buffer): void;
  podEnded(session: Session, state: S): void;
  podFailed(session: Session, state: S, error: ForwardError): void;
  /** Closes the pod's side. */
  disconnect(session: Session, state: S): void;
}

const ignore = (): void => undefined;

/**
 * One connection from accept to end. Its owner chooses the pod. The session ends by itself, and then reports
 * it.
 */
export class Session implements ForwardStreamEvents, SessionClientEvents {
  /** The events of phases in which no pod has the connection. */
  private static readonly UNSENT = {
    clientData(session: Session, { replay }: { replay: Replay }, bytes: Buffer): void {
      session.owner.onBytes(bytes.length, 0);
      replay.push(bytes);
      if (replay.isFull) session.client.pause();
    },
    clientDrained: ignore,
    // What it has sent is still carried if a pod is available, but nothing is woken for it.
    clientGone(session: Session, { replay }: { replay: Replay }): void {
      if (replay.isEmpty) session.abandon();
      else session.clientState = { side: 'gone', since: session.owner.clock.monotonic() };
    },
    opened: ignore,
    podData: ignore,
    podEnded: (session: Session) => session.close(),
    podFailed: ignore,
    disconnect: ignore,
  };

  /** The events of phases after the pod has closed. */
  private static readonly OVER: SessionRow<SessionState> = {
    clientData: ignore,
    clientDrained: ignore,
    clientGone: ignore,
    opened: ignore,
    podData: ignore,
    podEnded: ignore,
    podFailed: ignore,
    disconnect: ignore,
  };

  private static readonly PHASES: {
    readonly [P in SessionState['phase']]: SessionRow<SessionState & { phase: P }>;
  } = {
    waiting: Session.UNSENT,
    connecting: {
      ...Session.UNSENT,
      opened: (session, { replay }, stream) => session.open(stream, replay),
      podFailed(session, { replay }, error) {
        const isUnseen = RETRYABLE.has(error.code) || RETRYABLE_IF_NOTHING_SENT.has(error.code);
        session.retryOrReset(isUnseen ? replay : null, error);
      },
      disconnect: (_, { request }) => request.destroy(),
    },
    open: {
      clientData(session, state, bytes) {
        session.owner.onBytes(bytes.length, 0);
        if (state.replay?.hasRoomFor(bytes.length)) state.replay.push(bytes);
        else session.forgetReplay(state);
        if (!state.stream.write(bytes)) session.client.pause();
      },
      clientDrained: (_, { stream }) => stream.resume(),
      clientGone: (session) => session.abandon(),
      opened: ignore,
      podData(session, state, bytes) {
        session.forgetReplay(state);
        session.writeToClient(state.stream, bytes);
      },
      podEnded(session, { isEndSent }) {
        // It is unknown whether that was the whole reply.
        if (isEndSent) session.resetAfterSilence();
        else session.close();
      },
      podFailed(session, { replay, isEndSent }, error) {
        if (isEndSent) session.resetAfterSilence();
        else session.retryOrReset(RETRYABLE.has(error.code) ? replay : null, error);
      },
      disconnect: (_, { stream }) => stream.destroy(),
    },
    closing: Session.OVER,
    closed: Session.OVER,
  };

  /** Monotonic milliseconds, like the other times here. */
  readonly acceptedAt: number;
  private readonly client: SessionClient;
  private readonly owner: SessionOwner;
  private state: SessionState;
  private clientState: ClientState = { side: 'open' };
  private lastClientDataAt: number;
  /** When the pod last sent bytes, or still had some for a client that did not read, in running time. */
  private heardAt: number;
  /** When the client last sent bytes, in running time. */
  private sentAt: number;
  /** When its pod was found gone, in running time. */
  private goneAt: number | null = null;
  private isAnswered = false;
  private cancelLinger = ignore;

  constructor(client: SessionClient, owner: SessionOwner) {
    this.client = client;
    this.owner = owner;
    this.acceptedAt = owner.clock.monotonic();
    this.lastClientDataAt = this.acceptedAt;
    this.heardAt = owner.clock.running();
    this.sentAt = this.heardAt;
    const replay = new Replay(owner.held, TETHER.maxPendingBytes);
    this.state = { phase: 'waiting', replay, since: this.acceptedAt };
    client.listen(this);
    if (owner.held.isFull) client.pause();
  }

  /** Whether the client has closed, so that only what it sent remains to be carried. */
  get isClientGone(): boolean {
    return this.clientState.side === 'gone';
  }

  /**
   * Connects the client to the stream that `open` requests. Only for a new session, or after
   * `onForwardFailed`.
   */
  forward(open: (events: ForwardStreamEvents) => Destroyable): void {
    if (this.state.phase !== 'waiting') return;
    this.become({ phase: 'connecting', replay: this.state.replay, request: open(this) });
  }

  /** Resets the client's connection, so that the client does not mistake a partial reply for the whole. */
  reset(reason: string | null): void {
    if (this.state.phase === 'closed') return;
    this.row.disconnect(this, this.state);
    this.client.reset(reason, this.state.phase === 'waiting' || this.state.phase === 'connecting');
    this.finish(reason);
  }

  /** Called once a second: finds clients that have disappeared without a sign. */
  tick(now: number): void {
    const { clientState, state } = this;
    if (clientState.side === 'gone') {
      const since = state.phase === 'waiting' ? Math.max(clientState.since, state.since) : now;
      if (now - since >= TETHER.clientGoneGraceMs) this.abandon();
    } else if (clientState.side === 'halfClosed') {
      this.onClientEnd();
      if (this.state.phase === 'open') this.checkSilence(this.state);
    } else if (this.client.isPaused) this.checkUnread(now);
  }

  /**
   * Called once a second from when the pod is gone. What it sent before may still be on its way, but the end
   * of a connection is lost with the network of its pod.
   */
  resetIfSilent(): void {
    const { clock } = this.owner;
    this.goneAt ??= clock.running();
    if (this.state.phase === 'open' && this.isSilentFor(TETHER.goneSilenceMs, this.goneAt))
      this.reset('the pod is gone');
  }

  onOpened(stream: ForwardStream): void {
    this.row.opened(this, this.state, stream);
  }

  onData(bytes: Buffer): void {
    this.row.podData(this, this.state, bytes);
  }

  onDrained(): void {
    this.client.resume();
  }

  onEnded(): void {
    this.row.podEnded(this, this.state);
  }

  onFailed(error: ForwardError): void {
    this.row.podFailed(this, this.state, error);
  }

  onClientData(bytes: Buffer): void {
    this.lastClientDataAt = this.owner.clock.monotonic();
    this.sentAt = this.owner.clock.running();
    this.row.clientData(this, this.state, bytes);
  }

  onClientEnd(): void {
    if (this.clientState.side === 'gone') return;
    this.clientState = { side: 'halfClosed' };
    if (this.state.phase === 'closing') return;
    if (this.client.isGone()) this.row.clientGone(this, this.state);
    else if (this.state.phase === 'open') this.passEnd(this.state.stream);
  }

  onClientDrained(): void {
    this.row.clientDrained(this, this.state);
  }

  onClientClosed(): void {
    this.abandon();
  }

  private get row(): SessionRow<SessionState> {
    return Session.PHASES[this.state.phase];
  }

  private become(state: SessionState): void {
    const before = 'replay' in this.state ? this.state.replay : null;
    if (before !== ('replay' in state ? state.replay : null)) before?.clear();
    this.state = state;
  }

  private forgetReplay(state: SessionState & { phase: 'open' }): void {
    state.replay?.clear();
    state.replay = null;
  }

  private open(stream: ForwardStream, replay: Replay): void {
    this.become({ phase: 'open', stream, replay, isEndSent: false });
    // In one piece: a node queues only so many.
    const takesMore = replay.isEmpty || stream.write(Buffer.concat(replay.chunks));
    if (this.isClientGone) this.abandon();
    else {
      if (this.clientState.side === 'halfClosed') this.passEnd(stream);
      if (takesMore) this.client.resume();
    }
  }

  /** Passes on a half-close if the path carries it. Harmless when repeated. */
  private passEnd(stream: ForwardStream): void {
    if (this.owner.halfClosedTimeoutMs === null) stream.end();
  }

  private noteAnswer(): void {
    if (!this.isAnswered) this.owner.onAnswered(this);
    this.isAnswered = true;
  }

  private writeToClient(stream: ForwardStream, bytes: Buffer): void {
    const { client } = this;
    this.noteAnswer();
    this.heardAt = this.owner.clock.running();
    this.owner.onBytes(0, bytes.length);
    client.write(bytes);
    if (client.bufferedBytes > TETHER.maxBufferedBytes) stream.pause();
  }

  /**
   * Waits for another attempt if `replay` has everything the client has sent; otherwise resets the client.
   */
  private retryOrReset(replay: Replay | null, error: ForwardError): void {
    const since = this.owner.clock.monotonic();
    this.become(replay ? { phase: 'waiting', replay, since } : { phase: 'closing' });
    if (replay) this.owner.onForwardFailed(this, error);
    else this.reset(error.text);
  }

  /** Resets a client whose pod closed only because it was told of the half-close. */
  private resetAfterSilence(): void {
    const seconds = (this.owner.halfClosedTimeoutMs ?? 0) / 1000;
    this.reset(`the pod was silent for ${seconds} s after its client had half-closed`);
  }

  /** The pod has closed. The client gets the remaining bytes and some time to close as well. */
  private close(): void {
    this.noteAnswer();
    this.become({ phase: 'closing' });
    // Whatever the client still sends is discarded.
    this.client.resume();
    this.client.end(() => {
      if (this.state.phase !== 'closing') return;
      this.cancelLinger = this.owner.clock.after(TETHER.closeLingerMs, () => this.client.destroy());
    });
  }

  /**
   * The client has half-closed. Nodes close the pod's side about a second after they learn of that, whatever
   * the pod still has to send. So they are told only once the pod has long been silent.
   */
  private checkSilence(state: SessionState & { phase: 'open' }): void {
    const { halfClosedTimeoutMs } = this.owner;
    if (halfClosedTimeoutMs === null || !this.isSilentFor(halfClosedTimeoutMs, this.sentAt)) return;
    state.isEndSent = true;
    state.stream.end();
  }

  /** Whether the pod has sent nothing for `ms`, counted from the running time `since` at the earliest. */
  private isSilentFor(ms: number, since: number): boolean {
    const now = this.owner.clock.running();
    // A pod whose client does not read is not silent.
    if (this.client.bufferedBytes > 0) this.heardAt = now;
    return now - Math.max(this.heardAt, since) > ms;
  }

  /** Unread bytes delay the sign that the client has disconnected. */
  private checkUnread(now: number): void {
    const { state } = this;
    // A pod that is being connected may still take them.
    if (state.phase === 'connecting') return;
    const since = state.phase === 'waiting' ? state.since : 0;
    const graceMs = state.phase === 'waiting' ? TETHER.clientGoneGraceMs : TETHER.unreadClientMs;
    const isStuck = now - Math.max(since, this.lastClientDataAt) >= graceMs;
    if (isStuck && this.client.isGone()) this.abandon();
  }

  private abandon(): void {
    if (this.state.phase === 'closed') return;
    this.row.disconnect(this, this.state);
    this.client.destroy();
    this.finish(null);
  }

  private finish(reason: string | null): void {
    this.cancelLinger();
    this.become({ phase: 'closed' });
    this.owner.onClosed(this, reason);
  }
}
