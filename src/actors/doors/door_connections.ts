// The clients of one open door: held while there is no target, then connected to it; retried until the target
// accepts them.
import type { Socket } from 'node:net';
import { BytePump } from '../../adapters/byte_pump.ts';
import type { Libc } from '../../adapters/process/libc.ts';
import type { LoopbackPeers } from '../../adapters/process/loopback_peers.ts';
import type { ServiceDialer } from '../../adapters/service_dialer.ts';
import type { DoorTarget } from '../../protocol/doors.ts';
import type { Clock } from '../../runtime/actor.ts';
import { DOOR } from '../../settings/limits.ts';
import { DoorConnection, type DoorConnectionOwner } from './door_connection.ts';

export interface DoorConnectionsOptions {
  clock: Clock;
  dialer: ServiceDialer;
  libc: Libc;
  peers: LoopbackPeers;
  /** A client waits, and there is no target. Called again while it waits. */
  onKnock: () => void;
}

/** Owned by the door's actor as long as its listener is open. */
export class DoorConnections implements DoorConnectionOwner {
  /** When the last connection arrived or the last byte moved; monotonic milliseconds. */
  movedAt: number;
  private readonly options: DoorConnectionsOptions;
  private readonly held = new Set<DoorConnection>();
  private readonly all = new Set<DoorConnection>();
  private target: DoorTarget | null = null;
  /** The target has accepted a connection, so it listens: a later refusal is its own response. */
  private isReached = false;
  private stopTicks: (() => void) | null = null;
  private cancelLook: (() => void) | null = null;
  private knockedAt = Number.NEGATIVE_INFINITY;
  private onEmpty = (): void => {};

  constructor(options: DoorConnectionsOptions) {
    this.options = options;
    this.movedAt = options.clock.monotonic();
  }

  /** Whether a client waits for the service. */
  get isAwaited(): boolean {
    return this.held.size > 0;
  }

  accept(socket: Socket): void {
    const now = this.options.clock.monotonic();
    this.movedAt = now;
    if (this.all.size >= DOOR.maxConnections || this.held.size >= DOOR.maxHeld) {
      socket.on('error', () => undefined).resetAndDestroy();
      return;
    }
    const connection = new DoorConnection(socket, this, now);
    this.all.add(connection);
    this.hold(connection);
    if (this.target) void this.dial(connection, this.target, now);
    else this.lookSoon();
  }

  /** Connects held clients to `target`; null: holds clients from now on. */
  setTarget(target: DoorTarget | null): void {
    if (target?.run === this.target?.run) return;
    this.target = target;
    this.isReached = false;
    this.knockedAt = Number.NEGATIVE_INFINITY;
    const now = this.options.clock.monotonic();
    // A service that has just woken gets its full idle time.
    this.movedAt = now;
    if (target) for (const connection of this.held) void this.dial(connection, target, now);
    else if (this.isAwaited) this.knock(now);
  }

  /** Resets held connections. */
  refuse(): void {
    for (const connection of [...this.held]) connection.reset();
  }

  /** Calls `onEmpty` when no connection is open. */
  whenEmpty(onEmpty: () => void): void {
    if (this.all.size === 0) onEmpty();
    else this.onEmpty = onEmpty;
  }

  /** Resets every connection. */
  close(): void {
    for (const connection of [...this.all]) connection.reset();
  }

  onMoved(): void {
    this.movedAt = this.options.clock.monotonic();
  }

  onClosed(connection: DoorConnection): void {
    this.all.delete(connection);
    this.release(connection);
    if (this.all.size === 0) this.onEmpty();
  }

  private hold(connection: DoorConnection): void {
    this.held.add(connection);
    this.stopTicks ??= this.options.clock.every(DOOR.checkIntervalMs, () => this.tick());
  }

  private release(connection: DoorConnection): void {
    this.held.delete(connection);
    if (this.held.size > 0) return;
    this.stopTicks?.();
    this.stopTicks = null;
    this.cancelLook?.();
    this.cancelLook = null;
  }

  /** Checks soon whether a client that only probes the port, such as a port scan, has disconnected. */
  private lookSoon(): void {
    this.cancelLook ??= this.options.clock.after(DOOR.probeDelayMs, () => {
      this.cancelLook = null;
      this.tick();
    });
  }

  /**
   * While clients wait for a service that is not there: resets those that have gone or have waited too long,
   * and sees that the others are heard. What has gone is carried all the same if the service is there.
   */
  private tick(): void {
    const { clock, peers } = this.options;
    const now = clock.monotonic();
    for (const connection of [...this.held])
      if (now - connection.acceptedAt >= DOOR.holdMs || (!this.target && connection.isGone(peers)))
        connection.reset();
    if (this.isAwaited && !this.target) this.knock(now);
  }

  private knock(now: number): void {
    if (now - this.knockedAt < DOOR.knockIntervalMs) return;
    this.knockedAt = now;
    this.options.onKnock();
  }

  /** Tries until the service takes the connection, it is resolved otherwise, or there is another target. */
  private async dial(connection: DoorConnection, target: DoorTarget, since: number): Promise<void> {
    const { clock, dialer } = this.options;
    try {
      const pump = new BytePump(this.options.libc, () => this.onMoved());
      const service = await dialer.dial(target, { allowHalfOpen: true, onread: pump.onread });
      if (this.target !== target) {
        // The target that accepted it is about to end; its successor gets the connection.
        service.destroy();
        return;
      }
      this.isReached = true;
      connection.carry(service, pump, this.options.libc);
      this.release(connection);
    } catch {
      if (this.target !== target || !connection.isHeld) return;
      const triedMs = clock.monotonic() - since;
      if (this.isReached && triedMs >= DOOR.refusedRetryMs) connection.reset();
      else clock.after(DOOR.redialMs, () => this.retry(connection, target, since));
    }
  }

  private retry(connection: DoorConnection, target: DoorTarget, since: number): void {
    if (this.target === target && connection.isHeld) void this.dial(connection, target, since);
  }
}
