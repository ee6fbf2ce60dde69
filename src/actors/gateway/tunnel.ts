// An upgraded connection: after a 101 bytes go both ways; any other answer is passed on once and the connection ends.
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { dialAgent } from './upstream_pool.ts';

const HEAD_BYTES = 64 * 1024;
/** How long the body of a refused upgrade may pause. */
const REFUSED_BODY_MS = 10_000;
/** How much a client may send ahead of the agent's answer: WebSocket has it wait, so an honest one sends nothing. */
const EARLY_BYTES = 64 * 1024;

interface TunnelRequest {
  port: number;
  socket: Duplex;
  /** The request's head, with the Upgrade header. */
  head: string;
  /** What the client has sent after its head. */
  early: Buffer;
  unreachable: (error: Error) => string;
}

/** Copies with back pressure, and passes an end on, so that a half-closed side still gets its answer. */
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
 * Reads the client while its upgrade waits, as only a reader hears that the other side has gone. A client that
 * ends or sends more than is kept is hung up on. What is returned stops this and gives the bytes that came.
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

function onResponseHead(socket: Duplex, early: Buffer, upstream: Socket, bytes: Buffer, end: number): void {
  const isUpgrade = /^HTTP\/1\.1 101 /.test(bytes.toString('latin1', 0, 16));
  socket.write(bytes);
  if (isUpgrade) {
    if (early.length > 0) upstream.write(early);
    pipe(socket, upstream);
    pipe(upstream, socket);
    return;
  }
  // The client's further bytes would be requests that nobody has checked: they are read and not passed on.
  socket.resume();
  socket.on('end', () => socket.destroy());
  upstream.on('close', () => socket.end());
  const length = /^content-length:\s*(\d+)\s*$/im.exec(bytes.toString('latin1', 0, end))?.[1];
  let left = Number(length ?? Number.POSITIVE_INFINITY) - (bytes.length - end - 4);
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

/** Carries an upgrade request to `port`. Never rejects: what goes wrong is answered on the socket. */
export async function openTunnel(request: TunnelRequest): Promise<void> {
  const { socket, port, head, unreachable } = request;
  const stopReading = readAhead(socket, request.early);
  let upstream: Socket;
  try {
    upstream = await dialAgent(port);
  } catch (error) {
    socket.end(unreachable(error as Error));
    return;
  }
  upstream.setNoDelay(true);
  upstream.on('error', () => socket.destroy());
  // While the agent was dialed the client may have gone.
  if (socket.destroyed) upstream.destroy();
  socket.on('close', () => upstream.destroy());
  let held: Buffer = Buffer.alloc(0);
  const onHead = (bytes: Buffer): void => {
    held = held.length > 0 ? Buffer.concat([held, bytes]) : bytes;
    const end = held.indexOf('\r\n\r\n');
    if (end < 0 && held.length < HEAD_BYTES) return;
    upstream.off('data', onHead);
    upstream.off('close', onEarly);
    if (end < 0) {
      upstream.destroy();
      socket.end(unreachable(new Error('the head of its answer is too long')));
    } else onResponseHead(socket, stopReading(), upstream, held, end);
  };
  const onEarly = (): void => void socket.end(unreachable(new Error('it closed the connection')));
  upstream.on('data', onHead);
  upstream.on('close', onEarly);
  upstream.write(head, 'latin1');
}
