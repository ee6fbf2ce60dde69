// State: one listener on loopback and the connections through it. Rebuilt from: nothing; when it begins anew it says so to
// `tethers`, which has it opened again. The data plane: bytes go through here and through no other actor.
import { type Listener, listenOnLoopback } from '../../adapters/tcp.ts';
import { fail } from '../../protocol/errors.ts';
import type { TetherProtocol, TethersProtocol } from '../../protocol/tethers.ts';
import { actor, type Context } from '../../runtime/actor.ts';
import { Carrier, type TetherConfig } from './carrier.ts';

interface Open {
  port: number;
  carrier: Carrier;
  /** Resolves when the port is free again. */
  close(): Promise<void>;
}

async function listen(ports: readonly number[], carrier: Carrier): Promise<Listener | null> {
  for (const port of ports) {
    const listener = await listenOnLoopback(port, (socket) => carrier.accept(socket));
    if (listener) return listener;
  }
  return null;
}

async function open(context: Context, carrier: Carrier, ports: readonly number[]): Promise<Open> {
  const listener = await listen(ports, carrier);
  if (!listener) {
    carrier.close();
    throw fail('port_in_use', 'Every port of cloud.tether_ports is taken.');
  }
  let closed: Promise<void> | null = null;
  const close = (): Promise<void> => {
    // No new connections first, then those that there are: the listener is closed when all have gone.
    closed ??= Promise.all([listener.close(), carrier.close()]).then(() => undefined);
    return closed;
  };
  const undefer = context.scope.defer(close);
  return {
    port: listener.port,
    carrier,
    close: () => {
      undefer();
      return close();
    },
  };
}

/** `tether:<id>`: docs/reference.md "Connections of a tether". */
export const tether = actor<TetherProtocol, TetherConfig>('tether', (context, config) => {
  const id = context.address.slice('tether:'.length);
  let opened: Open | null = null;
  context.ref<TethersProtocol>('tethers').tell('begun', { id });
  return {
    async open({ tether, ports, numbers }) {
      // Who asks a second time has begun anew and knows nothing.
      if (opened) opened.carrier.tellAgain();
      else opened = await open(context, new Carrier(context, tether, numbers, config), ports);
      return { port: opened.port };
    },
    async close({ forget }) {
      await opened?.close();
      opened = null;
      if (forget) context.end();
      return null;
    },
  };
});
