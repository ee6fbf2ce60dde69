import {
  appendFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { type EventsConfig, eventsActor } from '../../../src/actors/events/events.ts';
import { EventJournal } from '../../../src/adapters/storage/event_journal.ts';
import { openStore } from '../../../src/adapters/storage/store.ts';
import type { StoreTable } from '../../../src/adapters/storage/store_tables.ts';
import type { EventCheckpoint, EventRecord, EventsProtocol, NewEvent } from '../../../src/protocol/events.ts';
import type { ViewsProtocol } from '../../../src/protocol/views.ts';
import type { Ref } from '../../../src/runtime/actor.ts';
import { EVENTS } from '../../../src/settings/limits.ts';
import { afterThisTest, realTime, type Stand, tempDir, type World, world } from '../../kit/actors.ts';
import { bundle } from '../../kit/bundle.ts';
import { canMount, onSmallDisk, run } from '../../kit/child_program.ts';

let child = '';
beforeAll(async () => {
  child = await bundle('test/actors/events/events_child.ts');
});

const event = (
  n: number,
  type: NewEvent['type'] = 'service.started',
  more: Partial<NewEvent> = {},
): NewEvent => ({
  type,
  name: 'web',
  run: null,
  data: `{"n":${n}}`,
  ...more,
});
const many = (count: number, type: NewEvent['type']): NewEvent[] =>
  Array.from({ length: count }, (_, n) => event(n, type));
const ids = (events: EventRecord[]): number[] => events.map(({ id }) => id);

interface Journal {
  world: World;
  folder: string;
  marks: StoreTable<EventCheckpoint>;
  views: Stand<ViewsProtocol>;
  reports: string[];
  events: Ref<EventsProtocol>;
  /** Ends the actor and restarts it on the same files; `meanwhile` changes them in between. */
  again(boot?: string, meanwhile?: () => void | Promise<void>): Promise<void>;
}

async function journal(change: Partial<EventsConfig> = {}): Promise<Journal> {
  const folder = tempDir();
  const store = openStore(join(folder, 'store.mdb'));
  afterThisTest(() => store.close());
  const w = world({ clock: realTime });
  const reports: string[] = [];
  const config = (boot: string): EventsConfig => ({
    folder: join(folder, 'events'),
    marks: store.table('marks'),
    boot,
    report: (text) => reports.push(text),
    subscribed: false,
    ...change,
  });
  return {
    world: w,
    folder: join(folder, 'events'),
    marks: store.table('marks'),
    views: await w.stand<ViewsProtocol>('views'),
    reports,
    events: await w.start('events', eventsActor, config('this')),
    async again(boot = 'this', meanwhile = () => {}) {
      await w.node.end('events');
      await meanwhile();
      await w.start('events', eventsActor, config(boot));
    },
  };
}

const files = (folder: string): string[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.log'))
    .sort();

/** Ends the actor as kill -9 would: its files and its mark stay as they are now, without an orderly end. */
async function killed(it: Journal, boot: string, meanwhile = () => {}): Promise<void> {
  const copy = tempDir();
  cpSync(it.folder, copy, { recursive: true });
  const mark = it.marks.get('events');
  await it.again(boot, async () => {
    rmSync(it.folder, { recursive: true });
    cpSync(copy, it.folder, { recursive: true });
    if (mark) await it.marks.put('events', mark);
    else await it.marks.remove('events');
    meanwhile();
  });
}

describe('the journal of events', () => {
  it('gives consecutive ids and writes each event to a file before it replies', async () => {
    const { events, folder } = await journal();
    for (let n = 1; n <= 3; n += 1) {
      expect(await events.ask('append', { events: [event(n), event(n, 'service.stats')] })).toEqual({
        lastId: n * 2,
      });
      const written = files(folder).map((name) => readFileSync(join(folder, name), 'utf8'));
      expect(written.join('').split('\n').filter(Boolean)).toHaveLength(n * 2);
    }
    expect(files(folder)).toEqual(['life-1.log', 'statistics-1.log']);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    for (const name of readdirSync(folder)) expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
  });

  it('sends the views every event once, in order, one message per turn', async () => {
    const { events, views } = await journal();
    await events.ask('append', { events: many(3, 'service.started') });
    const before = Array.from({ length: 50 }, (_, n) => events.ask('append', { events: [event(n)] }));
    const subscribed = await events.ask('subscribe', {});
    await Promise.all(before);
    await Promise.all(Array.from({ length: 200 }, (_, n) => events.ask('append', { events: [event(n)] })));
    const batches = views.of('events').map((message) => message.events);
    expect([...ids(subscribed.kept), ...batches.flatMap(ids)]).toEqual(
      Array.from({ length: 253 }, (_, n) => n + 1),
    );
    expect(subscribed.lastId).toBe(ids(subscribed.kept).at(-1));
    expect(batches.length).toBeLessThan(10);
  });

  it('keeps the last 1024 of any type and also the last 1024 that are not statistics', async () => {
    const it = await journal();
    await it.events.ask('append', { events: many(2, 'service.crashed') });
    await it.events.ask('append', { events: many(20_000, 'service.stats') });
    const { kept, lastId, completeFrom } = await it.events.ask('subscribe', {});
    expect(ids(kept)).toEqual([1, 2, ...Array.from({ length: 1024 }, (_, n) => 20_002 - 1023 + n)]);
    expect({ lastId, completeFrom }).toEqual({ lastId: 20_002, completeFrom: 1 });
    await it.events.ask('append', { events: many(1023, 'service.started') });
    await it.again();
    const after = await it.events.ask('subscribe', {});
    expect(after.completeFrom).toBe(2);
    expect(ids(after.kept).slice(0, 2)).toEqual([2, 20_002]);
  });

  it('stays bounded on disk', async () => {
    const { events, folder } = await journal();
    for (let n = 0; n < 40; n += 1) {
      await events.ask('append', {
        events: [...many(1500, 'service.stats'), ...many(500, 'service.started')],
      });
    }
    const sizes = files(folder).map(
      (name) => readFileSync(join(folder, name), 'utf8').split('\n').length - 1,
    );
    expect(sizes).toHaveLength(4);
    expect(Math.max(...sizes)).toBeLessThan(EVENTS.retained * 4 + 1500);
  });

  it('appends a once-only event once per run and type, also after a restart', async () => {
    const it = await journal();
    const ended = event(1, 'service.stopped', { run: 'r1', once: true });
    const twice = await Promise.all([1, 2].map(() => it.events.ask('append', { events: [ended, ended] })));
    const known = { lastId: 1, earlier: 'service.stopped' };
    expect(twice).toEqual([known, known]);
    await it.again();
    expect(await it.events.ask('append', { events: [ended] })).toEqual(known);
    // A run ends once: the first word on it holds.
    expect(await it.events.ask('append', { events: [{ ...ended, type: 'service.crashed' }] })).toEqual(known);
    const other = { ...ended, run: 'r2' };
    expect(await it.events.ask('append', { events: [other] })).toEqual({ lastId: 2 });
    expect(await it.events.ask('append', { events: [{ ...ended, type: 'service.started' }] })).toEqual({
      lastId: 3,
    });
  });

  it('answers its history by type, name and id: the newest, or those after an id', async () => {
    const { events } = await journal();
    await events.ask('append', {
      events: [
        event(1),
        event(2, 'service.crashed', { name: 'db' }),
        event(3),
        event(4, 'service.stats'),
        event(5),
      ],
    });
    const found = async (query: Partial<Parameters<EventsProtocol['history']>[0]>): Promise<number[]> =>
      ids(
        (await events.ask('history', { types: null, names: null, since: null, limit: 100, ...query })).events,
      );
    expect(await found({})).toEqual([1, 2, 3, 4, 5]);
    expect(await found({ limit: 2 })).toEqual([4, 5]);
    expect(await found({ since: 1, limit: 2 })).toEqual([2, 3]);
    expect(await found({ types: ['service.crashed', 'service.stats'] })).toEqual([2, 4]);
    expect(await found({ names: ['db'] })).toEqual([2]);
    expect(await found({ names: ['db'], types: ['service.stats'] })).toEqual([]);
  });

  it('keeps the views up to date after a crash of its own', async () => {
    let failures = 1;
    const folder = tempDir();
    const store = openStore(join(folder, 'other.mdb'));
    afterThisTest(() => store.close());
    const real = store.table('marks');
    // A store cannot be made to fail at will; everything else here is real.
    const marks: StoreTable<EventCheckpoint> = {
      ...real,
      put: (key, value) => (failures-- > 0 ? Promise.reject(new Error('broken')) : real.put(key, value)),
    };
    const { events, views, world } = await journal({ marks });
    await events.ask('subscribe', {});
    await expect(events.ask('append', { events: [event(1)] })).rejects.toMatchObject({ code: 'crashed' });
    expect(world.crashes.splice(0)).toHaveLength(1);
    await events.ask('append', { events: [event(2)] });
    expect((await views.next('events')).events.map(({ data }) => data)).toEqual(['{"n":2}']);
  });
});

describe('the end of the actor', () => {
  it('closes the journal though the last checkpoint fails with a defect', async () => {
    const close = vi.spyOn(EventJournal.prototype, 'close');
    afterThisTest(() => close.mockRestore());
    const put = vi.fn(async () => {});
    const marks = { get: () => undefined, all: () => [], put, remove: async () => {} };
    const it = await journal({ marks });
    await it.events.ask('append', { events: [event(1)] });
    put.mockClear().mockRejectedValue(new TypeError('x is not a function'));
    await it.world.node.end('events');
    expect([put.mock.calls.length, close.mock.calls.length]).toEqual([1, 1]);
    expect(it.world.crashes.splice(0)).toMatchObject([{ address: 'events', error: expect.any(TypeError) }]);
  });
});

describe('ids across restarts', () => {
  it('continue without a gap after an orderly end and after kill -9', async () => {
    const it = await journal();
    await it.events.ask('append', { events: many(3, 'service.started') });
    await it.again();
    expect(await it.events.ask('append', { events: [event(4)] })).toEqual({ lastId: 4 });
    await killed(it, 'this');
    expect(await it.events.ask('append', { events: [event(5)] })).toEqual({ lastId: 5 });
    await it.again('another');
    const { kept, completeFrom } = await it.events.ask('subscribe', {});
    expect({ ids: ids(kept), completeFrom }).toEqual({ ids: [1, 2, 3, 4, 5], completeFrom: 1 });
    expect(await it.events.ask('append', { events: [event(6)] })).toEqual({ lastId: 6 });
  });

  it.each(['\0'.repeat(16), '00000000000000x1', '9999999999999999'])(
    'continue without a gap when the file of the newest unwritten id has %j',
    async (damaged) => {
      const it = await journal();
      await it.events.ask('append', { events: many(3, 'service.started') });
      await it.again('this', () => writeFileSync(join(it.folder, 'unwritten'), damaged));
      expect(await it.events.ask('append', { events: [event(4)] })).toEqual({ lastId: 4 });
      expect(it.reports).toEqual([expect.stringMatching(/unwritten is damaged/)]);
      await it.again();
      expect(it.reports).toHaveLength(1);
    },
  );

  it('jump above the mark after a machine crash, and report the id after which nothing is missing', async () => {
    const it = await journal();
    await it.events.ask('append', { events: many(30, 'service.started') });
    await killed(it, 'another', () => truncateSync(join(it.folder, 'life-1.log'), 500));
    const { kept, lastId, completeFrom } = await it.events.ask('subscribe', {});
    expect(lastId).toBeGreaterThanOrEqual(EVENTS.reservedIds);
    expect(completeFrom).toBe(lastId + 1);
    expect(kept.length).toBeGreaterThan(5);
    for (let round = 0; round < 3; round += 1) {
      await it.again('another');
      expect(await it.events.ask('subscribe', {})).toEqual({ kept, lastId, completeFrom });
    }
    await it.events.ask('append', { events: [event(1)] });
    await killed(it, 'another');
    expect(await it.events.ask('append', { events: [event(2)] })).toEqual({ lastId: lastId + 2 });
    expect(await it.events.ask('subscribe', {})).toMatchObject({ completeFrom });
  });

  it('stay ahead of the mark through a burst', async () => {
    const it = await journal();
    for (let n = 0; n < 5; n += 1) {
      const { lastId } = await it.events.ask('append', { events: many(7_000, 'service.stats') });
      expect(it.marks.get('events')?.ahead).toBeGreaterThanOrEqual(lastId);
    }
  });

  it('jump when the files are missing', async () => {
    const it = await journal();
    await it.events.ask('append', { events: many(30, 'service.started') });
    await killed(it, 'this', () => rmSync(it.folder, { recursive: true }));
    expect((await it.events.ask('append', { events: [event(1)] })).lastId).toBeGreaterThan(30);
  });

  it('leave out a damaged line, and report it', async () => {
    const it = await journal();
    await it.events.ask('append', { events: [event(1), event(2)] });
    const path = join(it.folder, 'life-1.log');
    await killed(it, 'this', () =>
      writeFileSync(path, readFileSync(path, 'utf8').replace('service.', 'sarvice.')),
    );
    expect(
      (await it.events.ask('history', { types: null, names: null, since: 0, limit: 10 })).events,
    ).toHaveLength(1);
    expect(it.reports).toEqual([expect.stringContaining('1 damaged lines of the journal are left out')]);
  });

  it('leave out a truncated last line, and continue after it', async () => {
    const it = await journal();
    await it.events.ask('append', { events: many(2, 'service.started') });
    await killed(it, 'this', () => appendFileSync(join(it.folder, 'life-1.log'), '3\t1\tservice.star'));
    await it.events.ask('append', { events: [event(3)] });
    await killed(it, 'this');
    expect((await it.events.ask('subscribe', {})).kept.map(({ id, data }) => [id, data])).toEqual([
      [1, '{"n":0}'],
      [2, '{"n":1}'],
      [3, '{"n":3}'],
    ]);
  });

  it('are read after zeros that a machine crash left in the file', async () => {
    const it = await journal();
    await it.events.ask('append', { events: many(2, 'service.started') });
    await killed(it, 'this', () => appendFileSync(join(it.folder, 'life-1.log'), `${'\0'.repeat(100)}\n9\t`));
    expect(ids((await it.events.ask('subscribe', {})).kept)).toEqual([1, 2]);
  });
});

describe('the journal over random restarts', () => {
  const count = fc.oneof(fc.nat(3), fc.nat(900));
  const step = fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constant('append' as const),
        counts: fc.array(fc.tuple(count, count), { maxLength: 3 }),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constantFrom('end' as const, 'kill' as const, 'tear' as const, 'reboot' as const),
        bytes: fc.nat(300),
      }),
    },
  );

  /** A journal beside a model of what it must still hold. */
  class Lives {
    readonly journal: Journal;
    private events: EventRecord[] = [];
    private highest = 0;
    private synced = 0;
    private boot = 'this';

    constructor(journal: Journal) {
      this.journal = journal;
    }

    /** Several messages at once, each with this many statistics and other events. */
    async append(counts: readonly [number, number][]): Promise<void> {
      const batches = counts.map(([stats, life]) => [
        ...many(stats, 'service.stats'),
        ...many(life, 'service.started'),
      ]);
      const answers = await Promise.all(
        batches.map((events) => this.journal.events.ask('append', { events })),
      );
      for (const [index, events] of batches.entries()) {
        if (events.length === 0) continue;
        const first = (answers[index]?.lastId ?? 0) - events.length + 1;
        expect(first).toBeGreaterThan(this.highest);
        this.events.push(...events.map((one, n) => ({ ...one, id: first + n, at: 0 })));
        this.highest = first + events.length - 1;
      }
    }

    async end(): Promise<void> {
      await this.journal.again(this.boot);
      this.synced = this.highest;
    }

    kill = (): Promise<void> => killed(this.journal, this.boot);

    tear = (bytes: number): Promise<void> =>
      killed(this.journal, this.boot, () => {
        const { folder } = this.journal;
        for (const name of files(folder)) appendFileSync(join(folder, name), 'x'.repeat(bytes));
      });

    /** The machine crashes: each newest file loses its last bytes, but never synced ones. */
    async reboot(bytes: number): Promise<void> {
      this.boot += '+';
      const { folder } = this.journal;
      const lost = new Set<number>();
      await killed(this.journal, this.boot, () => {
        for (const series of ['life', 'statistics']) {
          const newest = files(folder).findLast((file) => file.startsWith(series)) ?? '';
          const lines = readFileSync(join(folder, newest), 'utf8').split(/(?<=\n)/);
          const safe = lines.filter((line) => Number.parseInt(line, 10) <= this.synced).join('').length;
          const left = Math.max(safe, lines.join('').length - bytes);
          truncateSync(join(folder, newest), left);
          let end = 0;
          for (const line of lines) {
            end += line.length;
            if (end > left) lost.add(Number.parseInt(line, 10));
          }
        }
      });
      this.events = this.events.filter(({ id }) => !lost.has(id));
      const { completeFrom } = await this.journal.events.ask('subscribe', {});
      for (const id of lost) expect(completeFrom).toBeGreaterThan(id);
    }

    async check(): Promise<void> {
      const { kept, lastId, completeFrom } = await this.journal.events.ask('subscribe', {});
      const life = this.events.filter(({ type }) => type !== 'service.stats');
      const union = new Set([...this.events.slice(-EVENTS.retained), ...life.slice(-EVENTS.retained)]);
      expect(ids(kept)).toEqual(ids(this.events.filter((one) => union.has(one))));
      expect(lastId).toBeGreaterThanOrEqual(this.highest);
      expect(completeFrom).toBeGreaterThan(life.at(-EVENTS.retained - 1)?.id ?? 0);
    }
  }

  it('has growing ids, replays acknowledged events, and reports possible gaps', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const lives = new Lives(await journal());
        for (const one of steps) {
          if (one.do === 'append') await lives.append(one.counts);
          else await lives[one.do](one.bytes);
          await lives.check();
        }
      }),
      { numRuns: 25 },
    );
  });
});

describe('a journal in its own process', () => {
  it('has every acknowledged event after kill -9', async () => {
    const folder = tempDir();
    let highest = 0;
    for (let round = 0; round < 3; round += 1) {
      mkdirSync(folder, { recursive: true });
      const program = run(process.execPath, [child, 'forever', folder]);
      await program.line(() => program.lines.length > 2_000);
      program.child.kill('SIGKILL');
      await program.exited;
      const acknowledged = program.lines.map(Number);
      expect(acknowledged.every((id) => id > highest)).toBe(true);
      highest = Math.max(highest, ...acknowledged);
      const look = run(process.execPath, [child, 'look', folder]);
      const [, kept, newest, last] =
        /^kept (\d+) to (\d+) last (\d+)/.exec(await look.line((l) => l.startsWith('kept'))) ?? [];
      expect(Number(newest)).toBe(Number(last));
      expect(Number(last)).toBeGreaterThanOrEqual(highest);
      expect(Number(kept)).toBeGreaterThanOrEqual(Math.min(EVENTS.retained, highest));
      await look.exited;
    }
  });

  it.runIf(canMount())(
    'does not block on a full disk, and writes the waiting events when there is room',
    async () => {
      const command = `${process.execPath} ${child}`;
      const program = run(...onSmallDisk('2m', `${command} full /mnt && ${command} look /mnt`));
      expect(await program.exited).toEqual({ code: 0, signal: null });
      expect(program.lines.filter((line) => !line.startsWith('events:'))).toEqual([
        'seen true',
        'late 0',
        'kept 102 to 102 last 102 complete from 1',
      ]);
      expect(program.lines.filter((line) => line.startsWith('events:'))).toEqual([
        expect.stringMatching(/^events: the journal cannot be written, they wait in memory: .*ENOSPC/),
        'events: the journal is written again',
      ]);
    },
  );

  it.runIf(canMount())(
    'has the events of a full disk after a kill, while there is room and while there is none',
    async () => {
      const command = `${process.execPath} ${child}`;
      const look = `${command} look /mnt`;
      const program = run(
        ...onSmallDisk(
          '4m',
          `${command} full /mnt 100; ${look}; ${look}; rm /mnt/filler; ${look} && ${look}`,
        ),
      );
      expect(await program.exited).toEqual({ code: 0, signal: null });
      const kept = program.lines.filter((line) => line.startsWith('kept'));
      expect(kept).toEqual(Array(4).fill('kept 101 to 101 last 101 complete from 1'));
    },
  );

  it.runIf(canMount())(
    'does not reuse ids after a kill on a full disk without any room left, and reports what is missing',
    async () => {
      const command = `${process.execPath} ${child}`;
      const program = run(
        ...onSmallDisk('4m', `${command} full /mnt 3000; rm /mnt/filler && ${command} look /mnt`),
      );
      expect(await program.exited).toEqual({ code: 0, signal: null });
      const last = program.lines.at(-1) ?? '';
      expect(last).toMatch(/^kept 10\d\d to \d+ last 3001 complete from 3002$/);
    },
  );
});
