// The workload ports to which a relay carries connections.
import type { MuxStream } from '../../adapters/relay/mux_stream.ts';
import type { OpenRequest } from '../../adapters/relay/open_request.ts';
import type { RelayHolder, TetherOpener } from '../../protocol/relay.ts';
import { newUlid } from '../../protocol/ulid.ts';
import { type Context, tolerateFailure } from '../../runtime/actor.ts';
import { RELAY } from '../../settings/cloud_limits.ts';
import { StreamClient } from './stream_client.ts';
import { TetherClients, type TetherConfig } from './tether_clients.ts';

/** One port, as long as there are connections to it. */
interface RelayPort {
  readonly request: OpenRequest;
  readonly clients: TetherClients;
  /** Its id in the audit log. */
  readonly tetherId: string;
  /** The subjects of who opened it, its own first; null: someone without limits. */
  readonly owners: readonly string[] | null;
  /** null: not known yet, or the workload is unknown. */
  clusterId: string | null;
  /** Monotonic time since when there have been no connections; null: there are some. */
  idleSince: number | null;
}

/** Assigns each stream to the port of the workload that it requests. */
export class RelayPorts {
  private readonly context: Context;
  private readonly config: Omit<TetherConfig, 'link'>;
  private readonly ports = new Map<string, RelayPort>();

  constructor(context: Context, config: Omit<TetherConfig, 'link'>) {
    this.context = context;
    this.config = config;
    context.scope.defer(() => this.closeAll());
    context.clock.every(RELAY.idlePortMs / 4, () => this.review());
  }

  /**
   * Carries a new stream of `holder`; null: of someone without limits. Each holder has separate ports, so a
   * wake counts against the quota of the one who causes it.
   */
  accept(stream: MuxStream, request: OpenRequest, holder: RelayHolder | null): void {
    const owner = holder?.subjects[0] ?? null;
    const key = JSON.stringify([request, owner]);
    const known = this.ports.get(key);
    const most = this.mostFor(owner);
    if (!known && most !== null) {
      stream.reset('refused', `${most} ports of workloads are in use, or were a moment ago`);
      return;
    }
    const port = known ?? this.open(key, request, holder);
    port.idleSince = null;
    port.clients.accept(new StreamClient(stream));
  }

  /** The bound that `owner` has reached; null: none. */
  private mostFor(owner: string | null): number | null {
    if (this.ports.size >= RELAY.maxPorts) return RELAY.maxPorts;
    if (owner === null) return null;
    const own = [...this.ports.values()].filter((port) => port.owners?.[0] === owner);
    return own.length >= RELAY.maxOfOne ? RELAY.maxOfOne : null;
  }

  noteSleep(workloadId: string, isSleeping: boolean): void {
    for (const { request, clients } of this.ports.values())
      if (request.workloadId === workloadId) clients.noteSleep(isSleeping);
  }

  renew(clusterId: string): void {
    for (const port of this.ports.values())
      if ((port.clusterId ?? clusterId) === clusterId) port.clients.renew();
  }

  /** Closes the ports of these workloads whose owners may not use them any more. */
  async closeLost(workloadIds: readonly string[]): Promise<void> {
    const ids = new Set(workloadIds);
    for (const port of [...this.ports.values()]) {
      const { owners, request } = port;
      if (owners === null || !ids.has(request.workloadId)) continue;
      const message = { owners, workloadId: request.workloadId };
      const asked = this.context.ref('principals').ask('mayKeep', message);
      const answer = await tolerateFailure(asked, () => null);
      if (answer?.isAllowed === false) this.close((other) => other === port);
    }
  }

  closeAll(): void {
    this.close(() => true);
  }

  closeCluster(clusterId: string): void {
    this.close((port) => port.clusterId === clusterId);
  }

  private open(key: string, request: OpenRequest, holder: RelayHolder | null): RelayPort {
    const { context, config } = this;
    const owners = holder?.subjects;
    const numbers = { connections: 0, bytesIn: 0, bytesOut: 0, lastError: null };
    // Its numbers are not reported: the owner of the local port counts the connections.
    const carried = { ...request, ...(owners && { owners }) };
    const clients = new TetherClients(context, carried, numbers, { ...config, link: null }, () => undefined);
    const port: RelayPort = {
      request,
      clients,
      tetherId: newUlid(context.clock.now()),
      owners: owners ?? null,
      clusterId: null,
      idleSince: null,
    };
    this.ports.set(key, port);
    this.record(port, holder?.opener).catch((error: unknown) => context.crash(error));
    return port;
  }

  private async record(port: RelayPort, opener: TetherOpener | undefined): Promise<void> {
    const id = port.request.workloadId;
    const found = await tolerateFailure(this.context.ref('workloads').ask('referenceOf', { id }), () => null);
    port.clusterId = found?.clusterId ?? null;
    this.tellChange(port, true, opener);
  }

  private tellChange(
    { request, tetherId, clusterId }: RelayPort,
    isOpen: boolean,
    opener?: TetherOpener,
  ): void {
    if (clusterId === null) return;
    const message = { id: request.workloadId, clusterId, tetherId, isOpen, reason: null };
    this.context.ref('workloads').tell('tetherChanged', { ...message, ...(opener && { opener }) });
  }

  private close(isMeant: (port: RelayPort) => boolean): void {
    for (const [key, port] of this.ports) {
      if (!isMeant(port)) continue;
      this.ports.delete(key);
      port.clients.close();
      this.tellChange(port, false);
    }
  }

  /** Drops ports that have not been used for a while. */
  private review(): void {
    const now = this.context.clock.monotonic();
    for (const port of this.ports.values())
      port.idleSince = port.clients.isEmpty ? (port.idleSince ?? now) : null;
    this.close(({ idleSince }) => idleSince !== null && now - idleSince >= RELAY.idlePortMs);
  }
}
