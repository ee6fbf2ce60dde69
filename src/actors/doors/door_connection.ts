// One connection through a door. The client is not read until the service accepts the connection: its bytes
// wait in the socket, so none is lost and memory does not grow. Then both directions are forwarded as in TCP:
// each at the speed of its receiver, and each closes separately.
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

  /** The service has not accepted the connection yet. */
  get isHeld(): boolean {
    return this.service === null && !this.isOver;
  }

  /** Whether the client has closed for good. One that has half-closed still reads. */
  isGone(peers: LoopbackPeers): boolean {
    return peers.isPeerGone(this.client) === true;
  }

  /**
   * Forwards between the client and `service`, a fresh connection that reads by `fromService`. Ends that
   * connection if the client has disconnected meanwhile.
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

  /** Resets both sides, so that neither mistakes partial data for the whole. */
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
