// The two servers of the front's benchmark, each in a process of its own: the front itself, and a bare
// uWebSockets.js server that sends the same headers and bytes.
import type { HttpResponse } from 'uWebSockets.js';
import { join } from 'node:path';
import { eventsActor } from '../src/actors/events/events.ts';
import { openStore } from '../src/adapters/storage/store.ts';
import { EMPTY_HEADERS, EVENT_STREAM_HEADERS, JSON_HEADERS } from '../src/front/api/reply.ts';
import { createFront } from '../src/front/front.ts';
import type { ResponseHeaders } from '../src/front/server/http_server.ts';
import { searchLogs } from '../src/logs/log_search.ts';
import { readMergedLogs, startMergedLogs } from '../src/logs/log_stream.ts';
import type { EventRecord, EventsProtocol } from '../src/protocol/events.ts';
import type { SpecRow } from '../src/protocol/views.ts';
import { actor, type Node } from '../src/runtime/actor.ts';
import { systemClock } from '../src/runtime/clock.ts';
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
  stack: null,
  watch: null,
  kind: 'service',
  inputs: [],
  sleep: null,
  live: null,
  limits: null,
  envFile: [],
  stop: null,
  schedule: null,
  revision: 1,
  envKeys: ['NODE_ENV', 'DATABASE_URL'],
  protocol: 'http',
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

/** Sends the events turn by turn; a turn begins when all work of the turn before is done. */
async function inTurns(emit: (events: EventRecord[]) => void): Promise<void> {
  for (let id = 1; id <= EVENTS; id += PER_TURN) {
    emit(Array.from({ length: PER_TURN }, (_, index) => eventOf(id + index)));
    // Two immediates: the front gathers events within a turn, and two turns must not become one write.
    for (const _ of [1, 2]) await new Promise((resolve) => setImmediate(resolve));
  }
}

/**
 * Sends events per second for `ms`, one message per 10 ms: the owners of many services send them in such
 * batches.
 */
export interface Rate {
  perSecond: number;
  seconds: number;
}

/** Orders and questions to a server process. */
export type Order = 'cpu' | 'emit' | Rate;
interface Serving {
  port: number;
  emit: (rate: Rate | null) => Promise<void>;
}

/**
 * The kind of server: the front alone, the front with the journal in the folder that follows, or a bare
 * server.
 */
export type Role = 'front' | 'journal' | 'bare';

/** A journal that stores nothing: only the front is measured. */
async function nodeWithOwners(): Promise<Node> {
  const node = createNode({ name: 'front', clock: systemClock, nodeOf: () => 'front' });
  const nothing = { kept: [], lastId: 0, completeFrom: 1 };
  const events = actor<EventsProtocol, null>('events', () => ({
    append: () => ({ lastId: 0 }),
    history: () => ({ events: [] }),
    watch: () => ({ events: [], lastId: 0, isComplete: true }),
    subscribe: () => nothing,
  }));
  await node.start('events', events, null);
  return node;
}

async function nodeWithJournal(folder: string): Promise<Node> {
  const node = createNode({ name: 'front', clock: systemClock, nodeOf: () => 'front' });
  await node.start('events', eventsActor, {
    folder: join(folder, 'events'),
    marks: openStore(join(folder, 'store.mdb')).table('marks'),
    boot: 'bench',
    report: console.error,
    subscribed: false,
  });
  return node;
}

const TICK_MS = 10;

/** Asks the journal to append events at that rate; the data of each holds its send time in ns. */
async function atRate(node: Node, { perSecond, seconds }: Rate): Promise<void> {
  const journal = node.ref('events');
  const perTick = perSecond * (TICK_MS / 1_000);
  const began = performance.now();
  for (let tick = 0; tick < (seconds * 1_000) / TICK_MS; tick += 1) {
    const pause = began + tick * TICK_MS - performance.now();
    if (pause > 0) await new Promise((resolve) => setTimeout(resolve, pause));
    const data = `{"name":"svc-42","pid":4242,"url":"http://localhost:3142","sent":${process.hrtime.bigint()}}`;
    const event = { type: 'service.started' as const, name: 'svc-42', run: null, data };
    await journal.ask('append', { events: Array.from({ length: perTick }, () => event) });
  }
}

async function serveFront(node: Node): Promise<Serving> {
  const front = createFront({
    ensureMcp: async () => undefined,
    unreadyReason: () => null,
    readSystem: async () => ({
      threads: [],
      notices: [],
      host: null,
      storeBytes: 0,
      journalBytes: 0,
      rssBytes: 0,
    }),
    bind: '127.0.0.1',
    port: 0,
    token: '',
    allowedExtensions: [],
    allowedOrigins: [],
    daemonInfo: { version: '0', pid: 0, startedAt: 0, stateDir: '/', gatewayPort: null, agentDomain: 'a' },
    node,
    logJobs: { search: searchLogs, start: startMergedLogs, read: readMergedLogs },
    cloud: null,
    openapi: async () => Buffer.from('{}'),
    pageLookup: () => null,
    onRoutesChanged: () => undefined,
    log: () => undefined,
    onDefect: (error) => console.error(error),
    server: 'uWebSockets.js',
  });
  await front.start();
  const { port } = await front.listen();
  await front.restoreEvents();
  front.setReady(true);
  const views = node.ref('views');
  views.tell('specs', { rows: names.map(specOf) });
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
      innerPort: null,
    },
    end: null,
    isDoorOpen: false,
  }));
  views.tell('states', { rows });
  return {
    port,
    emit: (rate) => (rate ? atRate(node, rate) : inTurns((events) => views.tell('events', { events }))),
  };
}

/** The floor: `bodies` by path, and one loop that writes to every open stream. */
async function serveBare(bodies: ReadonlyMap<string, Uint8Array>): Promise<Serving> {
  // A dynamic import: the other benchmarks still run where the binary does not load.
  const { default: uWS } = await import('uWebSockets.js');
  const app = uWS.App();
  const write = (res: HttpResponse, head: ResponseHeaders): void => {
    res.writeStatus('200 OK');
    for (let at = 0; at < head.pairs.length; at += 2)
      res.writeHeader(head.pairs[at] ?? '', head.pairs[at + 1] ?? '');
  };
  for (const [path, body] of bodies) {
    app.get(path, (res) => {
      write(res, JSON_HEADERS);
      res.end(body);
    });
  }
  const streams = new Set<HttpResponse>();
  app.get('/v1/events', (res) => {
    res.onAborted(() => streams.delete(res));
    write(res, EVENT_STREAM_HEADERS);
    res.write('retry: 1000\n\n');
    streams.add(res);
  });
  app.any('/*', (res) => {
    write(res, EMPTY_HEADERS);
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

/** The main loop of a server process: it prints its port, then follows orders. */
export async function serve(role: Role, folder: string): Promise<void> {
  const { port, emit } = await serving(role, folder);
  process.on('message', async (order: Order) => {
    if (order === 'emit') await emit(null);
    else if (order !== 'cpu') await emit(order);
    const { user, system } = process.cpuUsage();
    process.send?.((user + system) / 1e6);
  });
  process.send?.(port);
}

async function serving(role: Role, folder: string): Promise<Serving> {
  if (role === 'front') return serveFront(await nodeWithOwners());
  if (role === 'journal') return serveFront(await nodeWithJournal(folder));
  const given = await new Promise<[string, string][]>((resolve) => process.once('message', resolve));
  return serveBare(new Map(given.map(([path, body]): [string, Uint8Array] => [path, Buffer.from(body)])));
}
