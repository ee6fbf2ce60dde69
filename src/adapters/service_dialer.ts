// Connections to the ports of services. A port may be held by another program, even another user's, while the
// service starts or on the other address family.
import type net from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { DESCRIPTORS } from '../settings/limits.ts';
import { openListenerLookup, type SocketOwner, UNKNOWN_LISTENERS } from './process/listener_lookup.ts';
import { mayServe } from './process/listeners.ts';
import { areDescriptorsUsed } from './process/open_files_limit.ts';
import { userName } from './process/users.ts';
import { isSelfConnection } from './self_connection.ts';
import { ServiceSocket } from './service_socket.ts';

/** The target of a dial: the port of a run, and its first process; null: no process is known. */
export interface DialTarget {
  readonly port: number;
  readonly pid: number | null;
}

export interface DialOptions {
  /** Receives bytes instead of readers of the socket. They are valid until it returns. */
  onData?: (bytes: Buffer) => void;
  /** Like `onData`, with a buffer of the caller's. */
  onread?: net.OnReadOpts;
  /** The socket stays open for writing after the service has half-closed. */
  allowHalfOpen?: boolean;
}

const NOT_LISTENING = 'nothing listens there';
/** One buffer for all reads from services: bytes are passed on or copied before the next read. */
const readBuffer = Buffer.allocUnsafeSlow(64 * 1024);
/** 127.0.0.1, then ::1 for programs that listen only there. */
const ADDRESSES = ['127.0.0.1', '::1'] as const;
/** How often to dial an address whose listener changes meanwhile. */
const MAX_DIALS = 3;
/** The pause between two checks of a port that has no listener yet. */
const LOOK_MS = 20;

function connect(
  port: number,
  host: string,
  { onData, onread: given, allowHalfOpen = false }: DialOptions,
): Promise<net.Socket> {
  if (areDescriptorsUsed(DESCRIPTORS.dial)) return Promise.reject(new Error('too many connections are open'));
  const callback = (length: number): boolean => {
    onData?.(readBuffer.subarray(0, length));
    return true;
  };
  const onread = given ?? (onData && { buffer: readBuffer, callback });
  return new Promise((resolve, reject) => {
    const socket = new ServiceSocket({ allowHalfOpen, ...(onread && { onread }) });
    const failed = (error: NodeJS.ErrnoException): void =>
      reject(error.code === 'ECONNREFUSED' ? new Error(NOT_LISTENING) : error);
    socket.connect({ port, host, noDelay: true }).once('error', failed);
    socket.once('connect', () => {
      socket.off('error', failed);
      if (!isSelfConnection(socket)) return resolve(socket);
      // A close without a reset would keep the port from the service for a minute.
      socket.resetAndDestroy();
      reject(new Error(NOT_LISTENING));
    });
  });
}

/** Dials services on loopback. Refuses a port whose listener belongs to another program. */
export class ServiceDialer {
  private readonly lookup = openListenerLookup();
  /**
   * By port, the last listener that was found to be the service's, because searching a process tree is slow.
   */
  private readonly accepted = new Map<number, number>();
  private isClosed = false;

  /**
   * Connects to the service; rejects with the error of the first address.
   */
  async dial(target: DialTarget, options: DialOptions = {}): Promise<net.Socket> {
    const [first, second] = ADDRESSES;
    try {
      return await this.dialAddress(target, first, options);
    } catch (error) {
      try {
        return await this.dialAddress(target, second, options);
      } catch {
        throw error;
      }
    }
  }

  /** Resolves when something listens on `port`, or after `maxMs`; at once if that cannot be observed. */
  async listening(port: number, maxMs: number): Promise<void> {
    const lookup = await this.lookup;
    const until = performance.now() + maxMs;
    while (lookup !== UNKNOWN_LISTENERS && !this.isClosed && performance.now() < until) {
      if (ADDRESSES.some((address) => lookup.find(address, port))) return;
      await pause(LOOK_MS);
    }
  }

  close(): void {
    this.isClosed = true;
    void this.lookup.then((lookup) => lookup.close());
  }

  /** A connection counts only if the same listener is there before and after it. */
  private async dialAddress(target: DialTarget, address: string, options: DialOptions): Promise<net.Socket> {
    const { find } = await this.lookup;
    for (let left = MAX_DIALS; left > 0; left -= 1) {
      const before = find(address, target.port);
      if (before && !(await this.accepts(before, target)))
        throw new Error(`user ${userName(before.uid)} listens there, on ${address}`);
      const socket = await connect(target.port, address, options);
      if (find(address, target.port)?.inode === before?.inode) return socket;
      socket.destroy();
    }
    throw new Error(`what listens there, on ${address}, changes all the time`);
  }

  private async accepts(listener: SocketOwner, { port, pid }: DialTarget): Promise<boolean> {
    if (this.accepted.get(port) === listener.inode) return true;
    if (!(await mayServe(listener, pid))) return false;
    this.accepted.set(port, listener.inode);
    return true;
  }
}
