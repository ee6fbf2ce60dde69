// The connections to one pod: kept for the next stream, dialled ahead, and closed when not needed. If the
// cluster offers no transport for them, every stream gets a WebSocket of its own.
import { Duplex } from 'node:stream';
import { TETHER } from '../../settings/cloud_limits.ts';
import { deadlineSignal } from '../deadline_signal.ts';
import { SpdyConnection } from './spdy_connection.ts';
import {
  type Destroyable,
  FORWARD_CLOSED,
  type ForwardError,
  type ForwardStreamEvents,
  type PodName,
} from './transport.ts';
import type { ClusterTransports, ForwardTransport } from './transports.ts';
import { openWebSocketStream } from './websocket_stream.ts';

/** A requested stream, which gets the first connection that is free. */
interface StreamRequest {
  readonly port: number;
  readonly events: ForwardStreamEvents;
  state: 'waiting' | 'destroyed' | Destroyable;
}

/** The connections to one pod, as long as a tether uses it. */
export class PodConnections {
  private readonly cluster: ClusterTransports;
  private readonly pod: PodName;
  private readonly connections = new Set<SpdyConnection>();
  private waiting: StreamRequest[] = [];
  private dialCount = 0;
  private isRetired = false;
  private readonly abort = new AbortController();
  private readonly cancelCheckUps: () => void;

  constructor(cluster: ClusterTransports, pod: PodName) {
    this.cluster = cluster;
    this.pod = pod;
    this.cancelCheckUps = cluster.clock.every(TETHER.pingIntervalMs, () => this.checkUp());
  }

  /** Whether a stream could be opened without a dial. */
  get hasFreeConnection(): boolean {
    return this.freeConnection() !== undefined;
  }

  /** Whether no connection is left and none is being dialled. */
  get isEmpty(): boolean {
    return this.connections.size === 0 && this.dialCount === 0;
  }

  /** Opens a stream to `port`. No event occurs before this has returned. */
  open(port: number, events: ForwardStreamEvents): Destroyable {
    const request: StreamRequest = { port, events, state: 'waiting' };
    this.waiting.push(request);
    queueMicrotask(() => {
      this.assignStreams();
      // Dials one more than needed now, so that the next stream finds it open.
      const { transport } = this.cluster;
      if (transport && this.dialCount === 0 && !this.hasFreeConnection) void this.dial(transport);
    });
    return {
      destroy: () => {
        if (typeof request.state === 'object') request.state.destroy();
        request.state = 'destroyed';
      },
    };
  }

  /** Accepts no more streams; open ones continue. */
  retire(): void {
    this.isRetired = true;
    // Streams that continue must not outlive a dead node.
    if (this.isEmpty) this.cancelCheckUps();
    for (const connection of this.connections) connection.retire(FORWARD_CLOSED);
    this.failWaiting({ code: 'absent', text: 'the pod is gone' });
  }

  /** Ends everything. */
  close(): void {
    this.retire();
    this.abort.abort();
    this.cancelCheckUps();
    for (const connection of this.connections) connection.close(FORWARD_CLOSED);
  }

  private freeConnection(): SpdyConnection | undefined {
    for (const connection of this.connections) if (connection.isFree) return connection;
    return undefined;
  }

  private assignStreams(): void {
    this.waiting = this.waiting.filter(({ state }) => state === 'waiting');
    const { transport } = this.cluster;
    if (!transport) {
      for (const request of this.waiting.splice(0))
        request.state = openWebSocketStream(this.cluster, this.pod, request.port, request.events);
      return;
    }
    for (const connection of this.connections) {
      const request = connection.isFree ? this.waiting.shift() : undefined;
      if (request) request.state = connection.open(request.port, request.events);
    }
    while (this.dialCount < Math.min(this.waiting.length, TETHER.maxConcurrentDials))
      void this.dial(transport);
  }

  private async dial(transport: ForwardTransport): Promise<void> {
    const { clock, dialer } = this.cluster;
    const startedAt = clock.monotonic();
    const deadline = deadlineSignal(clock, TETHER.dialTimeoutMs, this.abort.signal);
    this.dialCount += 1;
    const result = await transport.dial(dialer, this.pod, deadline.signal);
    this.dialCount -= 1;
    deadline.clear();
    if (!this.abort.signal.aborted) transport.recordResult(result, startedAt);
    if (result instanceof Duplex) this.add(result);
    // If the transport is no longer offered, the waiting streams get the next one instead.
    else if (transport.isOffered) this.failWaiting(result);
    this.assignStreams();
  }

  private add(socket: Duplex): void {
    const connection = new SpdyConnection(socket, this.cluster.clock, {
      onFree: () => this.assignStreams(),
      mayLinger: () =>
        [...this.connections].filter(({ isLingering }) => isLingering).length < TETHER.maxStuckConnections,
      onClosed: () => {
        this.connections.delete(connection);
        if (this.isRetired && this.isEmpty) this.cancelCheckUps();
      },
    });
    this.connections.add(connection);
    if (this.isRetired) connection.close(FORWARD_CLOSED);
  }

  private failWaiting(error: ForwardError): void {
    for (const { events, state } of this.waiting.splice(0)) if (state === 'waiting') events.onFailed(error);
  }

  private checkUp(): void {
    for (const connection of this.connections) {
      const isLast = this.connections.size === 1;
      connection.checkUp(isLast ? TETHER.lastConnectionIdleMs : TETHER.connectionIdleMs);
    }
  }
}
