// State: the connections of other Berths and the streams in them. Rebuilt from: nothing; they connect again.
// This is the data plane: bytes go through this actor's thread alone.
import { listenForRelays, type RelayAddress, type RelayServer } from '../../adapters/relay/relay_server.ts';
import { isTicketValid, newTicket } from '../../adapters/relay/ticket.ts';
import { fail } from '../../protocol/errors.ts';
import type { RelayProtocol } from '../../protocol/relay.ts';
import { actor } from '../../runtime/actor.ts';
import { RELAY } from '../../settings/cloud_limits.ts';
import { RelayPorts } from './relay_ports.ts';
import type { TetherConfig } from './tether_clients.ts';

export interface RelayConfig extends Omit<TetherConfig, 'link'> {
  address: RelayAddress;
  /** Whether clients reach it through a proxy, at the address of the API. */
  isBehindProxy: boolean;
  /** Tickets are made with it. */
  cloudToken: string;
  /** Hears of a port that is taken, and of the one it listens on. */
  onListening(result: { port: number } | { error: Error }): void;
}

/** `relay`: docs/reference.md "Relay". */
export const relayActor = actor<RelayProtocol, RelayConfig>('relay', async (context, config) => {
  const { clock, scope } = context;
  let server: RelayServer | null = null;
  // After its ports, which tell their clients why they end.
  scope.defer(async () => server?.close());
  const ports = new RelayPorts(context, config);
  const listen = async (): Promise<void> => {
    try {
      const opened = await listenForRelays({
        ...config.address,
        clock: config.networkClock,
        acceptsTicket: (ticket) => isTicketValid(config.cloudToken, ticket, clock.now()),
        eventsOf: () => ({ onStream: (stream, request) => ports.accept(stream, request) }),
      });
      if (scope.signal.aborted) return await opened.close();
      server = opened;
      config.onListening({ port: opened.port });
    } catch (error) {
      // Somebody has the port, or the certificate cannot be read: both may pass.
      config.onListening({ error: error as Error });
      clock.after(RELAY.listenRetryMs, () => void listen());
    }
  };
  await listen();
  return {
    admit() {
      if (!server) throw fail('daemon_busy', 'the relay does not listen at the moment');
      const port = config.isBehindProxy ? null : server.port;
      return { ...newTicket(config.cloudToken, clock.now()), port };
    },
    workloadSleeping({ workloadId, isSleeping }) {
      ports.noteSleep(workloadId, isSleeping);
      return null;
    },
    renewCluster({ clusterId }) {
      ports.renew(clusterId);
      return null;
    },
    closeCluster({ clusterId }) {
      ports.closeCluster(clusterId);
      return null;
    },
  };
});
