// Port forwarding where SPDY is not available, not even in a WebSocket: one WebSocket per connection,
// `v4.channel.k8s.io`. It has two channels, for data and for errors; the first message of each begins with
// the port, little endian. There is no half-close.
import { afterRunning } from '../../runtime/clock.ts';
import { TETHER } from '../../settings/cloud_limits.ts';
import { deadlineSignal } from '../deadline_signal.ts';
import { Silence } from '../silence.ts';
import { type WebSocket, webSocketOver } from '../websocket.ts';
import { upgradeError } from './spdy_dialer.ts';
import {
  DEAD_PEER,
  type Destroyable,
  dialError,
  errorLine,
  type ForwardError,
  type ForwardStream,
  type ForwardStreamEvents,
  forwardPath,
  type PodName,
  podError,
} from './transport.ts';
import type { ClusterTransports } from './transports.ts';

/** WebSocket.OPEN. */
const OPEN = 1;
const DATA_CHANNEL = 0;
const ERROR_CHANNEL = 1;
const MAX_ERROR_BYTES = 4 * 1024;
/** Servers send 32 KiB at most. */
const MAX_MESSAGE_BYTES = 1024 * 1024;
const LOST: ForwardError = { code: 'lost', text: 'the API server closed the connection' };
const NO_ANSWER: ForwardError = { code: 'unreachable', text: 'the API server does not answer' };

/** Opens a stream to `port` of the pod on a WebSocket of its own. No event comes before this has returned. */
export function openWebSocketStream(
  cluster: ClusterTransports,
  pod: PodName,
  port: number,
  events: ForwardStreamEvents,
): Destroyable {
  const stream = new WebSocketStream(cluster, port, events);
  void stream.dial(pod);
  return stream;
}

type StreamState =
  | { phase: 'dialing'; user: ForwardStreamEvents; abort: AbortController }
  | { phase: 'upgrading'; user: ForwardStreamEvents; socket: WebSocket }
  | { phase: 'open'; user: ForwardStreamEvents; socket: WebSocket }
  /** This side has closed, or the node has reported an error. The end of the WebSocket follows. */
  | { phase: 'ending'; user: ForwardStreamEvents; socket: WebSocket }
  /** The user has gone, and what it wrote is still being sent. */
  | { phase: 'flushing'; socket: WebSocket }
  | { phase: 'closed' };

/** What each event does in a phase with state `S`. */
interface StreamRow<S> {
  readonly timeoutMs: number | null;
  timeout(stream: WebSocketStream, state: S): void;
  end(stream: WebSocketStream, state: S): void;
  destroy(stream: WebSocketStream, state: S): void;
}

const ignore = (): void => undefined;

class WebSocketStream implements ForwardStream {
  private static readonly PHASES: {
    readonly [P in StreamState['phase']]: StreamRow<StreamState & { phase: P }>;
  } = {
    dialing: { timeoutMs: null, timeout: ignore, end: ignore, destroy: (stream) => stream.release() },
    upgrading: {
      timeoutMs: TETHER.dialTimeoutMs,
      timeout: (stream) => stream.finish(NO_ANSWER),
      end: ignore,
      destroy: (stream) => stream.release(),
    },
    open: {
      timeoutMs: null,
      timeout: ignore,
      end(stream, { user, socket }) {
        socket.close(1000);
        stream.become({ phase: 'ending', user, socket });
      },
      destroy: (stream, { socket }) => stream.flush(socket),
    },
    ending: {
      timeoutMs: TETHER.errorStreamTimeoutMs,
      timeout: (stream) => stream.finish(null),
      end: (_, { socket }) => socket.close(1000),
      destroy: (stream, { socket }) => stream.flush(socket),
    },
    flushing: {
      timeoutMs: TETHER.errorStreamTimeoutMs,
      timeout: (stream) => stream.release(),
      end: ignore,
      destroy: ignore,
    },
    closed: { timeoutMs: null, timeout: ignore, end: ignore, destroy: ignore },
  };

  private readonly cluster: ClusterTransports;
  private readonly port: number;
  private state: StreamState;
  private cancelTimeout = ignore;
  private cancelKeepAlive = ignore;
  /** Bytes of the port still to come, per channel. */
  private readonly missingPortBytes = [2, 2];
  private hasReceivedData = false;
  private errorText = '';
  /** `write` has returned false, and `onDrained` must follow. */
  private isFull = false;
  private readonly silence: Silence;
  private ping: 'none' | 'due' | 'answered' = 'none';
  /** Something has been written since the last ping. */
  private hasWritten = false;
  /** The last pong proved that the pod has taken everything, so silence after it means death. */
  private isProven = false;

  constructor(cluster: ClusterTransports, port: number, user: ForwardStreamEvents) {
    this.cluster = cluster;
    this.port = port;
    this.silence = new Silence(cluster.clock);
    this.state = { phase: 'dialing', user, abort: new AbortController() };
  }

  async dial(pod: PodName): Promise<void> {
    if (this.state.phase !== 'dialing') return;
    const { clock, dialer, spareConnection } = this.cluster;
    const deadline = deadlineSignal(clock, TETHER.dialTimeoutMs, this.state.abort.signal);
    try {
      const headers = { ...dialer.headers(), host: dialer.host };
      const connection = await spareConnection.connect(deadline.signal);
      if (this.state.phase !== 'dialing') {
        connection.destroy();
        return;
      }
      const path = `${forwardPath(dialer, pod)}?ports=${this.port}`;
      const protocol = 'v4.channel.k8s.io';
      const socket = webSocketOver({
        connection,
        path,
        headers,
        protocol,
        maxMessageBytes: MAX_MESSAGE_BYTES,
      });
      this.become({ phase: 'upgrading', user: this.state.user, socket });
      this.listen(socket);
    } catch (error) {
      this.finish(dialError(error));
    } finally {
      deadline.clear();
    }
  }

  private listen(socket: WebSocket): void {
    socket.on('open', () => this.onOpen(socket));
    socket.on('message', (message: Buffer, isBinary) => {
      const violation = isBinary ? this.onMessage(message) : 'a text message';
      if (violation) this.finish({ code: 'hostile', text: `the server broke the protocol: ${violation}` });
    });
    socket.on(
      'unexpected-response',
      (_, response) =>
        void upgradeError(response).then((error) =>
          this.finish({ ...error, text: this.cluster.dialer.redact(error.text) }),
        ),
    );
    socket.on('error', (error) => this.finish({ ...LOST, text: errorLine(error.message) }));
    socket.on('close', (code) => {
      const error = code === 1006 ? LOST : null;
      this.finish(this.errorText === '' ? error : null);
    });
  }

  private onOpen(socket: WebSocket): void {
    if (this.state.phase !== 'upgrading') return;
    const { user } = this.state;
    this.become({ phase: 'open', user, socket });
    this.silence.onHeard();
    socket.on('pong', () => this.onPong());
    this.cancelKeepAlive = this.cluster.clock.every(TETHER.pingIntervalMs, () => this.checkUp(socket));
    user.onOpened(this);
  }

  /**
   * Pings after a period of silence, which also keeps nodes and proxies from closing idle connections. Ends a
   * stream without an answer if nothing could have blocked one.
   */
  private checkUp(socket: WebSocket): void {
    const { silence } = this;
    if (socket.isPaused || socket.bufferedAmount > 0 || silence.ms < TETHER.pingIntervalMs) return;
    if (this.ping !== 'due') {
      this.ping = 'due';
      this.hasWritten = false;
      socket.ping();
      return;
    }
    const isDead = (): boolean => this.isProven && silence.ms >= TETHER.deadPeerMs;
    silence.judge(isDead, () => this.finish(DEAD_PEER));
  }

  private onPong(): void {
    this.silence.onHeard();
    this.ping = 'answered';
    // The node answers in order, so its pod has taken what was written before.
    this.isProven = !this.hasWritten;
  }

  /** Returns the protocol violation in a message; null if there is none. */
  private onMessage(message: Buffer): string | null {
    this.silence.onHeard();
    const channel = message[0];
    if (channel === undefined) return 'an empty message';
    if (channel !== DATA_CHANNEL && channel !== ERROR_CHANNEL) return `channel ${channel}`;
    let at = 1;
    for (; at < message.length && (this.missingPortBytes[channel] ?? 0) > 0; at += 1) {
      const shift = (2 - (this.missingPortBytes[channel] ?? 0)) * 8;
      if (message[at] !== ((this.port >> shift) & 0xff)) return 'another port than the one asked for';
      this.missingPortBytes[channel] = (this.missingPortBytes[channel] ?? 0) - 1;
    }
    if (at === message.length) return null;
    if (channel === DATA_CHANNEL) {
      this.hasReceivedData = true;
      this.user?.onData(message.subarray(at));
      return null;
    }
    if (this.errorText.length < MAX_ERROR_BYTES) this.errorText += message.toString('utf8', at);
    // The end follows the text. If it does not, the text is enough.
    if (this.state.phase === 'open') this.become({ ...this.state, phase: 'ending' });
    return null;
  }

  write(bytes: Buffer): boolean {
    if (!('socket' in this.state)) return true;
    const { socket } = this.state;
    this.hasWritten = true;
    this.isProven = false;
    const message = Buffer.allocUnsafe(bytes.length + 1);
    message[0] = DATA_CHANNEL;
    bytes.copy(message, 1);
    socket.send(message, () => {
      if (!this.isFull || socket.bufferedAmount > TETHER.maxBufferedBytes / 2) return;
      this.isFull = false;
      this.user?.onDrained();
    });
    this.isFull ||= socket.bufferedAmount > TETHER.maxBufferedBytes;
    return !this.isFull;
  }

  end(): void {
    this.row.end(this, this.state);
  }

  pause(): void {
    if ('socket' in this.state) this.state.socket.pause();
  }

  resume(): void {
    if ('socket' in this.state) this.state.socket.resume();
  }

  destroy(): void {
    this.row.destroy(this, this.state);
  }

  private get row(): StreamRow<StreamState> {
    return WebSocketStream.PHASES[this.state.phase];
  }

  private get user(): ForwardStreamEvents | null {
    return 'user' in this.state ? this.state.user : null;
  }

  private become(state: StreamState): void {
    this.state = state;
    this.cancelTimeout();
    const { timeoutMs } = this.row;
    this.cancelTimeout =
      timeoutMs === null
        ? ignore
        : afterRunning(this.cluster.clock, timeoutMs, () => this.row.timeout(this, this.state));
  }

  /** Sends what is buffered, in order, before the close. Whatever arrives meanwhile is dropped. */
  private flush(socket: WebSocket): void {
    if (socket.readyState !== OPEN) {
      this.release();
      return;
    }
    this.become({ phase: 'flushing', socket });
    socket.resume();
    socket.close(1000);
  }

  /** Ends the stream with the error reported by the node, or else with `error`; null means success. */
  private finish(error: ForwardError | null): void {
    const { user } = this;
    const result =
      error === null && this.errorText !== '' ? podError(this.errorText, this.hasReceivedData) : error;
    this.release();
    if (result) user?.onFailed(result);
    else user?.onEnded();
  }

  private release(): void {
    const { state } = this;
    this.become({ phase: 'closed' });
    this.cancelKeepAlive();
    if (state.phase === 'dialing') state.abort.abort();
    else if (state.phase !== 'closed') state.socket.terminate();
  }
}
