import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cpuSampleOf, cpuUseOf } from '../../../src/actors/stats/cpu_share.ts';
import { statsActor, type TrackedRun } from '../../../src/actors/stats/stats.ts';
import { type ProcessRow, processRow } from '../../../src/adapters/process/process_table.ts';
import {
  firstProcessUsage,
  type MeasureUsage,
  type ProcessUsage,
  type ProcessUsageSample,
  systemUsage,
  treeUsage,
} from '../../../src/adapters/process/process_usage.ts';
import { UsageHistory } from '../../../src/adapters/usage_history.ts';
import type { EventsProtocol } from '../../../src/protocol/events.ts';
import type { StatsProtocol } from '../../../src/protocol/stats.ts';
import type { ViewsProtocol } from '../../../src/protocol/views.ts';
import type { Ref } from '../../../src/runtime/actor.ts';
import { EVENTS, MIB } from '../../../src/settings/limits.ts';
import {
  afterThisTest,
  realTime,
  type Stand,
  type TestClock,
  virtualClock,
  type World,
  world,
} from '../../kit/actors.ts';
import { eventually, newFolder } from '../../kit/daemon.ts';
import { must } from '../../kit/must.ts';

const row = (pid: number, startTicks: number, cpuTicks: number, rssBytes = MIB): ProcessUsage => ({
  pid,
  startTicks,
  cpuTicks,
  rssBytes,
});
const measured = (nowTicks: number, runs: Record<string, ProcessUsage[]>): ProcessUsageSample => ({
  nowTicks,
  runs: new Map(Object.entries(runs)),
});

describe('the processor share of a run', () => {
  const before = cpuSampleOf(measured(1_000, { a: [row(1, 10, 500), row(2, 20, 80)] }));

  it('is the processor time of its processes divided by the elapsed time', () => {
    expect(cpuUseOf([row(1, 10, 600), row(2, 20, 180)], 1_200, before).cores).toBe(1);
  });

  it('is not negative when a process has ended, nor when its pid was reused', () => {
    expect(cpuUseOf([row(1, 10, 550)], 1_200, before).cores).toBe(0.25);
    expect(cpuUseOf([row(1, 10, 550), row(2, 1_100, 20)], 1_200, before).cores).toBe(0.35);
    expect(cpuUseOf([], 1_200, before).cores).toBe(0);
  });

  it('counts a newer process from its start, and a new run over its own time', () => {
    expect(cpuUseOf([row(1, 10, 500), row(3, 1_050, 40)], 1_200, before).cores).toBe(0.2);
    expect(cpuUseOf([row(3, 1_150, 50)], 1_200, before).cores).toBe(1);
    expect(cpuUseOf([row(3, 1_200, 0)], 1_200, before).cores).toBe(0);
  });

  it('counts an older process that was not seen before from now on', () => {
    expect(cpuUseOf([row(7, 30, 9_999)], 1_200, before).cores).toBe(0);
  });

  it('is never negative and never more than its ticks allow', () => {
    const process = fc.tuple(fc.integer({ min: 1, max: 5 }), fc.nat(1_200), fc.nat(1_000));
    fc.assert(
      fc.property(fc.array(process), fc.array(process), (first, second) => {
        const rows = (list: [number, number, number][]) =>
          list.map(([pid, start, cpu]) => row(pid, start, cpu));
        const earlier = cpuSampleOf(measured(1_000, { a: rows(first) }));
        const now = rows(second);
        const { cores } = cpuUseOf(now, 1_200, earlier);
        expect(cores).toBeGreaterThanOrEqual(0);
        expect(cores).toBeLessThanOrEqual(now.reduce((sum, { cpuTicks }) => sum + cpuTicks, 0));
      }),
    );
  });
});

interface Setting {
  /** The folder of the logs. */
  logs: string;
  world: World;
  stats: Ref<StatsProtocol>;
  events: Stand<EventsProtocol>;
  views: Stand<ViewsProtocol>;
}

async function setting(usage: MeasureUsage, clock: TestClock = virtualClock()): Promise<Setting> {
  const w = world({ clock });
  const events = await w.stand<EventsProtocol>('events', { append: () => ({ lastId: 1 }) });
  const views = await w.stand<ViewsProtocol>('views');
  const tracked = new Map<string, TrackedRun>();
  const logs = newFolder();
  const history = new UsageHistory(logs);
  return {
    logs,
    world: w,
    stats: await w.start('stats', statsActor, { usage, tracked, history }),
    events,
    views,
  };
}

const track = (run: string, running: boolean) => ({
  name: `service-${run}`,
  run,
  pid: 1,
  startTicks: 1,
  running,
});

describe('statistics', () => {
  it('come every 2 seconds: one message with all rows, and an event for each running service', async () => {
    let pass = 0;
    const it = await setting(async (roots) => {
      pass += 1;
      const rows = roots.map(({ run }, n): [string, ProcessUsage[]] => [
        run,
        [row(n * 2 + 1, 0, pass * 100, MIB), row(n * 2 + 2, 0, pass * 10, MIB / 2)],
      ]);
      return { nowTicks: 1_000 + pass * 200, runs: new Map(rows) };
    });
    await it.stats.ask('track', track('a', true));
    await it.stats.ask('track', track('b', false));
    await it.world.clock.advance(EVENTS.statsIntervalMs - 1);
    expect(it.views.of('stats')).toEqual([]);
    await it.world.clock.advance(1);
    await it.world.clock.advance(EVENTS.statsIntervalMs);
    const rows = (cpu: number, usedSeconds: number) =>
      ['a', 'b'].map((run) => ({ name: `service-${run}`, run, cpu, rssMB: 2, usedSeconds }));
    expect(it.views.of('stats')).toEqual([{ rows: rows(0, 0) }, { rows: rows(0.55, 1.1) }]);
    const event = (cpu: number) => ({
      type: 'service.stats',
      name: 'service-a',
      run: 'a',
      data: `{"name":"service-a","cpu":${cpu},"rssMB":2}`,
    });
    expect(it.events.of('append')).toEqual([{ events: [event(0)] }, { events: [event(0.55)] }]);
    await it.stats.ask('track', track('b', true));
    await it.stats.ask('forget', { name: 'service-a', run: 'a' });
    await it.world.clock.advance(EVENTS.statsIntervalMs);
    expect(
      it.events
        .of('append')
        .at(-1)
        ?.events.map(({ run }) => run),
    ).toEqual(['b']);
  });

  it('cost nothing while nothing is tracked', async () => {
    let passes = 0;
    const it = await setting(async () => {
      passes += 1;
      return measured(passes, {});
    });
    await it.world.clock.advance(3 * EVENTS.statsIntervalMs);
    expect(passes).toBe(0);
    await it.stats.ask('track', track('a', true));
    await it.world.clock.advance(EVENTS.statsIntervalMs);
    expect(passes).toBe(1);
    await it.stats.ask('forget', { name: 'service-a', run: 'a' });
    await it.world.clock.advance(3 * EVENTS.statsIntervalMs);
    expect(passes).toBe(1);
    expect(it.views.of('stats')).toEqual([]);
  });

  it('are not measured twice at once, and leave out a service forgotten meanwhile', async () => {
    let finish = (): void => {};
    let passes = 0;
    const it = await setting((roots) => {
      passes += 1;
      const runs = new Map(roots.map(({ run }, n) => [run, [row(n, 0, 0)]]));
      return new Promise((resolve) => {
        finish = () => resolve({ nowTicks: 1_000, runs });
      });
    });
    await it.stats.ask('track', track('a', true));
    await it.stats.ask('track', track('b', true));
    await it.world.clock.advance(3 * EVENTS.statsIntervalMs);
    expect(passes).toBe(1);
    await it.stats.ask('forget', { name: 'service-a', run: 'a' });
    finish();
    expect((await it.views.next('stats')).rows.map(({ run }) => run)).toEqual(['b']);
  });

  it('continue after a crash with the same services', async () => {
    let broken = true;
    const it = await setting(async (roots) => {
      if (broken) throw new Error('no table');
      return measured(1_000, Object.fromEntries(roots.map(({ run }) => [run, [row(1, 0, 0)]])));
    });
    await it.stats.ask('track', track('a', true));
    await it.world.clock.advance(EVENTS.statsIntervalMs);
    broken = false;
    expect(it.world.crashes.splice(0)).toHaveLength(1);
    await it.world.clock.advance(2 * EVENTS.statsIntervalMs);
    expect(it.events.of('append')[0]?.events).toMatchObject([{ name: 'service-a' }]);
  });
});

/** A program that is killed with its whole group after the test; resolves with its first line. */
async function program(
  command: string,
  args: string[],
  env: NodeJS.ProcessEnv = {},
): Promise<{ child: ChildProcess; pid: number; line: string }> {
  const child = spawn(command, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
    env: { ...process.env, ...env },
  });
  const pid = must(child.pid);
  afterThisTest(async () => {
    const ended = new Promise((resolve) => child.on('exit', resolve));
    process.kill(-pid, 'SIGKILL');
    await ended;
  });
  const line = await new Promise<string>((resolve) =>
    child.stdout?.once('data', (text) => resolve(String(text))),
  );
  return { child, pid, line };
}

const root = (run: string, pid: number) => ({
  run,
  pid,
  startTicks: processRow(pid)?.startTicks ?? 0,
  grouped: true,
});
/** Works for 300 ms of processor time, prints a line, and rests. */
const BURN = `while (process.cpuUsage().user < 300000); console.log(process.pid); setInterval(() => {}, 1e6)`;

describe('a process outside all runs', () => {
  /** A machine with the processes `rows`; records which of them each pass read. */
  const machine = (rows: Map<number, ProcessRow>) => {
    const read: number[][] = [];
    const usage = treeUsage((known) => {
      const now: number[] = [];
      const row = (pid: number) => {
        now.push(pid);
        return must(rows.get(pid));
      };
      const table = new Map([...rows.keys()].map((pid) => [pid, known(pid) ?? row(pid)]));
      read.push(now);
      return table;
    });
    return { usage, read };
  };
  // Above any real pid, so that no environment is found.
  const [first, foreign] = [2 ** 23, 2 ** 23 + 1];
  const process = (pid: number, more: Partial<ProcessRow> = {}): [number, ProcessRow] => [
    pid,
    {
      ...{ pid, ppid: 1, pgid: pid, session: pid, startTicks: 100, state: 'S' },
      ...{ cpuTicks: 0, rssBytes: MIB, comm: 'x', ...more },
    },
  ];
  const run = { run: 'a', pid: first, startTicks: 100, grouped: true };

  it('is read occasionally, while a process of a run is read each time', async () => {
    const { usage, read } = machine(new Map([process(first), process(foreign)]));
    for (let pass = 0; pass < 17; pass += 1) await usage([run]);
    expect(read[0]).toEqual([first, foreign]);
    expect(read.flat().filter((pid) => pid === first)).toHaveLength(17);
    expect(
      read
        .slice(1)
        .flat()
        .filter((pid) => pid === foreign),
    ).toHaveLength(2);
  });

  it('is found although its pid belonged to another process before', async () => {
    const rows = new Map([process(first), process(foreign)]);
    const { usage } = machine(rows);
    await usage([run]);
    rows.set(...process(foreign, { ppid: first, startTicks: 200 }));
    let found: ProcessUsageSample = await usage([run]);
    for (let pass = 1; pass < 8 && found.runs.get('a')?.length === 1; pass += 1) found = await usage([run]);
    expect(found.runs.get('a')?.map(({ pid }) => pid)).toEqual([first, foreign]);
  });

  it('is measured at once when it turns out to be the first of a run', async () => {
    const rows = new Map([process(first, { pgid: 1, session: 1 })]);
    const { usage } = machine(rows);
    await usage([]);
    rows.set(...process(first, { rssBytes: 2 * MIB }));
    expect((await usage([run])).runs.get('a')).toMatchObject([{ pid: first, rssBytes: 2 * MIB }]);
  });
});

describe.runIf(process.platform === 'linux')('statistics of real processes', () => {
  it('include all descendants of a process, also one in another session', async () => {
    const script = `${process.execPath} -e "${BURN}" & setsid ${process.execPath} -e "setInterval(() => {}, 1e6)" & wait`;
    // The mark of this test alone, also in two simultaneous runs.
    const run = `run-${process.pid}`;
    const { pid, line } = await program('sh', ['-c', script], { BERTH_RUN: run });
    const usage = treeUsage();
    const processes = async (): Promise<readonly ProcessUsage[]> =>
      (await usage([root(run, pid)])).runs.get(run) ?? [];
    const isOutside = (one: ProcessUsage): boolean => processRow(one.pid)?.session !== pid;
    // It would outlive the test.
    afterThisTest(async () => {
      for (const one of (await processes()).filter(isOutside)) process.kill(one.pid, 'SIGKILL');
    });
    let found = await processes();
    while (found.length < 3 || !found.some(isOutside)) {
      await realTime.advance(20);
      found = await processes();
    }
    expect(found.map((one) => one.pid)).toContain(pid);
    expect(found.find((one) => one.pid === Number(line))?.cpuTicks).toBeGreaterThanOrEqual(29);
    expect(found.filter(isOutside)).toHaveLength(1);
    const sum = found.reduce((bytes, one) => bytes + one.rssBytes, 0);
    expect(sum).toBeGreaterThan(2 * 20 * MIB);
  });

  it('match pidusage for a first process', async () => {
    const { pid } = await program(process.execPath, ['-e', BURN]);
    const roots = [root('a', pid)];
    const [ours, theirs] = [await treeUsage()(roots), await firstProcessUsage(roots)];
    const [mine] = ours.runs.get('a') ?? [];
    const [other] = theirs.runs.get('a') ?? [];
    expect(mine?.cpuTicks).toBeGreaterThanOrEqual(29);
    expect(Math.abs((mine?.cpuTicks ?? 0) - (other?.cpuTicks ?? 0))).toBeLessThanOrEqual(5);
    expect((mine?.rssBytes ?? 0) / (other?.rssBytes ?? 1)).toBeCloseTo(1, 1);
  });

  it('have no row for a run without a process, and read nothing without a run', async () => {
    const gone = { run: 'gone', pid: 2 ** 22 - 1, startTicks: 1, grouped: true };
    for (const usage of [treeUsage(), firstProcessUsage]) {
      expect((await usage([gone])).runs).toEqual(new Map());
      expect((await usage([])).runs).toEqual(new Map());
    }
  });

  it('are sent by the actor in real time', async () => {
    const { pid } = await program(process.execPath, ['-e', BURN]);
    const it = await setting(systemUsage(), realTime);
    const { startTicks } = root('a', pid);
    await it.stats.ask('track', { name: 'web', run: 'a', pid, startTicks, running: true });
    const { events } = await it.events.next('append');
    const { cpu, rssMB, ...rest } = JSON.parse(events[0]?.data ?? '');
    expect(rest).toEqual({ name: 'web' });
    expect(cpu).toBeGreaterThanOrEqual(0);
    expect(rssMB).toBeGreaterThan(20);
    await it.stats.ask('forget', { name: 'web', run: 'a' });
  });
});

describe('the history of statistics', () => {
  const usage: MeasureUsage = async (roots) => ({
    nowTicks: 1_000,
    runs: new Map(roots.map(({ run }) => [run, [row(1, 0, 0, 5 * MIB)]])),
  });
  const point = { cpu: 0, rssMB: 5 };

  it('has a point per step, none while nothing runs, and outlives runs and restarts', async () => {
    const it = await setting(usage);
    const { clock } = it.world;
    mkdirSync(join(it.logs, 'service-a'));
    const points = async (range: 'hour' | 'day') =>
      (await it.stats.ask('history', { name: 'service-a', range })).points;
    expect(await points('hour')).toEqual([]);
    const begin = Math.ceil(clock.now() / 60_000) * 60_000;
    await clock.advance(begin - clock.now());
    await it.stats.ask('track', track('a', true));
    for (let pass = 0; pass < 15; pass += 1) {
      await clock.advance(EVENTS.statsIntervalMs);
      await it.views.next('stats');
    }
    await it.stats.ask('forget', { name: 'service-a', run: 'a' });
    const steps = [0, 10_000, 20_000, 30_000];
    await eventually(async () => (await points('hour')).length === steps.length);
    expect(await points('hour')).toEqual(steps.map((ms) => ({ at: begin + ms, ...point })));
    expect(await points('day')).toEqual([{ at: begin, ...point }]);
    // Another daemon reads the same files, and an hour later the hour is empty.
    const later = new UsageHistory(it.logs);
    expect(await later.read('service-a', 'hour', clock.now())).toHaveLength(steps.length);
    expect(await later.read('service-a', 'hour', clock.now() + 3_600_000)).toEqual([]);
    expect(await later.read('service-a', 'day', clock.now() + 3_600_000)).toHaveLength(1);
  });

  it('does not grow, and is dropped if the folder of its service is gone', async () => {
    const logs = newFolder();
    mkdirSync(join(logs, 'web'));
    const history = new UsageHistory(logs);
    for (let step = 0; step < 800; step += 100)
      history.append('web', [{ range: 'hour', at: step * 10_000, ...point }]);
    history.append('web', [{ range: 'day', at: 2_879 * 60_000, ...point }]);
    expect(statSync(join(logs, 'web', 'usage.ring')).size).toBe(12 * (360 + 1_440));
    expect((await history.read('web', 'hour', 7_000_000)).map(({ at }) => at)).toEqual([
      4_000_000, 5_000_000, 6_000_000, 7_000_000,
    ]);
    history.append('gone', [{ range: 'hour', at: 0, ...point }]);
    expect(await history.read('gone', 'hour', 0)).toEqual([]);
  });
});
