// A registry with the real store and real ports between stand-ins.
import { join } from 'node:path';
import { portsActor } from '../../src/actors/ports/ports.ts';
import { type RegistryConfig, registryActor } from '../../src/actors/registry/registry.ts';
import { openStore } from '../../src/adapters/storage/store.ts';
import type { Store } from '../../src/adapters/storage/store_tables.ts';
import type { EventsProtocol, NewEvent } from '../../src/protocol/events.ts';
import type { HostProtocol } from '../../src/protocol/host.ts';
import type { PortsProtocol } from '../../src/protocol/ports.ts';
import type { RegistryProtocol } from '../../src/protocol/registry.ts';
import type { ServiceProtocol, StartReply } from '../../src/protocol/service.ts';
import type { ViewsProtocol } from '../../src/protocol/views.ts';
import type { WatchedServiceProtocol } from '../../src/protocol/watcher.ts';
import { actor, type Ref } from '../../src/runtime/actor.ts';
import { afterThisTest, realTime, type Stand, tempDir, type World, world } from './actors.ts';

/** A message to one of the services; one stand-in serves for all of them. */
export interface ToService {
  name: string;
  kind: string;
  message: unknown;
}

export interface Setting {
  world: World;
  path: string;
  store: Store;
  registry: Ref<RegistryProtocol>;
  ports: Ref<PortsProtocol>;
  views: Stand<ViewsProtocol>;
  host: Stand<HostProtocol>;
  /** Every appended event. */
  events: NewEvent[];
  /** The services that count as left out of the store. */
  leftOut: string[];
  /** Every message to a service. */
  received: ToService[];
  /** What the services do; by default they succeed at once. */
  services: {
    start(name: string): Promise<StartReply>;
    retire(name: string): Promise<null>;
    adopt(name: string): Promise<null>;
    status(name: string): string;
  };
}

export interface SettingOptions {
  path?: string;
  /** Replaces the store; ports are always real. */
  store?: (store: Store) => RegistryConfig['store'];
}

export async function setting({
  path = join(tempDir(), 'store.mdb'),
  store: wrap = (same) => same,
}: SettingOptions = {}): Promise<Setting> {
  const store = openStore(path);
  afterThisTest(() => store.close());
  const w = world({ clock: realTime });
  const events: NewEvent[] = [];
  const leftOut: string[] = [];
  const received: ToService[] = [];
  const services: Setting['services'] = {
    start: async (name) => ({ name, status: 'running', pid: 1 }),
    retire: async () => null,
    adopt: async () => null,
    status: () => 'stopped',
  };
  const host = await w.stand<HostProtocol>('host', { runs: () => ({ runs: [] }) });
  await w.stand<EventsProtocol>('events', {
    append(message) {
      events.push(...message.events);
      return { lastId: events.length };
    },
    history: ({ names }) => ({
      events: events
        .map((event, n) => ({ ...event, id: n + 1, at: 0 }))
        .filter(({ name }) => names === null || names.includes(name)),
    }),
  });
  await w.start('ports', portsActor, { store, watched: new Map() });
  type Part = Pick<ServiceProtocol, 'start' | 'stop' | 'undo' | 'retire' | 'adopt' | 'changed' | 'explain'> &
    Pick<WatchedServiceProtocol, 'watchAgain'>;
  const service = actor<Part, string>('service', (context, name) => {
    const record = (kind: string, message: unknown): void => void received.push({ name, kind, message });
    return {
      start: (message) => {
        record('start', message);
        return context.replyLater(services.start(name));
      },
      stop: (message) => {
        record('stop', message);
        return { ...NO_STOP, name };
      },
      undo: (message) => {
        record('undo', message);
        return null;
      },
      retire: (message) => {
        record('retire', message);
        return context.replyLater(services.retire(name));
      },
      adopt: (message) => {
        record('adopt', message);
        return context.replyLater(services.adopt(name));
      },
      changed: (message) => {
        record('changed', message);
        return null;
      },
      watchAgain: (message) => {
        record('watchAgain', message);
        return null;
      },
      explain: () => ({ ...NO_EXPLANATION, status: services.status(name) as 'stopped' }),
    };
  });
  w.node.family('service:', service, (address) => address.slice('service:'.length));
  const views = await w.stand<ViewsProtocol>('views');
  const ref = await w.start('registry', registryActor, {
    store: wrap(store),
    // A range where nothing listens: other programs may use the usual ports of a test machine.
    ports: { service: [200, 299], agent: [300, 400] },
    bootedAt: 0,
    report: () => {},
    leaveOut: (names) => void leftOut.push(...names),
  });
  return {
    world: w,
    path,
    store,
    registry: ref,
    ports: w.ref('ports'),
    views,
    host,
    events,
    leftOut,
    received,
    services,
  };
}

const NO_STOP = {
  status: 'stopped' as const,
  exitCode: 0,
  signal: null,
  escalated: false,
  reaped: 0,
  left: [],
  portFree: true,
  ms: 0,
};

const NO_EXPLANATION = {
  reason: '',
  waitingFor: null,
  lastCheck: null,
  portHolder: null,
  backoff: null,
  exit: null,
  watching: null,
  lastLines: [],
  next: '',
};
