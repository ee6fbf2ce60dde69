// Many streams over one connection, each with a window of its own, so that a reader that stops blocks no
// other. Independent of sockets and time. docs/reference.md "Relay".
import { RELAY } from '../../settings/cloud_limits.ts';
import { FRAME, type Frame, muxFrame, readFrame, readReset } from './frames.ts';
import { MuxStream, type StreamCarrier } from './mux_stream.ts';

/** The underlying connection. */
export interface MuxTransport {
  /** Bytes sent that the connection has not taken yet. */
  readonly bufferedBytes: number;
  send(frame: Buffer): void;
  /** A stream was opened on this side: somebody waits for the peer. */
  opened(): void;
  /** Ends the connection. */
  close(reason: string): void;
}

export interface MuxEvents {
  /** Server side only: the client opens a stream, and its first frames follow. */
  onStream(stream: MuxStream, request: Buffer): void;
  /** Server side only: the client presents another ticket; returns false if it is not valid. */
  onTicket?(ticket: string): boolean;
}

/** One side of a connection. The client opens the streams. */
export class Mux implements StreamCarrier {
  private readonly transport: MuxTransport;
  private readonly events: MuxEvents | null;
  private readonly streams = new Map<number, MuxStream>();
  /** Streams with both data and window, in the order of their turns. */
  private readonly ready = new Set<MuxStream>();
  private lastId = 0;
  /** The number of bytes by which windows have grown. */
  private grown = 0;
  private isOver = false;
  private isLeaving = false;

  /** `events`: for the server side; null for the client side. */
  constructor(transport: MuxTransport, events: MuxEvents | null) {
    this.transport = transport;
    this.events = events;
  }

  /** Whether `open` may be called. */
  get isFree(): boolean {
    return !this.isOver && !this.isLeaving && this.streams.size < RELAY.maxStreams;
  }

  /** Whether the connection is there. */
  get isOpen(): boolean {
    return !this.isOver;
  }

  /** Whether the connection is of no more use: no stream is open, and none may be opened. */
  get isSpent(): boolean {
    return this.isLeaving && this.streams.size === 0;
  }

  /** Number of open streams. */
  get size(): number {
    return this.streams.size;
  }

  /** Opens a stream to the target in `request`. */
  open(request: Buffer): MuxStream {
    this.lastId += 1;
    const stream = this.add(this.lastId);
    this.sendFrame(muxFrame(FRAME.open, stream.id, request));
    if (!this.isOver) this.transport.opened();
    return stream;
  }

  /** Accepts no more streams; open ones continue. */
  leave(): void {
    this.isLeaving = true;
    this.sendFrame(muxFrame(FRAME.goaway, 0));
  }

  /** Presents another ticket. */
  showTicket(ticket: string): void {
    this.sendFrame(muxFrame(FRAME.ticket, 0, Buffer.from(ticket)));
  }

  ping(): void {
    this.sendFrame(muxFrame(FRAME.ping, 0));
  }

  /** Must be called for each message of the connection. A protocol violation ends the connection. */
  receive(message: Buffer): void {
    if (this.isOver) return;
    const frame = readFrame(message);
    const violation = frame ? this.take(frame) : 'a message without a frame';
    if (violation !== null) this.fail(`the peer broke the protocol: ${violation}`);
  }

  /** Must be called when the connection has taken data. */
  flush(): void {
    while (!this.isOver && this.transport.bufferedBytes < RELAY.maxUnsentBytes) {
      const [stream] = this.ready;
      if (!stream) return;
      this.ready.delete(stream);
      stream.sendNext();
      if (stream.isReady) this.ready.add(stream);
    }
  }

  /** The connection has ended: resets every stream. `text`: the reason for people. */
  close(text: string): void {
    if (this.isOver) return;
    this.isOver = true;
    const streams = [...this.streams.values()];
    this.streams.clear();
    this.ready.clear();
    for (const stream of streams) stream.onLost(text);
  }

  schedule(stream: MuxStream): void {
    if (this.isOver || !stream.isReady) return;
    this.ready.add(stream);
    this.flush();
  }

  sendFrame(frame: Buffer): void {
    if (!this.isOver) this.transport.send(frame);
  }

  takeRoom(bytes: number): boolean {
    if (this.grown + bytes > RELAY.maxGrownBytes) return false;
    this.grown += bytes;
    return true;
  }

  forget(stream: MuxStream): void {
    if (!this.streams.delete(stream.id)) return;
    this.ready.delete(stream);
    this.grown -= stream.grownBytes;
  }

  private add(id: number): MuxStream {
    const stream = new MuxStream(this, id);
    this.streams.set(id, stream);
    return stream;
  }

  private fail(reason: string): void {
    this.close(reason);
    this.transport.close(reason);
  }

  /** Returns the protocol violation in a frame; null if there is none. */
  private take({ type, stream: id, body }: Frame): string | null {
    if (this.transport.bufferedBytes > RELAY.maxUnreadAnswers) return 'it does not read what it is answered';
    if (id === 0) return this.takeOwn(type, body);
    if (type === FRAME.open) return this.takeOpen(id, body);
    if (id > this.lastId) return `a frame for stream ${id}, which was never opened`;
    const stream = this.streams.get(id);
    // Frames that were on their way when the stream was reset here are dropped.
    return stream ? Mux.takeFor(stream, type, body) : null;
  }

  private takeOwn(type: number, body: Buffer): string | null {
    if (type === FRAME.ticket)
      return this.events?.onTicket?.(body.toString('latin1')) ? null : 'a ticket that is no good here';
    if (body.length > 0) return 'a body where there is none';
    if (type === FRAME.ping) this.sendFrame(muxFrame(FRAME.pong, 0));
    else if (type === FRAME.goaway) this.isLeaving = true;
    else if (type !== FRAME.pong) return `a frame of type ${type} without a stream`;
    return null;
  }

  private takeOpen(id: number, body: Buffer): string | null {
    if (!this.events) return 'a stream that the client has not opened';
    if (id <= this.lastId) return `stream ${id} was opened before`;
    if (body.length > RELAY.maxRequestBytes) return 'a request that is too long';
    this.lastId = id;
    const stream = this.add(id);
    if (this.isLeaving) stream.reset('unseen', 'this server takes no more connections');
    else if (this.streams.size > RELAY.maxStreams)
      stream.reset('refused', `${RELAY.maxStreams} connections are open: no more are taken`);
    else this.events.onStream(stream, body);
    return null;
  }

  private static takeFor(stream: MuxStream, type: number, body: Buffer): string | null {
    switch (type) {
      case FRAME.data:
      case FRAME.limited:
        return stream.takeData(body, type === FRAME.limited);
      case FRAME.credit:
        return body.length === 4 ? stream.takeCredit(body.readUInt32BE(0)) : 'a credit of the wrong length';
      case FRAME.end:
        return body.length === 0 ? stream.takeEnd() : 'an end with a body';
      case FRAME.reset: {
        const said = readReset(body);
        if (said) stream.takeReset(said.code, said.text);
        return said ? null : 'a reset without a known code';
      }
      default:
        return `a frame of type ${type}`;
    }
  }
}
