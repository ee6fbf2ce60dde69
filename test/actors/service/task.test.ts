// docs/reference.md "Tasks": the life of a task between stand-ins, in virtual time.
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { StartReply } from '../../../src/protocol/service.ts';
import { Failure } from '../../../src/runtime/actor.ts';
import { deferred } from '../../../src/runtime/deferred.ts';
import { SERVICE } from '../../../src/settings/limits.ts';
import { settle, tempDir, virtualClock } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import { must } from '../../kit/must.ts';
import { MEMO, type Plan, quiet, row, type Supervised, supervise } from '../../kit/service.ts';
import { spec } from '../../kit/service_inputs.ts';

const TASK = { kind: 'task', port: null } as const;
const MEMO_OF_TASK = { ...MEMO, port: null, task: { content: 'c1' } };
const COMPLETED = {
  run: '00000000000000aa',
  status: 'completed',
  exitCode: 0,
  signal: null,
  exitUnknown: false,
  at: 0,
  completed: { ms: 5, content: 'c1' },
} as const;

async function task(plan: Plan = {}): Promise<Supervised> {
  const world = await supervise({ ...plan, spec: { ...TASK, ...plan.spec } });
  await world.store.table('services').put('web', {
    spec: spec({ ...TASK, ...plan.spec }),
    revision: 1,
    processHash: 'c1',
  });
  await world.begin();
  return world;
}

const start = (world: Supervised, more: object = {}): Promise<StartReply> =>
  world.ref.ask('start', { timeoutMs: null, wait: true, ...more }, { deadlineMs: SERVICE.askDeadlineMs });
const ifChanged = { join: true, ifChanged: true };
const outcome = (answer: Promise<unknown>) =>
  answer.catch(({ code, message, detail }: Failure) => ({ code, message, detail }));
const isOpen = async (answer: Promise<unknown>): Promise<boolean> => {
  await quiet();
  return (await Promise.race([answer, settle().then(() => 'open')])) === 'open';
};

describe('a task', () => {
  it('is running as soon as its process exists, and its start is answered when it has ended', async () => {
    const world = await task();
    const started = start(world);
    expect(await isOpen(started)).toBe(true);
    expect(world.state()).toMatchObject({ status: 'running', process: { port: null } });
    await world.advance(3_600_000 * 5);
    expect(await isOpen(started)).toBe(true);
    world.host.exit(0);
    const ms = 3_600_000 * 5;
    expect(await started).toEqual({ name: 'web', status: 'completed', pid: null, ms });
    expect(world.events()).toEqual([
      ['service.started', { name: 'web', pid: 101, url: null }],
      ['service.completed', { name: 'web', ms }],
    ]);
    expect(world.state()).toMatchObject({ status: 'completed', end: { exitCode: 0 } });
    expect(world.kept()).toMatchObject({ status: 'completed', completed: { ms, content: 'c1' } });
    expect(await world.ref.ask('explain', {})).toMatchObject({ status: 'completed', waitingFor: null });
  });

  it.each([
    [3, null, 'web ended with exit code 3'],
    [null, 'SIGKILL', 'web was ended by SIGKILL'],
  ])('that ends with %s %s has crashed', async (exitCode, signal, message) => {
    const world = await task();
    const started = outcome(start(world));
    await quiet();
    world.host.exit(exitCode, signal);
    expect(await started).toMatchObject({ code: 'start_failed', message });
    expect(world.events().at(-1)).toEqual(['service.crashed', { name: 'web', exitCode, signal }]);
    expect(world.state().status).toBe('crashed');
  });

  it('that is undone is stored as such, and runs again if asked to run if changed', async () => {
    const world = await task({ end: COMPLETED });
    expect(await start(world, ifChanged)).toMatchObject({ unchanged: true });
    await world.ref.ask('undo', {});
    const { completed: _completed, ...rest } = COMPLETED;
    expect(world.kept()).toEqual({ ...rest, status: 'stopped', undone: true });
    expect(world.state().status).toBe('stopped');
    const started = start(world, ifChanged);
    await quiet();
    world.host.exit(0);
    expect(await started).not.toHaveProperty('unchanged');
    expect(world.kept()).not.toHaveProperty('undone');
  });

  it('that ends before its spawn is answered has completed', async () => {
    const world = await task();
    world.host.stillborn = 0;
    expect(await start(world)).toMatchObject({ status: 'completed', ms: 0 });
    expect(world.events()).toEqual([
      ['service.started', { name: 'web', pid: 101, url: null }],
      ['service.completed', { name: 'web', ms: 0 }],
    ]);
  });

  it('is answered at once with wait=false, or else within `timeout`, and keeps running', async () => {
    const world = await task();
    expect(await start(world, { wait: false })).toEqual({ name: 'web', status: 'starting', pid: 101 });
    const joined = outcome(start(world, { join: true, timeoutMs: 50 }));
    await world.advance(60);
    expect(await joined).toMatchObject({ code: 'ready_timeout' });
    expect(world.host.stops).toEqual([]);
    expect(await outcome(start(world))).toMatchObject({ code: 'already_running' });
    const second = start(world, ifChanged);
    world.host.exit(0);
    expect(await second).toMatchObject({ status: 'completed' });
  });

  it('that is stopped is not completed, even if it exits with 0; a stop leaves a completed task unchanged', async () => {
    const world = await task();
    const started = outcome(start(world));
    await quiet();
    world.host.onSignal = 0;
    expect(await world.ref.ask('stop', { graceMs: null })).toMatchObject({ status: 'stopped', exitCode: 0 });
    expect(await started).toMatchObject({ message: 'web was stopped before it had completed' });
    expect(world.state().status).toBe('stopped');
    const again = start(world, ifChanged);
    await quiet();
    world.host.exit(0);
    await again;
    await world.ref.ask('stop', { graceMs: null });
    expect(world.state().status).toBe('completed');
  });

  it('is run once for its content, and again after a failure or a change', async () => {
    const world = await task({ end: COMPLETED });
    expect(await start(world, ifChanged)).toEqual({
      name: 'web',
      status: 'completed',
      pid: null,
      ms: 5,
      unchanged: true,
    });
    expect(world.host.made).toEqual([]);
    await world.ref.ask('changed', { stored: { spec: spec(TASK), revision: 2, processHash: 'c2' } });
    const changed = outcome(start(world, ifChanged));
    await quiet();
    world.host.exit(1);
    expect(await changed).toMatchObject({ code: 'start_failed' });
    const again = start(world, ifChanged);
    await quiet();
    world.host.exit(0);
    expect(await again).not.toHaveProperty('unchanged');
    expect(world.kept()).toMatchObject({ completed: { content: 'c2' } });
    // Without `ifChanged` it is run in any case.
    const forced = start(world);
    await quiet();
    world.host.exit(0);
    expect(await forced).toMatchObject({ status: 'completed' });
    expect(world.host.made).toHaveLength(3);
  });

  it('is run again after a run of older content that a start has joined, unless that is stopped', async () => {
    const world = await task();
    const older = outcome(start(world, ifChanged));
    await quiet();
    await world.ref.ask('changed', { stored: { spec: spec(TASK), revision: 2, processHash: 'c2' } });
    const [newer, quick] = [start(world, ifChanged), start(world, { ...ifChanged, wait: false })];
    expect(await quick).toMatchObject({ status: 'running' });
    expect(await isOpen(newer)).toBe(true);
    world.host.exit(1);
    expect(await older).toMatchObject({ code: 'start_failed' });
    await quiet();
    expect(world.host.made).toHaveLength(2);
    const same = start(world, ifChanged);
    await quiet();
    world.host.exit(0);
    expect(await newer).toMatchObject({ status: 'completed' });
    expect(await same).toMatchObject({ status: 'completed' });
    expect(world.kept()).toMatchObject({ completed: { content: 'c2' } });
    expect(world.host.made).toHaveLength(2);
    const forced = outcome(start(world));
    await quiet();
    await world.ref.ask('changed', { stored: { spec: spec(TASK), revision: 3, processHash: 'c3' } });
    const joined = outcome(start(world, ifChanged));
    await quiet();
    await world.ref.ask('stop', { graceMs: null });
    expect(await forced).toMatchObject({ code: 'start_failed' });
    expect(await joined).toMatchObject({ code: 'start_failed' });
    expect(world.host.made).toHaveLength(3);
  });

  it('is run again when its inputs have changed, which are hashed before it runs', async () => {
    const world = await task({ spec: { inputs: ['a/**'] } });
    let files = 'one';
    world.config.hashInputs = async () => files;
    const run = async () => {
      const started = start(world, ifChanged);
      await quiet();
      files = files === 'one' ? 'changed by it' : files;
      world.host.exit(0);
      return started;
    };
    await run();
    expect(world.kept()).toMatchObject({ completed: { content: 'c1 one' } });
    expect(await run()).not.toHaveProperty('unchanged');
    expect(await start(world, ifChanged)).toMatchObject({ unchanged: true });
    world.config.hashInputs = async () => {
      throw new Failure('deadline', 'hashInputs: not done');
    };
    expect(await outcome(start(world, ifChanged))).toMatchObject({
      code: 'start_failed',
      message: 'web cannot be started: its inputs could not be hashed in time',
    });
    world.config.hashInputs = async () => {
      throw new Failure('crashed', 'hashInputs: no memory is left');
    };
    expect(await outcome(start(world, ifChanged))).toMatchObject({
      code: 'start_failed',
      message: 'web cannot be started: its inputs could not be hashed (hashInputs: no memory is left)',
    });
    expect(world.host.made).toHaveLength(2);
  });

  it('is run again when its env files have changed', async () => {
    const cwd = tempDir();
    const write = (value: string) => writeFileSync(join(cwd, '.e'), `X=${value}\n`);
    write('3');
    const world = await task({ spec: { cwd, envFile: ['.e'] } });
    const run = async () => {
      const started = start(world, ifChanged);
      await eventually(() => world.host.alive);
      world.host.exit(0);
      return started;
    };
    await run();
    expect(await start(world, ifChanged)).toMatchObject({ unchanged: true });
    write('4');
    expect(await run()).not.toHaveProperty('unchanged');
    expect(must(world.host.spawns[1]).env).toContainEqual(['X', '4']);
    expect(await start(world, ifChanged)).toMatchObject({ unchanged: true });
    rmSync(join(cwd, '.e'));
    expect(await outcome(start(world, ifChanged))).toMatchObject({
      code: 'start_failed',
      message: expect.stringContaining('.e does not exist'),
    });
    expect(world.host.made).toHaveLength(2);
  });

  it('waits for the hash of its inputs, and says so if its start may not wait that long', async () => {
    const world = await task({ spec: { inputs: ['a/**'] } });
    const hash = deferred<string>();
    world.config.hashInputs = () => hash.promise;
    const brief = outcome(start(world, { timeoutMs: 2_000 }));
    await world.advance(2_000);
    expect(await brief).toMatchObject({
      code: 'ready_timeout',
      message: expect.stringContaining('its inputs'),
    });
    const patient = start(world, { join: true });
    const stopped = outcome(world.ref.ask('stop', { graceMs: null }));
    await world.advance(59_000);
    expect(await stopped).toMatchObject({
      code: 'daemon_busy',
      message: 'web is being started: its inputs are read first',
    });
    hash.resolve('one');
    await quiet();
    world.host.exit(0);
    expect(await patient).toMatchObject({ status: 'completed' });
    const again = deferred<string>();
    world.config.hashInputs = () => again.promise;
    const plain = outcome(start(world));
    await world.advance(59_000);
    expect(await isOpen(plain)).toBe(true);
    again.resolve('two');
    await quiet();
    world.host.exit(0);
    expect(await plain).toMatchObject({ status: 'completed' });
  });

  it('is restarted after a crash by its policy, and not after it has completed', async () => {
    const world = await task({ spec: { restart: 'on-failure' } });
    const started = outcome(start(world));
    await quiet();
    world.host.exit(1);
    await started;
    await world.advance(150);
    world.host.exit(0);
    await world.advance(60_000);
    expect(world.host.made).toHaveLength(2);
    expect(world.state()).toMatchObject({ status: 'completed', restarts: 1 });
  });
});

describe('a task after the daemon was killed', () => {
  it.each([
    { passed: true, events: ['service.completed'] },
    { passed: false, events: ['service.started', 'service.completed'] },
  ])(
    'that completed meanwhile is reported as completed once, with its start reported before: $passed',
    async ({ events, passed }) => {
      const clock = virtualClock();
      const { service, run } = row(clock);
      const end = { service, run, exitCode: 0, signal: null, exitUnknown: false, at: clock.now() };
      const world = await task({
        clock,
        row: { port: 0, memo: { ...MEMO_OF_TASK, passed }, end: { ...end, cause: 'exit' } },
      });
      await world.ref.ask('adopt', {});
      world.host.tellEnd();
      await quiet();
      expect(world.events().map(([type]) => type)).toEqual(events);
      expect(world.events().at(-1)).toEqual(['service.completed', { name: 'web', ms: 60_000 }]);
      expect(world.kept()).toMatchObject({ status: 'completed', completed: { ms: 60_000, content: 'c1' } });
      expect(world.host.ledger.size).toBe(0);
      expect(await start(world, ifChanged)).toMatchObject({ status: 'completed', unchanged: true });
    },
  );

  it('continues, is reported once, is joined by a start, and completes', async () => {
    const world = await task({ row: { port: 0, memo: { ...MEMO_OF_TASK, passed: false } } });
    expect(world.state().status).toBe('running');
    const joined = start(world, ifChanged);
    await quiet();
    expect(world.host.notes.at(-1)).toMatchObject({ memo: { passed: true } });
    world.host.exit(0);
    expect(await joined).toMatchObject({ status: 'completed' });
    expect(world.events().map(([type]) => type)).toEqual(['service.started', 'service.completed']);
    expect(world.host.made).toEqual([]);
  });

  it('does not count as completed if its end was not observed', async () => {
    const world = await task({ row: { port: 0, memo: MEMO_OF_TASK } });
    world.host.ledger.delete('web');
    await world.ref.ask('adopt', {});
    await quiet();
    expect(world.state()).toMatchObject({ status: 'crashed', end: { exitUnknown: true } });
  });
});
