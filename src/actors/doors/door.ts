// State: one listener on loopback and its connections. Rebuilt from: its service, which sends the door's
// settings again when the actor or its thread has ended. Part of the data plane: only bytes pass through this
// actor.
import { type LoopbackListener, listenOnLoopback } from '../../adapters/loopback_listener.ts';
import type { Libc } from '../../adapters/process/libc.ts';
import type { LoopbackPeers } from '../../adapters/process/loopback_peers.ts';
import type { ServiceDialer } from '../../adapters/service_dialer.ts';
import { serviceAddress } from '../../protocol/address.ts';
import type { DoorProtocol, DoorSettings } from '../../protocol/doors.ts';
import { fail } from '../../protocol/errors.ts';
import { actor, type Context } from '../../runtime/actor.ts';
import { DoorConnections } from './door_connections.ts';

export interface DoorConfig {
  /** One per thread. */
  dialer: ServiceDialer;
  libc: Libc;
  peers: LoopbackPeers;
}

class Door {
  private readonly context: Context;
  private readonly name: string;
  private readonly connections: DoorConnections;
  private listener: LoopbackListener | null = null;
  private settings: DoorSettings | null = null;
  private cancelIdle = (): void => {};

  constructor(context: Context, { dialer, libc, peers }: DoorConfig) {
    this.context = context;
    this.name = context.address.slice('door:'.length);
    const service = context.ref(serviceAddress(this.name));
    this.connections = new DoorConnections({
      clock: context.clock,
      dialer,
      libc,
      peers,
      onKnock: () => service.tell('knocked', {}),
    });
    context.scope.defer(() => this.close());
    // After a crash the service sends the settings again; before the first `set` this is harmless.
    service.tell('doorLost', {});
  }

  async set(settings: DoorSettings): Promise<null> {
    if (this.listener?.port !== settings.port) await this.listen(settings.port);
    this.settings = settings;
    this.connections.setTarget(settings.target);
    this.awaitIdle();
    return null;
  }

  rest(): { held: boolean } {
    const { settings } = this;
    if (!settings || !this.isIdle(settings)) return { held: false };
    this.settings = { ...settings, target: null, idleMs: null };
    this.connections.setTarget(null);
    return { held: true };
  }

  refuse(): null {
    this.connections.refuse();
    return null;
  }

  /**
   * Stops accepting connections and resets held ones. The actor ends once the remaining connections close.
   */
  shut(): null {
    this.cancelIdle();
    this.settings = null;
    void this.listener?.close();
    this.listener = null;
    this.connections.setTarget(null);
    this.connections.refuse();
    this.connections.whenEmpty(() => {
      if (!this.settings) this.context.end();
    });
    return null;
  }

  private async close(): Promise<void> {
    this.cancelIdle();
    const closing = this.listener?.close();
    this.connections.close();
    await closing;
  }

  private async listen(port: number): Promise<void> {
    // Open connections continue, and the port is free at once.
    void this.listener?.close();
    this.listener = null;
    const listener = await listenOnLoopback(port, (socket) => this.connections.accept(socket), {
      paused: true,
    });
    if ('refused' in listener)
      throw fail(
        'port_in_use',
        `the door of ${this.name} cannot listen on port ${port}: ${listener.refused}`,
      );
    this.listener = listener;
  }

  private isIdle({ target, idleMs }: DoorSettings): boolean {
    const { movedAt, isAwaited } = this.connections;
    const sinceMs = this.context.clock.monotonic() - movedAt;
    return target !== null && idleMs !== null && !isAwaited && sinceMs >= idleMs;
  }

  /**
   * Tells the service when no byte has moved for the idle time. One timer for all connections keeps an idle
   * door cheap.
   */
  private awaitIdle(): void {
    this.cancelIdle();
    const { settings, connections, context } = this;
    if (!settings?.target || settings.idleMs === null) return;
    const leftMs = connections.movedAt + settings.idleMs - context.clock.monotonic();
    this.cancelIdle = context.clock.after(Math.max(0, leftMs), () => {
      if (this.settings && this.isIdle(this.settings))
        context.ref(serviceAddress(this.name)).tell('idle', {});
      else this.awaitIdle();
    });
  }
}

/** `door:<name>`: docs/reference.md "Sleep of services". */
export const doorActor = actor<DoorProtocol, DoorConfig>('door', (context, config) => {
  const door = new Door(context, config);
  return {
    set: (settings) => door.set(settings),
    rest: () => door.rest(),
    refuse: () => door.refuse(),
    close: () => door.shut(),
  };
});
