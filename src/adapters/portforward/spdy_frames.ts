// SPDY/3.1 framing, as far as port forwarding needs it: the frames of this side, and a reader for the
// server's, which may contain anything. Header blocks from the server are never decompressed: nothing in them
// matters, so none can be a decompression bomb.

const SPDY_VERSION = 0x8003;
const FRAME_HEADER_BYTES = 8;
const FRAME_TYPE = {
  synStream: 1,
  synReply: 2,
  rstStream: 3,
  ping: 6,
  goAway: 7,
} as const;
const FIN = 0x01;
const MAX_STREAM = 0x7fffffff;
const DATA_LENGTH = 0xffffff;
/**
 * A control frame is buffered completely before it is read. Those of a port forward have a few dozen bytes.
 */
const MAX_CONTROL_BYTES = 16 * 1024;

/** Receives what the reader finds. */
export interface FrameEvents {
  /** Part of a data frame, as a view into the bytes pushed. */
  onData(stream: number, bytes: Buffer): void;
  /** The server will send no more on this stream. */
  onFin(stream: number): void;
  onReply(stream: number): void;
  onReset(stream: number): void;
  onPing(id: number): void;
  /** The server accepts no new streams on this connection. */
  onGoAway(): void;
}

/** Splits bytes into frames, wherever the chunks are cut. */
export class FrameReader {
  private readonly events: FrameEvents;
  private readonly header = Buffer.alloc(FRAME_HEADER_BYTES);
  private headerBytes = 0;
  /** Bytes still missing of the frame whose header has been read. */
  private remainingBytes = 0;
  private stream = 0;
  private isFin = false;
  private type = 0;
  private control: Buffer | null = null;

  constructor(events: FrameEvents) {
    this.events = events;
  }

  /**
   * Reads the next bytes. Returns the protocol violation that makes the rest unreadable; null if there is
   * none.
   */
  push(chunk: Buffer): string | null {
    let at = 0;
    while (at < chunk.length) {
      if (this.remainingBytes > 0) {
        const end = Math.min(chunk.length, at + this.remainingBytes);
        const part = chunk.subarray(at, end);
        this.remainingBytes -= part.length;
        at = end;
        const wrong = this.control ? this.controlPart(part, this.control) : this.dataPart(part);
        if (wrong) return wrong;
        continue;
      }
      const end = Math.min(chunk.length, at + FRAME_HEADER_BYTES - this.headerBytes);
      this.headerBytes += chunk.copy(this.header, this.headerBytes, at, end);
      at = end;
      if (this.headerBytes < FRAME_HEADER_BYTES) break;
      this.headerBytes = 0;
      const wrong = this.begin(this.header.readUInt32BE(0), this.header.readUInt32BE(4));
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
      this.remainingBytes = length;
      this.control = null;
      if (length === 0 && this.isFin) this.events.onFin(first);
      return null;
    }
    if (first >>> 16 !== SPDY_VERSION) return `SPDY version ${(first >>> 16) & 0x7fff}`;
    if (length > MAX_CONTROL_BYTES) return `a control frame of ${length} bytes`;
    this.type = first & 0xffff;
    this.control = Buffer.alloc(length);
    this.remainingBytes = length;
    return length === 0 ? this.controlDone(this.control) : null;
  }

  private dataPart(part: Buffer): null {
    this.events.onData(this.stream, part);
    if (this.remainingBytes === 0 && this.isFin) this.events.onFin(this.stream);
    return null;
  }

  private controlPart(part: Buffer, control: Buffer): string | null {
    part.copy(control, control.length - this.remainingBytes - part.length);
    return this.remainingBytes === 0 ? this.controlDone(control) : null;
  }

  private controlDone(control: Buffer): string | null {
    this.control = null;
    const type = this.type;
    if (type === FRAME_TYPE.synStream) return 'a stream opened by the server';
    // SETTINGS, HEADERS, WINDOW_UPDATE and any later additions are ignored.
    if (
      type !== FRAME_TYPE.synReply &&
      type !== FRAME_TYPE.rstStream &&
      type !== FRAME_TYPE.ping &&
      type !== FRAME_TYPE.goAway
    )
      return null;
    if (control.length < 4) return `a control frame of type ${type} with ${control.length} bytes`;
    const id = control.readUInt32BE(0);
    if (type === FRAME_TYPE.ping) this.events.onPing(id);
    else if (type === FRAME_TYPE.goAway) this.events.onGoAway();
    else if (type === FRAME_TYPE.rstStream) this.events.onReset(id & MAX_STREAM);
    else {
      this.events.onReply(id & MAX_STREAM);
      if (this.isFin) this.events.onFin(id & MAX_STREAM);
    }
    return null;
  }
}

function controlFrame(type: number, flags: number, payload: Buffer): Buffer {
  const frame = Buffer.allocUnsafe(FRAME_HEADER_BYTES + payload.length);
  frame.writeUInt16BE(SPDY_VERSION, 0);
  frame.writeUInt16BE(type, 2);
  frame.writeUInt32BE(payload.length, 4);
  frame[4] = flags;
  payload.copy(frame, FRAME_HEADER_BYTES);
  return frame;
}

function uint32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32BE(value, 0);
  return bytes;
}

const ZLIB_HEADER = Buffer.from([0x78, 0x01]);
/** An empty stored block: a sync flush ends with it, and it makes a reader hand out what it has. */
const SYNC_FLUSH = Buffer.from([0x00, 0x00, 0x00, 0xff, 0xff]);

/**
 * A header block as zlib, in stored blocks: a hundred bytes are not worth a compressor, which Node.js only
 * offers asynchronously. All blocks of a connection form one zlib stream, so only the first has a zlib
 * header.
 */
function headerBlock(headers: readonly (readonly [name: string, value: string])[], isFirst: boolean): Buffer {
  const parts = [uint32(headers.length)];
  for (const text of headers.flat()) parts.push(uint32(Buffer.byteLength(text)), Buffer.from(text));
  const plain = Buffer.concat(parts);
  const stored = Buffer.alloc(5);
  stored.writeUInt16LE(plain.length, 1);
  stored.writeUInt16LE(0xffff - plain.length, 3);
  return Buffer.concat([...(isFirst ? [ZLIB_HEADER] : []), stored, plain, SYNC_FLUSH]);
}

/**
 * Opens stream `id` (odd, increasing). `fin`: this side sends nothing on it. `isFirst`: it is the
 * connection's first stream.
 */
export function synStreamFrame(
  id: number,
  headers: readonly (readonly [name: string, value: string])[],
  fin: boolean,
  isFirst: boolean,
): Buffer {
  const block = headerBlock(headers, isFirst);
  // Associated stream, priority and slot: all 0.
  return controlFrame(
    FRAME_TYPE.synStream,
    fin ? FIN : 0,
    Buffer.concat([uint32(id), Buffer.alloc(6), block]),
  );
}

/** A ping, or the answer to one. Pings of this side have odd ids. */
export const pingFrame = (id: number): Buffer => controlFrame(FRAME_TYPE.ping, 0, uint32(id));

/** The header of a data frame of `length` bytes (at most 16 MiB - 1). */
export function dataFrameHeader(id: number, length: number, fin: boolean): Buffer {
  const head = Buffer.allocUnsafe(FRAME_HEADER_BYTES);
  head.writeUInt32BE(id, 0);
  head.writeUInt32BE(length, 4);
  if (fin) head[4] = FIN;
  return head;
}
