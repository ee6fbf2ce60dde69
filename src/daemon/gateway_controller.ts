// The gateway as the main thread sees it: starts its thread with the first agent and sends it all agents.

import type { GatewayRoute } from '../protocol/gateway.ts';
import type { Node } from '../runtime/actor.ts';
import type { Settings } from '../settings/config.ts';
import { report } from './daemon_log.ts';
import type { ThreadSupervisor } from './thread_supervisor.ts';

export interface GatewayControllerOptions {
  node: Node;
  threads: ThreadSupervisor;
  settings: Settings;
  /** Our own tokens, which are never passed on. */
  tokens: string[];
  /** Called with the port of the listener; null: off. */
  onPort: (port: number | null) => void;
}

export class GatewayController {
  private readonly options: GatewayControllerOptions;
  private rows: GatewayRoute[] = [];
  private opening: Promise<number | null> | undefined;
  private tokens: string[];
  private allowedExtensions: string[];
  private port: number;

  constructor(options: GatewayControllerOptions) {
    const { settings, tokens, threads } = options;
    this.options = options;
    this.tokens = tokens;
    this.allowedExtensions = settings.allowed_extensions;
    this.port = settings.gateway.port;
    threads.onRestarted(async (name) => {
      if (name === 'gateway') await this.listen();
    });
  }

  /** Starts the gateway unless it runs. Resolves with its port, or null when it is off or cannot listen. */
  open(): Promise<number | null> {
    const isOff = this.options.settings.gateway.port === -1;
    this.opening ??= isOff ? Promise.resolve(null) : this.start();
    return this.opening;
  }

  /** Sets the routes of all agents. */
  setRoutes(rows: GatewayRoute[]): void {
    this.rows = rows;
    if (rows.length === 0 && !this.opening) return;
    void this.open().then((port) => {
      if (port !== null) this.gateway().tell('routes', { rows: this.rows });
    });
  }

  reload(tokens: string[], allowedExtensions: string[]): void {
    this.tokens = tokens;
    this.allowedExtensions = allowedExtensions;
    if (this.opening) this.gateway().tell('accessRules', { tokens, allowedExtensions });
  }

  private gateway() {
    return this.options.node.ref('gateway');
  }

  private async start(): Promise<number | null> {
    const { threads, onPort } = this.options;
    try {
      await threads.ensure('gateway');
      this.port = await this.listen();
      onPort(this.port);
      return this.port;
    } catch (error) {
      report(`there is no gateway: ${(error as Error).message}`);
      onPort(null);
      return null;
    }
  }

  private async listen(): Promise<number> {
    const { tokens, allowedExtensions } = this;
    const agentDomain = this.options.settings.agents.domain;
    const { port } = await this.gateway().ask('listen', {
      port: this.port,
      agentDomain,
      allowedExtensions,
      tokens,
    });
    this.gateway().tell('routes', { rows: this.rows });
    return port;
  }
}
