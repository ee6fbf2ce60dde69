// An upgraded connection. After a 101, bytes flow both ways. Any other answer is forwarded, and the
// connection ends.
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { headWithOwnCookies } from './response_headers.ts';

const HEAD_BYTES = 64 * 1024;
/** The longest pause in the body of an answer that refuses the upgrade. */
const REFUSED_BODY_MS = 10_000;
/**
 * The most that a client may send before the agent has answered. WebSocket clients must wait for the answer.
 */
const EARLY_BYTES = 64 * 1024;

interface TunnelRequest {
  /** Connects to the agent. */
  dial: () => Promise<Socket>;
  /** The host name of the agent. */
  hostname: string;
  /** The connection of the client. */
  socket: Duplex;
  /** The head of the request, with the Upgrade header. */
  head: string;
  /** What the client sent after the head. */
  early: Buffer;
  /** The answer when the agent cannot be reached. */
  unreachable: (error: Error) => string;
}

/** Copies with back pressure. Passes on an end, so that a side that has half-closed still gets the rest. */
function pipe(from: Duplex, to: Duplex): void {
  from.on('data', (bytes: Buffer) => {
    if (to.write(bytes)) return;
    from.pause();
    to.once('drain', () => from.resume());
  });
  from.on('end', () => to.end());
  from.on('close', () => to.destroy());
}

/**
 * Reads the client while its upgrade waits, because a disconnect is only noticed while reading. A client that
 * disconnects, or sends more than can be kept, is disconnected. The returned function stops reading and
 * returns all bytes, `early` first.
 */
export function readAhead(socket: Duplex, early: Buffer): () => Buffer {
  const parts = [early];
  let left = EARLY_BYTES;
  const onData = (bytes: Buffer): void => {
    parts.push(bytes);
    left -= bytes.length;
    if (left < 0) socket.destroy();
  };
  const onEnd = (): void => void socket.destroy();
  socket.on('data', onData);
  socket.on('end', onEnd);
  return () => {
    socket.off('data', onData);
    socket.off('end', onEnd);
    return Buffer.concat(parts);
  };
}

/** Forwards the answer to the upgrade: `head`, and the bytes `rest` after it. */
function onResponseHead(socket: Duplex, early: Buffer, upstream: Socket, head: string, rest: Buffer): void {
  const isUpgrade = /^HTTP\/1\.1 101 /.test(head);
  socket.write(Buffer.concat([Buffer.from(head, 'latin1'), rest]));
  if (isUpgrade) {
    if (early.length > 0) upstream.write(early);
    pipe(socket, upstream);
    pipe(upstream, socket);
    return;
  }
  // Further bytes of the client would be unchecked requests, so they are dropped.
  socket.resume();
  socket.on('end', () => socket.destroy());
  upstream.on('close', () => socket.end());
  const length = /^content-length:\s*(\d+)\s*$/im.exec(head)?.[1];
  let left = Number(length ?? Number.POSITIVE_INFINITY) - rest.length;
  if (left <= 0) upstream.destroy();
  upstream.setTimeout(REFUSED_BODY_MS, () => upstream.destroy());
  upstream.on('data', (more: Buffer) => {
    left -= more.length;
    if (!socket.write(more)) {
      upstream.pause();
      socket.once('drain', () => upstream.resume());
    }
    if (left <= 0) upstream.destroy();
  });
}

/** Carries an upgrade request to an agent. Never rejects: failures are answered on the socket. */
export async function openTunnel(request: TunnelRequest): Promise<void> {
  const { socket, dial, hostname, head: requestHead, unreachable } = request;
  const stopReading = readAhead(socket, request.early);
  let upstream: Socket;
  try {
    upstream = await dial();
  } catch (error) {
    socket.end(unreachable(error as Error));
    return;
  }
  upstream.setNoDelay(true);
  let isAnswered = false;
  let cause = new Error('it closed the connection');
  upstream.on('error', (error) => {
    cause = error;
    if (isAnswered) socket.destroy();
  });
  // The client may have disconnected since the dialling began.
  if (socket.destroyed) upstream.destroy();
  socket.on('close', () => upstream.destroy());
  let held: Buffer = Buffer.alloc(0);
  const onHead = (bytes: Buffer): void => {
    held = held.length > 0 ? Buffer.concat([held, bytes]) : bytes;
    const end = held.indexOf('\r\n\r\n');
    if (end < 0 && held.length < HEAD_BYTES) return;
    upstream.off('data', onHead);
    upstream.off('close', onEarly);
    isAnswered = true;
    if (end < 0) {
      upstream.destroy();
      socket.end(unreachable(new Error('the head of its answer is too long')));
      return;
    }
    const head = headWithOwnCookies(held.toString('latin1', 0, end + 4), hostname);
    onResponseHead(socket, stopReading(), upstream, head, held.subarray(end + 4));
  };
  const onEarly = (): void => void socket.end(unreachable(cause));
  upstream.on('data', onHead);
  upstream.on('close', onEarly);
  upstream.write(requestHead, 'latin1');
}
