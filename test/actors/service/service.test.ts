// docs/reference.md "Status and transitions": every cell of the table, through the real encoding and in
// virtual time.
import { describe, expect, it } from 'vitest';
import { fail } from '../../../src/protocol/errors.ts';
import type { StartReply, StopReply } from '../../../src/protocol/service.ts';
import { Failure } from '../../../src/runtime/actor.ts';
import { deferred } from '../../../src/runtime/deferred.ts';
import { settle } from '../../kit/actors.ts';
import { AGENT, type Plan, quiet, running, type Supervised, supervise } from '../../kit/service.ts';
import { spec } from '../../kit/service_inputs.ts';

const READY = 'http://localhost:3000/';
const URL = 'http://localhost:3000';

async function begun(plan: Plan = {}): Promise<Supervised> {
  const world = await supervise(plan);
  await world.begin();
  return world;
}

describe('a service without a port', () => {
  it('is started, reported and stopped without any port check', async () => {
    const world = await begun({ spec: { port: null } });
    Object.assign(world.ports, { holder: 'pid 1 (node)', foreign: 'user nobody' });
    await running(world);
    expect(world.host.spawns[0]).toMatchObject({ port: 0, memo: { port: null } });
    expect(world.events()).toEqual([['service.started', { name: 'web', pid: 101, url: null }]]);
    expect(await world.ref.ask('explain', {})).toMatchObject({ portHolder: null });
    expect(await stop(world)).toMatchObject({ portFree: true });
  });
});

const start = (world: Supervised, timeoutMs: number | null = null): Promise<StartReply> =>
  world.ref.ask('start', { timeoutMs, wait: true });
const stop = (world: Supervised, graceMs: number | null = null): Promise<StopReply> =>
  world.ref.ask('stop', { graceMs });

/** The error code of a refused ask. */
async function refusal(answer: Promise<unknown>): Promise<Failure> {
  const error = await answer.then(
    (value) => new Error(`it was answered: ${JSON.stringify(value)}`),
    (reason: unknown) => reason,
  );
  if (error instanceof Failure) return error;
  throw error;
}

const code = async (answer: Promise<unknown>): Promise<string> => (await refusal(answer)).code;
const hint = (failure: Failure): string => (failure.detail as { hint: string }).hint;

/** Every phase, and how a test brings a service there. */
const phases = {
  async idle(): Promise<Supervised> {
    return begun();
  },
  async crashed(): Promise<Supervised> {
    const world = await begun();
    await running(world);
    world.host.exit(3);
    await quiet();
    return world;
  },
  async waiting(): Promise<Supervised> {
    const world = await begun({ spec: { restart: 'always' } });
    await running(world);
    world.host.exit(3);
    await world.advance(50);
    return world;
  },
  async launching(): Promise<Supervised> {
    const world = await begun();
    world.host.spawnMs = 40;
    void start(world).catch(() => {});
    await world.advance(10);
    return world;
  },
  async checking(): Promise<Supervised> {
    const world = await begun({ spec: { ready: READY } });
    void start(world).catch(() => {});
    await world.advance(100);
    return world;
  },
  async running(): Promise<Supervised> {
    const world = await begun();
    await running(world);
    return world;
  },
  async stopping(): Promise<Supervised> {
    const world = await phases.running();
    world.host.stopMs = 1_000;
    void stop(world);
    await world.advance(100);
    return world;
  },
  async lost(): Promise<Supervised> {
    const world = await phases.stopping();
    world.cut();
    await quiet();
    return world;
  },
};

const STOPPED = { name: 'web', status: 'stopped', left: [], portFree: true };

describe('a service that is stopped', () => {
  it('appears in the views as it is', async () => {
    const world = await phases.idle();
    expect(world.state()).toEqual({
      name: 'web',
      status: 'stopped',
      restarts: 0,
      process: null,
      end: null,
      isDoorOpen: false,
    });
  });

  it('is starting after a start, then running once the process has been up for 50 ms', async () => {
    const world = await phases.idle();
    const answer = start(world);
    await world.advance(49);
    expect(world.state()).toMatchObject({
      status: 'starting',
      process: { pid: 101, rssMB: 12, port: 3000, revision: 1 },
    });
    expect(world.events()).toEqual([]);
    await world.advance(1);
    expect(await answer).toEqual({ name: 'web', status: 'running', pid: 101 });
    expect(world.state()).toMatchObject({ status: 'running', process: { pid: 101 } });
    expect(world.events()).toEqual([['service.started', { name: 'web', pid: 101, url: URL }]]);
    expect(Object.keys(world.events()[0]?.[1] as object)).toEqual(['name', 'pid', 'url']);
  });

  it('is reported as ready to the host only once that is in the journal', async () => {
    const world = await phases.running();
    expect(world.host.notes).toMatchObject([{ memo: { passed: true, port: 3000, revision: 1 } }]);
  });

  it('is measured as soon as it has a process, and has statistics events once it is running', async () => {
    const world = await phases.running();
    const { run } = world.host.spawns[0] ?? { run: '' };
    const row = { name: 'web', run, pid: 101, startTicks: 1_010 };
    expect(world.stats.of('track')).toEqual([
      { ...row, running: false },
      { ...row, running: true },
    ]);
    await stop(world);
    expect(world.stats.of('forget')).toEqual([{ name: 'web', run }]);
  });

  it('answers a start with wait=false as soon as the process exists', async () => {
    const world = await begun({ spec: { ready: READY } });
    const answer = await world.ref.ask('start', { timeoutMs: null, wait: false });
    expect(answer).toEqual({ name: 'web', status: 'starting', pid: 101 });
    world.probe.pass();
    await world.advance(20);
    expect(world.state().status).toBe('running');
  });

  it('passes the host what the process needs', async () => {
    const world = await begun({ spec: { ready: READY, env: [['A', 'b']], startTimeout: 700 } });
    void start(world).catch(() => {});
    await quiet();
    const [request] = world.host.spawns;
    expect(request).toMatchObject({
      service: 'web',
      cmd: 'serve',
      cwd: '/',
      port: 3000,
      umask: 0o022,
      pty: null,
    });
    expect(request?.env).toEqual([
      ['HOME', '/home/u'],
      ['PORT', '3000'],
      ['A', 'b'],
      ['BERTH_SERVICE', 'web'],
      ['BERTH_RUN', request?.run],
    ]);
    expect(request?.memo).toEqual({
      revision: 1,
      port: 3000,
      ready: READY,
      passed: false,
      deadline: world.clock.now() + 700,
      restarts: 0,
    });
  });

  it('is stopped with 200 and without an event', async () => {
    const world = await phases.idle();
    expect(await stop(world)).toEqual({
      ...STOPPED,
      exitCode: null,
      signal: null,
      escalated: false,
      reaped: 0,
      ms: 0,
    });
    expect(world.events()).toEqual([]);
    expect(world.host.stops).toEqual([]);
  });

  it('is stopped whether or not its port is known to be free', async () => {
    const world = await phases.idle();
    world.ports.holder = 'pid 9 (node)';
    expect(await stop(world)).toMatchObject({ portFree: false });
  });

  it('counts as stopped and no longer as crashed after a stop, also for a later daemon', async () => {
    const world = await phases.crashed();
    expect(world.state()).toMatchObject({ status: 'crashed', end: { exitCode: 3 } });
    expect(await stop(world)).toMatchObject({ ...STOPPED, exitCode: 3 });
    expect(world.state()).toMatchObject({ status: 'stopped', end: { exitCode: 3 } });
    expect(world.kept()).toMatchObject({ status: 'stopped', exitCode: 3 });
    expect(world.journal).toHaveLength(2);
  });

  it('is stopped together with the processes that its last run left behind', async () => {
    const world = await phases.crashed();
    world.host.leftBehind = 2;
    expect(await stop(world, 7)).toEqual({
      ...STOPPED,
      exitCode: 3,
      signal: null,
      escalated: false,
      reaped: 2,
      ms: 3,
    });
    expect(world.host.stops).toEqual([{ run: world.host.spawns[0]?.run, signal: 'SIGTERM', graceMs: 7 }]);
  });

  it('starts although its last run left a process on its port', async () => {
    const world = await phases.crashed();
    world.host.leftBehind = 1;
    expect(await running(world)).toBe(102);
    expect(world.host.stops).toMatchObject([{ run: world.host.spawns[0]?.run }]);
    expect(world.events().map(([type]) => type)).not.toContain('port.conflict');
  });

  it('starts again after a crash', async () => {
    const world = await phases.crashed();
    expect(await running(world)).toBe(102);
    expect(world.state().status).toBe('running');
  });
});

describe('a start that spawns no process', () => {
  it('answers port_in_use with the holder, and reports it in an event', async () => {
    const world = await phases.idle();
    world.ports.holder = 'pid 1234 (node)';
    const failure = await refusal(start(world));
    expect([failure.code, failure.message]).toEqual([
      'port_in_use',
      'web cannot be started: its port 3000 is held by pid 1234 (node)',
    ]);
    expect(world.events()).toEqual([
      ['port.conflict', { port: 3000, claimedBy: 'web', holder: 'pid 1234 (node)' }],
    ]);
    expect(world.state().status).toBe('stopped');
    expect(world.host.spawns).toEqual([]);
  });

  it("answers start_failed with the host's reason", async () => {
    const world = await phases.idle();
    world.host.refusal = fail('start_failed', '/no/such: no such directory', { hint: 'Make it.' });
    const failure = await refusal(start(world));
    expect([failure.code, failure.message, hint(failure)]).toEqual([
      'start_failed',
      '/no/such: no such directory',
      'Make it.',
    ]);
    expect(world.state().status).toBe('stopped');
    expect(world.events()).toEqual([]);
    world.host.refusal = null;
    expect(await running(world)).toBe(101);
  });
});

describe('a service that is starting', () => {
  it.each(['launching', 'checking'] as const)('(%s) refuses another start', async (phase) => {
    const world = await phases[phase]();
    expect(await code(start(world))).toBe('already_running');
    expect(world.state().status).toBe('starting');
    const stopped = stop(world);
    await world.advance(100);
    await stopped;
  });

  it.each(['launching', 'checking'] as const)('(%s) joins the start of a group', async (phase) => {
    const world = await phases[phase]();
    const joined = world.ref.ask('start', { timeoutMs: null, wait: true, join: true });
    world.probe.pass();
    await world.advance(200);
    expect(await joined).toEqual({ name: 'web', status: 'running', pid: 101 });
    expect(world.host.spawns).toHaveLength(1);
  });

  it("ends a group's wait at its deadline, and continues", async () => {
    const world = await phases.checking();
    const joined = code(world.ref.ask('start', { timeoutMs: 70, wait: true, join: true }));
    await world.advance(200);
    expect(await joined).toBe('ready_timeout');
    expect([world.state().status, world.host.stops]).toEqual(['starting', []]);
    world.probe.pass();
    await world.advance(200);
    expect(world.state().status).toBe('running');
  });

  it.each([0, 40])(
    'is stopped: the start answers start_failed, the stop 200 (spawn takes %i ms)',
    async (ms) => {
      const world = await begun({ spec: { ready: READY } });
      world.host.spawnMs = ms;
      const started = refusal(start(world));
      await world.advance(10);
      const stopped = stop(world);
      await world.advance(100);
      expect(await stopped).toMatchObject({ ...STOPPED, exitCode: null, signal: 'SIGTERM' });
      expect(await started).toMatchObject({
        code: 'start_failed',
        message: 'web was stopped before it was ready',
      });
      expect(world.events()).toEqual([
        ['service.stopped', { name: 'web', exitCode: null, signal: 'SIGTERM' }],
      ]);
      expect(world.state().status).toBe('stopped');
      expect(world.host.alive).toBe(false);
    },
  );

  it('is stopped before it has a process', async () => {
    const world = await phases.launching();
    world.host.refusal = fail('start_failed', 'no shell');
    const stopped = stop(world);
    await world.advance(100);
    expect(await stopped).toMatchObject(STOPPED);
    expect(world.events()).toEqual([]);
  });

  it('answers ready_timeout when the check has not passed in time, and is stopped as by a stop', async () => {
    const world = await begun({ spec: { ready: READY, stopSignal: 'SIGINT' } });
    world.host.stopMs = 300;
    const started = refusal(start(world, 500));
    await world.advance(499);
    expect(world.state().status).toBe('starting');
    await world.advance(1);
    expect(world.state().status).toBe('stopping');
    await world.advance(300);
    const failure = await started;
    expect([failure.code, failure.message]).toEqual([
      'ready_timeout',
      'web was not ready within 500 ms and has been stopped',
    ]);
    expect(hint(failure)).toContain('connection refused');
    expect(hint(failure)).toContain('Nothing listens on port 3000');
    expect(world.host.stops).toMatchObject([{ signal: 'SIGINT', graceMs: 5_000 }]);
    expect(world.state()).toMatchObject({ status: 'stopped', process: null });
    expect(world.events()).toEqual([['service.stopped', { name: 'web', exitCode: null, signal: 'SIGINT' }]]);
  });

  it.each([READY, null])('with %s is not ready while another process has its port', async (ready) => {
    const world = await begun({ spec: { ready } });
    world.probe.pass();
    world.ports.foreign = 'user eve';
    const started = refusal(start(world, 500));
    await world.advance(400);
    expect(world.state().status).toBe('starting');
    expect(await world.ref.ask('explain', {})).toMatchObject({
      portHolder: 'user eve',
      waitingFor: 'user eve to leave port 3000',
    });
    await world.advance(300);
    expect(await started).toMatchObject({
      code: 'ready_timeout',
      message: 'web was not ready within 500 ms and has been stopped: user eve listens on its port 3000',
    });
    const again = start(world);
    await world.advance(400);
    world.ports.foreign = null;
    await world.advance(100);
    expect(await again).toMatchObject({ status: 'running' });
  });

  it('is not restarted after a timeout reported to a client, whatever the policy', async () => {
    const world = await begun({ spec: { ready: READY, restart: 'always' } });
    const started = code(start(world, 500));
    await world.advance(60_000);
    expect(await started).toBe('ready_timeout');
    expect(world.host.spawns).toHaveLength(1);
    expect(world.state().status).toBe('stopped');
  });

  it('makes one probe with a timeout of 0', async () => {
    const world = await begun({ spec: { ready: READY } });
    expect(await code(start(world, 0))).toBe('ready_timeout');
    expect(world.probe.at).toHaveLength(1);
    world.probe.pass();
    expect(await start(world, 0)).toMatchObject({ status: 'running' });
  });

  it('answers start_failed at once when the process ends, with the code', async () => {
    const world = await begun({ spec: { ready: READY } });
    const started = refusal(start(world));
    await world.advance(100);
    world.host.exit(3);
    expect(await started).toMatchObject({
      code: 'start_failed',
      message: 'web ended with exit code 3 before it was ready',
    });
    expect(world.state()).toMatchObject({ status: 'crashed', end: { exitCode: 3, signal: null } });
    expect(world.events()).toEqual([['service.crashed', { name: 'web', exitCode: 3, signal: null }]]);
    expect(world.kept()).toMatchObject({ status: 'crashed', exitCode: 3 });
    expect(world.probe.open).toBe(0);
  });

  it('is stopped and not crashed when it ends with 0 before it is ready', async () => {
    const world = await begun({ spec: { ready: READY } });
    const started = refusal(start(world));
    await world.advance(100);
    world.host.exit(0);
    expect(await started).toMatchObject({ code: 'start_failed' });
    expect(world.state()).toMatchObject({ status: 'stopped', end: { exitCode: 0 } });
    expect(world.events()).toEqual([['service.stopped', { name: 'web', exitCode: 0 }]]);
  });

  it('learns of an end that arrives before the response to the spawn', async () => {
    const world = await begun();
    world.host.stillborn = 1;
    expect(await refusal(start(world))).toMatchObject({
      code: 'start_failed',
      message: 'web ended with exit code 1 before it was ready',
    });
    expect(world.events()).toEqual([['service.crashed', { name: 'web', exitCode: 1, signal: null }]]);
    await quiet();
    expect(world.host.acknowledged).toHaveLength(1);
    expect(await world.ref.ask('start', { timeoutMs: null, wait: false })).toEqual({
      name: 'web',
      status: 'starting',
      pid: 102,
    });
  });
});

describe('a service that is running', () => {
  it('refuses another start and counts as ready for a group', async () => {
    const world = await phases.running();
    expect(await code(start(world))).toBe('already_running');
    const joined = await world.ref.ask('start', { timeoutMs: null, wait: true, join: true });
    expect(joined).toEqual({ name: 'web', status: 'running', pid: 101 });
  });

  it('is stopped with the signal and grace period of the spec, or of the request', async () => {
    const world = await begun({ spec: { stopSignal: 'SIGINT', stopGrace: 700 } });
    await running(world);
    expect(await stop(world)).toEqual({
      ...STOPPED,
      exitCode: null,
      signal: 'SIGINT',
      escalated: false,
      reaped: 1,
      ms: 0,
    });
    expect(world.state()).toMatchObject({ status: 'stopped', process: null, end: { signal: 'SIGINT' } });
    expect(world.events().at(-1)).toEqual([
      'service.stopped',
      { name: 'web', exitCode: null, signal: 'SIGINT' },
    ]);
    await running(world);
    await stop(world, 5);
    expect(world.host.stops).toMatchObject([
      { signal: 'SIGINT', graceMs: 700 },
      { signal: 'SIGINT', graceMs: 5 },
    ]);
  });

  it('omits the signal in the event of a stop that ended with a code', async () => {
    const world = await phases.running();
    world.host.onSignal = 0;
    expect(await stop(world)).toMatchObject({ exitCode: 0, signal: null });
    expect(world.events().at(-1)).toEqual(['service.stopped', { name: 'web', exitCode: 0 }]);
  });

  it.each([
    [0, null, 'stopped', 'service.stopped', { name: 'web', exitCode: 0 }],
    [3, null, 'crashed', 'service.crashed', { name: 'web', exitCode: 3, signal: null }],
    [null, 'SIGKILL', 'crashed', 'service.crashed', { name: 'web', exitCode: null, signal: 'SIGKILL' }],
  ] as const)('exits by itself with %s %s: %s', async (exitCode, signal, status, type, data) => {
    const world = await phases.running();
    world.host.exit(exitCode, signal);
    await quiet();
    expect(world.state()).toMatchObject({ status, process: null, end: { status, exitCode, signal } });
    expect(world.events().at(-1)).toEqual([type, data]);
    expect(world.kept()).toMatchObject({ status, exitCode, signal });
    await quiet();
    expect(world.host.acknowledged).toEqual([world.host.spawns[0]?.run]);
    expect(world.host.row).toBeUndefined();
  });

  it('keeps its process when it is registered anew', async () => {
    const world = await phases.running();
    await world.ref.ask('changed', {
      stored: { spec: spec({ port: 4000, stopSignal: 'SIGUSR1' }), revision: 2 },
    });
    expect(world.state()).toMatchObject({ status: 'running', process: { port: 3000, revision: 1 } });
    await stop(world);
    expect(world.host.stops).toMatchObject([{ signal: 'SIGUSR1' }]);
    await running(world);
    expect(world.state()).toMatchObject({ process: { port: 4000, revision: 2 } });
  });
});

describe('a service that is stopping', () => {
  it('refuses a start', async () => {
    const world = await phases.stopping();
    expect(await code(start(world))).toBe('daemon_busy');
    expect(await code(world.ref.ask('start', { timeoutMs: null, wait: true, join: true }))).toBe(
      'daemon_busy',
    );
  });

  it('joins a second stop: one stop, the same response, one event', async () => {
    const world = await phases.running();
    world.host.stopMs = 1_000;
    const answers = [stop(world), stop(world, 60_000)];
    await world.advance(400);
    answers.push(stop(world));
    expect(world.state().status).toBe('stopping');
    await world.advance(600);
    const [first, ...others] = await Promise.all(answers);
    expect(first).toMatchObject({ ...STOPPED, ms: 1_000 });
    for (const other of others) expect(other).toEqual(first);
    expect(world.host.stops).toHaveLength(1);
    expect(world.journal.map(({ type }) => type)).toEqual(['service.started', 'service.stopped']);
  });

  it('has the host end it earlier for a stop with a shorter grace period, and for no other', async () => {
    const world = await phases.running();
    world.host.stopMs = 10_000;
    const answers = [stop(world, 60_000), stop(world), stop(world, 7_000), stop(world, 0)];
    await quiet();
    expect(world.host.stops.map(({ graceMs }) => graceMs)).toEqual([60_000, 5_000, 0]);
    expect((await world.ref.ask('explain', {})).next).toContain('grace period of 0 ms');
    await world.advance(11_000);
    const [first, ...others] = await Promise.all(answers);
    for (const other of others) expect(other).toEqual(first);
  });

  it('has the host end it earlier for a second restart with a shorter grace period', async () => {
    const world = await phases.running();
    world.host.stopMs = 10_000;
    const restart = (graceMs: number) => world.ref.ask('restart', { timeoutMs: null, graceMs });
    const answers = [restart(60_000), restart(0)];
    await quiet();
    expect(world.host.stops.map(({ graceMs }) => graceMs)).toEqual([60_000, 0]);
    await world.advance(11_000);
    expect(await Promise.all(answers)).toMatchObject([{ status: 'running' }, { status: 'running' }]);
    expect(world.host.spawns).toHaveLength(2);
  });

  it('gives the same response to a stop during the write of the end', async () => {
    const world = await phases.running();
    const first = stop(world);
    while (world.state().status !== 'stopped') await settle();
    const second = stop(world);
    expect(await second).toEqual(await first);
  });

  it('is restarted once by two calls', async () => {
    const world = await phases.running();
    const restart = () => world.ref.ask('restart', { timeoutMs: null, graceMs: null });
    const both = [restart(), restart()];
    await world.advance(100);
    expect(await Promise.all(both)).toEqual(Array(2).fill({ name: 'web', status: 'running', pid: 102 }));
    expect(world.host.spawns).toHaveLength(2);
  });

  it('stays stopped when a stop comes during its restart', async () => {
    const world = await phases.running();
    world.host.stopMs = 40;
    const restarted = code(world.ref.ask('restart', { timeoutMs: null, graceMs: null }));
    await world.advance(10);
    const stopped = stop(world);
    await world.advance(100);
    expect((await stopped).status).toBe('stopped');
    expect(await restarted).toBe('start_failed');
    expect([world.state().status, world.host.spawns.length]).toEqual(['stopped', 1]);
  });

  it('stays stopped when a stop comes during the restart of its group', async () => {
    const world = await phases.running();
    const askedAt = world.clock.monotonic();
    const again = { timeoutMs: null, wait: true, join: true, askedAt };
    await world.advance(10);
    await stop(world);
    await world.ref.ask('stop', { graceMs: null, forRestart: askedAt });
    expect(await code(world.ref.ask('start', again))).toBe('start_failed');
    expect([world.state().status, world.host.spawns.length]).toEqual(['stopped', 1]);
    // A start by a client overrides the stop, and the next restart of the group comes after it.
    await running(world);
    await world.ref.ask('stop', { graceMs: null, forRestart: world.clock.monotonic() });
    const started = world.ref.ask('start', again);
    await world.advance(100);
    expect(await started).toMatchObject({ status: 'running' });
    await stop(world);
    await world.advance(10);
    const next = world.ref.ask('start', { ...again, askedAt: world.clock.monotonic() });
    await world.advance(100);
    expect(await next).toMatchObject({ status: 'running' });
  });

  it('is restarted by one call', async () => {
    const world = await phases.running();
    const again = world.ref.ask('restart', { timeoutMs: null, graceMs: null });
    await world.advance(100);
    expect(await again).toEqual({ name: 'web', status: 'running', pid: 102 });
    expect(world.journal.map(({ type }) => type)).toEqual([
      'service.started',
      'service.stopped',
      'service.started',
    ]);
    expect(world.state().restarts).toBe(0);
  });
});

describe('a service that waits for a restart', () => {
  it('is restarted 100 ms after a crash, with the usual events', async () => {
    const world = await phases.waiting();
    expect(world.state()).toMatchObject({ status: 'crashed', restarts: 0, process: null });
    await world.advance(49);
    expect(world.host.spawns).toHaveLength(1);
    await world.advance(100);
    expect(world.state()).toMatchObject({ status: 'running', restarts: 1, process: { pid: 102 } });
    expect(world.host.spawns[1]?.memo.restarts).toBe(1);
    expect(world.journal.map(({ type }) => type)).toEqual([
      'service.started',
      'service.crashed',
      'service.started',
    ]);
  });

  it.each([
    ['no', 0, 0],
    ['no', 3, 0],
    ['on-failure', 0, 0],
    ['on-failure', 3, 1],
    ['always', 0, 1],
    ['always', 3, 1],
  ] as const)(
    'has, by the policy %s and after exit code %i, %i restarts',
    async (restart, exitCode, restarts) => {
      const world = await begun({ spec: { restart } });
      await running(world);
      world.host.exit(exitCode);
      await world.advance(300);
      expect(world.host.spawns).toHaveLength(1 + restarts);
    },
  );

  it('is never restarted after a stop', async () => {
    const world = await begun({ spec: { restart: 'always' } });
    await running(world);
    await stop(world);
    await world.advance(60_000);
    expect(world.host.spawns).toHaveLength(1);
  });

  it('waits twice as long each time, at most 30 s, and starts over after 10 s up', async () => {
    const world = await begun({ spec: { restart: 'on-failure' } });
    await running(world);
    const pauses: number[] = [];
    for (let round = 0; round < 11; round += 1) {
      const endedAt = world.clock.now();
      world.host.exit(1);
      while (!world.host.alive) await world.advance(10);
      pauses.push((world.host.row?.startedAt ?? 0) - endedAt);
      await world.advance(60);
    }
    const expected = [100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000];
    expect(pauses.map((ms, index) => Math.abs(ms - (expected[index] ?? 0)) <= 10)).toEqual(
      expected.map(() => true),
    );
    expect(world.state().restarts).toBe(11);
    await world.advance(10_000);
    const endedAt = world.clock.now();
    world.host.exit(1);
    while (!world.host.alive) await world.advance(10);
    expect((world.host.row?.startedAt ?? 0) - endedAt).toBeLessThanOrEqual(110);
  });

  it('is started at once by a start, which resets the count', async () => {
    const world = await phases.waiting();
    const answer = start(world);
    await world.advance(51);
    expect(await answer).toMatchObject({ status: 'running', pid: 102 });
    expect(world.state().restarts).toBe(0);
    await world.advance(1_000);
    expect(world.host.spawns).toHaveLength(2);
  });

  it('is cancelled by a stop, also for a later daemon', async () => {
    const world = await phases.waiting();
    expect(world.kept()?.restart).toEqual({ attempt: 1, at: expect.any(Number) });
    expect(await stop(world)).toMatchObject({ ...STOPPED, exitCode: 3 });
    expect(world.kept()).toEqual({ ...world.state().end, status: 'stopped' });
    expect(world.kept()?.restart).toBeUndefined();
    await world.advance(60_000);
    expect(world.host.spawns).toHaveLength(1);
    expect(world.journal).toHaveLength(2);
  });

  it('is not restarted when it is registered again while its end is being written', async () => {
    const world = await begun({ spec: { restart: 'always' } });
    await running(world);
    const written = deferred<void>();
    world.store.busy = written.promise;
    world.host.exit(3);
    await quiet();
    const changed = world.ref.ask('changed', { stored: { spec: spec({ restart: 'always' }), revision: 2 } });
    await quiet();
    written.resolve();
    expect(await changed).toBeNull();
    expect(world.kept()).toMatchObject({ exitCode: 3 });
    // For a later daemon neither.
    expect(world.kept()?.restart).toBeUndefined();
    await world.advance(60_000);
    expect(world.host.spawns).toHaveLength(1);
  });

  it('is ended by a registration', async () => {
    const world = await phases.waiting();
    await world.ref.ask('changed', { stored: { spec: spec({ restart: 'always' }), revision: 2 } });
    expect(world.kept()?.restart).toBeUndefined();
    await world.advance(60_000);
    expect(world.host.spawns).toHaveLength(1);
    expect(world.state().status).toBe('crashed');
  });

  it('counts a restart that times out as a failure', async () => {
    const world = await begun({ spec: { restart: 'on-failure', ready: READY, startTimeout: 1_000 } });
    world.probe.pass();
    await running(world);
    world.probe.outcome = { status: 500, error: 'it answered 500' };
    world.host.exit(1);
    await world.advance(1_150);
    expect(world.state()).toMatchObject({ status: 'stopped', restarts: 1 });
    expect(world.events().at(-1)).toEqual([
      'service.stopped',
      { name: 'web', exitCode: null, signal: 'SIGTERM' },
    ]);
    await world.advance(200);
    expect(world.host.spawns).toHaveLength(3);
  });

  it('tries once more when a restart spawns no process', async () => {
    const world = await phases.waiting();
    world.ports.holder = 'other';
    await world.advance(100);
    expect(world.events().at(-1)?.[0]).toBe('port.conflict');
    expect(world.state().status).toBe('crashed');
    world.ports.holder = null;
    await world.advance(300);
    expect(world.state()).toMatchObject({ status: 'running', restarts: 2 });
  });

  it('repeats a start that ended before it was ready, and reports it', async () => {
    const world = await begun({ spec: { restart: 'on-failure', ready: READY } });
    const started = refusal(start(world));
    await world.advance(30);
    world.host.exit(2);
    expect(hint(await started)).toContain('started again in 100 ms');
    await world.advance(150);
    expect(world.host.spawns).toHaveLength(2);
  });
});

describe('agents', () => {
  it('run in a terminal with its environment, and are never killed for not being ready', async () => {
    const world = await begun({ spec: { agent: AGENT, ready: READY, startTimeout: 100 } });
    await world.ref.ask('start', { timeoutMs: null, wait: false });
    expect(world.host.spawns[0]).toMatchObject({ pty: { cols: 120, rows: 32 }, memo: { deadline: null } });
    expect(world.host.spawns[0]?.env).toEqual(
      expect.arrayContaining([
        ['HOST', '127.0.0.1'],
        ['PYTHONUNBUFFERED', '1'],
        ['TERM', 'xterm-256color'],
      ]),
    );
    await world.advance(120_000);
    expect(world.state().status).toBe('starting');
    const { at } = world.probe;
    expect((at.at(-1) ?? 0) - (at.at(-2) ?? 0)).toBe(1_000);
    world.probe.pass();
    await world.advance(1_000);
    expect(world.state().status).toBe('running');
    expect(world.events().filter(([type]) => type !== 'agent.state')).toEqual([
      ['service.started', { name: 'web', pid: 101, url: URL }],
    ]);
  });

  it('are killed for not being ready when a client waits for the start', async () => {
    const world = await begun({ spec: { agent: AGENT, ready: READY } });
    const started = code(start(world, 100));
    await world.advance(200);
    expect(await started).toBe('ready_timeout');
  });
});

describe('a service that is removed', () => {
  it('is stopped, its logs are deleted, and the actor ends', async () => {
    const world = await phases.running();
    await world.ref.ask('retire', { graceMs: 5 });
    expect(world.host.stops).toMatchObject([{ graceMs: 5 }]);
    expect(world.host.forgotten).toEqual(['web']);
    expect(world.events().at(-1)?.[0]).toBe('service.stopped');
    // Its record stays in the store until the registry has removed it.
    expect(await code(start(world))).toBe('unknown_service');
    await world.store.table('services').remove('web');
    await world.advance(2_000);
    expect(await code(start(world))).toBe('unknown_service');
    expect(world.views.of('states')).toHaveLength(6);
  });

  it('may be registered again at once', async () => {
    const world = await phases.crashed();
    await world.ref.ask('retire', { graceMs: null });
    await world.ref.ask('changed', { stored: { spec: spec(), revision: 1 } });
    await world.advance(2_000);
    expect(await running(world)).toBe(102);
    expect((await world.ref.ask('explain', {})).status).toBe('running');
  });

  it('accepts no start meanwhile', async () => {
    const world = await phases.running();
    world.host.stopMs = 100;
    const retired = world.ref.ask('retire', { graceMs: null });
    await world.advance(50);
    expect(await code(start(world))).toBe('daemon_busy');
    await world.advance(100);
    await retired;
  });

  it('is explained with the output that it lost to a full disk, also when the host responds late', async () => {
    const world = await phases.running();
    world.host.lostBytes = 2_000;
    expect((await world.ref.ask('explain', {})).reason).toMatch(
      / 2,000 bytes are lost: the disk was full\.$/,
    );
    world.host.lostBytes = undefined;
    const asked = world.ref.ask('explain', {});
    await world.advance(1_000);
    expect((await asked).reason).not.toContain('lost');
    await world.advance(10_000);
  });

  it('is unknown afterwards', async () => {
    const world = await begun({ unknown: true });
    expect(await code(start(world))).toBe('unknown_service');
    expect(await code(stop(world))).toBe('unknown_service');
    expect(await code(world.ref.ask('explain', {}))).toBe('unknown_service');
    const query = { lines: 1, stream: null, timestamps: false, raw: false };
    expect(await code(world.ref.ask('logs', query))).toBe('unknown_service');
    await world.ref.ask('changed', { stored: { spec: spec(), revision: 1 } });
    expect(await running(world)).toBe(101);
  });

  it('does not start again after its last stop', async () => {
    const world = await begun({ spec: { restart: 'always' } });
    await running(world);
    await world.ref.ask('stop', { graceMs: null, last: true });
    expect(await refusal(start(world))).toMatchObject({ code: 'daemon_busy' });
    await world.advance(60_000);
    expect(world.host.spawns).toHaveLength(1);
  });
});

describe('a process host that does not respond', () => {
  it.each([
    [300, 1_000],
    [4_000, 4_000],
  ])(
    'causes a start with timeout=%i to be answered after %i ms while the start continues',
    async (timeoutMs, answeredMs) => {
      const world = await phases.idle();
      world.host.spawnMs = 20_000;
      const answer = refusal(start(world, timeoutMs));
      await world.advance(answeredMs - 1);
      expect(world.state().status).toBe('starting');
      await world.advance(1);
      expect(await answer).toMatchObject({
        code: 'daemon_busy',
        message: expect.stringMatching(/host does not/),
      });
      world.host.spawnMs = 0;
      await world.advance(20_000);
      expect(world.state()).toMatchObject({ status: 'running', process: { pid: 101 } });
    },
  );

  it('causes a stop to be answered after 5 s', async () => {
    const world = await phases.running();
    world.host.stopMs = 60_000;
    world.host.lostBytes = undefined;
    const answer = refusal(stop(world, 60_000));
    await world.advance(4_999);
    expect(world.state().status).toBe('stopping');
    await world.advance(1);
    expect(await answer).toMatchObject({
      code: 'daemon_busy',
      message: expect.stringMatching(/host does not answer/),
    });
    await world.advance(60_000);
    expect(world.state().status).toBe('stopped');
  });

  it('causes a stop during a spawn to be answered after 5 s', async () => {
    const world = await phases.idle();
    world.host.spawnMs = 60_000;
    const started = refusal(start(world, 30_000));
    await world.advance(10);
    const answer = refusal(stop(world));
    await world.advance(5_000);
    expect(await answer).toMatchObject({ code: 'daemon_busy' });
    await world.advance(60_000);
    await started;
  });
});

describe('a full disk', () => {
  const full = fail('storage_full', 'no space left');

  it('allows a stop, which is recorded once there is room, with one event', async () => {
    const world = await phases.running();
    world.store.broken = full;
    const { signal } = await stop(world);
    expect(signal).toBe('SIGTERM');
    expect(world.state()).toMatchObject({ status: 'stopped', process: null });
    expect(await stop(world)).toMatchObject({ status: 'stopped', signal });
    expect(world.host.acknowledged).toEqual([]);
    expect(await code(start(world))).toBe('storage_full');
    world.store.broken = null;
    await world.advance(1_000);
    expect(world.host.acknowledged).toHaveLength(1);
    expect(world.journal.map(({ type }) => type)).toEqual(['service.started', 'service.stopped']);
    expect(await running(world)).toBe(102);
  });

  it('allows a stop of a process that has exited by itself', async () => {
    const world = await phases.running();
    world.store.broken = full;
    world.host.exit(3);
    await quiet();
    expect(await stop(world)).toMatchObject({ status: 'stopped', exitCode: 3 });
    expect(world.kept()).toBeUndefined();
    world.store.broken = null;
    await world.advance(2_000);
    expect(world.kept()).toMatchObject({ status: 'crashed', exitCode: 3 });
  });

  it('allows a stop that cancels a restart, and the restart is forgotten once there is room', async () => {
    const world = await begun({ spec: { restart: 'always' } });
    await running(world);
    world.host.exit(3);
    await quiet();
    expect(world.kept()).toMatchObject({ restart: { attempt: 1 } });
    world.store.broken = full;
    expect(await stop(world)).toMatchObject({ status: 'stopped' });
    world.store.broken = null;
    await world.advance(2_000);
    expect(world.kept()?.restart).toBeUndefined();
    expect(world.host.spawns).toHaveLength(1);
  });

  it('drops the restart after an unrecorded end when the service is registered again', async () => {
    const world = await begun({ spec: { restart: 'always' } });
    await running(world);
    world.store.broken = full;
    world.host.exit(3);
    await quiet();
    const stored = { spec: spec({ restart: 'always' }), revision: 2 };
    expect(await world.ref.ask('changed', { stored })).toBeNull();
    world.store.broken = null;
    await world.advance(60_000);
    expect(world.kept()).toMatchObject({ exitCode: 3 });
    expect(world.kept()?.restart).toBeUndefined();
    expect(world.host.spawns).toHaveLength(1);
  });

  it('does not end a service that has become ready, but fails its start', async () => {
    const world = await phases.idle();
    world.broken.events = full;
    const started = code(start(world));
    await world.advance(100);
    expect(await started).toBe('storage_full');
    expect(world.state().status).toBe('running');
    expect(world.host.notes).toEqual([]);
    world.broken.events = null;
    await world.ref.ask('adopt', {});
    await quiet();
    await quiet();
    expect(world.events()).toEqual([['service.started', { name: 'web', pid: 101, url: URL }]]);
    expect(world.host.notes).toHaveLength(1);
  });
});

describe('an environment that cannot be opened', () => {
  it('causes starts to fail until the key is back', async () => {
    const world = await phases.idle();
    const services = world.store.table('services');
    const opened = services.get('web');
    if (!opened) throw new Error('web is not registered');
    const stored = { ...opened, sealedEnv: 'x' };
    await services.put('web', stored);
    await world.ref.ask('changed', { stored });
    expect(await refusal(start(world))).toMatchObject({
      code: 'key_unusable',
      detail: { hint: expect.stringContaining('env.key') },
    });
    expect(world.host.spawns).toEqual([]);
    await services.put('web', opened);
    expect(await running(world)).toBe(101);
  });
});

describe('logs', () => {
  it('are followed while there is a follower, also while the host is unavailable', async () => {
    const world = await phases.idle();
    for (const on of [true, true, false]) await world.ref.ask('follow', { on });
    expect(world.host.follows).toEqual([true]);
    world.host.service?.tell('grew', { end: 42 });
    await quiet();
    expect(world.views.of('grew')).toEqual([{ name: 'web' }]);
    world.cut();
    world.join();
    await world.ref.ask('adopt', {});
    await quiet();
    expect(world.host.follows).toEqual([true, true]);
    await world.ref.ask('follow', { on: false });
    await quiet();
    expect(world.host.follows).toEqual([true, true, false]);
  });
});
