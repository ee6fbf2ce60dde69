// One SPDY/3.1 connection to a pod, through the API server, as kubectl uses it.
//
// The reference implementation has no flow control per stream: whoever stops reading stops the whole connection, and bytes
// that the pod does not take block others behind them. So a line carries one stream at a time and is used again for the
// next one. Beside it there may be streams whose client has gone and which the node is still closing; what those bring is
// dropped. Before a line is used again it must be proven clear: the worker that had the stream answers a ping, which it does
// only when nothing is stuck in front of it.
import type { Duplex } from 'node:stream';
import { TETHER } from '../../settings/limits.ts';
import { DrainCheck, NODE_WORKERS } from './drain_check.ts';
import { dataFrameHeader, FrameReader, pingFrame, synStreamFrame } from './spdy_frames.ts';
import { SpdyStream, type StreamConnection } from './spdy_stream.ts';
import { errorLine, type ForwardError, type ForwardStream, type ForwardStreamEvents } from './transport.ts';

/** Payloads up to this size are copied behind their frame head: cheaper than a second buffer for the socket. */
const MAX_COPIED_BYTES = 4 * 1024;

export interface SpdyConnectionEvents {
  /** `isFree` may have become true. */
  onFree(): void;
  /** Whether the line may be kept for a pod that is slow to take what a client has sent that has gone. */
  mayLinger(): boolean;
  onClosed(): void;
}

/** One SPDY connection to a pod, which carries one stream after the other. The lines of that pod own it, and hear its `events`. */
export class SpdyConnection implements StreamConnection {
  private readonly socket: Duplex;
  private readonly events: SpdyConnectionEvents;
  private readonly reader: FrameReader;
  private readonly drainCheck = new DrainCheck((pings) => this.socket.write(pings));
  /** By both of their ids. */
  private readonly streams = new Map<number, SpdyStream>();
  private activeStream: SpdyStream | null = null;
  private nextId = 1;
  private openedStreams = 0;
  private discardedBytes = 0;
  private isRetired = false;
  private isClosed = false;
  private lastReceivedAt = performance.now();
  private lastBusyAt = performance.now();
  private stuckTimer: NodeJS.Timeout | undefined;
  private lingering = false;
  /** What had not gone out at the last look, and when there was less than before. */
  private unsentBytes = 0;
  private lastSentAt = 0;

  /** `socket` has been upgraded: it carries SPDY, be it by itself or in a WebSocket. */
  constructor(socket: Duplex, events: SpdyConnectionEvents) {
    this.socket = socket;
    this.events = events;
    this.reader = new FrameReader({
      onData: (id, bytes) => {
        if (!this.streams.get(id)?.onData(id, bytes)) this.discard(bytes.length);
      },
      onFin: (id) => this.streams.get(id)?.onFin(id),
      onReply: (id) => this.streams.get(id)?.onReply(id),
      onReset: (id) => this.streams.get(id)?.onFin(id),
      onPing: (id) => this.onPing(id),
      onGoAway: () => {
        this.isRetired = true;
      },
    });
    socket.on('data', (chunk: Buffer) => this.onBytes(chunk));
    socket.on('drain', () => this.activeStream?.onDrained());
    socket.on('error', (error) => this.close({ code: 'lost', text: errorLine(error.message) }));
    socket.on('close', () => this.close({ code: 'lost', text: 'the API server closed the connection' }));
  }

  /** Whether `open` may be called. */
  get isFree(): boolean {
    return !this.activeStream && !this.drainCheck.isPending && this.drainCheck.isDrained && !this.isSpent;
  }

  /** Whether it will never be free again. */
  get isSpent(): boolean {
    return this.isRetired || this.isClosed;
  }

  get isBusy(): boolean {
    return this.activeStream !== null;
  }

  /** Whether it is kept for nothing but what a slow pod has yet to take. */
  get isLingering(): boolean {
    return this.lingering;
  }

  /** Since when it has not been busy, in monotonic milliseconds. */
  get idleSince(): number {
    return this.lastBusyAt;
  }

  /** Opens a stream to `port` of the pod. Only when `isFree`; nothing is told before this has returned. */
  open(port: number, events: ForwardStreamEvents): ForwardStream {
    const errorId = this.nextId;
    let dataId = errorId + 2;
    // The worker that will be pinged afterwards is the one that gets the data.
    while (dataId % NODE_WORKERS !== this.drainCheck.nextWorker) dataId += 2;
    this.nextId = dataId + 2;
    this.openedStreams += 1;
    if (this.openedStreams >= TETHER.maxStreamsPerConnection) this.isRetired = true;
    const stream = new SpdyStream(this, errorId, dataId, events);
    this.streams.set(errorId, stream).set(dataId, stream);
    this.activeStream = stream;
    this.drainCheck.onStreamOpened();
    const headers = (type: string) =>
      [
        ['streamtype', type],
        ['port', String(port)],
        ['requestid', String(errorId)],
      ] as const;
    this.socket.cork();
    // Nothing is ever said on the error stream from here: it is opened with this side closed.
    this.socket.write(synStreamFrame(errorId, headers('error'), true, errorId === 1));
    this.socket.write(synStreamFrame(dataId, headers('data'), false, false));
    // Where the node has just been heard, what the client has sent goes with it. Else the line may have died unnoticed:
    // then nothing is written before the answer, so that the client can be given to another one.
    const isAlive = performance.now() - this.lastReceivedAt < TETHER.assumedAliveMs;
    process.nextTick(() => {
      if (isAlive) stream.markOpened();
      this.socket.uncork();
    });
    return stream;
  }

  /** Asks for a sign of life; closes the line when the last one has not come though nothing could be in its way. */
  probe(): void {
    if (this.isClosed || this.socket.isPaused() || this.socket.writableNeedDrain) return;
    const isSilent = performance.now() - this.lastReceivedAt >= TETHER.pingIntervalMs;
    if (!this.drainCheck.isPending) this.drainCheck.sendPings(NODE_WORKERS);
    else if (isSilent && (this.drainCheck.isDrained || this.streams.size === 0)) {
      this.close({ code: 'lost', text: 'the API server does not answer any more' });
    }
  }

  /** Takes no more streams, and is closed as soon as none is left: bytes of a client that has gone may be on their way. */
  retire(error: ForwardError): void {
    this.isRetired = true;
    if (this.streams.size === 0) this.close(error);
  }

  close(error: ForwardError): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.activeStream = null;
    this.socket.destroy();
    clearTimeout(this.stuckTimer);
    const streams = new Set(this.streams.values());
    this.streams.clear();
    this.events.onClosed();
    for (const stream of streams) stream.onConnectionLost(error);
  }

  write({ dataId }: SpdyStream, bytes: Buffer): boolean {
    this.drainCheck.onWritten(bytes.length);
    const head = dataFrameHeader(dataId, bytes.length, false);
    if (bytes.length <= MAX_COPIED_BYTES) this.socket.write(Buffer.concat([head, bytes]));
    else {
      this.socket.cork();
      this.socket.write(head);
      this.socket.write(bytes);
      this.socket.uncork();
    }
    return this.socket.writableLength < TETHER.maxBufferedBytes;
  }

  sendFin({ dataId }: SpdyStream): void {
    // The next stream may come in this turn, and go out with it.
    this.socket.cork();
    this.socket.write(dataFrameHeader(dataId, 0, true));
    setImmediate(() => this.socket.uncork());
  }

  pause(stream: SpdyStream): void {
    if (stream === this.activeStream) this.socket.pause();
  }

  resume(stream: SpdyStream): void {
    if (stream === this.activeStream) this.socket.resume();
  }

  onStreamDestroyed(stream: SpdyStream): void {
    if (stream === this.activeStream) this.releaseActiveStream();
  }

  onStreamClosed(stream: SpdyStream, failed: boolean): void {
    this.removeStream(stream);
    // Bytes that the pod never took may be stuck in the node, and nothing unlocks them but closing the line.
    if (failed) this.abandon(stream, { code: 'lost', text: 'a stream of the connection failed' });
    else if (this.isRetired) this.retire({ code: 'lost', text: 'the connection has served its time' });
    if (stream === this.activeStream) this.releaseActiveStream();
  }

  mayLinger(stream: SpdyStream): boolean {
    // Of a line that is proven clear the pod has all: it is the node that does not close.
    if (stream === this.activeStream || this.drainCheck.isDrained) return false;
    const { writableLength } = this.socket;
    if (writableLength < this.unsentBytes) this.lastSentAt = performance.now();
    this.unsentBytes = writableLength;
    const quietMs = performance.now() - Math.max(this.lastSentAt, this.lastReceivedAt, this.lastBusyAt);
    this.lingering = quietMs < TETHER.stuckTimeoutMs && (this.lingering || this.events.mayLinger());
    return this.lingering;
  }

  abandon(stream: SpdyStream, setback: ForwardError): void {
    if (stream === this.activeStream) {
      this.close(setback);
      return;
    }
    this.removeStream(stream);
    this.retire(setback);
  }

  private removeStream({ dataId, errorId }: SpdyStream): void {
    this.streams.delete(dataId);
    this.streams.delete(errorId);
  }

  private onBytes(chunk: Buffer): void {
    if (this.isClosed) return;
    this.lastReceivedAt = performance.now();
    const wrong = this.reader.push(chunk);
    if (wrong) this.close({ code: 'hostile', text: `the server broke the protocol: ${wrong}` });
  }

  /** Bytes for a client that has gone. */
  private discard(bytes: number): void {
    this.discardedBytes += bytes;
    if (this.discardedBytes < TETHER.maxDiscardedBytes) return;
    // Not worth carrying to the end; but somebody's stream may run beside it.
    this.isRetired = true;
    if (!this.activeStream) this.close({ code: 'lost', text: 'too much came for a client that had gone' });
  }

  private releaseActiveStream(): void {
    this.activeStream = null;
    this.lastBusyAt = performance.now();
    this.unsentBytes = this.socket.writableLength;
    if (this.isClosed) return;
    this.socket.resume();
    if (this.drainCheck.isDrained && !this.drainCheck.isPending) {
      this.events.onFree();
      return;
    }
    this.drainCheck.sendPings(1);
    // A slow pod still gets what it was sent; nobody else waits for that.
    this.stuckTimer = setTimeout(
      () => this.retire({ code: 'lost', text: 'the connection was stuck' }),
      TETHER.drainCheckTimeoutMs,
    );
  }

  private onPing(id: number): void {
    if (id % 2 === 0) {
      // The server's own: echoed, but not into the buffer of a connection that takes nothing.
      if (!this.socket.writableNeedDrain) this.socket.write(pingFrame(id));
      return;
    }
    if (!this.drainCheck.onPong() || this.activeStream) return;
    if (!this.drainCheck.isDrained) {
      this.drainCheck.sendPings(1);
      return;
    }
    clearTimeout(this.stuckTimer);
    this.discardedBytes = 0;
    this.events.onFree();
  }
}
