// SPDY/3.1 framing, as far as port forwarding needs it: what this side writes, and a reader for what a server sends, which
// may be anything. Header blocks that arrive are never decompressed: nothing in them matters here, so no block can be a bomb.

const VERSION = 0x8003;
const FRAME_BYTES = 8;
const TYPE = {
  synStream: 1,
  synReply: 2,
  rstStream: 3,
  ping: 6,
  goAway: 7,
} as const;
const FIN = 0x01;
const MAX_STREAM = 0x7fffffff;
const DATA_LENGTH = 0xffffff;
/** A control frame is held whole before it is looked at; a port-forward's are a few dozen bytes. */
const CONTROL_BYTES = 16 * 1024;

/** What the reader found. A return value other than undefined is a violation and ends the reading. */
export interface FrameEvents {
  /** Part of a data frame, as it came: a view into what was pushed. */
  data(stream: number, bytes: Buffer): void;
  /** The server will send no more on this stream. */
  fin(stream: number): void;
  replied(stream: number): void;
  reset(stream: number): void;
  ping(id: number): void;
  /** No new streams on this connection. */
  goAway(): void;
}

/** Splits bytes into frames, however they are cut. */
export class FrameReader {
  private readonly events: FrameEvents;
  private readonly head = Buffer.alloc(FRAME_BYTES);
  private headBytes = 0;
  /** Bytes still to come of the frame whose head has been read. */
  private left = 0;
  private stream = 0;
  private isFin = false;
  private type = 0;
  private control: Buffer | null = null;

  constructor(events: FrameEvents) {
    this.events = events;
  }

  /** Reads on; the answer names what no server may send, and then this connection has ended. */
  push(chunk: Buffer): string | null {
    let at = 0;
    while (at < chunk.length) {
      if (this.left > 0) {
        const end = Math.min(chunk.length, at + this.left);
        const part = chunk.subarray(at, end);
        this.left -= part.length;
        at = end;
        const wrong = this.control ? this.controlPart(part, this.control) : this.dataPart(part);
        if (wrong) return wrong;
        continue;
      }
      const end = Math.min(chunk.length, at + FRAME_BYTES - this.headBytes);
      this.headBytes += chunk.copy(this.head, this.headBytes, at, end);
      at = end;
      if (this.headBytes < FRAME_BYTES) break;
      this.headBytes = 0;
      const wrong = this.begin(this.head.readUInt32BE(0), this.head.readUInt32BE(4));
      if (wrong) return wrong;
    }
    return null;
  }

  private begin(first: number, second: number): string | null {
    const length = second & DATA_LENGTH;
    this.isFin = ((second >>> 24) & FIN) !== 0;
    if (first >>> 31 === 0) {
      if (first === 0) return 'data on stream 0';
      this.stream = first;
      this.left = length;
      this.control = null;
      if (length === 0 && this.isFin) this.events.fin(first);
      return null;
    }
    if (first >>> 16 !== VERSION) return `SPDY version ${(first >>> 16) & 0x7fff}`;
    if (length > CONTROL_BYTES) return `a control frame of ${length} bytes`;
    this.type = first & 0xffff;
    this.control = Buffer.alloc(length);
    this.left = length;
    return length === 0 ? this.controlDone(this.control) : null;
  }

  private dataPart(part: Buffer): null {
    this.events.data(this.stream, part);
    if (this.left === 0 && this.isFin) this.events.fin(this.stream);
    return null;
  }

  private controlPart(part: Buffer, control: Buffer): string | null {
    part.copy(control, control.length - this.left - part.length);
    return this.left === 0 ? this.controlDone(control) : null;
  }

  private controlDone(control: Buffer): string | null {
    this.control = null;
    const type = this.type;
    if (type === TYPE.synStream) return 'a stream opened by the server';
    // SETTINGS, HEADERS, WINDOW_UPDATE and what later versions may add mean nothing here.
    if (type !== TYPE.synReply && type !== TYPE.rstStream && type !== TYPE.ping && type !== TYPE.goAway)
      return null;
    if (control.length < 4) return `a control frame of type ${type} with ${control.length} bytes`;
    const id = control.readUInt32BE(0);
    if (type === TYPE.ping) this.events.ping(id);
    else if (type === TYPE.goAway) this.events.goAway();
    else if (type === TYPE.rstStream) this.events.reset(id & MAX_STREAM);
    else {
      this.events.replied(id & MAX_STREAM);
      if (this.isFin) this.events.fin(id & MAX_STREAM);
    }
    return null;
  }
}

function control(type: number, flags: number, payload: Buffer): Buffer {
  const frame = Buffer.allocUnsafe(FRAME_BYTES + payload.length);
  frame.writeUInt16BE(VERSION, 0);
  frame.writeUInt16BE(type, 2);
  frame.writeUInt32BE(payload.length, 4);
  frame[4] = flags;
  payload.copy(frame, FRAME_BYTES);
  return frame;
}

function word(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32BE(value, 0);
  return bytes;
}

const ZLIB_HEADER = Buffer.from([0x78, 0x01]);
/** An empty stored block: what a sync flush ends with, and what makes a reader hand out what it has. */
const SYNC = Buffer.from([0x00, 0x00, 0x00, 0xff, 0xff]);

/**
 * A header block as zlib, in stored blocks: a hundred bytes are not worth a compressor, whose only interface in Node is
 * asynchronous. All blocks of a connection are one zlib stream, so only the first has its header.
 */
function headerBlock(headers: readonly (readonly [name: string, value: string])[], isFirst: boolean): Buffer {
  const parts = [word(headers.length)];
  for (const text of headers.flat()) parts.push(word(Buffer.byteLength(text)), Buffer.from(text));
  const plain = Buffer.concat(parts);
  const stored = Buffer.alloc(5);
  stored.writeUInt16LE(plain.length, 1);
  stored.writeUInt16LE(0xffff - plain.length, 3);
  return Buffer.concat([...(isFirst ? [ZLIB_HEADER] : []), stored, plain, SYNC]);
}

/** Opens stream `id` (odd, growing). `fin`: this side will send nothing on it. `isFirst`: of the connection. */
export function synStream(
  id: number,
  headers: readonly (readonly [name: string, value: string])[],
  fin: boolean,
  isFirst: boolean,
): Buffer {
  const block = headerBlock(headers, isFirst);
  // The stream it belongs to, priority and slot: all 0.
  return control(TYPE.synStream, fin ? FIN : 0, Buffer.concat([word(id), Buffer.alloc(6), block]));
}

export const ping = (id: number): Buffer => control(TYPE.ping, 0, word(id));

/** The head of a data frame of `length` bytes (at most 16 MiB - 1). */
export function dataHead(id: number, length: number, fin: boolean): Buffer {
  const head = Buffer.allocUnsafe(FRAME_BYTES);
  head.writeUInt32BE(id, 0);
  head.writeUInt32BE(length, 4);
  if (fin) head[4] = FIN;
  return head;
}
