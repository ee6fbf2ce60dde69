// docs/reference.md "Groups": groups between a registry and services that the test scripts.
import { describe, expect, it } from 'vitest';
import { groupsActor } from '../../../src/actors/groups/groups.ts';
import type { Dependency } from '../../../src/protocol/dependency_order.ts';
import { fail } from '../../../src/protocol/errors.ts';
import type { GroupsProtocol, StoredGroupCall } from '../../../src/protocol/groups.ts';
import { hostLostFailure } from '../../../src/protocol/host_loss.ts';
import type { RegistryProtocol } from '../../../src/protocol/registry.ts';
import type { ServiceProtocol } from '../../../src/protocol/service.ts';
import { actor, type Failure, type Ref } from '../../../src/runtime/actor.ts';
import { SERVICE } from '../../../src/settings/limits.ts';
import { type World, world } from '../../kit/actors.ts';
import { must } from '../../kit/must.ts';
import { advance, MemoryStore } from '../../kit/service.ts';
import { spec } from '../../kit/service_inputs.ts';

interface Group {
  world: World;
  ref: Ref<GroupsProtocol>;
  /** The log, with entries such as `start db`, `ready db`, `stop db`, `ended db`. */
  log: string[];
  starts: unknown[];
  stops: unknown[];
  store: MemoryStore;
  advance(ms: number): Promise<void>;
}

interface Script {
  members: Record<string, Dependency[]>;
  kinds?: Record<string, 'service' | 'task'>;
  /** Members that have moved to another group. */
  moved?: string[];
  /** All members have `sleep`. */
  sleepy?: boolean;
  /** Duration of a start or a stop; a Failure is thrown after it. */
  ms?: Record<string, number>;
  failures?: Record<string, Failure>;
  /** Members that are removed; some may be added later. */
  removed?: string[];
}

async function group({
  members,
  kinds = {},
  moved = [],
  sleepy = false,
  ms = {},
  failures = {},
  removed = [],
}: Script): Promise<Group> {
  const w = world();
  const store = new MemoryStore();
  const log: string[] = [];
  const starts: unknown[] = [];
  const stops: unknown[] = [];
  const act = async (name: string, from: string, to: string): Promise<void> => {
    log.push(`${from} ${name}`);
    await new Promise<void>((resolve) => w.clock.after(ms[name] ?? 10, resolve));
    const failure = removed.includes(name) ? fail('unknown_service', `no service ${name}`) : failures[name];
    if (failure) throw failure;
    log.push(`${to} ${name}`);
  };
  const type = actor<Pick<ServiceProtocol, 'start' | 'stop' | 'sleep'>, string>(
    'service',
    (context, name) => ({
      start: (message) => {
        starts.push(message);
        if (!message.wait) {
          log.push(`there ${name}`);
          return { name, status: 'starting' as const, pid: name.length };
        }
        return context.replyLater(
          act(name, 'start', 'ready').then(() => ({ name, status: 'running' as const, pid: name.length })),
        );
      },
      sleep: () =>
        context.replyLater(act(name, 'sleep', 'asleep').then(() => ({ name, status: 'sleeping' as const }))),
      stop: (message) => {
        stops.push(message);
        const answer = { name, status: 'stopped' as const, exitCode: 0, signal: null, escalated: false };
        return context.replyLater(
          act(name, 'stop', 'ended').then(() => ({ ...answer, reaped: 1, left: [], portFree: true, ms: 1 })),
        );
      },
    }),
  );
  await w.stand<RegistryProtocol>('registry', {
    isRegistered: ({ name }) => ({ isRegistered: !removed.includes(name) }),
    members: ({ group: name }) => ({
      members:
        name === 'none'
          ? []
          : Object.entries(members)
              .filter(([member]) => !removed.includes(member) && (name === null || !moved.includes(member)))
              .map(([name, dependsOn]) => ({
                name,
                dependsOn,
                kind: kinds[name] ?? 'service',
                sleep: sleepy ? { afterMinutes: 1 } : null,
              })),
    }),
  });
  w.node.family('service:', type, (address) => address.slice('service:'.length));
  const ref = await w.start('groups', groupsActor, { store, bootedAt: BOOTED_AT });
  return { world: w, ref, log, starts, stops, store, advance: (time) => advance(w.clock, time) };
}

const outcome = (answer: Promise<unknown>): Promise<unknown> =>
  answer.then(
    (value) => value,
    ({ code, message, detail }: Failure) => ({ code, message, detail }),
  );

const BOOTED_AT = 1_000;

/** The call of an earlier daemon: a restart that has stopped every member. */
const ROW = { step: 'start', graceMs: null, timeoutMs: null, at: BOOTED_AT } as const;

const SITE = { web: ['api', 'outside'], api: ['db'], db: [], mail: [] };

const COMPLETED = (name: string) => ({ name, condition: 'completed' }) as const;
const STARTED = (name: string) => ({ name, condition: 'started' }) as const;

describe('the conditions of a group', () => {
  it('let a member start once the process of another exists, or once a task has ended', async () => {
    const site = await group({
      members: { web: [STARTED('api'), 'migrate'], api: [], migrate: [COMPLETED('seed')], seed: [] },
      kinds: { migrate: 'task', seed: 'task' },
      ms: { api: 500 },
    });
    const started = site.ref.ask('start', { name: 'site', timeoutMs: null });
    await site.advance(100);
    expect(site.log).toEqual([
      ...['start api', 'there api', 'start seed', 'ready seed'],
      ...['start migrate', 'ready migrate', 'start web', 'ready web'],
    ]);
    await site.advance(1_000);
    expect((await started).services.map(({ name }) => name)).toEqual(['web', 'api', 'migrate', 'seed']);
  });

  it('that a failure leaves unmet are reported by name, with the last lines', async () => {
    const failed = fail('start_failed', 'migrate ended with exit code 3', { hint: 'Its last lines: no' });
    const script = {
      members: { web: ['migrate'], api: [COMPLETED('migrate')], migrate: [], mail: [] },
      failures: { migrate: failed },
    };
    const site = await group({ ...script, kinds: { migrate: 'task' } });
    const started = outcome(site.ref.ask('start', { name: 'site', timeoutMs: null }));
    await site.advance(100);
    expect(await started).toEqual({
      code: 'dependency_failed',
      message: 'web, api not started: migrate is needed, and migrate ended with exit code 3',
      detail: { hint: 'Its last lines: no' },
    });
    // Nothing depends on it: the failure is its own.
    const alone = await group({ ...script, members: { migrate: [] }, kinds: { migrate: 'task' } });
    const own = outcome(alone.ref.ask('start', { name: 'site', timeoutMs: null }));
    await alone.advance(100);
    expect(await own).toMatchObject({ code: 'start_failed' });
  });

  it('that can never be met are refused before anything starts', async () => {
    const site = await group({ members: { web: [COMPLETED('db')], db: [] } });
    const started = outcome(site.ref.ask('start', { name: 'site', timeoutMs: null }));
    await site.advance(100);
    expect(await started).toMatchObject({
      code: 'dependency_failed',
      message: 'web cannot be started: it waits until db has completed, and db is no task',
    });
    expect(site.log).toEqual([]);
  });
});

describe('the restart of a group', () => {
  it('stops nothing if the environment of a member cannot be unsealed', async () => {
    const site = await group({ members: SITE });
    const stored = { spec: spec({ name: 'api' }), revision: 1, sealedEnv: 'x' };
    await site.store.table('services').put('api', stored);
    const answer = outcome(site.ref.ask('restart', { name: 'site', graceMs: null, timeoutMs: null }));
    expect([await answer, site.log]).toMatchObject([{ code: 'key_unusable' }, []]);
  });

  it('stops dependents first, then starts dependencies first', async () => {
    const site = await group({ members: { web: ['api'], api: ['db'], db: [] } });
    const restarted = site.ref.ask('restart', { name: 'site', graceMs: 5, timeoutMs: 700 });
    await site.advance(100);
    expect((await restarted).services.map(({ name }) => name)).toEqual(['web', 'api', 'db']);
    const stopped = ['web', 'api', 'db'].flatMap((name) => [`stop ${name}`, `ended ${name}`]);
    const started = ['db', 'api', 'web'].flatMap((name) => [`start ${name}`, `ready ${name}`]);
    expect(site.log).toEqual([...stopped, ...started]);
    expect(site.stops).toEqual(Array(3).fill({ graceMs: 5, forRestart: expect.any(Number) }));
    expect(site.starts).toEqual(Array(3).fill(expect.objectContaining({ timeoutMs: 700 })));
  });

  it('starts nothing after a stop that failed, and stops nothing of a group that cannot start', async () => {
    const left = fail('internal', 'db does not end');
    const stuck = await group({ members: { web: ['db'], db: [] }, failures: { db: left } });
    const answer = outcome(stuck.ref.ask('restart', { name: 'site', graceMs: null, timeoutMs: null }));
    await stuck.advance(100);
    expect(await answer).toMatchObject({ code: 'internal' });
    expect(stuck.log).toEqual(['stop web', 'ended web', 'stop db']);
    const endless = await group({ members: { web: [COMPLETED('db')], db: [] } });
    const refused = outcome(endless.ref.ask('restart', { name: 'site', graceMs: null, timeoutMs: null }));
    await endless.advance(100);
    expect([await refused, endless.log]).toEqual([
      expect.objectContaining({ code: 'dependency_failed' }),
      [],
    ]);
  });
});

describe('the restart of a group after the daemon was killed', () => {
  const row = { graceMs: 5, timeoutMs: 700, at: BOOTED_AT };
  const begin = async (stored: StoredGroupCall): Promise<Group> => {
    const site = await group({ members: { web: ['db'], db: [] } });
    await site.store.table('restarts').put('site', stored);
    await site.ref.ask('resume', {});
    return site;
  };
  const STOPPED = ['stop web', 'ended web', 'stop db', 'ended db'];
  const STARTED = ['start db', 'ready db', 'start web', 'ready web'];

  it('is on disk before its first stop, then before its first start, and gone at its end', async () => {
    const site = await group({ members: { web: ['db'], db: [] } });
    const rows = site.store.table('restarts');
    const restarted = site.ref.ask('restart', { name: 'site', graceMs: null, timeoutMs: null });
    const steps: unknown[] = [];
    for (let index = 0; index < 30; index += 1) {
      await site.advance(2);
      const last = site.log.at(-1)?.split(' ')[0];
      if (last !== undefined) steps.push(`${last} ${rows.get('site')?.step}`);
    }
    await restarted;
    const seen = ['stop stop', 'start start', 'ready undefined'];
    expect(steps).toEqual(expect.arrayContaining(seen));
    expect(steps).not.toContain('start stop');
    expect(rows.all()).toEqual([]);
  });

  it('stops the remaining members and starts all, or only starts them if all had stopped', async () => {
    const early = await begin({ ...row, step: 'stop' });
    await early.advance(100);
    expect(early.log).toEqual([...STOPPED, ...STARTED]);
    expect(early.stops).toEqual(Array(2).fill({ graceMs: 5, forRestart: expect.any(Number) }));
    const late = await begin({ ...row, step: 'start' });
    await late.advance(100);
    expect(late.log).toEqual(STARTED);
    expect(late.store.table('restarts').all()).toEqual([]);
  });

  it('leaves out what a client has stopped meanwhile, and what depends on that', async () => {
    const site = await group({ members: { api: ['web'], web: ['db'], db: [], mail: [] } });
    await site.store.table('restarts').put('site', { ...row, step: 'start' });
    await site.store.table('overrides').put('web', { group: 'site' });
    await site.store.table('overrides').put('other', { group: 'elsewhere' });
    await site.ref.ask('resume', {});
    await site.advance(100);
    expect(site.log).toEqual(['start db', 'start mail', 'ready db', 'ready mail']);
    expect(site.store.table('overrides').all()).toEqual([['other', { group: 'elsewhere' }]]);
    // What a client asks for is for all members.
    const started = site.ref.ask('start', { name: 'site', timeoutMs: null });
    await site.advance(100);
    expect((await started).services.map(({ name }) => name)).toEqual(['api', 'web', 'db', 'mail']);
  });

  it('does not continue after a reboot, without members, or while it is under way', async () => {
    const rebooted = await begin({ ...row, step: 'start', at: BOOTED_AT - 1 });
    await rebooted.advance(100);
    expect([rebooted.log, rebooted.store.table('restarts').all()]).toEqual([[], []]);
    const busy = await group({ members: { web: [] } });
    await busy.store.table('restarts').put('none', { ...row, step: 'start' });
    const restarted = busy.ref.ask('restart', { name: 'site', graceMs: null, timeoutMs: null });
    await busy.advance(2);
    await busy.ref.ask('resume', {});
    await busy.advance(100);
    await restarted;
    expect(busy.log).toEqual(['stop web', 'ended web', 'start web', 'ready web']);
    expect(busy.store.table('restarts').all()).toEqual([]);
  });
});

describe('any other call of a group', () => {
  const members = { web: ['db'], db: [] };
  const calls = {
    start: (ref: Group['ref']) => ref.ask('start', { name: 'site', timeoutMs: 700 }),
    stop: (ref: Group['ref']) => ref.ask('stop', { name: 'site', graceMs: 5 }),
    sleep: (ref: Group['ref']) => ref.ask('sleepGroup', { name: 'site' }),
    wake: (ref: Group['ref']) => ref.ask('wakeGroup', { name: 'site', timeoutMs: 700 }),
  };

  it.each(['start', 'stop', 'sleep', 'wake'] as const)(
    'is continued after the daemon was killed: %s',
    async (verb) => {
      const first = await group({ members, sleepy: true });
      const called = calls[verb](first.ref);
      await first.advance(5);
      // One member has been reached.
      expect(first.log).toHaveLength(1);
      const row = first.store.table('restarts').get('site');
      await first.advance(100);
      await called;
      expect(first.store.table('restarts').all()).toEqual([]);
      const next = await group({ members, sleepy: true });
      if (row) await next.store.table('restarts').put('site', row);
      await next.ref.ask('resume', {});
      await next.advance(100);
      expect(next.log).toEqual(first.log);
      expect([next.starts, next.stops]).toEqual([first.starts, first.stops]);
      expect(next.store.table('restarts').all()).toEqual([]);
    },
  );

  it('is not dropped because a member is busy, or the process host does not answer', async () => {
    for (const failure of [fail('daemon_busy', 'db is being stopped'), hostLostFailure('db')]) {
      for (const verb of [undefined, 'start', 'stop', 'sleep', 'wake'] as const) {
        const failures: Record<string, Failure> = { db: failure, web: failure };
        const site = await group({ members, sleepy: true, failures });
        await site.store.table('restarts').put('site', { ...ROW, verb });
        await site.ref.ask('resume', {});
        await site.advance(2 * SERVICE.shutdown.hostReturnMs);
        expect(site.store.table('restarts').all()).toHaveLength(1);
        for (const name of ['db', 'web']) delete failures[name];
        site.log.length = 0;
        await site.advance(5_000);
        expect(site.log.map((entry) => entry.split(' ')[1])).toEqual(
          expect.arrayContaining(['db', 'db', 'web', 'web']),
        );
        expect(site.store.table('restarts').all()).toEqual([]);
      }
    }
  });

  it('is dropped at the end of the daemon, while a member is busy', async () => {
    const failures: Record<string, Failure> = { db: fail('daemon_busy', 'db is being stopped') };
    const site = await group({ members, failures });
    await site.store.table('restarts').put('site', { ...ROW, verb: 'start' });
    await site.ref.ask('resume', {});
    await site.advance(100);
    const done = site.ref.ask('shutdown', {});
    delete failures['db'];
    await site.advance(SERVICE.shutdown.hostReturnMs);
    await done;
    expect(site.store.table('restarts').all()).toEqual([]);
    expect(site.log).not.toContain('ready db');
  });

  it.each(['restart', 'stop', 'sleepGroup'] as const)(
    'does not end again, in the next daemon, what a client has started since: %s',
    async (verb) => {
      const first = await group({ members, sleepy: true });
      const called = first.ref.ask(verb, { name: 'site', timeoutMs: null, graceMs: null });
      await first.advance(15);
      const [ended, begun] = verb === 'sleepGroup' ? ['asleep', 'sleep'] : ['ended', 'stop'];
      expect(first.log.slice(-2)).toEqual([`${ended} web`, `${begun} db`]);
      const row = must(first.store.table('restarts').get('site'));
      expect(row.done).toEqual(['web']);
      await first.advance(100);
      await called;
      const next = await group({ members, sleepy: true });
      await next.store.table('restarts').put('site', row);
      await next.ref.ask('resume', {});
      await next.advance(5);
      // A third daemon knows it too.
      expect(next.store.table('restarts').get('site')?.done).toEqual(['web']);
      await next.advance(100);
      const starts = ['start db', 'ready db', 'start web', 'ready web'];
      expect(next.log).toEqual([`${begun} db`, `${ended} db`, ...(verb === 'restart' ? starts : [])]);
    },
  );

  it('needs no disk space', async () => {
    const site = await group({ members });
    site.store.broken = fail('storage_full', 'the disk is full');
    const stopped = site.ref.ask('stop', { name: 'site', graceMs: 5 });
    await site.advance(100);
    expect((await stopped).services.map(({ name }) => name)).toEqual(['web', 'db']);
  });
});

describe('a wake during the end of a group', () => {
  it.each(['stop', 'sleepGroup'] as const)('waits until what it needs is ended: %s', async (verb) => {
    const site = await group({ members: { web: ['db'], db: [], mail: [] }, sleepy: true });
    const ended = site.ref.ask(verb, { name: 'site', graceMs: null });
    await site.advance(5);
    const woken = site.ref.ask('wake', { name: 'web', timeoutMs: null });
    await site.advance(100);
    await ended;
    expect(await woken).toMatchObject({ name: 'web', status: 'running' });
    const log = site.log.filter((entry) => !entry.endsWith('mail'));
    expect(log.slice(2)).toEqual([
      verb === 'stop' ? 'stop db' : 'sleep db',
      verb === 'stop' ? 'ended db' : 'asleep db',
      ...['start db', 'ready db', 'start web', 'ready web'],
    ]);
    // The end, which is later than the first request, does not override it.
    expect(site.starts).toMatchObject([{ askedAt: 20 }, { askedAt: 20 }]);
  });

  it('does not wait for what ends elsewhere', async () => {
    const site = await group({ members: { web: ['db'], db: [], mail: [] }, moved: ['mail'] });
    const ended = site.ref.ask('stop', { name: 'site', graceMs: null });
    await site.advance(5);
    const woken = site.ref.ask('wake', { name: 'mail', timeoutMs: null });
    await site.advance(11);
    expect(await woken).toMatchObject({ status: 'running' });
    expect(site.log).not.toContain('ended db');
    await site.advance(100);
    await ended;
  });
});

describe('a restart on a full disk', () => {
  const full = fail('storage_full', 'the disk is full');
  const call = { name: 'site', timeoutMs: null, graceMs: null };

  it('starts its members when there is room again, also in a later daemon', async () => {
    const failures: Record<string, Failure> = {};
    const site = await group({ members: { web: ['db'], db: [] }, failures });
    const restarted = outcome(site.ref.ask('restart', call));
    await site.advance(25);
    failures['db'] = full;
    await site.advance(5);
    expect(await restarted).toMatchObject({ code: 'storage_full' });
    await site.advance(3_000);
    expect(site.log.slice(-2)).toEqual(['start db', 'start db']);
    const row = must(site.store.table('restarts').get('site'));
    expect(row).toMatchObject({ step: 'start', members: ['web', 'db'] });
    delete failures['db'];
    await site.advance(2_000);
    const started = ['start db', 'ready db', 'start web', 'ready web'];
    expect(site.log.slice(-4)).toEqual(started);
    expect(site.store.table('restarts').all()).toEqual([]);
    await site.advance(5_000);
    expect(site.log.slice(-4)).toEqual(started);
    const next = await group({ members: { web: ['db'], db: [] }, failures: { db: full } });
    await next.store.table('restarts').put('site', row);
    await next.ref.ask('resume', {});
    await next.advance(1_500);
    expect(next.log).toEqual(['start db', 'start db']);
    expect(next.store.table('restarts').get('site')).toEqual(row);
  });

  it('does so if there was no room even to store that they are stopped', async () => {
    const site = await group({ members: { web: ['db'], db: [] } });
    const restarted = outcome(site.ref.ask('restart', call));
    await site.advance(15);
    site.store.broken = full;
    await site.advance(10);
    expect(await restarted).toMatchObject({ code: 'storage_full' });
    expect(site.log.slice(-1)).toEqual(['ended db']);
    await site.advance(2_000);
    expect(site.log.slice(-4)).toEqual(['start db', 'ready db', 'start web', 'ready web']);
  });

  it('is given up for another call of the group', async () => {
    const failures: Record<string, Failure> = {};
    const site = await group({ members: { db: [] }, failures });
    const restarted = outcome(site.ref.ask('restart', call));
    await site.advance(15);
    failures['db'] = full;
    await site.advance(5);
    expect(await restarted).toMatchObject({ code: 'storage_full' });
    delete failures['db'];
    const stopped = site.ref.ask('stop', { name: 'site', graceMs: null });
    await site.advance(5_000);
    await stopped;
    expect(site.log.slice(-2)).toEqual(['stop db', 'ended db']);
    expect(site.store.table('restarts').all()).toEqual([]);
  });

  it('is given up by a shutdown that stops the services', async () => {
    const failures: Record<string, Failure> = {};
    const site = await group({ members: { db: [] }, failures });
    const restarted = outcome(site.ref.ask('restart', call));
    await site.advance(15);
    failures['db'] = full;
    await site.advance(5);
    expect(await restarted).toMatchObject({ code: 'storage_full' });
    delete failures['db'];
    const done = site.ref.ask('shutdown', {});
    await site.advance(5_000);
    await done;
    expect(site.log.slice(-2)).toEqual(['stop db', 'ended db']);
    expect(site.store.table('restarts').all()).toEqual([]);
  });

  it('changes nothing if it has no room at first', async () => {
    const site = await group({ members: { db: [] } });
    site.store.broken = full;
    expect(await outcome(site.ref.ask('restart', call))).toMatchObject({ code: 'storage_full' });
    await site.advance(5_000);
    expect(site.log).toEqual([]);
  });
});

describe('the members of a call that is continued', () => {
  const before = { web: ['db'], db: [], mail: ['web'] };
  // `mail` has moved, `new` has joined the group, and `web` is removed.
  const after = { members: { db: [], mail: ['web', 'db'], new: ['db'] }, moved: ['mail'], sleepy: true };
  const verbs = ['start', 'restart', 'stop', 'sleepGroup', 'wakeGroup'] as const;
  const reached = (log: string[], ...firsts: string[]): string[] =>
    log.filter((entry) => firsts.includes(entry.split(' ')[0] ?? ''));

  it.each(verbs)('are those that the group had when it began: %s', async (verb) => {
    const site = await group({ members: before, sleepy: true });
    const called = site.ref.ask(verb, { name: 'site', timeoutMs: null, graceMs: null });
    await site.advance(5);
    const row = site.store.table('restarts').get('site');
    await site.advance(200);
    await called;
    const next = await group(after);
    if (row) await next.store.table('restarts').put('site', row);
    await next.ref.ask('resume', {});
    await next.advance(5);
    // A third daemon would continue it for the same ones.
    expect(next.store.table('restarts').get('site')?.members).toEqual(['db', 'mail']);
    await next.advance(200);
    const isStart = ['start', 'wakeGroup'].includes(verb);
    expect(reached(next.log, 'stop', 'sleep')).toEqual(
      isStart ? [] : ['mail', 'db'].map((name) => `${verb === 'sleepGroup' ? 'sleep' : 'stop'} ${name}`),
    );
    expect(reached(next.log, 'start')).toEqual(
      isStart || verb === 'restart' ? ['start db', 'start mail'] : [],
    );
  });

  it('are those of the group if an earlier version began it', async () => {
    const next = await group(after);
    await next.store.table('restarts').put('site', ROW);
    await next.ref.ask('resume', {});
    await next.advance(200);
    expect(reached(next.log, 'start')).toEqual(['start db', 'start new']);
  });

  it('may all have been removed', async () => {
    const next = await group(after);
    await next.store.table('restarts').put('site', { ...ROW, members: ['web'] });
    await next.ref.ask('resume', {});
    await next.advance(200);
    expect([next.log, next.store.table('restarts').all()]).toEqual([[], []]);
  });
});

describe('a member that is removed during a call', () => {
  const members = { web: ['api'], api: ['db'], db: [] };
  const verbs = ['start', 'restart', 'stop', 'sleepGroup', 'wakeGroup'] as const;
  const lasts = (log: string[], ...ends: string[]): string[] =>
    log.filter((entry) => ends.includes(entry.split(' ')[0] ?? ''));

  it.each(verbs)('is left out: %s', async (verb) => {
    const removed: string[] = [];
    const site = await group({ members, sleepy: true, removed });
    const called = site.ref.ask(verb, { name: 'site', timeoutMs: null, graceMs: null });
    await site.advance(5);
    const row = site.store.table('restarts').get('site');
    removed.push('api');
    await site.advance(200);
    expect((await called).services.map(({ name }) => name)).toEqual(['web', 'db']);
    const next: string[] = [];
    const resumed = await group({ members, sleepy: true, removed: next });
    if (row) await resumed.store.table('restarts').put('site', row);
    await resumed.ref.ask('resume', {});
    await resumed.advance(5);
    next.push('api');
    await resumed.advance(200);
    for (const { log } of [site, resumed]) {
      if (verb === 'stop' || verb === 'restart')
        expect(lasts(log, 'ended')).toEqual(['ended web', 'ended db']);
      if (verb === 'sleepGroup') expect(lasts(log, 'asleep')).toEqual(['asleep web', 'asleep db']);
      if (verb !== 'stop' && verb !== 'sleepGroup')
        expect(lasts(log, 'ready')).toEqual(['ready db', 'ready web']);
    }
  });

  it('takes nothing with it, unlike one that a client has stopped', async () => {
    const removed: string[] = [];
    const site = await group({ members: { ...members, other: ['mail'], mail: [] }, removed });
    await site.store.table('restarts').put('site', { ...ROW, step: 'stop' });
    await site.ref.ask('resume', {});
    await site.advance(15);
    expect(site.log).toContain('stop api');
    for (const name of ['api', 'mail']) await site.store.table('overrides').put(name, { group: 'site' });
    removed.push('api');
    await site.advance(200);
    expect(lasts(site.log, 'ready')).toEqual(['ready db', 'ready web']);
  });

  it('is one whose start fails, as its removal stops it', async () => {
    const removed: string[] = [];
    const failures = { api: fail('start_failed', 'api was stopped before it was ready') };
    const site = await group({ members, removed, failures });
    const started = site.ref.ask('start', { name: 'site', timeoutMs: null });
    await site.advance(15);
    expect(site.log.at(-1)).toBe('start api');
    removed.push('api');
    await site.advance(100);
    expect((await started).services.map(({ name }) => name)).toEqual(['web', 'db']);
  });
});

describe('a call of a group at the end of its daemon', () => {
  const end = async (site: Group): Promise<void> => {
    site.world.late.push('groups', 'service:db');
    const stopped = site.world.node.stop();
    await site.advance(20_000);
    await stopped;
  };
  const verbs = ['start', 'restart', 'stop', 'sleepGroup', 'wakeGroup'] as const;

  it.each(verbs)('is left to the next one that keeps its services: %s', async (verb) => {
    const site = await group({ members: { db: [], web: ['db'] }, sleepy: true, ms: { db: 60_000 } });
    const called = outcome(site.ref.ask(verb, { name: 'site', timeoutMs: null, graceMs: null }));
    await site.advance(20);
    expect(site.log.at(-1)).toMatch(/ db$/);
    await site.ref.ask('leave', {});
    await end(site);
    expect(await called).toMatchObject({ code: 'gone' });
    const [[name, row] = []] = site.store.table('restarts').all();
    expect([name, row?.verb]).toEqual(['site', verb === 'restart' ? undefined : verb.replace('Group', '')]);
    // The next one shuts down while it continues the call, which is no longer answered.
    const next = await group({ members: { db: [], web: ['db'] }, sleepy: true, ms: { db: 60_000 } });
    if (row) await next.store.table('restarts').put('site', row);
    await next.ref.ask('resume', {});
    await next.advance(20);
    await next.ref.ask('leave', {});
    await end(next);
    expect(next.store.table('restarts').all()).toEqual([['site', row]]);
  });

  it('is given up if the services are stopped, even if one of them takes longer', async () => {
    const site = await group({ members: { db: [], web: ['db'] }, ms: { db: 60_000 } });
    const stopped = outcome(site.ref.ask('stop', { name: 'site', graceMs: null }));
    await site.advance(20);
    const done = site.ref.ask('shutdown', {});
    await site.advance(30_000);
    await done;
    expect(site.store.table('restarts').all()).toHaveLength(1);
    await end(site);
    await stopped;
    expect(site.store.table('restarts').all()).toEqual([]);
  });

  it('is not left to the next one if it ends in time', async () => {
    const failures = { db: fail('ready_timeout', 'db was not ready') };
    for (const site of [
      await group({ members: { db: [] } }),
      await group({ members: { db: [] }, failures }),
    ]) {
      const started = outcome(site.ref.ask('start', { name: 'site', timeoutMs: null }));
      await site.advance(5);
      await site.ref.ask('leave', {});
      await end(site);
      await started;
      expect(site.store.table('restarts').all()).toEqual([]);
    }
  });
});

describe('the start of a group', () => {
  it('starts each member as soon as its dependencies are ready', async () => {
    const site = await group({ members: SITE, ms: { db: 30 } });
    const started = site.ref.ask('start', { name: 'site', timeoutMs: 700 });
    await site.advance(20);
    expect(site.log).toEqual(['start db', 'start mail', 'ready mail']);
    await site.advance(100);
    expect(await started).toEqual({
      services: [
        { name: 'web', status: 'running', pid: 3 },
        { name: 'api', status: 'running', pid: 3 },
        { name: 'db', status: 'running', pid: 2 },
        { name: 'mail', status: 'running', pid: 4 },
      ],
    });
    expect(site.log.slice(3)).toEqual(['ready db', 'start api', 'ready api', 'start web', 'ready web']);
    // Running members are left alone: none is refused with already_running.
    const start = { timeoutMs: 700, wait: true, join: true, ifChanged: true, askedAt: expect.any(Number) };
    expect(site.starts).toEqual(Array(4).fill(start));
  });

  it('starts nothing after a failure, waits for the starts under way, and names the member', async () => {
    const failures = { db: fail('ready_timeout', 'db was not ready', { hint: 'Look.' }) };
    const site = await group({
      members: { ...SITE, slow: [], late: ['mail'] },
      ms: { mail: 40, slow: 60, db: 20 },
      failures,
    });
    const started = outcome(site.ref.ask('start', { name: 'site', timeoutMs: null }));
    await site.advance(100);
    expect(await started).toEqual({
      code: 'ready_timeout',
      message: 'db was not ready',
      detail: { hint: 'Look.' },
    });
    expect(site.log).toEqual(['start db', 'start mail', 'start slow', 'ready mail', 'ready slow']);
    expect(site.stops).toEqual([]);
  });

  it("prefixes a message with the member's name unless it begins with it", async () => {
    const site = await group({
      members: { db: [] },
      failures: { db: fail('start_failed', 'no such directory') },
    });
    const started = outcome(site.ref.ask('start', { name: 'site', timeoutMs: null }));
    await site.advance(20);
    expect(await started).toMatchObject({ code: 'start_failed', message: 'db: no such directory' });
  });

  it('is refused for an unknown group', async () => {
    const site = await group({ members: {} });
    expect(await outcome(site.ref.ask('start', { name: 'none', timeoutMs: null }))).toMatchObject({
      code: 'unknown_group',
      message: 'there is no group none',
    });
    expect(await outcome(site.ref.ask('stop', { name: 'none', graceMs: null }))).toMatchObject({
      code: 'unknown_group',
    });
  });

  it.each([
    ['a chain', (index: number) => (index ? [`s${index - 1}`] : []), 2_000],
    ['a fan', (index: number) => (index ? ['s0'] : []), 20],
  ])('takes 200 members in %s', async (_, dependsOn, ms) => {
    const names = Array.from({ length: 200 }, (_, index) => [`s${index}`, dependsOn(index)] as const);
    const site = await group({ members: Object.fromEntries(names) });
    const started = site.ref.ask('start', { name: 'site', timeoutMs: null });
    await site.advance(ms + 50);
    expect((await started).services).toHaveLength(200);
    const stopped = site.ref.ask('stop', { name: 'site', graceMs: null });
    await site.advance(ms + 50);
    expect((await stopped).services).toHaveLength(200);
    const ended = site.log.filter((entry) => entry.startsWith('ended'));
    expect(ended.at(-1)).toBe('ended s0');
  });
});

describe('the stop of a group', () => {
  it('stops a member once its dependents have ended', async () => {
    const site = await group({ members: SITE, ms: { web: 30 } });
    const stopped = site.ref.ask('stop', { name: 'site', graceMs: 900 });
    await site.advance(100);
    expect(await stopped).toEqual({
      services: ['web', 'api', 'db', 'mail'].map((name) => ({ name, status: 'stopped', exitCode: 0 })),
    });
    expect(site.log).toEqual([
      'stop web',
      'stop mail',
      'ended mail',
      'ended web',
      'stop api',
      'ended api',
      'stop db',
      'ended db',
    ]);
    expect(site.stops).toEqual(Array(4).fill({ graceMs: 900 }));
  });

  it('excludes other calls on its group, but not on others', async () => {
    const site = await group({ members: SITE });
    const first = site.ref.ask('start', { name: 'site', timeoutMs: null });
    const second = outcome(site.ref.ask('stop', { name: 'site', graceMs: null }));
    const other = outcome(site.ref.ask('stop', { name: 'other', graceMs: null }));
    await site.advance(100);
    await first;
    expect(await second).toMatchObject({ code: 'daemon_busy' });
    expect(await other).toMatchObject({ services: expect.any(Array) });
    const third = outcome(site.ref.ask('stop', { name: 'site', graceMs: null }));
    await site.advance(100);
    expect(await third).toMatchObject({ services: expect.any(Array) });
  });
});

describe('the shutdown', () => {
  it('stops everything in reverse order, for the last time, whatever fails', async () => {
    const site = await group({ members: SITE, failures: { mail: fail('storage_full', 'no room') } });
    const done = site.ref.ask('shutdown', {});
    await site.advance(100);
    await done;
    expect(site.log.filter((entry) => entry !== 'stop mail')).toEqual([
      'stop web',
      'ended web',
      'stop api',
      'ended api',
      'stop db',
      'ended db',
    ]);
    expect(site.stops).toEqual(Array(4).fill({ graceMs: null, last: true }));
    expect(await outcome(site.ref.ask('start', { name: 'site', timeoutMs: null }))).toMatchObject({
      code: 'daemon_busy',
    });
  });

  it('retries until a new process host is up, and no longer', async () => {
    const failures: Record<string, Failure> = { db: fail('daemon_busy', 'no host') };
    const site = await group({ members: { web: ['db'], db: [] }, failures });
    const done = site.ref.ask('shutdown', {});
    await site.advance(2_000);
    delete failures['db'];
    await site.advance(200);
    await done;
    expect(site.log.at(-1)).toBe('ended db');
    const lost = await group({ members: { db: [] }, failures: { db: fail('daemon_busy', 'no host') } });
    const given = lost.ref.ask('shutdown', {});
    await lost.advance(SERVICE.shutdown.hostReturnMs + SERVICE.shutdown.hostRetryMs);
    await given;
  });

  it('keeps a group that is starting from starting more', async () => {
    const site = await group({ members: SITE });
    const started = outcome(site.ref.ask('start', { name: 'site', timeoutMs: null }));
    await site.advance(5);
    const done = site.ref.ask('shutdown', {});
    await site.advance(100);
    await done;
    expect(await started).toMatchObject({ code: 'daemon_busy' });
    expect(site.log.filter((entry) => entry.startsWith('start'))).toEqual(['start db', 'start mail']);
  });

  it('waits 20 s for the order, then stops all others and waits 3 s for them', async () => {
    const site = await group({ members: SITE, ms: { web: 60_000, api: 30_000 } });
    const done = outcome(site.ref.ask('shutdown', {}));
    await site.advance(19_900);
    expect(site.log).toEqual(['stop web', 'stop mail', 'ended mail']);
    await site.advance(200);
    expect(site.log.slice(3)).toEqual(['stop api', 'stop db', 'ended db']);
    await site.advance(3_000);
    expect(await done).toBeNull();
    await site.advance(60_000);
  });
});
