// The gateway as the main thread sees it: takes its port at the start of the daemon, starts its thread with
// the first agent, and sends it all agents.
import type { Socket } from 'node:net';
import { unknownAgentPage, upgradeRefusal } from '../actors/gateway/error_pages.ts';
import { type HeldPort, holdPort } from '../adapters/held_port.ts';
import { listenFailure } from '../front/server/listen.ts';
import type { GatewayRoute } from '../protocol/gateway.ts';
import type { Node } from '../runtime/actor.ts';
import type { Settings } from '../settings/config.ts';
import { HTTP } from '../settings/limits.ts';
import { report } from './daemon_log.ts';
import type { ThreadSupervisor } from './thread_supervisor.ts';

export interface GatewayControllerOptions {
  node: Node;
  threads: ThreadSupervisor;
  settings: Settings;
  /** Our own tokens, which are never passed on. */
  tokens: string[];
  /** Called with the port of the gateway; null: there is none. */
  onPort: (port: number | null) => void;
  /** Describes the program that holds a port. */
  describePortHolder: (port: number) => Promise<string>;
}

/** Answers who connects while there is no agent yet, and no thread that could say so. */
function refuseWithoutAgents(socket: Socket): void {
  socket.setTimeout(HTTP.headTimeoutMs, () => socket.destroy());
  socket.on('error', () => socket.destroy());
  socket.on('end', () => socket.end());
  socket.once('data', (bytes: Buffer) => {
    const accept = /^accept:(.*)$/im.exec(bytes.toString('latin1'))?.[1];
    socket.end(upgradeRefusal(unknownAgentPage(''), accept));
  });
}

export class GatewayController {
  private readonly options: GatewayControllerOptions;
  private rows: GatewayRoute[] = [];
  private holding: Promise<HeldPort | null> | undefined;
  private opening: Promise<number | null> | undefined;
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
   * Takes the port, which stays ours until `close`: docs/reference.md "Gateway". Resolves with null when the
   * gateway is off or somebody else has the port.
   */
  hold(): Promise<HeldPort | null> {
    this.holding ??= this.take();
    return this.holding;
  }

  /** Starts the gateway unless it runs. Resolves with its port, or null when there is none. */
  open(): Promise<number | null> {
    this.opening ??= this.hold().then((held) => held && this.start(held));
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

  /** Lets go of the port. */
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
      const held = await holdPort(port, refuseWithoutAgents);
      if ('refused' in held) throw await listenFailure(held, { ...this.options, port });
      this.options.onPort(held.port);
      return held;
    } catch (error) {
      this.reportAbsence(error);
      return null;
    }
  }

  private async start(held: HeldPort): Promise<number | null> {
    try {
      await this.options.threads.ensure('gateway');
      await this.listen(held);
      return held.port;
    } catch (error) {
      held.close();
      this.holding = Promise.resolve(null);
      this.reportAbsence(error);
      return null;
    }
  }

  private async listen(held: HeldPort): Promise<void> {
    const { tokens, allowedExtensions } = this;
    await this.gateway().ask('listen', {
      port: held.port,
      descriptors: await held.share(),
      agentDomain: this.options.settings.agents.domain,
      allowedExtensions,
      tokens,
    });
    this.gateway().tell('routes', { rows: this.rows });
  }

  private reportAbsence(error: unknown): void {
    report(`there is no gateway: ${(error as Error).message}`);
    this.options.onPort(null);
  }
}
