// A connection to the API server made in advance, so that a stream which needs a connection of its own begins
// sooner.
import type { Socket } from 'node:net';
import type { Clock } from '../../runtime/actor.ts';
import { TETHER } from '../../settings/cloud_limits.ts';
import type { ClusterDialer } from '../cluster_dialer.ts';

interface Spare {
  socket: Socket;
  cancelExpiry: () => void;
}

/** Keeps one connection ready for the next caller of `connect`. */
export class SpareConnection {
  private readonly dialer: ClusterDialer;
  private readonly clock: Clock;
  /** Resolves with null when the server could not be reached. */
  private spare: Promise<Spare | null> | null = null;
  private isClosed = false;

  constructor(dialer: ClusterDialer, clock: Clock) {
    this.dialer = dialer;
    this.clock = clock;
  }

  /** Like `ClusterDialer.connect`, but uses the spare connection if there is one, or one being made. */
  async connect(signal: AbortSignal): Promise<Socket> {
    const next = this.spare;
    this.spare = null;
    const spare = await next;
    spare?.cancelExpiry();
    const socket = spare && !spare.socket.destroyed ? spare.socket : await this.dialer.connect(signal);
    // Now the server is busy with the upgrade; later, the stream's first bytes would be on their way.
    if (!this.isClosed) this.dialSpare();
    return socket;
  }

  /** Dials for the next stream. If that fails, the next stream dials itself and reports the error. */
  private dialSpare(): void {
    this.spare ??= this.dialer.connect().then(
      (socket) => {
        const cancelExpiry = this.clock.after(TETHER.connectionIdleMs, () => socket.destroy());
        socket.on('error', () => undefined).on('close', cancelExpiry);
        return { socket, cancelExpiry };
      },
      () => null,
    );
  }

  close(): void {
    this.isClosed = true;
    void this.spare?.then((spare) => spare?.socket.destroy());
    this.spare = null;
  }
}
