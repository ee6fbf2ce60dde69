// Copies bytes from one socket to another. They are written at once from the read buffer that all sockets of
// the thread share; only what the other socket does not accept is copied.
import { type OnReadOpts, Socket, type SocketConstructorOpts } from 'node:net';
import { KIB } from '../settings/limits.ts';
import { descriptorOf } from './held_port.ts';
import type { Libc } from './process/libc.ts';

/** Larger reads carry more bytes per event, but twice as much no longer fits in a processor's cache. */
const readBuffer = Buffer.allocUnsafeSlow(512 * KIB);

/**
 * One direction. The source socket has the option `onread`. What it reads goes to the socket given to
 * `attach`, and is kept until then.
 */
export class BytePump {
  readonly onread: OnReadOpts;
  private readonly libc: Libc;
  private readonly onMoved: () => void;
  private readonly early: Buffer[] = [];
  private from: Socket | null = null;
  private to: Socket | null = null;
  private readonly onTaken = (): void => {
    this.from?.resume();
  };

  /** `onMoved` is called for each read. */
  constructor(libc: Libc, onMoved: () => void) {
    this.libc = libc;
    this.onMoved = onMoved;
    this.onread = { buffer: readBuffer, callback: (length) => this.pass(readBuffer.subarray(0, length)) };
  }

  /** Passes what `from` reads on to `to`, including its end. */
  attach(from: Socket, to: Socket): void {
    this.from = from;
    this.to = to;
    for (const bytes of this.early.splice(0)) to.write(bytes);
    from.on('end', () => to.end());
    from.resume();
  }

  /** False: pauses reading until the other socket has taken everything. */
  private pass(bytes: Buffer): boolean {
    const { to } = this;
    this.onMoved();
    if (!to) {
      this.early.push(Buffer.from(bytes));
      return true;
    }
    const taken = this.writeNow(to, bytes);
    if (taken === bytes.length) return true;
    to.write(Buffer.from(bytes.subarray(taken)), this.onTaken);
    return to.writableLength === 0;
  }

  /**
   * The number of bytes that `to` accepts without waiting. A system call costs half as much as a write by
   * Node. Errors are left to that write, which reports them.
   */
  private writeNow(to: Socket, bytes: Buffer): number {
    const fd = to.writableLength === 0 ? descriptorOf(to) : null;
    return fd === null ? 0 : Math.max(0, this.libc.write(fd, bytes));
  }
}

/**
 * Turns the connection `accepted`, from which nothing has been read, into a socket that reads through `pump`.
 * `accepted` must not be used afterwards. null if the connection has ended.
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
