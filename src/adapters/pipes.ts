// Pipes: a MessagePort to another thread, and a socket to another process.
import type { Socket } from 'node:net';
import type { MessagePort } from 'node:worker_threads';
import type { Pipe } from '../runtime/actor.ts';

const LENGTH_BYTES = 4;
/** The largest frame that a socket accepts; a longer one closes the pipe. */
const MAX_FRAME_BYTES = 64 * 1024 * 1024;
/** With more unsent bytes than this, the other side has stopped reading, and the socket is closed. */
const MAX_UNSENT_BYTES = 256 * 1024 * 1024;

/** Transferring an array to another thread costs more than copying fewer bytes than this. */
const MIN_TRANSFER_BYTES = 4 * 1024;

/** A pipe over a port to another thread. Transfers bytes unless they are few. */
export function messagePortPipe(port: MessagePort): Pipe {
  return {
    send(bytes) {
      if (bytes.length < MIN_TRANSFER_BYTES) port.postMessage(bytes);
      else port.postMessage(bytes, [bytes.buffer as ArrayBuffer]);
    },
    receive(onBytes, onClose) {
      port.on('message', (bytes: unknown) => {
        if (bytes instanceof Uint8Array) onBytes(bytes);
        else onClose('not bytes');
      });
      port.on('messageerror', (error) => onClose(error.message));
      port.on('close', () => onClose('the port was closed'));
    },
    close: () => port.close(),
  };
}

/** Wraps `pipe` so that it receives nothing until `opened` resolves. */
export const gatedPipe = (pipe: Pipe, opened: Promise<void>): Pipe => ({
  ...pipe,
  receive: (onBytes, onClose) => void opened.then(() => pipe.receive(onBytes, onClose)),
});

/**
 * A pipe over a connected socket. Each frame is preceded by its length in 4 bytes, most significant first.
 */
export function socketPipe(socket: Socket): Pipe {
  return {
    send(bytes) {
      if (socket.destroyed) return;
      const header = Buffer.allocUnsafe(LENGTH_BYTES);
      header.writeUInt32BE(bytes.length);
      // Header and frame in one writev.
      socket.cork();
      socket.write(header);
      socket.write(bytes);
      socket.uncork();
      if (socket.writableLength > MAX_UNSENT_BYTES) socket.destroy(new Error('the other side does not read'));
    },
    receive(onBytes, onClose) {
      const take = frameSplitter(onBytes);
      socket.on('data', (chunk: Buffer) => {
        const refusal = take(chunk);
        if (refusal) onClose(refusal);
      });
      socket.on('error', (error) => onClose(error.message));
      socket.on('close', () => onClose('the socket was closed'));
    },
    close: () => socket.destroySoon(),
  };
}

/**
 * A pipe that is still being opened: frames wait for it. It closes, with the reason, when `pending` rejects.
 */
export function pendingPipe(pending: Promise<Pipe>): Pipe {
  // Calls keep their order.
  const then = (use: (pipe: Pipe) => void): void => void pending.then(use, () => {});
  return {
    send: (bytes) => then((pipe) => pipe.send(bytes)),
    receive(onBytes, onClose) {
      pending.then(
        (pipe) => pipe.receive(onBytes, onClose),
        (error: Error) => onClose(error.message),
      );
    },
    close: () => then((pipe) => pipe.close()),
  };
}

/**
 * Splits a stream into frames. The returned function takes chunks, and returns why the stream is broken, or
 * undefined.
 */
export function frameSplitter(onFrame: (bytes: Uint8Array) => void): (chunk: Buffer) => string | undefined {
  const header = Buffer.alloc(LENGTH_BYTES);
  let headerFilled = 0;
  let body: Buffer | undefined;
  let filled = 0;
  return (chunk) => {
    let at = 0;
    while (at < chunk.length) {
      if (!body) {
        const copied = chunk.copy(header, headerFilled, at, at + LENGTH_BYTES - headerFilled);
        headerFilled += copied;
        at += copied;
        if (headerFilled < LENGTH_BYTES) return undefined;
        const length = header.readUInt32BE();
        if (length > MAX_FRAME_BYTES) return `a frame of ${length} bytes`;
        headerFilled = 0;
        if (chunk.length - at >= length) {
          // The whole frame is in this chunk: no copy.
          onFrame(new Uint8Array(chunk.buffer, chunk.byteOffset + at, length));
          at += length;
          continue;
        }
        body = Buffer.allocUnsafeSlow(length);
        filled = 0;
      }
      const copied = chunk.copy(body, filled, at);
      filled += copied;
      at += copied;
      if (filled === body.length) {
        onFrame(new Uint8Array(body.buffer, 0, body.length));
        body = undefined;
      }
    }
    return undefined;
  };
}
