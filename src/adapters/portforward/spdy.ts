// One SPDY/3.1 connection to a pod, through the API server, as kubectl uses it.
//
// The reference implementation has no flow control per stream: whoever stops reading stops the whole connection, and bytes
// that the pod does not take block others behind them. So a line carries one stream at a time and is used again for the
// next one. Beside it there may be streams whose client has gone and which the node is still closing; what those bring is
// dropped. Before a line is used again it must be proven clear: the worker that had the stream answers a ping, which it does
// only when nothing is stuck in front of it.
import type { Duplex } from 'node:stream';
import { TETHER } from '../../limits.ts';
import { dataHead, FrameReader, ping, synStream } from './frames.ts';
import { Proof, WORKERS } from './proof.ts';
import { SpdyStream, type StreamLine } from './stream.ts';
import { type Setback, type Stream, type StreamEvents, said } from './way.ts';

/** Payloads up to this size are copied behind their frame head: cheaper than a second buffer for the socket. */
const COPY_BYTES = 4 * 1024;

export interface LineEvents {
  /** `isFree` may have become true. */
  freed(): void;
  /** Whether the line may be kept for a pod that is slow to take what a client has sent that has gone. */
  mayLinger(): boolean;
  closed(): void;
}

/** One SPDY connection to a pod, which carries one stream after the other. The lines of that pod own it, and hear its `events`. */
export class SpdyLine implements StreamLine {
  private readonly socket: Duplex;
  private readonly events: LineEvents;
  private readonly reader: FrameReader;
  private readonly proof = new Proof((pings) => this.socket.write(pings));
  /** By both of their ids. */
  private readonly streams = new Map<number, SpdyStream>();
  private live: SpdyStream | null = null;
  private nextId = 1;
  private opened = 0;
  private dropped = 0;
  private retired = false;
  private closed = false;
  private heardAt = performance.now();
  private lastBusyAt = performance.now();
  private stuck: NodeJS.Timeout | undefined;
  private lingers = false;
  /** What had not gone out at the last look, and when there was less than before. */
  private unsent = 0;
  private movedAt = 0;

  /** `socket` has been upgraded: it carries SPDY, be it by itself or in a WebSocket. */
  constructor(socket: Duplex, events: LineEvents) {
    this.socket = socket;
    this.events = events;
    this.reader = new FrameReader({
      data: (id, bytes) => {
        if (!this.streams.get(id)?.data(id, bytes)) this.drop(bytes.length);
      },
      fin: (id) => this.streams.get(id)?.ended(id),
      replied: (id) => this.streams.get(id)?.replied(id),
      reset: (id) => this.streams.get(id)?.ended(id),
      ping: (id) => this.ping(id),
      goAway: () => {
        this.retired = true;
      },
    });
    socket.on('data', (chunk: Buffer) => this.push(chunk));
    socket.on('drain', () => this.live?.drained());
    socket.on('error', (error) => this.close({ code: 'lost', text: said(error.message) }));
    socket.on('close', () => this.close({ code: 'lost', text: 'the API server closed the connection' }));
  }

  /** Whether `open` may be called. */
  get isFree(): boolean {
    return !this.live && !this.proof.isPending && this.proof.isClear && !this.isSpent;
  }

  /** Whether it will never be free again. */
  get isSpent(): boolean {
    return this.retired || this.closed;
  }

  get isBusy(): boolean {
    return this.live !== null;
  }

  /** Whether it is kept for nothing but what a slow pod has yet to take. */
  get isLingering(): boolean {
    return this.lingers;
  }

  /** Since when it has not been busy, in monotonic milliseconds. */
  get idleSince(): number {
    return this.lastBusyAt;
  }

  /** Opens a stream to `port` of the pod. Only when `isFree`; nothing is told before this has returned. */
  open(port: number, events: StreamEvents): Stream {
    const errorId = this.nextId;
    let dataId = errorId + 2;
    // The worker that will be pinged afterwards is the one that gets the data.
    while (dataId % WORKERS !== this.proof.worker) dataId += 2;
    this.nextId = dataId + 2;
    this.opened += 1;
    if (this.opened >= TETHER.streamsPerLine) this.retired = true;
    const stream = new SpdyStream(this, errorId, dataId, events);
    this.streams.set(errorId, stream).set(dataId, stream);
    this.live = stream;
    this.proof.begin();
    const headers = (type: string) =>
      [
        ['streamtype', type],
        ['port', String(port)],
        ['requestid', String(errorId)],
      ] as const;
    this.socket.cork();
    // Nothing is ever said on the error stream from here: it is opened with this side closed.
    this.socket.write(synStream(errorId, headers('error'), true, errorId === 1));
    this.socket.write(synStream(dataId, headers('data'), false, false));
    // Where the node has just been heard, what the client has sent goes with it. Else the line may have died unnoticed:
    // then nothing is written before the answer, so that the client can be given to another one.
    const isAlive = performance.now() - this.heardAt < TETHER.freshMs;
    process.nextTick(() => {
      if (isAlive) stream.open();
      this.socket.uncork();
    });
    return stream;
  }

  /** Asks for a sign of life; closes the line when the last one has not come though nothing could be in its way. */
  probe(): void {
    if (this.closed || this.socket.isPaused() || this.socket.writableNeedDrain) return;
    const isSilent = performance.now() - this.heardAt >= TETHER.pingMs;
    if (!this.proof.isPending) this.proof.ask(WORKERS);
    else if (isSilent && (this.proof.isClear || this.streams.size === 0)) {
      this.close({ code: 'lost', text: 'the API server does not answer any more' });
    }
  }

  /** Takes no more streams, and is closed as soon as none is left: bytes of a client that has gone may be on their way. */
  retire(setback: Setback): void {
    this.retired = true;
    if (this.streams.size === 0) this.close(setback);
  }

  close(setback: Setback): void {
    if (this.closed) return;
    this.closed = true;
    this.live = null;
    this.socket.destroy();
    clearTimeout(this.stuck);
    const streams = new Set(this.streams.values());
    this.streams.clear();
    this.events.closed();
    for (const stream of streams) stream.lost(setback);
  }

  write({ dataId }: SpdyStream, bytes: Buffer): boolean {
    this.proof.wrote(bytes.length);
    const head = dataHead(dataId, bytes.length, false);
    if (bytes.length <= COPY_BYTES) this.socket.write(Buffer.concat([head, bytes]));
    else {
      this.socket.cork();
      this.socket.write(head);
      this.socket.write(bytes);
      this.socket.uncork();
    }
    return this.socket.writableLength < TETHER.bufferBytes;
  }

  finish({ dataId }: SpdyStream): void {
    // The next stream may come in this turn, and go out with it.
    this.socket.cork();
    this.socket.write(dataHead(dataId, 0, true));
    setImmediate(() => this.socket.uncork());
  }

  pause(stream: SpdyStream): void {
    if (stream === this.live) this.socket.pause();
  }

  resume(stream: SpdyStream): void {
    if (stream === this.live) this.socket.resume();
  }

  left(stream: SpdyStream): void {
    if (stream === this.live) this.release();
  }

  done(stream: SpdyStream, failed: boolean): void {
    this.forget(stream);
    // Bytes that the pod never took may be stuck in the node, and nothing unlocks them but closing the line.
    if (failed) this.giveUp(stream, { code: 'lost', text: 'a stream of the connection failed' });
    else if (this.retired) this.retire({ code: 'lost', text: 'the connection has served its time' });
    if (stream === this.live) this.release();
  }

  waits(stream: SpdyStream): boolean {
    // Of a line that is proven clear the pod has all: it is the node that does not close.
    if (stream === this.live || this.proof.isClear) return false;
    const { writableLength } = this.socket;
    if (writableLength < this.unsent) this.movedAt = performance.now();
    this.unsent = writableLength;
    const quietMs = performance.now() - Math.max(this.movedAt, this.heardAt, this.lastBusyAt);
    this.lingers = quietMs < TETHER.stuckMs && (this.lingers || this.events.mayLinger());
    return this.lingers;
  }

  giveUp(stream: SpdyStream, setback: Setback): void {
    if (stream === this.live) {
      this.close(setback);
      return;
    }
    this.forget(stream);
    this.retire(setback);
  }

  private forget({ dataId, errorId }: SpdyStream): void {
    this.streams.delete(dataId);
    this.streams.delete(errorId);
  }

  private push(chunk: Buffer): void {
    if (this.closed) return;
    this.heardAt = performance.now();
    const wrong = this.reader.push(chunk);
    if (wrong) this.close({ code: 'hostile', text: `the server broke the protocol: ${wrong}` });
  }

  /** Bytes for a client that has gone. */
  private drop(bytes: number): void {
    this.dropped += bytes;
    if (this.dropped < TETHER.droppedBytes) return;
    // Not worth carrying to the end; but somebody's stream may run beside it.
    this.retired = true;
    if (!this.live) this.close({ code: 'lost', text: 'too much came for a client that had gone' });
  }

  private release(): void {
    this.live = null;
    this.lastBusyAt = performance.now();
    this.unsent = this.socket.writableLength;
    if (this.closed) return;
    this.socket.resume();
    if (this.proof.isClear && !this.proof.isPending) {
      this.events.freed();
      return;
    }
    this.proof.ask(1);
    // A slow pod still gets what it was sent; nobody else waits for that.
    this.stuck = setTimeout(
      () => this.retire({ code: 'lost', text: 'the connection was stuck' }),
      TETHER.proofMs,
    );
  }

  private ping(id: number): void {
    if (id % 2 === 0) {
      // The server's own: echoed, but not into the buffer of a connection that takes nothing.
      if (!this.socket.writableNeedDrain) this.socket.write(ping(id));
      return;
    }
    if (!this.proof.came() || this.live) return;
    if (!this.proof.isClear) {
      this.proof.ask(1);
      return;
    }
    clearTimeout(this.stuck);
    this.dropped = 0;
    this.events.freed();
  }
}
