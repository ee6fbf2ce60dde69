// One connection through a door. Until the service takes it, the client is not read: what it sends waits in
// its socket, so nothing of it is lost and no memory grows. Then both directions are carried as TCP has them:
// each as fast as its receiver takes it, and each ends by itself.
import type { Socket } from 'node:net';
import { BytePump, pumpedSocket } from '../../adapters/byte_pump.ts';
import type { Libc } from '../../adapters/process/libc.ts';
import type { LoopbackPeers } from '../../adapters/process/loopback_peers.ts';

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
  private client: Socket;
  private readonly owner: DoorConnectionOwner;
  private service: Socket | null = null;
  private isOver = false;

  constructor(client: Socket, owner: DoorConnectionOwner, acceptedAt: number) {
    this.client = client;
    this.owner = owner;
    this.acceptedAt = acceptedAt;
    this.watch(client);
  }

  /** The service has not taken it yet. */
  get isHeld(): boolean {
    return this.service === null && !this.isOver;
  }

  /** Whether the client has closed for good. One that has half-closed still reads. */
  isGone(peers: LoopbackPeers): boolean {
    return peers.isPeerGone(this.client) === true;
  }

  /**
   * Carries the client to `service`, a fresh connection that reads by `fromService`. Ends that if the client
   * has gone meanwhile.
   */
  carry(service: Socket, fromService: BytePump, libc: Libc): void {
    const toService = new BytePump(libc, () => this.owner.onMoved());
    const accepted = this.client.removeAllListeners('close');
    const client = this.isOver ? null : pumpedSocket(accepted, toService, libc);
    if (!client) {
      service.destroy();
      this.close();
      return;
    }
    this.client = client;
    this.service = service;
    this.watch(client);
    this.watch(service);
    toService.attach(client, service);
    fromService.attach(service, client);
  }

  /** Resets both sides, so that neither takes what it has for the whole. */
  reset(): void {
    this.client.resetAndDestroy();
    this.service?.resetAndDestroy();
    this.close();
  }

  private watch(socket: Socket): void {
    socket.on('error', () => this.reset());
    socket.on('close', () => this.close());
  }

  /** Each side closes by itself when both have ended. */
  private close(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.owner.onClosed(this);
  }
}
