// One SPDY/3.1 connection to a pod, through the API server, as kubectl uses it.
//
// The reference implementation has no flow control per stream: a reader that stops blocks the whole
// connection, and bytes that the pod does not take block those behind them. So a connection carries one
// stream at a time, and is reused for the next. Besides, there may be streams whose client has disconnected
// and which the node is still closing; their data is dropped. A connection is reused only once it is drained:
// the stream's worker answers a ping, which it does only when nothing is stuck before it.
import type { Duplex } from 'node:stream';
import type { Clock } from '../../runtime/actor.ts';
import { afterRunning } from '../../runtime/clock.ts';
import { TETHER } from '../../settings/cloud_limits.ts';
import { Silence } from '../silence.ts';
import { DataFrames } from './data_frames.ts';
import { DrainCheck, NODE_WORKERS } from './drain_check.ts';
import { LingerCheck } from './linger_check.ts';
import { dataFrameHeader, FrameReader, pingFrame, synStreamFrame } from './spdy_frames.ts';
import { SpdyStream, type StreamConnection } from './spdy_stream.ts';
import { StreamIds } from './stream_ids.ts';
import {
  DEAD_PEER,
  errorLine,
  FORWARD_CLOSED,
  type ForwardError,
  type ForwardStream,
  type ForwardStreamEvents,
} from './transport.ts';

const lost = (text: string): ForwardError => ({ code: 'lost', text });

export interface SpdyConnectionEvents {
  /** `isFree` may have become true. */
  onFree(): void;
  /**
   * Whether the connection may be kept for a pod that is slow to take the data of a client that has
   * disconnected.
   */
  mayLinger(): boolean;
  onClosed(): void;
}

/** Times are in monotonic milliseconds. */
type ConnectionState =
  /** No stream, and drained. */
  | { phase: 'idle'; since: number }
  | { phase: 'busy'; stream: SpdyStream }
  /** No stream; the node has yet to prove that nothing is stuck. */
  | { phase: 'draining'; since: number; cancelTimeout: () => void }
  /** Accepts no more streams. The last one and those of disconnected clients continue. */
  | { phase: 'retiring'; stream: SpdyStream | null }
  | { phase: 'closed' };

/** What each event does in a phase with state `S`. */
interface ConnectionRow<S> {
  /** The stream no longer needs the connection. */
  release(connection: SpdyConnection, state: S): void;
  /** The node has taken everything written, and no stream is open. */
  drained(connection: SpdyConnection, state: S): void;
  /** The connection accepts no more streams. */
  noMoreStreams(connection: SpdyConnection, state: S): void;
}

const ignore = (): void => undefined;

/**
 * One SPDY connection to a pod, which carries one stream after another. `PodConnections` owns it and receives
 * its events.
 */
export class SpdyConnection implements StreamConnection {
  private static readonly PHASES: {
    readonly [P in ConnectionState['phase']]: ConnectionRow<ConnectionState & { phase: P }>;
  } = {
    idle: {
      release: ignore,
      drained: (connection) => connection.events.onFree(),
      noMoreStreams(connection) {
        connection.state = { phase: 'retiring', stream: null };
      },
    },
    busy: {
      release: (connection) => connection.releaseStream(),
      drained: ignore,
      noMoreStreams(connection, { stream }) {
        connection.state = { phase: 'retiring', stream };
      },
    },
    draining: {
      release: ignore,
      drained(connection, { since, cancelTimeout }) {
        cancelTimeout();
        connection.state = { phase: 'idle', since };
        connection.events.onFree();
      },
      noMoreStreams(connection, { cancelTimeout }) {
        cancelTimeout();
        connection.state = { phase: 'retiring', stream: null };
      },
    },
    retiring: {
      release(connection, state) {
        state.stream = null;
        connection.beginDrain();
      },
      drained: ignore,
      noMoreStreams: ignore,
    },
    closed: { release: ignore, drained: ignore, noMoreStreams: ignore },
  };

  readonly clock: Clock;
  private readonly socket: Duplex;
  private readonly events: SpdyConnectionEvents;
  private readonly reader: FrameReader;
  private readonly drainCheck = new DrainCheck((pings) => this.ask(pings));
  private readonly frames: DataFrames;
  /** The active stream waits for room. */
  private isRefused = false;
  private readonly lingerCheck = new LingerCheck();
  private readonly ids = new StreamIds();
  /** Streams that the node has not closed, by both of their ids. */
  private readonly streams = new Map<number, SpdyStream>();
  private state: ConnectionState;
  private lastReceivedAt: number;
  private readonly silence: Silence;
  /** Bytes dropped since the connection was last drained. */
  private discardedBytes = 0;

  /** `socket` has been upgraded: it carries SPDY, either directly or inside a WebSocket. */
  constructor(socket: Duplex, clock: Clock, events: SpdyConnectionEvents) {
    this.socket = socket;
    this.clock = clock;
    this.events = events;
    this.frames = new DataFrames(socket, this.drainCheck, () => this.onRoom());
    this.lastReceivedAt = clock.monotonic();
    this.silence = new Silence(clock);
    this.state = { phase: 'idle', since: this.lastReceivedAt };
    this.reader = new FrameReader({
      onData: (id, bytes) => {
        if (!this.streams.get(id)?.onData(id, bytes)) this.discard(bytes.length);
      },
      onFin: (id) => this.streams.get(id)?.onFin(id),
      onReply: (id) => this.streams.get(id)?.onReply(id),
      onReset: (id) => this.streams.get(id)?.onFin(id),
      onPing: (id) => this.onPing(id),
      onGoAway: () => this.row.noMoreStreams(this, this.state),
    });
    socket.on('data', (chunk: Buffer) => this.onBytes(chunk));
    socket.on('drain', () => this.onRoom());
    socket.on('error', (error) => this.close(lost(errorLine(error.message))));
    socket.on('close', () => this.close(lost('the API server closed the connection')));
  }

  /** Whether `open` may be called. */
  get isFree(): boolean {
    return this.state.phase === 'idle' && this.drainCheck.pendingRounds === 0;
  }

  /** Whether it is kept only for data that a slow pod has yet to take. */
  get isLingering(): boolean {
    return this.lingerCheck.isLingering;
  }

  /** Opens a stream to `port` of the pod. Only when `isFree`; no event occurs before this has returned. */
  open(port: number, events: ForwardStreamEvents): ForwardStream {
    // The worker that gets the data is the one that will be pinged afterwards.
    const { errorId, dataId } = this.ids.take(this.drainCheck.nextWorker);
    const stream = new SpdyStream(this, errorId, dataId, events);
    this.streams.set(errorId, stream).set(dataId, stream);
    this.state = this.ids.isExhausted ? { phase: 'retiring', stream } : { phase: 'busy', stream };
    this.drainCheck.onStreamOpened();
    const headers = (type: string) =>
      [
        ['streamtype', type],
        ['port', String(port)],
        ['requestid', String(errorId)],
      ] as const;
    this.socket.cork();
    // Nothing is ever written on the error stream: it is opened with this side closed.
    this.socket.write(synStreamFrame(errorId, headers('error'), true, errorId === 1));
    this.socket.write(synStreamFrame(dataId, headers('data'), false, false));
    // If the node was heard recently, the client's first bytes go out with the request. Otherwise the
    // connection may be dead, so nothing is written before the reply, and the client can still be moved to
    // another connection.
    const isAlive = this.clock.monotonic() - this.lastReceivedAt < TETHER.assumedAliveMs;
    process.nextTick(() => {
      if (isAlive) stream.assumeOpen();
      this.socket.uncork();
    });
    return stream;
  }

  /** Retires a connection that has been idle for longer than `maxIdleMs`, and pings one that is silent. */
  checkUp(maxIdleMs: number): void {
    const { state } = this;
    const isIdle = 'since' in state && this.clock.monotonic() - state.since > maxIdleMs;
    if (isIdle || (state.phase === 'retiring' && !state.stream)) this.retire(FORWARD_CLOSED);
    else this.probe();
  }

  /**
   * Accepts no more streams, and closes when none is left: a disconnected client may still have bytes on
   * their way.
   */
  retire(error: ForwardError): void {
    this.row.noMoreStreams(this, this.state);
    if (this.streams.size === 0) this.close(error);
  }

  close(error: ForwardError): void {
    const { state } = this;
    if (state.phase === 'closed') return;
    if (state.phase === 'draining') state.cancelTimeout();
    this.state = { phase: 'closed' };
    this.socket.destroy();
    const streams = new Set(this.streams.values());
    this.streams.clear();
    this.events.onClosed();
    for (const stream of streams) stream.onConnectionLost(error);
  }

  write({ dataId }: SpdyStream, bytes: Buffer): boolean {
    this.frames.write(dataId, bytes);
    this.isRefused = !this.frames.hasRoom;
    return !this.isRefused;
  }

  sendFin({ dataId }: SpdyStream): void {
    this.frames.flush();
    // The next stream may be opened in this turn of the loop, and then goes out together with this.
    this.socket.cork();
    this.socket.write(dataFrameHeader(dataId, 0, true));
    setImmediate(() => this.socket.uncork());
  }

  pause(stream: SpdyStream): void {
    if (stream === this.activeStream) this.socket.pause();
  }

  resume(stream: SpdyStream): void {
    if (stream !== this.activeStream) return;
    // Answers that came meanwhile have yet to be read.
    this.silence.onAsked();
    this.socket.resume();
  }

  onStreamDestroyed(stream: SpdyStream): void {
    if (stream === this.activeStream) this.row.release(this, this.state);
  }

  onStreamClosed(stream: SpdyStream, failed: boolean): void {
    this.removeStream(stream);
    // Bytes that the pod never took may be stuck in the node, and only closing the connection frees them.
    if (failed) this.abandon(stream, lost('a stream of the connection failed'));
    else if (this.state.phase === 'retiring') this.retire(lost('the connection has served its time'));
    if (stream === this.activeStream) this.row.release(this, this.state);
  }

  mayLinger(stream: SpdyStream): boolean {
    // If the connection is drained, the pod has everything, so it is the node that does not close.
    if (stream === this.activeStream || this.drainCheck.isDrained) return false;
    const { writableLength } = this.socket;
    return this.lingerCheck.check(this.clock.running(), writableLength, this.silence.heardAt, () =>
      this.events.mayLinger(),
    );
  }

  abandon(stream: SpdyStream, error: ForwardError): void {
    if (stream === this.activeStream) {
      this.close(error);
      return;
    }
    this.removeStream(stream);
    this.retire(error);
  }

  private get row(): ConnectionRow<ConnectionState> {
    return SpdyConnection.PHASES[this.state.phase];
  }

  /** The stream whose user is still there; null if none. */
  private get activeStream(): SpdyStream | null {
    return 'stream' in this.state ? this.state.stream : null;
  }

  private removeStream({ dataId, errorId }: SpdyStream): void {
    this.streams.delete(dataId);
    this.streams.delete(errorId);
  }

  private onBytes(chunk: Buffer): void {
    if (this.state.phase === 'closed') return;
    this.lastReceivedAt = this.clock.monotonic();
    this.silence.onHeard();
    const violation = this.reader.push(chunk);
    if (violation) this.close({ code: 'hostile', text: `the server broke the protocol: ${violation}` });
  }

  /** Drops bytes for a client that has disconnected. */
  private discard(bytes: number): void {
    this.discardedBytes += bytes;
    if (this.discardedBytes < TETHER.maxDiscardedBytes) return;
    // Not worth reading to the end, but a stream with a user may be open beside it.
    const error = lost('too much came for a client that had gone');
    if (this.activeStream) this.retire(error);
    else this.close(error);
  }

  /** Sends pings, whose answers are due some time after they have left. */
  private ask(pings: Buffer): void {
    this.silence.onAsked();
    this.socket.write(pings, () => this.silence.onAsked());
  }

  /** The active stream may write more, if there is room now. */
  private onRoom(): void {
    if (!this.isRefused || !this.frames.hasRoom) return;
    this.isRefused = false;
    this.activeStream?.onDrained();
  }

  /** Whether an answer must come that nothing can block. */
  private get isAwaited(): boolean {
    const { drainCheck, streams } = this;
    return drainCheck.mustAnswer || (drainCheck.pendingRounds > 0 && streams.size === 0);
  }

  /**
   * Pings if the node has been silent for a while. Closes the connection if there is no answer and nothing
   * could have blocked one.
   */
  private probe(): void {
    const { drainCheck, silence, socket } = this;
    if (socket.isPaused()) return;
    if (this.isAwaited) {
      const isDead = (): boolean => {
        const leastMs = socket.writableLength > 0 ? TETHER.unsentDeadPeerMs : TETHER.deadPeerMs;
        const limitMs = leastMs + drainCheck.awaitedBytes / TETHER.slowUplinkBytesPerMs;
        return (
          this.isAwaited && silence.ms >= limitMs && silence.unansweredMs >= limitMs - TETHER.pingIntervalMs
        );
      };
      silence.judge(isDead, () => this.close(DEAD_PEER));
      return;
    }
    // A ping to a worker that the pod blocks stays in the node's queue, so these pings become ever rarer.
    // Without a user they are not needed.
    const intervalMs = TETHER.pingIntervalMs * 2 ** drainCheck.pendingRounds;
    const isUseful = drainCheck.pendingRounds === 0 || this.activeStream !== null;
    if (isUseful && silence.ms >= intervalMs) drainCheck.sendPings(NODE_WORKERS);
  }

  private releaseStream(): void {
    const since = this.clock.monotonic();
    if (this.beginDrain()) {
      this.state = { phase: 'idle', since };
      this.events.onFree();
      return;
    }
    // A slow pod still gets what it was sent, but nothing else waits for that.
    const cancelTimeout = afterRunning(this.clock, TETHER.drainCheckTimeoutMs, () =>
      this.retire(lost('the connection was stuck')),
    );
    this.state = { phase: 'draining', since, cancelTimeout };
  }

  /** Makes the node prove that it has taken everything. Returns true if it already has. */
  private beginDrain(): boolean {
    this.frames.flush();
    this.lingerCheck.begin(this.clock.running(), this.socket.writableLength);
    this.socket.resume();
    if (this.drainCheck.isDrained && this.drainCheck.pendingRounds === 0) return true;
    this.drainCheck.sendPings(1);
    return false;
  }

  private onPing(id: number): void {
    if (id % 2 === 0) {
      // A ping of the server's. It is echoed, unless the connection takes nothing, because then it would only
      // fill the buffer.
      if (!this.socket.writableNeedDrain) this.socket.write(pingFrame(id));
      return;
    }
    const { drainCheck, activeStream } = this;
    const isLast = drainCheck.onPong(id);
    if (activeStream) {
      this.frames.send();
      this.onRoom();
      return;
    }
    if (!isLast) return;
    if (!drainCheck.isDrained) {
      drainCheck.sendPings(1);
      return;
    }
    this.discardedBytes = 0;
    this.row.drained(this, this.state);
  }
}
