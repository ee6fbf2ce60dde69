// State: the connections of other Berths and the streams in them. Rebuilt from: nothing; they reconnect. This
// is the data plane: bytes only go through this actor's thread.
import type { MuxEvents } from '../../adapters/relay/mux.ts';
import type { MuxStream } from '../../adapters/relay/mux_stream.ts';
import { readOpenRequest } from '../../adapters/relay/open_request.ts';
import {
  listenForRelays,
  type RelayAddress,
  type RelayServer,
  type RelayServerOptions,
} from '../../adapters/relay/relay_server.ts';
import { newTicket, type ReadTicket, readTicket, type TicketHolder } from '../../adapters/relay/ticket.ts';
import { fail } from '../../protocol/errors.ts';
import type { RelayHolder, RelayProtocol } from '../../protocol/relay.ts';
import { actor, type Context, tolerateFailure } from '../../runtime/actor.ts';
import { RELAY } from '../../settings/cloud_limits.ts';
import { RelayPorts } from './relay_ports.ts';
import type { TetherConfig } from './tether_clients.ts';

export interface RelayConfig extends Omit<TetherConfig, 'link'> {
  address: RelayAddress;
  /** Whether clients reach it through a proxy, at the API's address. */
  isBehindProxy: boolean;
  /** Signs the tickets. */
  cloudToken: string;
  /** The most streams that one token or person may have open; 0: no limit. */
  maxStreams: number;
  /** Receives the port it listens on, or the error if its port is taken. */
  onListening(result: { port: number } | { error: Error }): void;
}

async function mayTether(
  context: Context,
  { subjects, expiresAt }: RelayHolder,
  workloadId: string,
): Promise<boolean> {
  if (expiresAt !== null && expiresAt <= context.clock.now()) return false;
  const answer = context.ref('principals').ask('mayTether', { subjects, workloadId });
  return (await tolerateFailure(answer, () => null))?.isAllowed ?? false;
}

/** Tickets that were made before the rights of their holder have changed. They are short-lived. */
class EndedTickets {
  /** When the rights of each subject have changed (epoch milliseconds), in that order. */
  private readonly changedAt = new Map<string, number>();

  note(subject: string, now: number): void {
    this.changedAt.delete(subject);
    this.changedAt.set(subject, now);
    for (const [old, at] of this.changedAt) {
      if (at >= now - RELAY.ticketMs) return;
      this.changedAt.delete(old);
    }
  }

  /** `ticket`, unless the rights of its holder have changed since it was made. */
  valid(ticket: ReadTicket | null): ReadTicket | null {
    const isEnded = ticket?.holder?.subjects.some(
      (subject) => ticket.madeAt <= (this.changedAt.get(subject) ?? -1),
    );
    return isEnded ? null : ticket;
  }
}

interface RelayClient {
  context: Context;
  ports: RelayPorts;
  /** Who holds the ticket now; null: an unrestricted user. */
  holder: () => TicketHolder;
  /** Why a holder may not open the stream that it has just opened; null: it may. */
  refusal: (holder: RelayHolder) => string | null;
}

/** Each stream names its workload and is authorised for it: a ticket alone gives access to no workload. */
async function accept(
  { context, ports, holder, refusal }: RelayClient,
  stream: MuxStream,
  body: Buffer,
): Promise<void> {
  const request = readOpenRequest(body);
  const whose = holder();
  const reason = whose && refusal(whose);
  if (!request) stream.reset('failed', 'the request names no port of a workload');
  else if (reason !== null) stream.reset('refused', reason);
  else if (whose === null || (await mayTether(context, whose, request.workloadId)))
    ports.accept(stream, request, whose);
  else stream.reset('failed', `there is no workload ${request.workloadId} that this token may tether`);
}

const streamEvents = (client: RelayClient): MuxEvents => ({
  onStream: (stream, request) => {
    accept(client, stream, request).catch((error: unknown) => client.context.crash(error));
  },
});

/** Why `holder` may not open the stream that it has just opened; null: it may. docs/reference.md "Quotas". */
function quotaRefusal(
  maxStreams: number,
  server: RelayServer | null,
  { subjects: [own = ''] }: RelayHolder,
): string | null {
  const isTooMany = maxStreams > 0 && (server?.streamsOf(own) ?? 0) > maxStreams;
  return isTooMany ? `you have ${maxStreams} connections, the most allowed (cloud.quota_connections)` : null;
}

/** Who has the workloads: connections to anybody else end. */
class WorkloadsHolder {
  /** Its relay; null: this one. `nobody`: none that is known. */
  relay: ReturnType<RelayServerOptions['passesTo']> = null;
  server: RelayServer | null = null;
  private readonly context: Context;
  private readonly ports: RelayPorts;
  private isWatching = false;

  constructor(context: Context, ports: RelayPorts) {
    this.context = context;
    this.ports = ports;
  }

  change(now: WorkloadsHolder['relay']): null {
    const { relay: before, server, ports } = this;
    this.relay = now;
    // Nothing here knows any more what their holders may do, or where the workloads' pods are.
    if (now !== null && before === null) {
      server?.endOwn('this Berth no longer has the clusters');
      ports.closeAll();
    }
    // A Berth that stands still, or whose machine has vanished, does not end them itself.
    server?.endPassed(now === 'nobody' ? null : now);
    return null;
  }

  /** Must be called for each connection that is carried here, so that it ends with the cloud thread. */
  watch(): void {
    if (this.isWatching) return;
    this.isWatching = true;
    this.context.watch('workloads', () => {
      this.isWatching = false;
      if (this.relay === null) this.change('nobody');
    });
  }
}

/** `relay`: docs/reference.md "Relay". */
export const relayActor = actor<RelayProtocol, RelayConfig>('relay', async (context, config) => {
  const { clock, scope } = context;
  const ended = new EndedTickets();
  // Comes after the ports are closed, which tell their clients the reason.
  scope.defer(async () => workloads.server?.close());
  const ports = new RelayPorts(context, config);
  const workloads = new WorkloadsHolder(context, ports);
  const refusal = (by: RelayHolder) => quotaRefusal(config.maxStreams, workloads.server, by);
  const listen = async (): Promise<void> => {
    try {
      const opened = await listenForRelays({
        ...config.address,
        clock: config.networkClock,
        passesTo: () => workloads.relay,
        readTicket: (ticket) => ended.valid(readTicket(config.cloudToken, ticket, clock.now())),
        eventsOf(holder) {
          if (config.isShared) workloads.watch();
          return streamEvents({ context, ports, holder, refusal });
        },
      });
      if (scope.signal.aborted) return await opened.close();
      workloads.server = opened;
      config.onListening({ port: opened.port });
    } catch (error) {
      // Another program has the port, or the certificate cannot be read. Both may be temporary.
      config.onListening({ error: error as Error });
      clock.after(RELAY.listenRetryMs, () => void listen());
    }
  };
  await listen();
  return {
    admit({ holder }) {
      const { server } = workloads;
      if (!server) throw fail('daemon_busy', 'the relay is not listening at the moment');
      const port = config.isBehindProxy ? null : server.port;
      return { ...newTicket(config.cloudToken, clock.now(), holder), port };
    },
    passOn: ({ target }) => workloads.change(target),
    workloadSleeping({ workloadId, isSleeping }) {
      ports.noteSleep(workloadId, isSleeping);
      return null;
    },
    renewCluster({ clusterId }) {
      ports.renew(clusterId);
      return null;
    },
    rightsChanged({ subject }) {
      ended.note(subject, clock.now());
      workloads.server?.end(subject);
      return null;
    },
    relabelled: ({ ids }) => context.replyLater(ports.closeLost(ids).then(() => null)),
    closeCluster({ clusterId }) {
      ports.closeCluster(clusterId);
      return null;
    },
  };
});
