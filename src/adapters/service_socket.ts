// A connection to the port of a service.
import { Socket } from 'node:net';

type WriteCallback = Parameters<Socket['_write']>[2];

/** The codes of a write to a connection that the other side has closed. */
const CLOSED_CODES: ReadonlySet<string | undefined> = new Set(['ECONNRESET', 'EPIPE']);

/**
 * A socket that reads what the service has sent before it fails. A service that refuses a request by its head
 * answers, and closes the connection while the body is still sent. Every other socket is destroyed by the
 * first write after that, with the answer unread.
 */
export class ServiceSocket extends Socket {
  override _write(bytes: unknown, encoding: BufferEncoding, callback: WriteCallback): void {
    super._write(bytes, encoding, (error) => this.onWritten(error, callback));
  }

  override _writev(parts: { chunk: unknown; encoding: BufferEncoding }[], callback: WriteCallback): void {
    super._writev?.(parts, (error) => this.onWritten(error, callback));
  }

  /** Nothing else is written until the callback is called. A closed connection always comes to its end. */
  private onWritten(error: NodeJS.ErrnoException | null | undefined, callback: WriteCallback): void {
    if (error && CLOSED_CODES.has(error.code) && !this.readableEnded) this.once('end', () => callback(error));
    else callback(error);
  }
}
