// What a restarted daemon finds in the host's ledger, and what happens while the host is away.
// docs/reference.md "Crash of the daemon", "Crash of the process host".
import { describe, expect, it } from 'vitest';
import type { LastEnd, RunEnd } from '../../../src/protocol/service.ts';
import { Failure } from '../../../src/runtime/actor.ts';
import { virtualClock } from '../../kit/actors.ts';
import { must } from '../../kit/must.ts';
import {
  AGENT,
  BOOTED_AT,
  MEMO,
  type Plan,
  quiet,
  running,
  type Supervised,
  supervise,
} from '../../kit/service.ts';

const RUN = '00000000000000aa';
const READY = 'http://localhost:3000/';

async function begun(plan: Plan): Promise<Supervised> {
  const world = await supervise(plan);
  await world.begin();
  return world;
}

const code = (answer: Promise<unknown>): Promise<unknown> =>
  answer.then(
    (value) => value,
    (error: unknown) => (error instanceof Failure ? error.code : error),
  );
const start = (world: Supervised) => world.ref.ask('start', { timeoutMs: null, wait: true });
const stop = (world: Supervised) => world.ref.ask('stop', { graceMs: null });

function ending(over: Partial<RunEnd> = {}): RunEnd {
  const at = virtualClock().now() - 1_000;
  return {
    service: 'web',
    run: RUN,
    exitCode: 0,
    signal: null,
    exitUnknown: false,
    cause: 'exit',
    at,
    ...over,
  };
}

function lastEnd(over: Partial<LastEnd> = {}): LastEnd {
  const at = virtualClock().now() - 1_000;
  return { run: RUN, status: 'crashed', exitCode: 1, signal: null, exitUnknown: false, at, ...over };
}

describe('a later daemon', () => {
  it('shows a ready run as running, with the same pid and start, and without an event', async () => {
    const world = await begun({ row: { memo: { ...MEMO, port: 3001, revision: 4, restarts: 2 } } });
    expect(world.state()).toEqual({
      name: 'web',
      status: 'running',
      restarts: 2,
      process: {
        run: RUN,
        pid: 77,
        startedAt: world.clock.now() - 60_000,
        port: 3001,
        revision: 4,
        rssMB: 0,
        innerPort: null,
      },
      end: null,
      isDoorOpen: false,
    });
    expect(world.stats.of('track')).toEqual([
      { name: 'web', run: RUN, pid: 77, startTicks: 770, running: true },
    ]);
    await world.advance(1_000);
    expect(world.events()).toEqual([]);
    expect(await stop(world)).toMatchObject({ status: 'stopped', signal: 'SIGTERM' });
    expect(world.host.stops).toMatchObject([{ run: RUN }]);
  });

  it('continues a ready-check until its deadline', async () => {
    const clock = virtualClock();
    const memo = { ...MEMO, passed: false, ready: READY, deadline: clock.now() + 500 };
    const world = await begun({ clock, row: { memo } });
    expect(world.state().status).toBe('starting');
    await world.advance(495);
    expect(world.state().status).toBe('starting');
    await world.advance(10);
    expect(world.state().status).toBe('stopped');
    expect(world.events()).toEqual([['service.stopped', { name: 'web', exitCode: null, signal: 'SIGTERM' }]]);
  });

  it('makes one probe for a start whose deadline has passed', async () => {
    const clock = virtualClock();
    const memo = { ...MEMO, passed: false, ready: READY, deadline: clock.now() - 5_000 };
    const world = await supervise({ clock, row: { memo } });
    world.probe.pass();
    await world.begin();
    await quiet();
    expect(world.probe.at).toHaveLength(1);
    expect(world.state().status).toBe('running');
    expect(world.events().map(([type]) => type)).toEqual(['service.started']);
    expect(world.host.row?.memo).toEqual({ ...memo, passed: true });
  });

  it('reports once a wake that an earlier daemon had begun', async () => {
    const clock = virtualClock();
    const memo = { ...MEMO, passed: false, ready: READY, wokeAt: clock.now() - 3_000 };
    const first = await begun({ clock, row: { memo } });
    expect(first.events()).toEqual([]);
    first.probe.pass();
    await first.advance(1_000);
    expect(first.state().status).toBe('running');
    const told = first.events();
    expect(told.map(([type]) => type)).toEqual(['service.started', 'service.woke']);
    expect(told[1]?.[1]).toEqual({
      name: 'web',
      ms: expect.toSatisfy((ms: number) => ms >= 3_000 && ms <= 4_000),
    });
    const later = await begun({ clock, row: { memo: must(first.host.row).memo } });
    await later.advance(1_000);
    expect(later.events()).toEqual([]);
  });

  it('gives an agent unlimited time', async () => {
    const memo = { ...MEMO, passed: false, ready: READY };
    const world = await begun({ spec: { agent: AGENT }, row: { memo, pty: true } });
    await world.advance(3_600_000);
    expect(world.state().status).toBe('starting');
  });

  it.each([
    [ending({ exitCode: 3 }), 'crashed', ['service.crashed', { name: 'web', exitCode: 3, signal: null }]],
    [ending(), 'stopped', ['service.stopped', { name: 'web', exitCode: 0 }]],
    [
      ending({ exitCode: null, exitUnknown: true }),
      'crashed',
      ['service.crashed', { name: 'web', exitCode: null, signal: null }],
    ],
    [
      ending({ exitCode: null, cause: 'reboot' }),
      'stopped',
      ['service.stopped', { name: 'web', exitCode: null, signal: null }],
    ],
  ] as const)('reports an end that came meanwhile: %o', async (end, status, event) => {
    const world = await begun({ row: { end } });
    expect(world.state()).toMatchObject({
      status,
      process: null,
      end: { exitCode: end.exitCode, at: end.at },
    });
    expect(world.events()).toEqual([event]);
    expect(world.kept()).toMatchObject({ run: RUN, status, exitUnknown: end.exitUnknown });
    await quiet();
    expect(world.host.acknowledged).toEqual([RUN]);
  });

  it('reports no event twice for an end that is in the journal but not in the store', async () => {
    const world = await supervise({ row: { end: ending({ exitCode: 3 }) } });
    const data = JSON.stringify({ name: 'web', exitCode: 3, signal: null });
    world.journal.push({
      type: 'service.crashed',
      name: 'web',
      run: RUN,
      data,
      once: true,
    });
    await world.begin();
    expect(world.journal).toHaveLength(1);
    expect(world.kept()).toMatchObject({ run: RUN, exitCode: 3 });
  });

  it('keeps a reported stop although the process had exited by itself just before', async () => {
    const world = await supervise({ spec: { restart: 'always' }, row: { end: ending({ exitCode: 3 }) } });
    const data = JSON.stringify({ name: 'web', exitCode: 3 });
    world.journal.push({ type: 'service.stopped', name: 'web', run: RUN, data, once: true });
    await world.begin();
    expect(world.journal).toHaveLength(1);
    expect(world.state()).toMatchObject({ status: 'stopped', end: { exitCode: 3 } });
    expect(world.kept()).toMatchObject({ run: RUN, status: 'stopped' });
    expect(world.kept()?.restart).toBeUndefined();
    await world.advance(60_000);
    expect(world.host.spawns).toEqual([]);
  });

  it('only acknowledges an end that is in the store', async () => {
    const world = await begun({ end: lastEnd({ exitCode: 3 }), row: { end: ending({ exitCode: 3 }) } });
    await quiet();
    expect(world.host.acknowledged).toEqual([RUN]);
    expect(world.events()).toEqual([]);
    expect(world.state()).toMatchObject({ status: 'crashed', end: { exitCode: 3 } });
  });

  it('counts an end as stopped when the earlier daemon had ordered the stop', async () => {
    const end = ending({ exitCode: 1 });
    const world = await begun({ spec: { restart: 'always' }, row: { end, stopping: true } });
    expect(world.events()).toEqual([['service.stopped', { name: 'web', exitCode: 1 }]]);
    await world.advance(60_000);
    expect(world.host.spawns).toEqual([]);
  });

  it('joins a stop that the host has begun', async () => {
    const world = await supervise({ row: { stopping: true, stopGraceMs: 60_000 } });
    world.host.stopMs = 300;
    await world.begin();
    // It does not become shorter by that.
    expect(world.host.stops).toMatchObject([{ graceMs: 60_000 }]);
    expect(world.state()).toMatchObject({ status: 'stopping', process: { pid: 77 } });
    expect(await code(start(world))).toBe('daemon_busy');
    const joined = stop(world);
    await world.advance(400);
    expect(await joined).toMatchObject({ status: 'stopped' });
    expect(world.events().map(([type]) => type)).toEqual(['service.stopped']);
  });

  it('restarts a process that ended meanwhile, as its policy says', async () => {
    const world = await begun({
      spec: { restart: 'on-failure' },
      row: { end: ending({ exitCode: 3 }) },
    });
    await world.advance(200);
    expect(world.state()).toMatchObject({ status: 'running', restarts: 1 });
  });

  it('restarts nothing by policy after a boot of the machine', async () => {
    const end = ending({ exitCode: null, cause: 'reboot' });
    const world = await begun({ spec: { restart: 'always' }, row: { end } });
    await world.advance(60_000);
    expect(world.host.spawns).toEqual([]);
  });

  it('performs a pending restart when it is due', async () => {
    const clock = virtualClock();
    const end = lastEnd({ restart: { attempt: 3, at: clock.now() + 300 } });
    const world = await begun({ clock, spec: { restart: 'always' }, end });
    expect((await world.ref.ask('explain', {})).backoff).toMatchObject({ attempt: 3, delayMs: 400 });
    await world.advance(290);
    expect(world.host.spawns).toEqual([]);
    await world.advance(15);
    expect(world.host.spawns).toHaveLength(1);
  });

  it('counts the restarts of earlier daemons, until a client starts it', async () => {
    const end = lastEnd({ restarts: 2, restart: { attempt: 3, at: BOOTED_AT } });
    const world = await begun({ spec: { restart: { policy: 'always', minMs: 1_000 } }, end });
    expect(world.state().restarts).toBe(2);
    await world.advance(1_000);
    expect(world.state()).toMatchObject({ status: 'running', restarts: 3 });
    world.host.exit(1);
    await world.advance(100);
    expect(world.state()).toMatchObject({ status: 'crashed', restarts: 3 });
    expect(world.kept()).toMatchObject({ restarts: 3 });
    await running(world);
    world.host.exit(1);
    await world.advance(100);
    expect(world.kept()).not.toHaveProperty('restarts');
  });

  it.each([
    ['it is of before the boot', { restart: 'always' }, { at: BOOTED_AT - 1 }],
    ['the policy says no more', { restart: 'no' }, {}],
  ] as const)('performs no restart when %s', async (_, spec, over) => {
    const end = lastEnd({ restart: { attempt: 1, at: BOOTED_AT }, ...over });
    const world = await begun({ spec, end });
    await world.advance(60_000);
    expect(world.host.spawns).toEqual([]);
    expect(world.state().status).toBe('crashed');
  });

  it('shows how the last process under an earlier daemon ended', async () => {
    const world = await begun({ end: lastEnd() });
    expect(world.state()).toMatchObject({ status: 'crashed', process: null, end: { exitCode: 1 } });
  });
});

describe('a process host that is unavailable', () => {
  it('during a spawn causes daemon_busy, and the process is adopted later', async () => {
    const world = await begun({ spec: { ready: READY } });
    world.host.spawnMs = 100;
    const started = code(start(world));
    await world.advance(50);
    world.cut();
    expect(await started).toBe('daemon_busy');
    await world.advance(100);
    expect(await code(start(world))).toBe('daemon_busy');
    expect(await code(stop(world))).toBe('daemon_busy');
    world.join();
    world.probe.pass();
    await world.advance(1_000);
    expect(world.state()).toMatchObject({ status: 'running', process: { pid: 101 } });
    expect(world.host.spawns).toHaveLength(1);
  });

  it('during a spawn that made no process causes daemon_busy, and a later start succeeds', async () => {
    const world = await begun({});
    world.cut();
    expect(await code(start(world))).toBe('daemon_busy');
    world.join();
    await world.advance(1_000);
    expect(world.state().status).toBe('stopped');
    expect(await running(world)).toBe(101);
  });

  it('during a stop causes daemon_busy, and the stop is joined later', async () => {
    const world = await begun({});
    await running(world);
    world.host.stopMs = 2_000;
    const stopped = code(stop(world));
    await world.advance(100);
    world.cut();
    expect(await stopped).toBe('daemon_busy');
    expect(world.state()).toMatchObject({ status: 'stopping', process: { pid: 101 } });
    await world.advance(1_000);
    world.join();
    await world.advance(3_000);
    expect(world.state()).toMatchObject({ status: 'stopped', process: null });
    expect(world.journal.map(({ type }) => type)).toEqual(['service.started', 'service.stopped']);
  });

  it('loses a stop when it is killed, and what the run has left behind is ended before the next start', async () => {
    const world = await begun({});
    await running(world);
    const [first] = world.host.spawns;
    // It hangs, and does not get the request.
    world.cut();
    const restarted = world.ref.ask('restart', { timeoutMs: null, graceMs: null });
    await quiet();
    world.host.exit(1);
    world.host.leftBehind = 3;
    world.join();
    await world.advance(1_000);
    expect((await restarted).status).toBe('running');
    expect(world.host.stops.map(({ run }) => run)).toEqual([first?.run]);
    expect(world.host.leftBehind).toBe(0);
  });

  it('loses a stop when it is killed, and the stop is requested again', async () => {
    const world = await begun({});
    await running(world);
    world.host.stopMs = 2_000;
    const stopped = code(world.ref.ask('stop', { graceMs: 60_000 }));
    await world.advance(100);
    world.cut();
    await stopped;
    if (world.host.row) world.host.row.stopping = false;
    world.join();
    await world.advance(5_000);
    expect(world.host.stops.map(({ graceMs }) => graceMs)).toEqual([60_000, 60_000]);
    expect(world.state().status).toBe('stopped');
  });

  it('does not affect running processes; their end is reported when the host is back', async () => {
    const world = await begun({});
    await running(world);
    world.cut();
    await world.advance(1_000);
    expect(world.state().status).toBe('running');
    world.host.exit(9);
    world.join();
    await world.ref.ask('adopt', {});
    await quiet();
    expect(world.state()).toMatchObject({ status: 'crashed', end: { exitCode: 9 } });
    expect(world.journal.map(({ type }) => type)).toEqual(['service.started', 'service.crashed']);
  });

  it('is told on its return which run is ready', async () => {
    const world = await begun({});
    await running(world);
    if (world.host.row) world.host.row.memo = { ...MEMO, passed: false };
    await world.ref.ask('adopt', {});
    await quiet();
    await quiet();
    expect(world.host.row?.memo.passed).toBe(true);
    expect(world.journal).toHaveLength(1);
  });

  it('and has lost a run leaves the end of the run unknown', async () => {
    const world = await begun({});
    await running(world);
    world.host.ledger.clear();
    await world.ref.ask('adopt', {});
    await quiet();
    expect(world.state()).toMatchObject({ status: 'crashed', end: { exitCode: null, exitUnknown: true } });
  });

  it('from the start leaves the status unknown until it answers', async () => {
    const world = await supervise({ row: {} });
    world.cut();
    await world.begin();
    expect(await code(start(world))).toBe('daemon_busy');
    expect((await world.ref.ask('explain', {})).waitingFor).toBe('the process host');
    world.join();
    await world.advance(600);
    expect(world.state()).toMatchObject({ status: 'running', process: { pid: 77 } });
  });

  it('reports an end repeatedly until it is acknowledged', async () => {
    const world = await begun({});
    await running(world);
    const { row } = world.host;
    world.host.exit(0);
    await quiet();
    const { end } = row ?? {};
    if (end) world.host.service?.tell('exited', end);
    await quiet();
    expect(world.host.acknowledged).toHaveLength(2);
    expect(world.journal).toHaveLength(2);
  });
});
