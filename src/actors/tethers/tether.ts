// State: one listener on loopback and its connections. Rebuilt from: nothing; an actor that starts tells
// `tethers`, which opens it again. This is the data plane: bytes only go through this actor.
import { type LoopbackListener, listenOnLoopback } from '../../adapters/loopback_listener.ts';
import type { LoopbackPeers } from '../../adapters/process/loopback_peers.ts';
import { fail } from '../../protocol/errors.ts';
import type { TetherProtocol, TetherStats } from '../../protocol/tethers.ts';
import { actor, type Context } from '../../runtime/actor.ts';
import { SocketClient } from './session_client.ts';
import { TetherClients, type TetherConfig } from './tether_clients.ts';

interface OpenTether {
  port: number;
  clients: TetherClients;
  /** Resolves when the port is free again. */
  close(): Promise<void>;
}

async function listenOnFirstFree(
  ports: readonly number[],
  clients: TetherClients,
  peers: LoopbackPeers,
): Promise<LoopbackListener | null> {
  for (const port of ports) {
    const listener = await listenOnLoopback(port, (socket) =>
      clients.accept(new SocketClient(socket, peers)),
    );
    if (!('refused' in listener)) return listener;
  }
  return null;
}

async function openTether(
  context: Context,
  clients: TetherClients,
  ports: readonly number[],
  peers: LoopbackPeers,
): Promise<OpenTether> {
  const listener = await listenOnFirstFree(ports, clients, peers);
  if (!listener) {
    clients.close();
    throw fail('port_in_use', 'Every port of cloud.tether_ports is taken.');
  }
  let closed: Promise<void> | null = null;
  const close = (): Promise<void> => {
    // Stops new connections first, then the open ones. The listener is closed once all of them are.
    closed ??= Promise.all([listener.close(), clients.close()]).then(() => undefined);
    return closed;
  };
  const undefer = context.scope.defer(close);
  return {
    port: listener.port,
    clients,
    close: () => {
      undefer();
      return close();
    },
  };
}

/** `tether:<id>`: docs/reference.md "Connections of a tether". */
export const tetherActor = actor<TetherProtocol, TetherConfig>('tether', (context, config) => {
  const id = context.address.slice('tether:'.length);
  let opened: OpenTether | null = null;
  let endsWithCloud = false;
  // From its first order on: without a cloud thread, an actor that watches earlier ends before its first
  // message, which then starts another one.
  const endWithCloud = (): void => {
    if (!endsWithCloud) context.watch('tethers', () => context.end());
    endsWithCloud = true;
  };
  context.ref('tethers').tell('listenerMissing', { id });
  return {
    async open({ tether, ports, numbers }) {
      // A second `open` comes from a restarted `tethers`, which does not know the numbers.
      if (opened) opened.clients.reportAgain();
      else {
        if (config.isShared) endWithCloud();
        const tell = (changed: TetherStats): void =>
          context.ref('tethers').tell('stats', { id, numbers: changed });
        const report = config.report ?? tell;
        const clients = new TetherClients(context, tether, numbers, config, report);
        opened = await openTether(context, clients, ports, config.peers);
      }
      return { port: opened.port };
    },
    async close({ forget }) {
      await opened?.close();
      opened = null;
      if (forget) context.end();
      return null;
    },
    workloadSleeping({ isSleeping }) {
      opened?.clients.noteSleep(isSleeping);
      return null;
    },
    renew() {
      opened?.clients.renew();
      return null;
    },
  };
});
