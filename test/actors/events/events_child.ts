// A program for events.test.ts: appends to a journal until it is killed, or on a disk that fills up.
import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { eventsActor } from '../../../src/actors/events/events.ts';
import { openStore } from '../../../src/adapters/storage/store.ts';
import type { EventRecord, NewEvent } from '../../../src/protocol/events.ts';
import type { ViewsProtocol } from '../../../src/protocol/views.ts';
import { actor } from '../../../src/runtime/actor.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { untypedNode } from '../../kit/untyped_node.ts';

const say = (text: string): void => void writeSync(1, `${text}\n`);
const [, , what, folder = ''] = process.argv;
const node = untypedNode({
  name: 'test',
  clock: systemClock,
  nodeOf: () => 'test',
  onCrash: (...crash) => say(String(crash)),
});
const store = openStore(join(folder, 'store.mdb'));
const seen: EventRecord[] = [];
const nobody = actor<Pick<ViewsProtocol, 'events'>, null>('views', () => ({
  events({ events }) {
    seen.push(...events);
    return null;
  },
}));
await node.start('views', nobody, null);
const events = await node.start('events', eventsActor, {
  folder: join(folder, 'events'),
  marks: store.table('marks'),
  boot: 'this',
  report: say,
  subscribed: false,
});
const event = (n: number, type: NewEvent['type']): NewEvent => ({
  type,
  name: 'web',
  run: null,
  data: JSON.stringify({ n, rest: 'x'.repeat(100) }),
});

/** Prints the newest acknowledged id, repeatedly. */
async function forever(): Promise<void> {
  const line = async (): Promise<void> => {
    for (let n = 0; ; n += 1) {
      const batch = [event(n, 'service.stats'), event(n, n % 3 ? 'service.stats' : 'service.started')];
      say(String((await events.ask('append', { events: batch })).lastId));
    }
  };
  await Promise.all([line(), line(), line()]);
}

/** Fills the disk, appends, frees the disk, appends; prints what a subscriber saw. */
async function full(): Promise<void> {
  const append = (n: number) => events.ask('append', { events: [event(n, 'service.started')] });
  await append(0);
  await events.ask('subscribe', {});
  const filler = openSync('/mnt/filler', 'w', 0o600);
  for (const size of [65_536, 4_096, 512]) {
    try {
      for (;;) writeSync(filler, Buffer.alloc(size));
    } catch {
      // No more events of this size fit.
    }
  }
  closeSync(filler);
  const killedAfter = Number(process.argv[4] ?? 0);
  const length = killedAfter || 100;
  for (let n = 1; n <= length; n += 1) await append(n);
  say(`seen ${seen.map(({ id }) => id).join() === Array.from({ length }, (_, n) => n + 2).join()}`);
  if (killedAfter > 0) process.kill(process.pid, 'SIGKILL');
  rmSync('/mnt/filler');
  await append(101);
  say(`late ${(await node.stop()).length}`);
  await store.close();
}

/** What a restarted journal finds. */
async function look(): Promise<void> {
  const { kept, lastId, completeFrom } = await events.ask('subscribe', {});
  say(`kept ${kept.length} to ${kept.at(-1)?.id} last ${lastId} complete from ${completeFrom}`);
}

await { forever, full, look }[what as 'forever' | 'full' | 'look']();
