// The lines to one pod: kept for the next connection, dialled ahead, closed when nobody needs them. Where the cluster offers
// no way to make one, every stream gets a WebSocket of its own.
import { Duplex } from 'node:stream';
import { TETHER } from '../../settings/limits.ts';
import { SpdyConnection } from './spdy_connection.ts';
import type { ForwardError, ForwardStream, ForwardStreamEvents, PodName } from './transport.ts';
import type { ForwardCluster, ForwardTransport } from './transports.ts';
import { openWebSocketStream } from './websocket_stream.ts';

/** A stream that has been asked for; it goes to the first line that is free. */
class PendingStream implements ForwardStream {
  readonly port: number;
  readonly events: ForwardStreamEvents;
  stream: ForwardStream | null = null;
  isDestroyed = false;

  constructor(port: number, events: ForwardStreamEvents) {
    this.port = port;
    this.events = events;
  }

  write(bytes: Buffer): boolean {
    return this.stream?.write(bytes) ?? true;
  }

  end(): void {
    this.stream?.end();
  }

  pause(): void {
    this.stream?.pause();
  }

  resume(): void {
    this.stream?.resume();
  }

  destroy(): void {
    this.isDestroyed = true;
    this.stream?.destroy();
  }
}

/** The lines to one pod, for as long as a tether uses it: a stream gets a line that is free, or a new one is dialled. */
export class PodConnections {
  private readonly cluster: ForwardCluster;
  private readonly pod: PodName;
  private readonly connections = new Set<SpdyConnection>();
  private waiting: PendingStream[] = [];
  private dialCount = 0;
  private isRetired = false;
  private readonly abort = new AbortController();
  private readonly timer: NodeJS.Timeout;

  constructor(cluster: ForwardCluster, pod: PodName) {
    this.cluster = cluster;
    this.pod = pod;
    this.timer = setInterval(() => this.closeIdle(), TETHER.pingIntervalMs);
  }

  /** Whether a stream could be opened without a dial. */
  get hasFreeConnection(): boolean {
    return this.freeConnection() !== undefined;
  }

  /** Whether no line is left and none is being dialled. */
  get isEmpty(): boolean {
    return this.connections.size === 0 && this.dialCount === 0;
  }

  /** Opens a stream to `port`. Nothing is told before this has returned. */
  open(port: number, events: ForwardStreamEvents): ForwardStream {
    const wanted = new PendingStream(port, events);
    this.waiting.push(wanted);
    queueMicrotask(() => {
      this.assignStreams();
      // One more than is needed now: the next connection finds it open.
      const { transport } = this.cluster;
      if (transport && this.dialCount === 0 && !this.freeConnection()) void this.dial(transport);
    });
    return wanted;
  }

  /** Takes no more streams; those that are open go on. */
  retire(): void {
    this.isRetired = true;
    clearInterval(this.timer);
    for (const line of this.connections) line.retire(FORWARD_CLOSED);
    this.failWaiting({ code: 'absent', text: 'the pod is gone' });
  }

  /** Ends everything. */
  close(): void {
    this.retire();
    this.abort.abort();
    for (const line of this.connections) line.close(FORWARD_CLOSED);
  }

  private freeConnection(): SpdyConnection | undefined {
    for (const line of this.connections) if (line.isFree) return line;
    return undefined;
  }

  private assignStreams(): void {
    this.waiting = this.waiting.filter(({ isDestroyed }) => !isDestroyed);
    const { transport } = this.cluster;
    if (!transport) {
      for (const wanted of this.waiting.splice(0)) {
        wanted.stream = openWebSocketStream(
          this.cluster.spareConnection,
          this.pod,
          wanted.port,
          wanted.events,
        );
      }
      return;
    }
    for (const line of this.connections) {
      const wanted = line.isFree ? this.waiting.shift() : undefined;
      if (wanted) wanted.stream = line.open(wanted.port, wanted.events);
    }
    while (this.dialCount < Math.min(this.waiting.length, TETHER.maxConcurrentDials))
      void this.dial(transport);
  }

  private async dial(transport: ForwardTransport): Promise<void> {
    const begunAt = performance.now();
    this.dialCount += 1;
    const answer = await transport.dial(this.cluster.dialer, this.pod, this.abort.signal);
    this.dialCount -= 1;
    if (!this.abort.signal.aborted) transport.recordResult(answer, begunAt);
    if (answer instanceof Duplex) this.add(answer);
    // Else those who wait are served in the next best way.
    else if (transport.isOffered) this.failWaiting(answer);
    this.assignStreams();
  }

  private add(socket: Duplex): void {
    const line = new SpdyConnection(socket, {
      onFree: () => {
        if (this.isRetired) line.retire(FORWARD_CLOSED);
        else this.assignStreams();
      },
      mayLinger: () =>
        [...this.connections].filter(({ isLingering }) => isLingering).length < TETHER.maxStuckConnections,
      onClosed: () => this.connections.delete(line),
    });
    this.connections.add(line);
    if (this.isRetired) line.close(FORWARD_CLOSED);
  }

  private failWaiting(error: ForwardError): void {
    for (const wanted of this.waiting.splice(0)) if (!wanted.isDestroyed) wanted.events.onFailed(error);
  }

  private closeIdle(): void {
    const now = performance.now();
    for (const line of this.connections) {
      const idleMs = this.connections.size === 1 ? TETHER.lastConnectionIdleMs : TETHER.connectionIdleMs;
      if (!line.isBusy && (line.isSpent || now - line.idleSince > idleMs)) line.retire(FORWARD_CLOSED);
      else line.probe();
    }
  }
}

const FORWARD_CLOSED: ForwardError = { code: 'lost', text: 'the forward was closed' };
