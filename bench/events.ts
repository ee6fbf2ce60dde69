// The journal as services use it: one ask per event, or one message with the statistics of many services.
// Each is measured until the event has an id, is in its file and is on its way to the views. The floor is the
// same messages to an actor that only replies; for statistics it also writes the bare lines.
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventsActor } from '../src/actors/events/events.ts';
import { formatJournalLine } from '../src/actors/events/journal_lines.ts';
import { openStore } from '../src/adapters/storage/store.ts';
import type { EventsProtocol, NewEvent } from '../src/protocol/events.ts';
import type { ViewsProtocol } from '../src/protocol/views.ts';
import { actor } from '../src/runtime/actor.ts';
import { systemClock } from '../src/runtime/clock.ts';
import { untypedNode } from '../test/kit/untyped_node.ts';
import { type Benchmark, compare, type Row, throughput } from './kit/harness.ts';

const TURN_MS = 400;
const IN_FLIGHT = 512;
/** Services in one message of statistics. */
const SERVICES = 300;

const started: NewEvent = {
  type: 'service.started',
  name: 'web',
  run: '1a1f8fc9f0679f63',
  data: '{"name":"web","pid":12345,"url":"http://localhost:3101"}',
};
const statistics = Array.from({ length: SERVICES }, (_, n): NewEvent => {
  const name = `service-${n}`;
  return {
    type: 'service.stats',
    name,
    run: '1a1f8fc9f0679f63',
    data: `{"name":"${name}","cpu":0.021,"rssMB":42}`,
  };
});

type Append = Pick<EventsProtocol, 'append'>;
const nothing = actor<Append, null>('nothing', () => ({
  append: ({ events }) => ({ lastId: events.length }),
}));
const views = actor<Pick<ViewsProtocol, 'events'>, null>('views', () => ({ events: () => null }));

async function run(): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-bench-'));
  const store = openStore(join(folder, 'store.mdb'));
  const node = untypedNode({ name: 'bench', clock: systemClock, nodeOf: () => 'bench' });
  await node.start('views', views, null);
  const marks = store.table('marks');
  const config = {
    folder: join(folder, 'events'),
    marks,
    boot: 'bench',
    report: console.error,
    subscribed: true,
  };
  const journal = await node.start('events', eventsActor, config);
  const floor = await node.start('nothing', nothing, null);
  const lines = statistics.map((event, n) =>
    formatJournalLine({ ...event, id: 100_000 + n, at: Date.now() }),
  );
  const file = openSync(join(folder, 'lines'), 'w');
  const one = { events: [started] };
  const all = { events: statistics };
  const rows = [
    await compare('one event per ask', 'events/s', {
      floor: () => throughput(() => floor.ask('append', one), IN_FLIGHT, TURN_MS),
      subject: () => throughput(() => journal.ask('append', one), IN_FLIGHT, TURN_MS),
    }),
    await compare(`statistics of ${SERVICES} services`, 'letters/s', {
      floor: () => throughput(async () => writeSync(file, lines.join(''), 0), 1, TURN_MS),
      subject: () => throughput(() => journal.ask('append', all), 1, TURN_MS),
    }),
  ];
  closeSync(file);
  await node.stop();
  await store.close();
  rmSync(folder, { recursive: true });
  return rows;
}

export const events: Benchmark = {
  name: 'events',
  question: 'How many events does the journal take, next to an actor that takes none and to bare writing?',
  run,
};
