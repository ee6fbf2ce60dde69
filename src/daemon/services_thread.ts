// What a services thread holds. Number 0 has the singletons; `service:<name>` is spread over all of them.
import { join } from 'node:path';
import { agentsActor } from '../actors/agents/agents.ts';
import { eventsActor } from '../actors/events/events.ts';
import { groupsActor } from '../actors/groups/groups.ts';
import { portsActor } from '../actors/ports/ports.ts';
import { registryActor } from '../actors/registry/registry.ts';
import { inheritedEnvironment } from '../actors/service/environment.ts';
import { SERVICE_PREFIX, serviceActor } from '../actors/service/service.ts';
import { statsActor } from '../actors/stats/stats.ts';
import { connectHost, reconnectHost } from '../adapters/host/host_connection.ts';
import { pendingPipe } from '../adapters/pipes.ts';
import { bootId } from '../adapters/process/process_table.ts';
import { systemUsage } from '../adapters/process/process_usage.ts';
import { limitProbes, socketProbe } from '../adapters/ready_probe.ts';
import { openStore, type Store } from '../adapters/storage/store.ts';
import type { RegistryProtocol } from '../protocol/registry.ts';
import { actor, type Node, type Pipe } from '../runtime/actor.ts';
import { deferred } from '../runtime/deferred.ts';
import { THREADS } from '../settings/limits.ts';
import { VERSION } from '../settings/version.ts';
import { report } from './daemon_log.ts';
import type { ThreadData } from './thread_data.ts';

/** Lets go of the store when everything that was started after it has stopped. */
const storeResource = actor<Record<never, never>, Store>('store', (context, store) => {
  context.scope.defer(() => store.close());
  return {};
});

interface HostReconnectorConfig {
  node: Node;
  /** `spawned`: a host has been started just now, or soon will be. */
  joinHost: (spawned: boolean) => Promise<Pipe>;
}

/** Joins the process host again whenever it was lost; services take over their runs then. */
const hostReconnector = actor<Record<never, never>, HostReconnectorConfig>(
  'hostlink',
  (context, { node, joinHost }) => {
    const again = async (): Promise<void> => {
      report('the process host is gone: a new one takes over');
      const isOver = () => context.scope.signal.aborted;
      const pipe = await reconnectHost(() => joinHost(false), isOver, report);
      if (!pipe) return;
      node.connect('host', pipe);
      if (node.name.endsWith('-0'))
        await node.ref<RegistryProtocol>('registry').ask('boot', { autostart: false });
    };
    node.onPeerLost((peer) => {
      if (peer === 'host' && !context.scope.signal.aborted)
        again().catch((error: unknown) => context.crash(error));
    });
    return {};
  },
);

/** Joins the host, opens the store and starts the actors. Rejects with second_daemon when this daemon may not run. */
export async function setupServices(node: Node, data: ThreadData): Promise<void> {
  const { stateDir, session, umask, bootedAt } = data;
  const who = { version: VERSION, session, node: node.name, services: THREADS.services };
  const joinHost = async (spawned: boolean): Promise<Pipe> => {
    const { hostEntry } = data;
    const host = await connectHost({
      stateDir,
      entry: hostEntry,
      identity: who,
      withinMs: THREADS.hostStartTimeoutMs,
      isSpawned: spawned,
    });
    return host.pipe;
  };
  const begun = deferred<void>();
  // The host is the lock: unless it may come later, nothing of the state is touched before it has let us in.
  if (data.hostStart === 'deferred')
    node.connect('host', pendingPipe(begun.promise.then(() => joinHost(true))));
  else node.connect('host', await joinHost(data.hostStart === 'started'));
  const store = openStore(join(stateDir, 'store.mdb'));
  await node.start('store', storeResource, store);
  await node.start('hostlink', hostReconnector, { node, joinHost });
  const environment = inheritedEnvironment(process.env);
  const probe = limitProbes(socketProbe(node.clock));
  const logs = join(stateDir, 'logs');
  node.family(SERVICE_PREFIX, serviceActor, () => ({ store, environment, umask, probe, bootedAt, logs }));
  if (!node.name.endsWith('-0')) return;
  const marks = store.table('marks');
  const folder = join(stateDir, 'events');
  await node.start('events', eventsActor, { folder, marks, boot: bootId(), report, subscribed: false });
  await node.start('ports', portsActor, { store });
  await node.start('stats', statsActor, { usage: systemUsage(), tracked: new Map() });
  await node.start('registry', registryActor, {
    store,
    ports: { service: data.servicePorts, agent: data.agentPorts },
  });
  await node.start('groups', groupsActor, null);
  await node.start('agents', agentsActor, { domain: data.agentDomain, store });
  begun.resolve();
}
