// The order of requests that a client sends on one connection without waiting for answers (pipelining).
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { readAhead } from './tunnel.ts';

/** How many requests may wait on one connection for the answer to the first. */
const MAX_PIPELINED = 512;

interface ConnectionQueue {
  /** The response to the latest request. */
  latest: ServerResponse | undefined;
  /** Requests that wait for the answers to earlier ones. */
  waitingCount: number;
}

/** Lets only one request of each client connection proceed at a time. */
export class RequestPipeline {
  private readonly queues = new WeakMap<Duplex, ConnectionQueue>();

  /**
   * Calls `carry` when all earlier requests of the connection have been answered. Otherwise each would hold a
   * connection to the agent, and a response without a socket is not told that its client has disconnected. A
   * client with too many waiting requests is disconnected: its connection cannot be paused, because every end
   * of a request resumes it.
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
   * Calls `carry` when all earlier requests of `socket` have been answered, because the bytes of an upgraded
   * connection would mix with their answers. `early` is what the client sent after the head of its upgrade;
   * `carry` gets all such bytes.
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
