// Auto-sleep while the clock of the machine is set. docs/reference.md "Auto-sleep".
import { expect, it } from 'vitest';
import { type TestClock, virtualClock } from '../../kit/actors.ts';
import { type Cloud, cloud, doubleWith } from '../../kit/cloud.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** A virtual clock whose time of the day can be set. */
function settableClock(): TestClock & { set(byMs: number): void } {
  const clock = virtualClock();
  let offset = 0;
  return {
    ...clock,
    now: () => clock.now() + offset,
    set: (byMs) => {
      offset += byMs;
    },
  };
}

async function ready() {
  const double = await doubleWith('hello');
  const clock = settableClock();
  const here = await cloud({ clock, sweepMs: 10_000 * MINUTE });
  await here.add(double.kubeconfig);
  const { id } = here.find('web/hello');
  await here.workloads.ask('autoSleep', { id, enabled: true, minutes: 30 });
  await clock.advance(2 * MINUTE);
  return { clock, here, id };
}

const idle = async (here: Cloud): Promise<string[]> => (await here.workloads.ask('idle', {})).ids;
/** Resolves when the report has arrived. */
async function traffic(here: Cloud, id: string, lastByteAt: number): Promise<void> {
  here.workloads.tell('traffic', { id, lastByteAt });
  await idle(here);
}

it('a clock that jumps ahead puts no workload with traffic to sleep', async () => {
  const { clock, here, id } = await ready();
  await traffic(here, id, clock.now());
  clock.set(HOUR);
  expect(await idle(here)).toEqual([]);
  await clock.advance(29 * MINUTE);
  expect(await idle(here)).toEqual([]);
  await clock.advance(2 * MINUTE);
  expect(await idle(here)).toEqual([id]);
});

it('a clock that was a day ahead and is corrected keeps no workload awake', async () => {
  const { clock, here, id } = await ready();
  clock.set(24 * HOUR);
  here.workloads.tell('activity', { id, at: clock.now() });
  await traffic(here, id, clock.now());
  clock.set(-24 * HOUR);
  await clock.advance(30 * MINUTE);
  expect(await idle(here)).toEqual([id]);
});

it('a clock that is set back does not make used workloads idle', async () => {
  const { clock, here, id } = await ready();
  clock.set(-24 * HOUR);
  for (let minute = 0; minute < 60; minute += 10) {
    await traffic(here, id, clock.now());
    expect(await idle(here)).toEqual([]);
    await clock.advance(10 * MINUTE);
  }
});

it('a stored time in the future counts as now', async () => {
  const { clock, here, id } = await ready();
  await here.stop();
  clock.set(-24 * HOUR);
  const later = await cloud({ folder: here.folder, vault: here.vault, clock, sweepMs: 10_000 * MINUTE });
  await clock.advance(29 * MINUTE);
  expect(await idle(later)).toEqual([]);
  await clock.advance(2 * MINUTE);
  expect(await idle(later)).toEqual([id]);
});

it('no workload is put to sleep in the first minute after a start, however long it was idle', async () => {
  const { clock, here, id } = await ready();
  await clock.advance(HOUR);
  expect(await idle(here)).toEqual([id]);
  await here.stop();
  const later = await cloud({ folder: here.folder, vault: here.vault, clock, sweepMs: 10_000 * MINUTE });
  await clock.advance(MINUTE - 1);
  expect(await idle(later)).toEqual([]);
  await clock.advance(1);
  expect(await idle(later)).toEqual([id]);
});
