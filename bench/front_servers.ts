// The two servers of the front's benchmark, each in a process of its own: the front itself, and a bare uWebSockets.js server
// that sends the same headers and bytes.
import uWS, { type HttpResponse } from 'uWebSockets.js';
import { createFront } from '../src/front/front.ts';
import { EMPTY_HEAD, JSON_HEAD, STREAM_HEAD } from '../src/front/reply.ts';
import type { Head } from '../src/front/server.ts';
import type { EventRecord, EventsProtocol } from '../src/protocol/events.ts';
import type { SpecRow, ViewsProtocol } from '../src/protocol/views.ts';
import { actor, type Node } from '../src/runtime/actor.ts';
import { realClock } from '../src/runtime/clock.ts';
import { createNode } from '../src/runtime/node.ts';

const SERVICES = 100;
export const EVENTS = 1_000;
/** Events that come in one turn of the event loop. */
const PER_TURN = 10;

const names = Array.from({ length: SERVICES }, (_, index) => `svc-${index}`);

const specOf = (name: string, index: number): SpecRow => ({
  name,
  port: 3100 + index,
  cmd: 'exec node server.js',
  cwd: '/home/me/projects/shop',
  group: 'shop',
  ready: `http://localhost:${3100 + index}/health`,
  dependsOn: [],
  restart: 'on-failure',
  autostart: false,
  stopSignal: 'SIGTERM',
  stopGrace: 5_000,
  startTimeout: 30_000,
  labels: [],
  agent: null,
  revision: 1,
  envKeys: ['NODE_ENV', 'DATABASE_URL'],
  specHash: '0123456789abcdef0123456789abcdef',
});

const eventOf = (id: number): EventRecord => ({
  id,
  type: 'service.started',
  name: 'svc-42',
  run: '0000000000000001',
  at: Date.now(),
  data: `{"name":"svc-42","pid":${id},"url":"http://localhost:3142"}`,
});

const frameOf = ({ id, type, data }: EventRecord): string => `id: ${id}\nevent: ${type}\ndata: ${data}\n\n`;

/** The events of one turn after the other, each when everything else of the turn before is done. */
async function inTurns(emit: (events: EventRecord[]) => void): Promise<void> {
  for (let id = 1; id <= EVENTS; id += PER_TURN) {
    emit(Array.from({ length: PER_TURN }, (_, index) => eventOf(id + index)));
    // Twice: the front gathers what comes within a turn, and no two turns are to be written as one.
    for (const _ of [1, 2]) await new Promise((resolve) => setImmediate(resolve));
  }
}

/** What a server process is told and asked. */
export type Order = 'cpu' | 'emit' | 'bodies';
interface Serving {
  port: number;
  emit: () => Promise<void>;
}

async function nodeWithOwners(): Promise<Node> {
  const node = createNode({ name: 'front', clock: realClock, place: () => 'front' });
  const nothing = { kept: [], lastId: 0, completeFrom: 1 };
  const events = actor<EventsProtocol, null>('events', () => ({
    append: () => ({ lastId: 0 }),
    history: () => ({ events: [] }),
    subscribe: () => nothing,
  }));
  await node.start('events', events, null);
  return node;
}

async function serveFront(): Promise<Serving> {
  const node = await nodeWithOwners();
  const front = createFront({
    bind: '127.0.0.1',
    port: 0,
    token: '',
    allowedExtensions: [],
    about: { version: '0', pid: 0, startedAt: 0, stateDir: '/', gatewayPort: null, agentDomain: 'a' },
    node,
    cloud: null,
    openapi: async () => Buffer.from('{}'),
    page: () => null,
    tellGateway: () => undefined,
    openGateway: async () => null,
    log: () => undefined,
    onDefect: (error) => console.error(error),
    server: 'uWebSockets.js',
  });
  await front.start();
  const { port } = await front.listen();
  await front.subscribe();
  front.setReady(true);
  const views = node.ref<ViewsProtocol>('views');
  views.tell('specs', { rows: names.map(specOf), all: true });
  const rows = names.map((name, index) => ({
    name,
    status: 'running' as const,
    restarts: 0,
    process: {
      run: 'r',
      pid: 1000 + index,
      startedAt: Date.UTC(2030, 0, 1),
      port: 3100 + index,
      revision: 1,
      rssMB: 40,
    },
    end: null,
  }));
  views.tell('states', { rows });
  return { port, emit: () => inTurns((events) => views.tell('events', { events })) };
}

/** The floor: `bodies` by path, and one loop that writes to every open stream. */
async function serveBare(bodies: ReadonlyMap<string, Uint8Array>): Promise<Serving> {
  const app = uWS.App();
  const write = (res: HttpResponse, head: Head): void => {
    res.writeStatus('200 OK');
    for (let at = 0; at < head.pairs.length; at += 2)
      res.writeHeader(head.pairs[at] ?? '', head.pairs[at + 1] ?? '');
  };
  for (const [path, body] of bodies) {
    app.get(path, (res) => {
      write(res, JSON_HEAD);
      res.end(body);
    });
  }
  const streams = new Set<HttpResponse>();
  app.get('/v1/events', (res) => {
    res.onAborted(() => streams.delete(res));
    write(res, STREAM_HEAD);
    res.write('retry: 1000\n\n');
    streams.add(res);
  });
  app.any('/*', (res) => {
    write(res, EMPTY_HEAD);
    res.end();
  });
  const port = await new Promise<number>((resolve) => {
    app.listen('127.0.0.1', 0, (socket) => resolve(socket ? uWS.us_socket_local_port(socket) : 0));
  });
  const emit = () =>
    inTurns((events) => {
      const bytes = Buffer.from(events.map(frameOf).join(''));
      for (const res of streams) res.cork(() => res.write(bytes));
    });
  return { port, emit };
}

/** The life of a server process: it says its port, then does what it is told. */
export async function serve(role: string): Promise<void> {
  const given = await new Promise<[string, string][]>((resolve) => {
    if (role === 'front') resolve([]);
    else process.once('message', (bodies: [string, string][]) => resolve(bodies));
  });
  const bodies = new Map(given.map(([path, body]): [string, Uint8Array] => [path, Buffer.from(body)]));
  const { port, emit } = role === 'front' ? await serveFront() : await serveBare(bodies);
  process.on('message', async (order: Order) => {
    if (order === 'emit') await emit();
    const { user, system } = process.cpuUsage();
    process.send?.((user + system) / 1e6);
  });
  process.send?.(port);
}
