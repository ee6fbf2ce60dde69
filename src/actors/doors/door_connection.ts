// One connection through a door. Until the service takes it, what the client sends waits in its socket, so
// nothing of it is lost and no memory grows. Then both directions are carried as TCP has them: each as fast
// as its receiver takes it, and each ends by itself.
import type { Socket } from 'node:net';

export interface DoorConnectionOwner {
  /** A byte was carried, in either direction. */
  onMoved(): void;
  /** The connection is over. */
  onClosed(connection: DoorConnection): void;
}

/** A client of a door. It closes itself when both sides have ended, or one has failed. */
export class DoorConnection {
  /** Monotonic milliseconds. */
  readonly acceptedAt: number;
  private readonly client: Socket;
  private readonly owner: DoorConnectionOwner;
  private service: Socket | null = null;
  private isOver = false;

  constructor(client: Socket, owner: DoorConnectionOwner, acceptedAt: number) {
    this.client = client;
    this.owner = owner;
    this.acceptedAt = acceptedAt;
    client.on('error', () => this.reset());
    client.on('close', () => this.close());
  }

  /** The service has not taken it yet. */
  get isHeld(): boolean {
    return this.service === null && !this.isOver;
  }

  /** Carries the client to `service`, a fresh connection. Ends that if the client has gone meanwhile. */
  carry(service: Socket): void {
    if (this.isOver) {
      service.destroy();
      return;
    }
    this.service = service;
    service.on('error', () => this.reset());
    service.on('close', () => this.close());
    this.pump(this.client, service);
    this.pump(service, this.client);
  }

  /** Resets both sides, so that neither takes what it has for the whole. */
  reset(): void {
    this.client.resetAndDestroy();
    this.service?.resetAndDestroy();
    this.close();
  }

  private pump(from: Socket, to: Socket): void {
    from.on('data', (bytes: Buffer) => {
      this.owner.onMoved();
      if (!to.write(bytes)) from.pause();
    });
    to.on('drain', () => from.resume());
    from.on('end', () => to.end());
  }

  /** Each side closes by itself when both have ended. */
  private close(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.owner.onClosed(this);
  }
}
