// Carries the bytes of one socket to another: what was read is written at once, from the buffer that all
// sockets of the thread are read into. Only what the other socket does not take is copied.
import { type OnReadOpts, Socket, type SocketConstructorOpts } from 'node:net';
import { KIB } from '../settings/limits.ts';
import { descriptorOf } from './held_port.ts';
import type { Libc } from './process/libc.ts';

/** Larger reads carry more bytes per event. Twice as much no longer fits in the cache of a processor. */
const readBuffer = Buffer.allocUnsafeSlow(512 * KIB);

/**
 * One direction. The socket that is read has the option `onread`; what it reads goes to the socket of
 * `attach`, and is kept until there is one.
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

  /** Passes what `from` reads to `to`, and its end. */
  attach(from: Socket, to: Socket): void {
    this.from = from;
    this.to = to;
    for (const bytes of this.early.splice(0)) to.write(bytes);
    from.on('end', () => to.end());
    from.resume();
  }

  /** False: the socket is not read until the other one has taken everything. */
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
   * Bytes that `to` takes without waiting. A system call is half of what a write of Node costs. An error is
   * left to that write, which reports it.
   */
  private writeNow(to: Socket, bytes: Buffer): number {
    const fd = to.writableLength === 0 ? descriptorOf(to) : null;
    return fd === null ? 0 : Math.max(0, this.libc.write(fd, bytes));
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
