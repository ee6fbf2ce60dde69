// What a services thread holds. Number 0 has the singletons; `service:<name>` is spread over all of them.
import { join } from 'node:path';
import { agents } from './actors/agents.ts';
import { inherited } from './actors/environment.ts';
import { eventsActor } from './actors/events.ts';
import { groups } from './actors/groups.ts';
import { ports } from './actors/ports.ts';
import { registry } from './actors/registry.ts';
import { SERVICE_PREFIX, service } from './actors/service.ts';
import { stats } from './actors/stats.ts';
import { connectHost } from './adapters/hostlink.ts';
import { bootId } from './adapters/proctable.ts';
import { gated, socketProbe } from './adapters/ready.ts';
import { openStore, type Store } from './adapters/store.ts';
import { systemUsage } from './adapters/usage.ts';
import { THREADS } from './limits.ts';
import { report } from './log.ts';
import type { RegistryProtocol } from './protocol/registry.ts';
import { actor, type Node } from './runtime/actor.ts';
import type { ThreadData } from './threads_data.ts';
import { VERSION } from './version.ts';

/** Lets go of the store when everything that was started after it has stopped. */
const storeKeeper = actor<Record<never, never>, Store>('store', (context, store) => {
  context.scope.defer(() => store.close());
  return {};
});

interface HostLink {
  node: Node;
  /** `spawned`: a host has been started just now. */
  connect: (spawned: boolean) => Promise<void>;
}

/** Joins the process host again whenever it was lost; services take over their runs then. */
const hostKeeper = actor<Record<never, never>, HostLink>('hostlink', (context, { node, connect }) => {
  const again = async (): Promise<void> => {
    report('the process host is gone: a new one takes over');
    await connect(false);
    if (node.name.endsWith('-0'))
      await node.ref<RegistryProtocol>('registry').ask('boot', { autostart: false });
  };
  node.onPeerLost((peer) => {
    if (peer === 'host' && !context.scope.signal.aborted)
      again().catch((error: unknown) => context.crash(error));
  });
  return {};
});

/** Joins the host, opens the store and starts the actors. Rejects with second_daemon when this daemon may not run. */
export async function setupServices(node: Node, data: ThreadData): Promise<void> {
  const { stateDir, session, umask, bootedAt } = data;
  const who = { version: VERSION, session, node: node.name, services: THREADS.services };
  const connect = async (spawned: boolean): Promise<void> => {
    const host = await connectHost({
      stateDir,
      entry: data.hostEntry,
      who,
      withinMs: THREADS.hostMs,
      spawned,
    });
    node.connect('host', host.pipe);
  };
  // The host comes first: it is the lock, and nothing of the state may be touched without it.
  await connect(true);
  const store = openStore(join(stateDir, 'store.mdb'));
  await node.start('store', storeKeeper, store);
  await node.start('hostlink', hostKeeper, { node, connect });
  const environment = inherited(process.env);
  const probe = gated(socketProbe(node.clock));
  const logs = join(stateDir, 'logs');
  node.family(SERVICE_PREFIX, service, () => ({ store, environment, umask, probe, bootedAt, logs }));
  if (!node.name.endsWith('-0')) return;
  const marks = store.table('marks');
  const folder = join(stateDir, 'events');
  await node.start('events', eventsActor, { folder, marks, boot: bootId(), report, subscribed: false });
  await node.start('ports', ports, { store });
  await node.start('stats', stats, { usage: systemUsage(), tracked: new Map() });
  await node.start('registry', registry, {
    store,
    ports: { service: data.servicePorts, agent: data.agentPorts },
  });
  await node.start('groups', groups, null);
  await node.start('agents', agents, { domain: data.agentDomain, store });
}
