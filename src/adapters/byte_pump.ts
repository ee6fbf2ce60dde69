// Carries the bytes of one socket to another without an allocation per read: what was read is in a buffer
// that is read into again once the other socket has taken it.
import { type OnReadOpts, Socket, type SocketConstructorOpts } from 'node:net';
import { descriptorOf } from './held_port.ts';
import type { Libc } from './process/libc.ts';

const BUFFER_BYTES = 128 * 1024;

/**
 * One direction. The socket that is read has the option `onread`; what it reads goes to the socket of
 * `attach`, and is kept until there is one.
 */
export class BytePump {
  readonly onread: OnReadOpts;
  private readonly buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES);
  private readonly onMoved: () => void;
  private readonly early: Buffer[] = [];
  private from: Socket | null = null;
  private to: Socket | null = null;
  private readonly onTaken = (): void => {
    this.from?.resume();
  };

  /** `onMoved` is called for each read. */
  constructor(onMoved: () => void) {
    this.onMoved = onMoved;
    this.onread = { buffer: this.buffer, callback: (length) => this.pass(length) };
  }

  /** Passes what `from` reads to `to`, and its end. */
  attach(from: Socket, to: Socket): void {
    this.from = from;
    this.to = to;
    for (const bytes of this.early.splice(0)) to.write(bytes);
    from.on('end', () => to.end());
    from.resume();
  }

  /** False: the socket is not read until the other one has taken everything. */
  private pass(length: number): boolean {
    const { to } = this;
    const bytes = this.buffer.subarray(0, length);
    this.onMoved();
    if (!to) {
      this.early.push(Buffer.from(bytes));
      return true;
    }
    to.write(bytes, this.onTaken);
    return to.writableLength === 0;
  }
}

/**
 * The connection of `accepted`, from which nothing was read, as a socket that reads by `pump`. `accepted` is
 * over. Null where the connection has ended.
 */
export function pumpedSocket(accepted: Socket, pump: BytePump, libc: Libc): Socket | null {
  const fd = descriptorOf(accepted);
  if (fd === null) return null;
  // The types of Node do not know that a socket of a descriptor may have it too.
  const options: SocketConstructorOpts & { onread: OnReadOpts } = {
    fd: libc.duplicate(fd),
    readable: true,
    writable: true,
    allowHalfOpen: true,
    onread: pump.onread,
  };
  accepted.destroy();
  const socket = new Socket(options);
  socket.setNoDelay(true);
  return socket;
}
