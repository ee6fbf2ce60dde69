// State: the connections of other Berths and the streams in them. Rebuilt from: nothing; they connect again.
// This is the data plane: bytes go through this actor's thread alone.
import { listenForRelays, type RelayAddress } from '../../adapters/relay/relay_server.ts';
import { isTicketValid } from '../../adapters/relay/ticket.ts';
import type { RelayProtocol } from '../../protocol/relay.ts';
import { actor } from '../../runtime/actor.ts';
import { RELAY } from '../../settings/cloud_limits.ts';
import { RelayPorts } from './relay_ports.ts';
import type { TetherConfig } from './tether_clients.ts';

export interface RelayConfig extends TetherConfig {
  address: RelayAddress;
  /** Tickets are made with it. */
  cloudToken: string;
  /** Hears of a port that is taken, and of the one it listens on. */
  onListening(result: { port: number } | { error: Error }): void;
}

/** `relay`: docs/reference.md "Relay". */
export const relayActor = actor<RelayProtocol, RelayConfig>('relay', (context, config) => {
  const ports = new RelayPorts(context, config);
  const { clock, scope } = context;
  const listen = async (): Promise<void> => {
    try {
      const server = await listenForRelays({
        ...config.address,
        clock: config.networkClock,
        acceptsTicket: (ticket) => isTicketValid(config.cloudToken, ticket, clock.now()),
        eventsOf: () => ({ onStream: (stream, request) => ports.accept(stream, request) }),
      });
      scope.defer(() => server.close());
      config.onListening({ port: server.port });
    } catch (error) {
      // Somebody has the port, or the certificate cannot be read: both may pass.
      config.onListening({ error: error as Error });
      clock.after(RELAY.listenRetryMs, () => void listen());
    }
  };
  void listen();
  return {
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
