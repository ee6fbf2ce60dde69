// The frames of a relay: connections to workloads over one WebSocket. One message is one frame: its type, one
// byte; its stream, four bytes, big endian, 0 for the whole connection; its body. docs/reference.md "Relay".

/** The WebSocket subprotocol. */
export const RELAY_PROTOCOL = 'berth.relay.v1';

/** Bytes before the body of a frame. */
export const FRAME_HEAD_BYTES = 5;

/** Types of frames. */
export const FRAME = {
  /** From the client: opens a stream. The body is JSON; data may follow at once. */
  open: 1,
  data: 2,
  /** Data after which the sender has more, but no window left to send it. */
  limited: 3,
  /** Lets the sender send this many more bytes: four bytes. */
  credit: 4,
  /** The sender will write no more. */
  end: 5,
  /** The stream ends at once: a ResetCode, one byte, and the reason for people. */
  reset: 6,
  ping: 7,
  pong: 8,
  /** No more streams are accepted; open ones continue. */
  goaway: 9,
  /** From the client: a new ticket, before the last one expires. */
  ticket: 10,
} as const;

/**
 * Why a stream was reset. `failed`: the workload could not be reached or broke the connection. `unseen`: no
 * pod has seen anything of it, so it may be opened again. `closed`: the client has disconnected. `refused`:
 * the connection carries no more streams.
 */
export type ResetCode = 'failed' | 'unseen' | 'closed' | 'refused';

const RESET_CODES: readonly ResetCode[] = ['failed', 'unseen', 'closed', 'refused'];
const MAX_TEXT_BYTES = 2_400;
const EMPTY = Buffer.alloc(0);

/** A received frame. `body` is a part of the message. */
export interface Frame {
  type: number;
  stream: number;
  body: Buffer;
}

/** A frame with room for a body of `length` bytes, from FRAME_HEAD_BYTES on. */
export function newFrame(type: number, stream: number, length: number): Buffer {
  const frame = Buffer.allocUnsafe(FRAME_HEAD_BYTES + length);
  frame[0] = type;
  frame.writeUInt32BE(stream, 1);
  return frame;
}

/** A frame with `body`. */
export function muxFrame(type: number, stream: number, body: Buffer = EMPTY): Buffer {
  const frame = newFrame(type, stream, body.length);
  body.copy(frame, FRAME_HEAD_BYTES);
  return frame;
}

/** The frame in a message; null if it is not one. */
export function readFrame(message: Buffer): Frame | null {
  if (message.length < FRAME_HEAD_BYTES) return null;
  return {
    type: message.readUInt8(0),
    stream: message.readUInt32BE(1),
    body: message.subarray(FRAME_HEAD_BYTES),
  };
}

/** A frame that lets the sender of a stream send `bytes` more. */
export function creditFrame(stream: number, bytes: number): Buffer {
  const frame = newFrame(FRAME.credit, stream, 4);
  frame.writeUInt32BE(bytes, FRAME_HEAD_BYTES);
  return frame;
}

/** A frame that ends a stream at once. */
export function muxReset(stream: number, code: ResetCode, text: string): Buffer {
  const said = Buffer.from(text).subarray(0, MAX_TEXT_BYTES);
  return muxFrame(FRAME.reset, stream, Buffer.concat([Buffer.of(RESET_CODES.indexOf(code)), said]));
}

/** Parses the body of FRAME.reset; null if it is not understood. */
export function readReset(body: Buffer): { code: ResetCode; text: string } | null {
  const code = RESET_CODES[body[0] ?? RESET_CODES.length];
  return code === undefined || body.length > MAX_TEXT_BYTES + 1
    ? null
    : { code, text: body.toString('utf8', 1) };
}
