// A connection to the API server that is made before it is needed: where every stream begins with one, it begins sooner.
import type { Socket } from 'node:net';
import { TETHER } from '../../limits.ts';
import type { Door } from '../dial.ts';

export class WarmDoor {
  readonly door: Door;
  /** Resolves with null when the server did not let it in. */
  private next: Promise<Socket | null> | null = null;
  private closed = false;

  constructor(door: Door) {
    this.door = door;
  }

  /** As `Door.connect`, but takes the connection that is there or on its way. */
  async connect(signal: AbortSignal): Promise<Socket> {
    const next = this.next;
    this.next = null;
    const spare = await next;
    const socket = spare && !spare.destroyed ? spare.setTimeout(0) : await this.door.connect(signal);
    // While the server is busy with the upgrade, and not when the stream's first bytes are on their way.
    if (!this.closed) this.prepare();
    return socket;
  }

  /** Makes one for the next stream. Without it the next one dials for itself, and says what is wrong. */
  private prepare(): void {
    this.next ??= this.door.connect().then(
      (socket) => socket.on('error', () => undefined).setTimeout(TETHER.idleMs, () => socket.destroy()),
      () => null,
    );
  }

  close(): void {
    this.closed = true;
    void this.next?.then((socket) => socket?.destroy());
    this.next = null;
  }
}
