// A connection to the API server that is made before it is needed: where every stream begins with one, it begins sooner.
import type { Socket } from 'node:net';
import { TETHER } from '../../settings/limits.ts';
import type { ClusterDialer } from '../cluster_dialer.ts';

export class SpareConnection {
  readonly dialer: ClusterDialer;
  /** Resolves with null when the server did not let it in. */
  private spare: Promise<Socket | null> | null = null;
  private isClosed = false;

  constructor(door: ClusterDialer) {
    this.dialer = door;
  }

  /** As `Door.connect`, but takes the connection that is there or on its way. */
  async connect(signal: AbortSignal): Promise<Socket> {
    const next = this.spare;
    this.spare = null;
    const spare = await next;
    const socket = spare && !spare.destroyed ? spare.setTimeout(0) : await this.dialer.connect(signal);
    // While the server is busy with the upgrade, and not when the stream's first bytes are on their way.
    if (!this.isClosed) this.dialSpare();
    return socket;
  }

  /** Makes one for the next stream. Without it the next one dials for itself, and says what is wrong. */
  private dialSpare(): void {
    this.spare ??= this.dialer.connect().then(
      (socket) =>
        socket.on('error', () => undefined).setTimeout(TETHER.connectionIdleMs, () => socket.destroy()),
      () => null,
    );
  }

  close(): void {
    this.isClosed = true;
    void this.spare?.then((socket) => socket?.destroy());
    this.spare = null;
  }
}
