// The order of requests that a client sends on one connection without waiting for answers (pipelining).
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { readAhead } from './tunnel.ts';

/** Requests that may wait on one connection for the answer to the first. */
const MAX_PIPELINED = 512;

interface ConnectionQueue {
  /** The response to the latest request. */
  latest: ServerResponse | undefined;
  /** Requests that wait for the answers to earlier ones. */
  waitingCount: number;
}

/** Lets one request of each client connection go on at a time. */
export class RequestPipeline {
  private readonly queues = new WeakMap<Duplex, ConnectionQueue>();

  /**
   * Calls `carry` when all earlier requests of the connection are answered. Each would hold a connection to
   * the agent otherwise, and a response without a socket is not told that its client is gone. A client that
   * lets too many requests wait is disconnected: a connection cannot be paused, because every end of a
   * request resumes it.
   */
  enqueue(request: IncomingMessage, response: ServerResponse, carry: () => void): void {
    const queue = this.queueOf(request.socket);
    queue.latest = response;
    if (response.socket) {
      carry();
      return;
    }
    queue.waitingCount += 1;
    if (queue.waitingCount > MAX_PIPELINED) request.socket.destroy();
    response.once('socket', (socket) => {
      queue.waitingCount -= 1;
      queueMicrotask(() => socket.destroyed || carry());
    });
  }

  /**
   * Calls `carry` when all earlier requests of `socket` are answered, because the bytes of an upgraded
   * connection would mix with their answers. `early` is what the client has sent after the head of its
   * upgrade; `carry` is given all of it.
   */
  enqueueUpgrade(socket: Duplex, early: Buffer, carry: (early: Buffer) => void): void {
    const { latest } = this.queueOf(socket);
    if (!latest || latest.closed) {
      carry(early);
      return;
    }
    const stopReading = readAhead(socket, early);
    latest.once('close', () => {
      if (socket.writable) carry(stopReading());
    });
  }

  private queueOf(socket: Duplex): ConnectionQueue {
    const known = this.queues.get(socket);
    if (known) return known;
    const queue: ConnectionQueue = { latest: undefined, waitingCount: 0 };
    this.queues.set(socket, queue);
    return queue;
  }
}
