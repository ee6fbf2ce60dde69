// docs/reference.md "Schedules" in virtual time, with a task that the test scripts.
import { describe, expect, it } from 'vitest';
import { schedulesActor } from '../../../src/actors/schedules/schedules.ts';
import type { StoreTable, StoreTables } from '../../../src/adapters/storage/store_tables.ts';
import { fail } from '../../../src/protocol/errors.ts';
import type { ScheduleSpec, SchedulesProtocol } from '../../../src/protocol/schedules.ts';
import type { ServiceProtocol, StoredService } from '../../../src/protocol/service.ts';
import type { ViewsProtocol } from '../../../src/protocol/views.ts';
import { actor, type Failure, type Ref } from '../../../src/runtime/actor.ts';
import { type Stand, type TestClock, virtualClock, world } from '../../kit/actors.ts';
import { advance, MemoryStore } from '../../kit/service.ts';
import { spec } from '../../kit/service_inputs.ts';

/** Like the daemon's store, with one service. */
class OneService extends MemoryStore {
  schedule: ScheduleSpec | null = null;
  override table<N extends keyof StoreTables>(name: N): StoreTable<StoreTables[N]> {
    const table = super.table(name);
    const stored: StoredService = { spec: spec({ kind: 'task', schedule: this.schedule }), revision: 1 };
    const all = (): [string, StoreTables[N]][] =>
      name === 'services' ? [['web', stored as StoreTables[N]]] : [];
    return { ...table, all };
  }
}

interface Run {
  clock: TestClock;
  ref: Ref<SchedulesProtocol>;
  views: Stand<ViewsProtocol>;
}

async function begin(
  store: OneService,
  clock: TestClock,
  starts: number[],
  failures: Failure[],
): Promise<Run> {
  const here = world({ clock });
  const type = actor<Pick<ServiceProtocol, 'start'>, null>('service', () => ({
    start: ({ slot = 0 }) => {
      const failure = failures.shift();
      if (failure) throw failure;
      starts.push(slot);
      return { name: 'web', status: 'starting', pid: 1 };
    },
  }));
  const views = await here.stand<ViewsProtocol>('views');
  here.node.family('service:', type, () => null);
  const ref = await here.start('schedules', schedulesActor, { store });
  return { clock, ref, views };
}

const EVERY: ScheduleSpec = { cron: '@every 5m', timezone: null, catchUp: false };
const MINUTE = 60_000;
const BUSY = fail('daemon_busy', 'not now');

describe('a schedule', () => {
  it('starts its task at each time, skips times during a run, and repeats a start that was not answered', async () => {
    const store = new OneService();
    const starts: number[] = [];
    const failures: Failure[] = [];
    const clock = virtualClock();
    const began = clock.now();
    const { ref, views } = await begin(store, clock, starts, failures);
    await ref.ask('changed', { name: 'web', schedule: EVERY });
    await advance(clock, 11 * MINUTE);
    expect(starts).toEqual([began + 5 * MINUTE, began + 10 * MINUTE]);
    failures.push(fail('already_running', 'it runs'));
    await advance(clock, 5 * MINUTE);
    failures.push(fail('hook_refused', 'its stack is not created'));
    await advance(clock, 5 * MINUTE);
    failures.push(BUSY, BUSY);
    await advance(clock, 5 * MINUTE);
    expect(starts.slice(2)).toEqual([began + 25 * MINUTE]);
    expect(views.of('schedules').at(-1)?.rows).toEqual([
      { name: 'web', nextRunAt: began + 30 * MINUTE, skipped: 2 },
    ]);
    await ref.ask('changed', { name: 'web', schedule: null });
    await advance(clock, 30 * MINUTE);
    expect(starts).toHaveLength(3);
    expect(store.table('schedules')).toBeDefined();
  });

  it.each([
    [false, 0],
    [true, 1],
  ])(
    'with catchUp %s makes up for %i of the runs that were missed without a daemon',
    async (catchUp, runs) => {
      const store = new OneService();
      store.schedule = { ...EVERY, catchUp };
      const clock = virtualClock();
      const starts: number[] = [];
      const slot = clock.now() - 32 * MINUTE;
      const row = { schedule: JSON.stringify(store.schedule), slot, asked: null, skipped: 0 };
      await store.table('schedules').put('web', row);
      await begin(store, clock, starts, []);
      await advance(clock, 10);
      expect(starts).toEqual(runs === 0 ? [] : [slot + 30 * MINUTE]);
      await advance(clock, 4 * MINUTE);
      expect(starts.at(-1)).toBe(slot + 35 * MINUTE);
    },
  );

  it('repeats the start that was under way when the daemon was killed', async () => {
    const store = new OneService();
    store.schedule = EVERY;
    const clock = virtualClock();
    const starts: number[] = [];
    const slot = clock.now() - 7 * MINUTE;
    const asked = slot + 5 * MINUTE;
    const row = { schedule: JSON.stringify(EVERY), slot, asked, skipped: 0 };
    await store.table('schedules').put('web', row);
    await begin(store, clock, starts, []);
    await advance(clock, 10);
    expect(starts).toEqual([asked]);
  });

  /** The times that a daily task at 2:30 in Berlin runs for, when its daemon is up from `up` on. */
  async function nightlyRuns(
    settled: string,
    up: string,
    hours: number,
    catchUp: boolean,
  ): Promise<string[]> {
    const store = new OneService();
    store.schedule = { cron: '30 2 * * *', timezone: 'Europe/Berlin', catchUp };
    const row = {
      schedule: JSON.stringify(store.schedule),
      slot: Date.parse(settled),
      asked: null,
      skipped: 0,
    };
    await store.table('schedules').put('web', row);
    const starts: number[] = [];
    const clock = virtualClock(Date.parse(up));
    await begin(store, clock, starts, []);
    await advance(clock, hours * 60 * MINUTE);
    return starts.map((time) => new Date(time).toISOString());
  }

  it.each([
    // In March 2:30 does not exist, so it runs at 3:00 in summer time.
    ['2030-03-30T01:30:00Z', '2030-03-30T20:00:00Z', ['2030-03-31T01:00:00.000Z']],
    // In October 2:30 comes twice.
    ['2030-10-26T00:30:00Z', '2030-10-26T20:00:00Z', ['2030-10-27T00:30:00.000Z']],
  ])(
    'runs once in the night of a clock change while the daemon is running (%s)',
    async (settled, up, runs) => {
      for (const catchUp of [true, false]) expect(await nightlyRuns(settled, up, 20, catchUp)).toEqual(runs);
    },
  );

  it.each([
    ['2030-03-30T01:30:00Z', '2030-03-31T06:00:00Z', '2030-03-31T01:00:00.000Z'],
    ['2030-03-27T01:30:00Z', '2030-03-31T06:00:00Z', '2030-03-31T01:00:00.000Z'],
    ['2030-10-26T00:30:00Z', '2030-10-27T06:00:00Z', '2030-10-27T00:30:00.000Z'],
    // The daemon comes back in the second 2:30.
    ['2030-10-26T00:30:00Z', '2030-10-27T01:30:00Z', '2030-10-27T00:30:00.000Z'],
  ])(
    'makes up once for a run missed in the night of a clock change (%s to %s)',
    async (settled, up, missed) => {
      const next = missed.startsWith('2030-03') ? '2030-04-01T00:30:00.000Z' : '2030-10-28T01:30:00.000Z';
      expect(await nightlyRuns(settled, up, 27, true)).toEqual([missed, next]);
      expect(await nightlyRuns(settled, up, 27, false)).toEqual([next]);
      // Killed right after that run, the next daemon does not repeat it.
      expect(await nightlyRuns(missed, up, 10, true)).toEqual([]);
    },
  );
});
