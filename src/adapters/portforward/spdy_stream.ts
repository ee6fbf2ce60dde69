// One stream of a SPDY connection: a SPDY stream for data, and another on which the node reports errors.
import type { Clock } from '../../runtime/actor.ts';
import { afterRunning } from '../../runtime/clock.ts';
import { TETHER } from '../../settings/cloud_limits.ts';
import { type ForwardError, type ForwardStream, type ForwardStreamEvents, podError } from './transport.ts';

const MAX_ERROR_BYTES = 4 * 1024;
const NO_ANSWER: ForwardError = { code: 'lost', text: 'the node does not answer' };
const NOT_CLOSED: ForwardError = { code: 'lost', text: 'a stream was not closed' };
const REFUSED: ForwardError = { code: 'broken', text: 'the node refused the stream' };

/** What a stream needs from its connection. */
export interface StreamConnection {
  readonly clock: Clock;
  /** False: wait for `drained` before writing more. */
  write(stream: SpdyStream, bytes: Buffer): boolean;
  /** Tells the node that nothing more will be written on the stream. */
  sendFin(stream: SpdyStream): void;
  pause(stream: SpdyStream): void;
  resume(stream: SpdyStream): void;
  /** The user has gone. The node knows the stream, and may still be closing it. */
  onStreamDestroyed(stream: SpdyStream): void;
  /** The node has closed the stream. `failed`: with an error, after which the connection is not reused. */
  onStreamClosed(stream: SpdyStream, failed: boolean): void;
  /** The node has not closed the stream in time. Returns whether it gets the same time again. */
  mayLinger(stream: SpdyStream): boolean;
  /** The connection accepts no more streams, and is closed unless another stream continues. */
  abandon(stream: SpdyStream, error: ForwardError): void;
}

type StreamState =
  /** The stream has been requested, and the user waits for the node's reply. */
  | { phase: 'opening'; user: ForwardStreamEvents }
  /**
   * The node has not replied, but the user may already write, because the connection is known to be alive.
   */
  | { phase: 'assumed'; user: ForwardStreamEvents }
  | { phase: 'open'; user: ForwardStreamEvents }
  /**
   * The pod has closed, and an error may still follow. `fallback` is the result if none does; null means
   * success.
   */
  | { phase: 'ending'; user: ForwardStreamEvents; fallback: ForwardError | null }
  /** The user left before the node's reply. */
  | { phase: 'orphaned' }
  /** The user has left, and the node has yet to close the stream. */
  | { phase: 'lingering' }
  /** Like `ending`, without a user. */
  | { phase: 'closing'; fallback: ForwardError | null }
  | { phase: 'closed' };

/** What each event does in a phase with state `S`. */
interface StreamRow<S> {
  /** Time in ms until `timeout`; `running` keeps the timer of the previous phase. */
  readonly timeoutMs: number | 'running' | null;
  /** Lets the user write before the node's reply. */
  assume(stream: SpdyStream, state: S): void;
  /** The node knows the data stream. */
  reply(stream: SpdyStream, state: S): void;
  /** Bytes from the pod. Returns false if nobody takes them. */
  data(stream: SpdyStream, state: S, bytes: Buffer): boolean;
  /** The connection accepts bytes again. */
  drained(stream: SpdyStream, state: S): void;
  /** The pod has closed, but the node has not closed the error stream. */
  dataEnded(stream: SpdyStream, state: S): void;
  /** The node will send nothing more on either stream. */
  nodeClosed(stream: SpdyStream, state: S): void;
  destroy(stream: SpdyStream, state: S): void;
  timeout(stream: SpdyStream, state: S): void;
  /** The connection has ended. */
  lost(stream: SpdyStream, state: S, error: ForwardError): void;
}

const ignore = (): void => undefined;

/** One of the streams that a connection carries one after another. */
export class SpdyStream implements ForwardStream {
  /** The events of phases without a user. */
  private static readonly UNUSED = {
    assume: ignore,
    reply: ignore,
    data: () => false,
    drained: ignore,
    destroy: ignore,
    lost: (stream: SpdyStream) => stream.become({ phase: 'closed' }),
  };

  /** The events of phases in which the user gets all events. */
  private static readonly USED = {
    assume: ignore,
    reply: ignore,
    data(_: SpdyStream, { user }: { user: ForwardStreamEvents }, bytes: Buffer): boolean {
      user.onData(bytes);
      return true;
    },
    drained: (_: SpdyStream, { user }: { user: ForwardStreamEvents }) => user.onDrained(),
    lost(stream: SpdyStream, { user }: { user: ForwardStreamEvents }, error: ForwardError): void {
      stream.become({ phase: 'closed' });
      user.onFailed(error);
    },
  };

  /** The events of phases in which the node has not replied. */
  private static readonly UNREPLIED = {
    nodeClosed: (stream: SpdyStream) => stream.close(REFUSED),
    timeout: (stream: SpdyStream) => stream.connection.abandon(stream, NO_ANSWER),
  };

  private static readonly PHASES: {
    readonly [P in StreamState['phase']]: StreamRow<StreamState & { phase: P }>;
  } = {
    opening: {
      ...SpdyStream.USED,
      ...SpdyStream.UNREPLIED,
      timeoutMs: TETHER.streamOpenTimeoutMs,
      assume: (stream, { user }) => stream.open('assumed', user),
      reply: (stream, { user }) => stream.open('open', user),
      data(stream, { user }, bytes) {
        stream.open('assumed', user);
        return stream.row.data(stream, stream.state, bytes);
      },
      drained: ignore,
      dataEnded: (stream, { user }) => stream.become({ phase: 'ending', user, fallback: REFUSED }),
      destroy: (stream) => stream.orphan(),
    },
    assumed: {
      ...SpdyStream.USED,
      ...SpdyStream.UNREPLIED,
      timeoutMs: 'running',
      reply: (stream, { user }) => stream.become({ phase: 'open', user }),
      dataEnded: (stream, { user }) => stream.become({ phase: 'ending', user, fallback: REFUSED }),
      destroy: (stream) => stream.orphan(),
    },
    open: {
      ...SpdyStream.USED,
      timeoutMs: null,
      dataEnded: (stream, { user }) => stream.become({ phase: 'ending', user, fallback: null }),
      nodeClosed: (stream) => stream.close(null),
      destroy: (stream) => stream.linger(),
      timeout: ignore,
    },
    ending: {
      ...SpdyStream.USED,
      timeoutMs: TETHER.errorStreamTimeoutMs,
      reply(_, state) {
        state.fallback = null;
      },
      data: () => false,
      dataEnded: ignore,
      nodeClosed: (stream, { fallback }) => stream.close(fallback),
      destroy(stream, { fallback }) {
        if (fallback === null) stream.linger();
        else {
          stream.become({ phase: 'closing', fallback });
          stream.end();
        }
      },
      timeout: (stream, { fallback }) => stream.close(fallback),
      lost(stream, { user }) {
        stream.become({ phase: 'closed' });
        user.onEnded();
      },
    },
    orphaned: {
      ...SpdyStream.UNUSED,
      ...SpdyStream.UNREPLIED,
      timeoutMs: 'running',
      reply: (stream) => stream.linger(),
      dataEnded: (stream) => stream.become({ phase: 'closing', fallback: REFUSED }),
    },
    lingering: {
      ...SpdyStream.UNUSED,
      timeoutMs: TETHER.streamCloseTimeoutMs,
      dataEnded: (stream) => stream.become({ phase: 'closing', fallback: null }),
      nodeClosed: (stream) => stream.close(null),
      timeout(stream) {
        if (stream.connection.mayLinger(stream)) stream.become({ phase: 'lingering' });
        else stream.connection.abandon(stream, NOT_CLOSED);
      },
    },
    closing: {
      ...SpdyStream.UNUSED,
      timeoutMs: TETHER.errorStreamTimeoutMs,
      reply(_, state) {
        state.fallback = null;
      },
      dataEnded: ignore,
      nodeClosed: (stream, { fallback }) => stream.close(fallback),
      timeout: (stream, { fallback }) => stream.close(fallback),
    },
    closed: { ...SpdyStream.UNUSED, timeoutMs: null, dataEnded: ignore, nodeClosed: ignore, timeout: ignore },
  };

  readonly dataId: number;
  readonly errorId: number;
  private readonly connection: StreamConnection;
  private state: StreamState;
  private cancelTimeout = ignore;
  /** The direction to the pod: nothing may be written after the FIN. */
  private isFinSent = false;
  /** The direction from the pod, and what has arrived from it. */
  private received: { streams: 'open' | 'dataEnded' | 'errorEnded'; hasData: boolean; errorText: string } = {
    streams: 'open',
    hasData: false,
    errorText: '',
  };

  constructor(connection: StreamConnection, errorId: number, dataId: number, user: ForwardStreamEvents) {
    this.connection = connection;
    this.errorId = errorId;
    this.dataId = dataId;
    this.state = { phase: 'opening', user };
    this.become(this.state);
  }

  write(bytes: Buffer): boolean {
    return this.isFinSent || this.connection.write(this, bytes);
  }

  end(): void {
    if (this.isFinSent) return;
    this.isFinSent = true;
    this.connection.sendFin(this);
  }

  pause(): void {
    this.connection.pause(this);
  }

  resume(): void {
    this.connection.resume(this);
  }

  destroy(): void {
    this.row.destroy(this, this.state);
  }

  /** The connection accepts bytes again. */
  onDrained(): void {
    this.row.drained(this, this.state);
  }

  /** Lets the user write before the node has replied. */
  assumeOpen(): void {
    this.row.assume(this, this.state);
  }

  onReply(id: number): void {
    if (id === this.dataId) this.row.reply(this, this.state);
  }

  /** Returns false if nobody takes the bytes. */
  onData(id: number, bytes: Buffer): boolean {
    const { received } = this;
    if (id === this.errorId) {
      if (received.errorText.length < MAX_ERROR_BYTES) received.errorText += bytes.toString();
      return true;
    }
    received.hasData = true;
    return this.row.data(this, this.state, bytes);
  }

  /**
   * A FIN or a reset. The text on the error stream may come after the end of the data, so both ends are
   * awaited.
   */
  onFin(id: number): void {
    const { received } = this;
    const isError = id === this.errorId;
    const isOtherEnded = received.streams === (isError ? 'dataEnded' : 'errorEnded');
    if (isOtherEnded || (isError && received.errorText !== '')) this.row.nodeClosed(this, this.state);
    else if (received.streams === 'open') {
      received.streams = isError ? 'errorEnded' : 'dataEnded';
      if (!isError) this.row.dataEnded(this, this.state);
    }
  }

  onConnectionLost(error: ForwardError): void {
    this.row.lost(this, this.state, error);
  }

  private get row(): StreamRow<StreamState> {
    return SpdyStream.PHASES[this.state.phase];
  }

  private become(state: StreamState): void {
    this.state = state;
    const { timeoutMs } = this.row;
    if (timeoutMs === 'running') return;
    this.cancelTimeout();
    this.cancelTimeout =
      timeoutMs === null
        ? ignore
        : afterRunning(this.connection.clock, timeoutMs, () => this.row.timeout(this, this.state));
  }

  private open(phase: 'assumed' | 'open', user: ForwardStreamEvents): void {
    this.become({ phase, user });
    user.onOpened(this);
  }

  private orphan(): void {
    this.become({ phase: 'orphaned' });
    // The connection is not drained before the node has replied, and is abandoned if no reply comes.
    this.end();
  }

  private linger(): void {
    this.become({ phase: 'lingering' });
    this.end();
    this.connection.onStreamDestroyed(this);
  }

  /** Closes the stream with the error reported by the node, or else with `fallback`; null means success. */
  private close(fallback: ForwardError | null): void {
    const user = 'user' in this.state ? this.state.user : null;
    const { errorText, hasData } = this.received;
    const error = errorText === '' ? fallback : podError(errorText, hasData);
    this.become({ phase: 'closed' });
    this.end();
    this.connection.onStreamClosed(this, error !== null);
    if (error) user?.onFailed(error);
    else user?.onEnded();
  }
}
