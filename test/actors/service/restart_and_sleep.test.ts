// A client's restart, sleep and stop while the process is still being stopped for another of them, with a
// daemon that is killed then: the last one is in force. docs/reference.md "Sleep of services".
import { describe, expect, it } from 'vitest';
import type { DoorProtocol } from '../../../src/protocol/doors.ts';
import { fail } from '../../../src/protocol/errors.ts';
import type { ThreadsProtocol } from '../../../src/protocol/threads.ts';
import { must } from '../../kit/must.ts';
import { AGENT, MEMO, MemoryStore, type Plan, quiet, type Supervised, supervise } from '../../kit/service.ts';

const RUN = '00000000000000aa';
const STOP_MS = 10_000;
const SLEEPY = { sleep: { afterMinutes: 60 }, stopGrace: 60_000 };
const BEHIND_DOOR = { ...MEMO, port: 21_000, doorPort: 3000 };

async function begun(plan: Plan): Promise<Supervised> {
  const world = await supervise(plan);
  world.host.stopMs = STOP_MS;
  await world.services.stand<ThreadsProtocol>('threads', { ensure: () => null });
  await world.services.stand<DoorProtocol>('door:web', { set: () => null });
  await world.begin();
  await quiet();
  return world;
}

/** The service as the daemon finds it that begins when that of `world` is killed, once it has settled. */
async function afterKill({ store, host }: Supervised, plan: Plan): Promise<Supervised> {
  const row = structuredClone(host.row);
  if (!row) throw new Error('the process host has no run');
  const next = await begun({ ...plan, store: store.copy(), row });
  await next.advance(STOP_MS + 2_000);
  return next;
}

describe('a service with `sleep` that is being stopped', () => {
  const request = {
    restart: ({ ref }: Supervised) => ref.ask('restart', { timeoutMs: null, graceMs: null }),
    sleep: ({ ref }: Supervised) => ref.ask('sleep', {}),
    stop: ({ ref }: Supervised) => ref.ask('stop', { graceMs: null }),
  };

  it.each([
    [['sleep', 'restart'], 'running'],
    [['stop', 'restart'], 'running'],
    [['restart', 'sleep'], 'sleeping'],
    [['restart', 'stop'], 'stopped'],
    [['sleep', 'restart', 'sleep'], 'sleeping'],
    [['restart', 'sleep', 'restart'], 'running'],
    [['stop', 'restart', 'stop'], 'stopped'],
  ] as const)('after %j is %s, with the same daemon and with the next one', async (verbs, status) => {
    const plan = { spec: SLEEPY };
    const world = await begun({ ...plan, row: { run: RUN, memo: BEHIND_DOOR } });
    const answers: Promise<unknown>[] = [];
    for (const verb of verbs) {
      answers.push(request[verb](world).catch(() => null));
      await quiet();
      expect(world.state().status).toBe('stopping');
    }
    const next = await afterKill(world, plan);
    await world.advance(STOP_MS + 2_000);
    await Promise.all(answers);
    expect([world.state().status, next.state().status]).toEqual([status, status]);
  });
});

describe('what a client asks of a member while its group', () => {
  const call = { step: 'start', graceMs: null, timeoutMs: null, at: 1 } as const;
  const SPEC = { ...SLEEPY, group: 'site' };
  const member = async (verb?: 'start' | 'stop' | 'wake') => {
    const world = await begun({ spec: SPEC });
    await world.store.table('restarts').put('site', { ...call, verb });
    return world;
  };
  const kept = ({ store }: Supervised) => store.table('overrides').all();

  it.each([
    ['start', 'stop'],
    ['wake', 'sleep'],
    [undefined, 'stop'],
  ] as const)('is started (%s) is on disk, a start (after a %s) as well', async (verb, asked) => {
    const world = await member(verb);
    await (asked === 'stop' ? world.ref.ask('stop', { graceMs: null }) : world.ref.ask('sleep', {}));
    expect(kept(world)).toEqual([['web', { group: 'site' }]]);
    const started = world.ref.ask('start', { timeoutMs: null, wait: false, join: true });
    await world.advance(1_000);
    await started;
    expect(kept(world)).toEqual([]);
  });

  it('is started is on disk, also if the service has changed its group since the call began', async () => {
    const rest = { ...call, verb: 'start' } as const;
    for (const [group, members, overrides] of [
      ['other', ['web'], [['web', { group: 'site' }]]],
      ['site', ['db'], []],
    ] as const) {
      const world = await begun({ spec: { ...SPEC, group } });
      await world.store.table('restarts').put('site', { ...rest, members: [...members] });
      await world.ref.ask('stop', { graceMs: null });
      expect(kept(world)).toEqual(overrides);
    }
  });

  it('is restarted outlasts the stop for that, also with the next daemon: a sleep', async () => {
    for (const isEnded of [true, false]) {
      const world = await begun({ spec: SPEC, row: { run: RUN, memo: BEHIND_DOOR } });
      await world.store.table('restarts').put('site', { ...call, step: 'stop' });
      const askedAt = world.clock.monotonic();
      await world.advance(1);
      const asleep = world.ref.ask('sleep', {});
      await world.advance(isEnded ? STOP_MS + 2_000 : 1);
      const row = structuredClone(world.host.row);
      const next = await begun({ spec: SPEC, store: world.store.copy(), ...(row && { row }) });
      for (const { ref, clock, advance, state } of [world, next]) {
        const since = ref === world.ref ? askedAt : clock.monotonic();
        const stopped = ref.ask('stop', { graceMs: null, forRestart: since });
        await advance(STOP_MS + 2_000);
        await stopped;
        expect(state().status).toBe('sleeping');
      }
      await asleep;
    }
  });

  it('is restarted, does not count from before: a sleep', async () => {
    const world = await begun({ spec: SPEC });
    await world.ref.ask('sleep', {});
    await world.advance(1);
    const askedAt = world.clock.monotonic();
    await world.ref.ask('stop', { graceMs: null, forRestart: askedAt });
    expect(world.state().status).toBe('stopped');
  });

  it('is stopped, or does nothing, is not', async () => {
    const world = await member('stop');
    await world.ref.ask('stop', { graceMs: null });
    const other = await begun({ spec: SPEC });
    await other.ref.ask('stop', { graceMs: null });
    expect([kept(world), kept(other)]).toEqual([[], []]);
  });
});

describe('the sleep of a service without a process is journalled once', () => {
  const END = { run: RUN, status: 'stopped', exitCode: 0, signal: null, exitUnknown: false, at: 1 } as const;
  const slept = (world: Supervised) => world.events().filter(([type]) => type === 'service.slept');
  const SLEPT = [['service.slept', { name: 'web' }]];

  it.each<[string, Plan]>([
    ['that has never run', {}],
    ['that has ended', { end: { ...END, whole: true } }],
    ['that waits for a restart', { end: { ...END, restart: { attempt: 1, at: Number.MAX_SAFE_INTEGER } } }],
  ])('when the daemon is killed before it has written the event, for one %s', async (_, extra) => {
    const spec = { ...SLEEPY, restart: 'always' } as const;
    const world = await begun({ ...extra, spec });
    world.broken.events = fail('storage_full', 'no space');
    await expect(world.ref.ask('sleep', {})).rejects.toMatchObject({ code: 'storage_full' });
    expect(slept(world)).toEqual([]);
    const next = await begun({ spec, store: world.store.copy() });
    expect([next.state().status, slept(next)]).toEqual(['sleeping', SLEPT]);
    const { journal } = next;
    // Killed before it had noted that the event is written.
    const third = await begun({ spec, store: world.store.copy(), journal });
    const fourth = await begun({ spec, store: next.store.copy() });
    expect([slept(third), slept(fourth)]).toEqual([SLEPT, []]);
  });

  it('when its end is still being written', async () => {
    const world = await begun({ spec: SLEEPY, row: { run: RUN, memo: BEHIND_DOOR } });
    world.broken.events = fail('storage_full', 'no space');
    world.host.exit(0);
    await quiet();
    const asleep = world.ref.ask('sleep', {}).catch(() => null);
    await quiet();
    world.broken.events = null;
    await world.advance(STOP_MS);
    await asleep;
    await world.ref.ask('sleep', {});
    expect(world.events().map(([type]) => type)).toEqual(['service.stopped', 'service.slept']);
    expect(world.state().status).toBe('sleeping');
  });
});

it('a sleep in which the host is lost goes on with the next one, and is refused until that answers', async () => {
  const world = await begun({ spec: SLEEPY, row: { run: RUN, memo: BEHIND_DOOR } });
  const asleep = world.ref.ask('sleep', {}).catch(({ code }) => code);
  await quiet();
  world.cut();
  expect(await asleep).toBe('daemon_busy');
  await expect(world.ref.ask('sleep', {})).rejects.toMatchObject({ code: 'daemon_busy' });
  world.join();
  await world.advance(STOP_MS + 2_000);
  expect(await world.ref.ask('sleep', {})).toEqual({ name: 'web', status: 'sleeping' });
  expect(world.events()).toEqual([['service.slept', { name: 'web' }]]);
  expect(world.state().status).toBe('sleeping');
});

it.each([
  ['goes on with the next host when the host is lost in its start', false],
  ['is given up when a client stops the service meanwhile', true],
])('a restart %s', async (_, isStopped) => {
  const world = await begun({ row: { run: RUN } });
  world.host.stopMs = 0;
  world.host.spawnMs = 2_000;
  const restarted = world.ref
    .ask('restart', { timeoutMs: null, graceMs: null })
    .catch(({ code }) => ({ code }));
  await world.advance(500);
  expect(world.events().map(([type]) => type)).toEqual(['service.stopped']);
  world.cut();
  await quiet();
  if (isStopped) await world.ref.ask('stop', { graceMs: null }).catch(() => null);
  // The next host has no process.
  world.host.refusal = fail('start_failed', 'the host has ended');
  world.join();
  await world.advance(2_500);
  world.host.refusal = null;
  await world.advance(5_000);
  expect(await restarted).toMatchObject(isStopped ? { code: 'start_failed' } : { status: 'running' });
  expect(world.state().status).toBe(isStopped ? 'stopped' : 'running');
});

const MOVED = fail('storage_lost', 'store.mdb was removed or replaced while the daemon runs');

it.each([
  ['whose environment cannot be unsealed', 'key_unusable', { sealedEnv: 'x' }, null],
  ['whose store is lost', 'storage_lost', {}, MOVED],
])('a restart of a running service %s is refused, and the service goes on', async (_, code, sealed, lost) => {
  const world = await begun({ spec: { cmd: 'sleep 1' }, row: { run: RUN } });
  const services = world.store.table('services');
  const stored = { ...must(services.get('web')), ...sealed };
  await services.put('web', stored);
  await world.ref.ask('changed', { stored });
  world.store.lost = lost;
  const restarted = world.ref.ask('restart', { timeoutMs: null, graceMs: null });
  await expect(restarted).rejects.toMatchObject({ code });
  expect([world.host.stops, world.state().status]).toEqual([[], 'running']);
  // It was not noted as one that a later daemon starts again.
  world.host.exit(3);
  await quiet();
  expect(world.state().status).toBe('crashed');
});

it('a restart goes on after a sleep that is refused', async () => {
  const world = await begun({ row: { run: RUN } });
  const restarted = world.ref.ask('restart', { timeoutMs: null, graceMs: null });
  await quiet();
  await expect(world.ref.ask('sleep', {})).rejects.toMatchObject({ code: 'sleep_refused' });
  await world.advance(STOP_MS + 2_000);
  expect(await restarted).toMatchObject({ status: 'running' });
});

it("the restart of an agent's group goes on after a sleep that is refused", async () => {
  const agent = { ...AGENT, agentType: 'claude' as const };
  const world = await begun({ spec: { agent, cmd: 'claude' }, row: { run: RUN, pty: true } });
  const askedAt = world.clock.monotonic();
  await world.advance(5);
  await expect(world.ref.ask('sleep', {})).rejects.toMatchObject({ code: 'no_session' });
  const stopped = world.ref.ask('stop', { graceMs: null, forRestart: askedAt });
  await world.advance(STOP_MS + 2_000);
  await stopped;
  const started = world.ref.ask('start', { timeoutMs: null, wait: true, join: true, askedAt });
  await world.advance(200);
  expect(await started).toMatchObject({ status: 'running' });
});

it('an agent that a client restarts while it falls asleep is started, also by the next daemon', async () => {
  const plan = {
    spec: { agent: { ...AGENT, agentType: 'claude' as const }, cmd: 'claude', stopGrace: 60_000 },
  };
  const store = new MemoryStore();
  const asleep = { after: RUN, screen: { cols: 120, rows: 32, end: 0 } };
  await store.table('sessions').put('web', { id: 'conversation-1', isBegun: true, asleep });
  const world = await begun({ ...plan, store, row: { run: RUN, pty: true, stopping: true } });
  const restarted = world.ref.ask('restart', { timeoutMs: null, graceMs: null });
  await quiet();
  const next = await afterKill(world, plan);
  await world.advance(STOP_MS + 2_000);
  expect(await restarted).toMatchObject({ status: 'running' });
  expect(next.state().status).toBe('running');
  for (const { host } of [world, next])
    expect(host.spawns.map(({ cmd }) => cmd)).toEqual(['claude --resume "conversation-1"']);
});

describe('a service that was started to stay awake', () => {
  const restart = ({ ref }: Supervised) => ref.ask('restart', { timeoutMs: null, graceMs: null });
  const startBy =
    (by: 'client' | 'wake' | 'autostart') =>
    ({ ref }: Supervised) =>
      ref.ask('start', { timeoutMs: null, wait: true, [by]: true });
  const crash = async ({ host }: Supervised): Promise<void> => host.exit(1);
  const byPolicy = ({ advance }: Supervised): Promise<void> => advance(1_000);
  const stopBy = (last: boolean) => (world: Supervised) => world.ref.ask('stop', { graceMs: null, last });
  const sleep = ({ ref }: Supervised) => ref.ask('sleep', {});

  it.each([
    ['does after a crash that its restart policy follows', 'on-failure', crash, byPolicy, true],
    ['does after a crash, when a connection wakes it', 'no', crash, startBy('wake'), true],
    ['does after a crash, when it starts with the daemon', 'no', crash, startBy('autostart'), true],
    ['does after a crash, when a client restarts it', 'no', crash, restart, true],
    ['does not after a crash, when a client starts it', 'no', crash, startBy('client'), false],
    ['does not after a stop', 'no', stopBy(false), restart, false],
    ['does not after a sleep', 'no', sleep, restart, false],
    ['does not after the shutdown of its daemon', 'no', stopBy(true), startBy('wake'), false],
  ] as const)('%s, under the next daemon too', async (_what, policy, end, again, isAwake) => {
    const plan = { spec: { ...SLEEPY, restart: policy } };
    const world = await begun(plan);
    world.host.stopMs = 0;
    const started = world.ref.ask('start', { timeoutMs: null, wait: true, awake: true });
    await world.advance(50);
    await started;
    expect(world.host.spawns.at(-1)?.memo.awake).toBe(true);
    await end(world);
    await quiet();
    const next = await begun({ ...plan, store: world.store.copy() });
    for (const of of end === sleep || end === crash ? [world, next] : [next]) {
      const known = of.host.spawns.length;
      const done = again(of);
      await of.advance(50);
      await done;
      expect(of.host.spawns).toHaveLength(known + 1);
      expect(of.host.spawns.at(-1)?.memo.awake).toBe(isAwake ? true : undefined);
    }
  });
});

describe('a start or restart that waits until the service is ready', () => {
  const restart = ({ ref }: Supervised) => ref.ask('restart', { timeoutMs: null, graceMs: null });
  const request = {
    start: ({ ref }: Supervised, timeoutMs: number | null) => ref.ask('start', { timeoutMs, wait: true }),
    restart: ({ ref }: Supervised, timeoutMs: number | null) =>
      ref.ask('restart', { timeoutMs, graceMs: null }),
  };
  const unready = async () => {
    const world = await begun({ spec: { ready: 'http://localhost:3000/', startTimeout: 60_000 } });
    world.host.stopMs = 100;
    return world;
  };

  it.each(['start', 'restart'] as const)('goes on through restarts (%s)', async (verb) => {
    const world = await unready();
    const answer = request[verb](world, null);
    await world.advance(1_000);
    const others = [restart(world)];
    await world.advance(1_000);
    others.push(restart(world));
    await world.advance(1_000);
    world.probe.pass();
    await world.advance(2_000);
    const [last] = await Promise.all(others.slice(-1));
    expect(last).toMatchObject({ status: 'running', pid: expect.any(Number) });
    for (const one of [answer, ...others]) expect(await one).toEqual(last);
  });

  it.each(['start', 'restart'] as const)('ends after its time all the same (%s)', async (verb) => {
    const world = await unready();
    const answer = request[verb](world, 5_000).catch(({ code }) => code);
    for (let seconds = 0; seconds < 7; seconds += 1) {
      await world.advance(1_000);
      restart(world).catch(() => null);
    }
    expect(await Promise.race([answer, 'waits'])).toBe('ready_timeout');
    world.probe.pass();
    await world.advance(2_000);
    expect(world.state().status).toBe('running');
  });

  it('ends with a stop that follows a restart', async () => {
    const world = await unready();
    const answer = request.start(world, null).catch(({ code }) => code);
    await world.advance(1_000);
    restart(world).catch(() => null);
    await quiet();
    await Promise.all([world.ref.ask('stop', { graceMs: null }), world.advance(1_000)]);
    expect(await answer).toBe('start_failed');
    expect(world.state().status).toBe('stopped');
  });
});
