// The gateway as the main thread sees it: takes its port when the daemon starts, starts its thread with the
// first connection, and sends it all routes.
import type { Socket } from 'node:net';
import { type HeldPort, holdPort } from '../adapters/held_port.ts';
import { listenFailure } from '../front/server/listen.ts';
import type { GatewayRoute, RoutesProtocol } from '../protocol/gateway.ts';
import { actor, type Node } from '../runtime/actor.ts';
import type { Settings } from '../settings/config.ts';
import { report } from './daemon_log.ts';
import type { ThreadSupervisor } from './thread_supervisor.ts';

export interface GatewayControllerOptions {
  node: Node;
  threads: ThreadSupervisor;
  settings: Settings;
  /** Berth's own tokens, which are never passed on. */
  tokens: string[];
  /** Returns the current services and agents. */
  routes: () => GatewayRoute[];
  /** Called with the port of the gateway; null: there is none. */
  onPort: (port: number | null) => void;
  /** Describes the program that holds a port. */
  describePortHolder: (port: number) => Promise<string>;
}

/** At `routes`, on the front thread. State: none of its own. Rebuilt from: nothing. */
const routesActor = actor<RoutesProtocol, GatewayController>('routes', (_context, controller) => ({
  flush: () => {
    controller.flushRoutes();
    return null;
  },
}));

export class GatewayController {
  private readonly options: GatewayControllerOptions;
  private holding: Promise<HeldPort | null> | undefined;
  private opening: Promise<boolean> | undefined;
  /** The routes last sent, as JSON; null: the gateway's thread is not running. */
  private sentRoutes: string | null = null;
  private isUpdating = false;
  private tokens: string[];
  private allowedExtensions: string[];

  constructor(options: GatewayControllerOptions) {
    const { settings, tokens, threads } = options;
    this.options = options;
    this.tokens = tokens;
    this.allowedExtensions = settings.allowed_extensions;
    threads.onRestarted(async (name) => {
      if (name !== 'gateway') return;
      const held = await this.hold();
      if (held) await this.listen(held);
    });
  }

  /**
   * Takes the port and keeps it until `close`: docs/reference.md "Gateway". Resolves with null when the
   * gateway is off or another program has the port.
   */
  hold(): Promise<HeldPort | null> {
    this.holding ??= this.take();
    return this.holding;
  }

  /** Must be called when a route may have changed. The gateway gets all routes, once per turn. */
  onRoutesChanged(): void {
    if (this.sentRoutes === null || this.isUpdating) return;
    this.isUpdating = true;
    setImmediate(() => this.flushRoutes());
  }

  /** Sends the gateway the routes if one may have changed since they were last sent. */
  flushRoutes(): void {
    if (!this.isUpdating) return;
    this.isUpdating = false;
    this.sendRoutes();
  }

  reload(tokens: string[], allowedExtensions: string[]): void {
    this.tokens = tokens;
    this.allowedExtensions = allowedExtensions;
    if (this.opening) this.gateway().tell('accessRules', { tokens, allowedExtensions });
  }

  /** Releases the port. */
  async close(): Promise<void> {
    (await this.holding)?.close();
  }

  private gateway() {
    return this.options.node.ref('gateway');
  }

  private async take(): Promise<HeldPort | null> {
    const { port } = this.options.settings.gateway;
    if (port === -1) return null;
    try {
      const held = await holdPort(port, (socket) => void this.handOver(socket));
      if ('refused' in held) throw await listenFailure(held, { ...this.options, port });
      this.options.onPort(held.port);
      return held;
    } catch (error) {
      this.reportAbsence(error);
      return null;
    }
  }

  /** Hands a connection that arrived before the gateway's thread was up to that thread, unread. */
  private async handOver(socket: Socket): Promise<void> {
    socket.on('error', () => socket.destroy());
    const held = await this.holding;
    if (held && (await this.open(held))) {
      const descriptor = await held.shareConnection(socket);
      if (descriptor !== null) this.gateway().tell('adopt', { descriptors: [descriptor] });
    }
    socket.destroy();
  }

  /** Starts the gateway's thread if necessary. Resolves with false if it cannot. */
  private open(held: HeldPort): Promise<boolean> {
    this.opening ??= this.start(held);
    return this.opening;
  }

  private async start(held: HeldPort): Promise<boolean> {
    const { node, threads } = this.options;
    try {
      await node.start('routes', routesActor, this);
      await threads.ensure('gateway');
      await this.listen(held);
      return true;
    } catch (error) {
      held.close();
      this.holding = Promise.resolve(null);
      this.reportAbsence(error);
      return false;
    }
  }

  private async listen(held: HeldPort): Promise<void> {
    const { tokens, allowedExtensions } = this;
    this.sentRoutes = null;
    this.sendRoutes();
    await this.gateway().ask('listen', {
      port: held.port,
      descriptors: await held.share(),
      agentDomain: this.options.settings.agents.domain,
      allowedExtensions,
      tokens,
    });
  }

  private sendRoutes(): void {
    const rows = this.options.routes();
    const text = JSON.stringify(rows);
    if (text === this.sentRoutes) return;
    this.sentRoutes = text;
    this.gateway().tell('routes', { rows });
  }

  private reportAbsence(error: unknown): void {
    report(`there is no gateway: ${(error as Error).message}`);
    this.options.onPort(null);
  }
}
