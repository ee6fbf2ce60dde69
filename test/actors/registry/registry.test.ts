import { join } from 'node:path';
import fc from 'fast-check';
import { open } from 'lmdb';
import { beforeAll, describe, expect, it } from 'vitest';
import type { RegistryConfig } from '../../../src/actors/registry/registry.ts';
import { openStore } from '../../../src/adapters/storage/store.ts';
import type { Store, StoreTable } from '../../../src/adapters/storage/store_tables.ts';
import { fail } from '../../../src/protocol/errors.ts';
import type { HostProtocol, LedgerRun } from '../../../src/protocol/host.ts';
import type { LastEnd, ServiceInput } from '../../../src/protocol/service.ts';
import type { ViewSnapshot } from '../../../src/protocol/views.ts';
import type { ReplyOf } from '../../../src/runtime/actor.ts';
import { deferred } from '../../../src/runtime/deferred.ts';
import { settle, tempDir } from '../../kit/actors.ts';
import { bundle } from '../../kit/bundle.ts';
import { run } from '../../kit/child_program.ts';
import { eventually } from '../../kit/eventually.ts';
import { must } from '../../kit/must.ts';
import { type Setting, setting } from '../../kit/registry.ts';
import { agentInput, input } from '../../kit/service_inputs.ts';

const dataOf = (it: Setting, type: string): unknown[] =>
  it.events.filter((event) => event.type === type).map(({ data }) => JSON.parse(data));

/** The latest state that the views got. */
const shown = (it: Setting): ViewSnapshot => JSON.parse(must(it.views.of('snapshot').at(-1)).text);

/** What another process finds on the disk at this moment. */
async function onDisk(path: string, name: string): Promise<unknown> {
  const store = openStore(path);
  const stored = store.table('services').get(name);
  await store.close();
  return stored;
}

describe('registering', () => {
  it('replies when the record is on disk, the views know it, and the event is journaled', async () => {
    const it = await setting();
    const env: [string, string][] = [['SECRET', 'x']];
    const answer = await it.registry.ask('register', { input: input('web', { env, group: 'shop' }) });
    expect(await onDisk(it.path, 'web')).toEqual(answer.stored);
    expect(answer).toMatchObject({ created: true, stored: { revision: 1, spec: { name: 'web', env } } });
    const [specs] = it.views.of('specs');
    expect(specs).toMatchObject({ rows: [{ name: 'web', envKeys: ['SECRET'], revision: 1 }] });
    expect(JSON.stringify(specs)).not.toContain('"x"');
    expect(it.events.map(({ type, name, data }) => [type, name, data])).toEqual([
      ['service.registered', 'web', '{"name":"web","port":8000,"group":"shop"}'],
    ]);
    expect(it.received).toEqual([{ name: 'web', kind: 'changed', message: { stored: answer.stored } }]);
  });

  it('without a port claims none, and releases an earlier one', async () => {
    const it = await setting();
    const register = async (name: string, port: number | null) =>
      (await it.registry.ask('register', { input: input(name, { port }) })).stored.spec.port;
    expect(await register('web', 8001)).toBe(8001);
    expect(await register('web', null)).toBeNull();
    expect(await register('job', null)).toBeNull();
    expect(await register('api', 8001)).toBe(8001);
    expect(dataOf(it, 'port.conflict')).toEqual([]);
    expect(dataOf(it, 'service.registered').at(-2)).toEqual({ name: 'job', port: null, group: null });
    expect(await it.registry.ask('remove', { name: 'job', agent: false, graceMs: null })).toEqual({
      port: null,
    });
    expect(await register('web', 0)).toBeTypeOf('number');
  });

  it('tells what is spoken on the port, also when only that changes', async () => {
    const it = await setting();
    const claimed = async () => JSON.parse((await it.ports.ask('claims', { prefix: 'w' })).json);
    for (const protocol of ['http', 'tcp'] as const) {
      await it.registry.ask('register', { input: input('web', { port: 8000, protocol }) });
      expect(await claimed()).toEqual([{ name: 'web', port: 8000, protocol }]);
    }
  });

  it('of a known name replaces the record: absent env is kept, a change raises the revision', async () => {
    const it = await setting();
    const register = async (more: Partial<ServiceInput>) =>
      (await it.registry.ask('register', { input: input('web', more) })).stored;
    await register({ env: [['A', '1']] });
    expect(await register({})).toMatchObject({ revision: 1, spec: { env: [['A', '1']] } });
    expect(await register({ cmd: 'false' })).toMatchObject({ revision: 2, spec: { env: [['A', '1']] } });
    expect(await register({ env: [] })).toMatchObject({ revision: 3, spec: { env: [], cmd: 'true' } });
    expect(await it.registry.ask('register', { input: input('web') })).toMatchObject({ created: false });
    expect(dataOf(it, 'service.registered')).toHaveLength(5);
    expect(it.views.of('specs').map(({ rows }) => rows[0]?.revision)).toEqual([1, 2, 3]);
    expect(it.received.map(({ kind }) => kind)).toEqual(Array.from({ length: 5 }, () => 'changed'));
  });

  it('keeps the order of two registrations of one name', async () => {
    const it = await setting();
    const answers = await Promise.all(
      ['a', 'b', 'c'].map((cmd) => it.registry.ask('register', { input: input('web', { cmd, port: 0 }) })),
    );
    expect(answers.map(({ created, stored }) => [created, stored.revision, stored.spec.cmd])).toEqual([
      [true, 1, 'a'],
      [false, 2, 'b'],
      [false, 3, 'c'],
    ]);
    expect(await onDisk(it.path, 'web')).toEqual(answers[2]?.stored);
  });

  it('refuses the name of an agent for a service and vice versa', async () => {
    const it = await setting();
    await it.registry.ask('register', { input: input('web') });
    await it.registry.ask('register', { input: agentInput('bot') });
    await expect(it.registry.ask('register', { input: agentInput('web') })).rejects.toMatchObject({
      code: 'name_in_use',
    });
    await expect(it.registry.ask('register', { input: input('bot') })).rejects.toMatchObject({
      code: 'name_in_use',
    });
    expect(await it.registry.ask('members', { group: 'Agents' })).toEqual({
      members: [{ name: 'bot', dependsOn: [], kind: 'service', sleep: null }],
    });
  });

  it('refuses a host name that another agent has, also for two at once', async () => {
    const it = await setting();
    const both = await Promise.allSettled(
      ['my-bot', 'my_bot'].map((name) => it.registry.ask('register', { input: agentInput(name) })),
    );
    expect(both.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
    await expect(it.registry.ask('register', { input: agentInput('my_bot') })).rejects.toMatchObject({
      code: 'name_in_use',
      message: 'my-bot.test is the host name of the agent my-bot',
    });
    await it.registry.ask('register', { input: agentInput('my-bot', { cmd: 'x' }) });
  });

  it('refuses a cycle of dependsOn by name and leaves everything as it was', async () => {
    const it = await setting();
    const register = (name: string, dependsOn: string[]) =>
      it.registry.ask('register', { input: input(name, { dependsOn }) });
    await register('a', ['b']);
    await register('b', ['c', 'nobody']);
    await expect(register('c', ['a'])).rejects.toMatchObject({
      code: 'invalid_spec',
      message: 'dependsOn has a cycle: c -> a -> b -> c',
      detail: { details: [{ path: 'dependsOn' }] },
    });
    await expect(register('a', ['a'])).rejects.toMatchObject({ code: 'invalid_spec' });
    expect(await onDisk(it.path, 'c')).toBeUndefined();
    expect(dataOf(it, 'service.registered')).toHaveLength(2);
    const [x, y] = await Promise.allSettled([register('x', ['y']), register('y', ['x'])]);
    expect([x.status, y.status]).toEqual(['fulfilled', 'rejected']);
  });

  it('gives port 0 the lowest free port, and keeps it for the service', async () => {
    const it = await setting();
    const portOf = async (name: string, port: number) =>
      (await it.registry.ask('register', { input: input(name, { port }) })).stored.spec.port;
    expect(await portOf('taken', 200)).toBe(200);
    expect(await portOf('web', 0)).toBe(201);
    expect(await portOf('api', 0)).toBe(202);
    expect(await portOf('web', 0)).toBe(201);
    expect(await portOf('web', 9000)).toBe(9000);
    expect(await portOf('web', 0)).toBe(9000);
    expect(await portOf('db', 0)).toBe(201);
  });

  it('gives port 0 another port once a second service has registered the one it has', async () => {
    const it = await setting();
    const portOf = async (name: string, port: number) =>
      (await it.registry.ask('register', { input: input(name, { port }) })).stored.spec.port;
    expect(await portOf('web', 0)).toBe(200);
    expect(await portOf('api', 200)).toBe(200);
    expect(await portOf('web', 0)).toBe(201);
    expect(await portOf('web', 0)).toBe(201);
    expect(await portOf('db', 201)).toBe(201);
    // The second of two keeps the port that the first has left.
    expect(await Promise.all([portOf('db', 0), portOf('api', 0)])).toEqual([202, 200]);
    expect(await portOf('web', 0)).toBe(201);
  });

  it('gives an agent its own free port, or the free port it asks for', async () => {
    const it = await setting();
    const portOf = async (name: string, port: number) =>
      (await it.registry.ask('register', { input: agentInput(name, { port }) })).stored.spec.port;
    expect(await portOf('a', 0)).toBe(300);
    expect(await portOf('b', 490)).toBe(490);
    await expect(portOf('c', 490)).rejects.toMatchObject({
      code: 'port_in_use',
      message: 'port 490 is taken: b has registered it',
    });
    expect(await portOf('b', 490)).toBe(490);
    expect(await portOf('b', 0)).toBe(490);
  });

  it('reports a port conflict once per claim, after the registration', async () => {
    const it = await setting();
    const register = (name: string, port: number) =>
      it.registry.ask('register', { input: input(name, { port }) });
    await register('web', 8000);
    await register('api', 8000);
    await register('api', 8000);
    await register('web', 8000);
    expect(it.events.map(({ type }) => type)).toEqual([
      'service.registered',
      'service.registered',
      'port.conflict',
      'service.registered',
      'service.registered',
    ]);
    await register('api', 8001);
    await register('api', 8000);
    const conflict = { port: 8000, claimedBy: 'api', holder: 'web' };
    expect(dataOf(it, 'port.conflict')).toEqual([conflict, conflict]);
    expect(it.events.filter(({ type }) => type === 'port.conflict').map(({ name }) => name)).toEqual([
      'api',
      'api',
    ]);
  });

  it('commits 500 at once in a few transactions', async () => {
    const it = await setting();
    const transactions = async (): Promise<number> => {
      const env = open({ path: it.path, noSubdir: true, readOnly: true });
      const { lastTxnId } = env.getStats() as { lastTxnId: number };
      await env.close();
      return lastTxnId;
    };
    const before = await transactions();
    const names = Array.from({ length: 500 }, (_, n) => `s${n}`);
    await Promise.all(
      names.map((name, n) => it.registry.ask('register', { input: input(name, { port: 10_000 + n }) })),
    );
    expect((await transactions()) - before).toBeLessThanOrEqual(6);
    const { members } = await it.registry.ask('members', { group: null });
    expect(members.map(({ name }) => name).sort()).toEqual(names.toSorted());
  });

  it('returns a leased port when the disk is full, and keeps the old record', async () => {
    const path = join(tempDir(), 'store.mdb');
    let full = false;
    const config = (store: Store): RegistryConfig['store'] => ({
      loss: () => store.loss(),
      // A test cannot fill a disk from within; store.test.ts has a full one.
      table: (name) => {
        const real = store.table(name);
        const put: StoreTable<never>['put'] = (key, value) =>
          full ? Promise.reject(fail('storage_full', 'no room')) : real.put(key, value);
        return { ...real, put };
      },
    });
    const it = await setting({ path, store: config });
    await it.registry.ask('register', { input: agentInput('old', { port: 494 }) });
    full = true;
    const refused = [input('web', { port: 0 }), agentInput('bot'), agentInput('old', { port: 495 })];
    for (const one of refused) {
      await expect(it.registry.ask('register', { input: one })).rejects.toMatchObject({
        code: 'storage_full',
      });
    }
    full = false;
    expect(dataOf(it, 'service.registered')).toHaveLength(1);
    const portOf = async (one: ServiceInput) =>
      (await it.registry.ask('register', { input: one })).stored.spec.port;
    expect(await portOf(input('other', { port: 0 }))).toBe(200);
    expect(await portOf(agentInput('new'))).toBe(300);
    expect(await portOf(agentInput('newer', { port: 495 }))).toBe(495);
    await expect(portOf(agentInput('third', { port: 494 }))).rejects.toMatchObject({ code: 'port_in_use' });
  });
});

describe('removing', () => {
  it('stops the service, then deletes its record, port and view, and reports it', async () => {
    const it = await setting();
    await it.registry.ask('register', { input: input('web', { port: 0 }) });
    await it.store.table('ends').put('web', {
      run: 'r',
      status: 'stopped',
      exitCode: 0,
      signal: null,
      exitUnknown: false,
      at: 1,
    });
    it.services.retire = async () => {
      expect(await onDisk(it.path, 'web')).toBeDefined();
      return null;
    };
    expect(await it.registry.ask('remove', { name: 'web', agent: false, graceMs: 7 })).toEqual({
      port: 200,
    });
    expect(it.received.at(-1)).toEqual({ name: 'web', kind: 'retire', message: { graceMs: 7 } });
    expect(await onDisk(it.path, 'web')).toBeUndefined();
    expect(it.store.table('ends').get('web')).toBeUndefined();
    expect(it.views.of('removed')).toEqual([{ name: 'web' }]);
    expect(it.events.at(-1)).toMatchObject({ type: 'service.removed', name: 'web', data: '{"name":"web"}' });
    const next = await it.registry.ask('register', { input: input('api', { port: 0 }) });
    expect(next).toMatchObject({ created: true, stored: { spec: { port: 200 } } });
  });

  it('an agent does not remove a plain service, but an agent can be removed as a service', async () => {
    const it = await setting();
    await it.registry.ask('register', { input: input('web') });
    await it.registry.ask('register', { input: agentInput('bot') });
    const remove = (name: string, agent: boolean) =>
      it.registry.ask('remove', { name, agent, graceMs: null });
    await expect(remove('web', true)).rejects.toMatchObject({ code: 'unknown_agent' });
    await expect(remove('nobody', false)).rejects.toMatchObject({ code: 'unknown_service' });
    expect(it.received.filter(({ kind }) => kind === 'retire')).toEqual([]);
    expect(await remove('bot', true)).toEqual({ port: 300 });
    await it.registry.ask('register', { input: agentInput('bot') });
    expect(await remove('bot', false)).toEqual({ port: 300 });
  });

  it('blocks other changes under the same name meanwhile, and no others', async () => {
    const it = await setting();
    await it.registry.ask('register', { input: input('web') });
    let retired = (_: null): void => {};
    it.services.retire = () => new Promise((resolve) => (retired = resolve));
    const removed = it.registry.ask('remove', { name: 'web', agent: false, graceMs: null });
    await expect(it.registry.ask('register', { input: input('web') })).rejects.toMatchObject({
      code: 'daemon_busy',
    });
    await expect(
      it.registry.ask('remove', { name: 'web', agent: false, graceMs: null }),
    ).rejects.toMatchObject({
      code: 'daemon_busy',
    });
    await it.registry.ask('register', { input: input('api') });
    retired(null);
    await removed;
    expect(await it.registry.ask('register', { input: input('web') })).toMatchObject({ created: true });
  });

  it.each([true, false])(
    'decides whether a service is registered, once it has ended; fails: %s',
    async (fails) => {
      const it = await setting();
      const ask = () => it.registry.ask('isRegistered', { name: 'web' });
      expect(await ask()).toEqual({ isRegistered: false });
      await it.registry.ask('register', { input: input('web') });
      expect(await ask()).toEqual({ isRegistered: true });
      const retired = deferred<null>();
      it.services.retire = () => retired.promise;
      const removed = it.registry.ask('remove', { name: 'web', agent: false, graceMs: null });
      const asked = ask();
      if (fails) retired.reject(fail('daemon_busy', 'the process host is away'));
      else retired.resolve(null);
      expect((await Promise.allSettled([removed]))[0].status).toBe(fails ? 'rejected' : 'fulfilled');
      expect(await asked).toEqual({ isRegistered: fails });
    },
  );

  it('that fails leaves the service', async () => {
    const it = await setting();
    await it.registry.ask('register', { input: input('web') });
    it.services.retire = async () => {
      throw fail('daemon_busy', 'the process host is away');
    };
    await expect(
      it.registry.ask('remove', { name: 'web', agent: false, graceMs: null }),
    ).rejects.toMatchObject({
      code: 'daemon_busy',
    });
    expect(await onDisk(it.path, 'web')).toBeDefined();
    expect(await it.registry.ask('register', { input: input('web') })).toMatchObject({ created: false });
  });
});

describe('booting', () => {
  const row = (service: string): LedgerRun => ({
    service,
    run: `run-${service}`,
    pid: 1,
    startTicks: 1,
    startedAt: 1,
    port: 1,
    pty: false,
    memo: { revision: 1, port: 1, ready: null, passed: true, deadline: null, restarts: 0 },
    stopping: false,
    end: null,
  });

  const runsOf = (...services: string[]) => ({ runs: () => ({ runs: services.map(row) }) });

  /** A setting in a store that an earlier daemon left. */
  async function again(inputs: ServiceInput[]): Promise<Setting> {
    const path = join(tempDir(), 'store.mdb');
    const before = await setting({ path });
    for (const one of inputs) await before.registry.ask('register', { input: one });
    await before.world.node.stop();
    await before.store.close();
    return setting({ path });
  }

  it('sends the views everything, has services adopt their runs, and restores ports and hashes', async () => {
    const path = join(tempDir(), 'store.mdb');
    const before = await setting({ path });
    for (let n = 0; n < 100; n += 1)
      await before.registry.ask('register', { input: input(`s${n}`, { port: 0 }) });
    await before.world.node.stop();
    const it = await setting({ path });
    it.host.answer(runsOf(...Array.from({ length: 100 }, (_, n) => `s${n}`)));
    let now = 0;
    let most = 0;
    it.services.adopt = async () => {
      now += 1;
      most = Math.max(most, now);
      await settle();
      now -= 1;
      return null;
    };
    await it.registry.ask('boot', { autostart: true });
    const { specs, states } = shown(it);
    expect(states).toEqual([]);
    const earlier = before.views.of('specs').flatMap(({ rows }) => rows);
    expect(specs.toSorted((a, b) => Number(a.port) - Number(b.port))).toEqual(earlier);
    expect(new Set(it.received.map(({ name, kind }) => `${kind} ${name}`)).size).toBe(100);
    expect(most).toBeGreaterThan(1);
    expect(most).toBeLessThan(100);
    expect(it.events).toEqual([]);
    const next = await it.registry.ask('register', { input: input('new', { port: 299 }) });
    expect(next.stored.spec.port).toBe(299);
    expect(dataOf(it, 'port.conflict')).toEqual([{ port: 299, claimedBy: 'new', holder: 's99' }]);
  });

  it('starts autostart services in dependsOn order without waiting, also after a failure', async () => {
    const auto = (name: string, dependsOn: string[] = []) => input(name, { autostart: true, dependsOn });
    const it = await again([
      auto('web', ['api']),
      auto('api', ['db']),
      auto('db', ['manual']),
      input('manual'),
      auto('bad'),
      auto('after-bad', ['bad', 'db']),
      auto('alone'),
    ]);
    const ready = new Map<string, () => void>();
    it.services.start = (name) =>
      name === 'bad'
        ? Promise.reject(fail('start_failed', 'bad'))
        : new Promise((resolve) => ready.set(name, () => resolve({ name, status: 'running', pid: 1 })));
    const starts = () => it.received.filter(({ kind }) => kind === 'start').map(({ name }) => name);
    await it.registry.ask('boot', { autostart: true });
    await settle();
    expect(starts().toSorted()).toEqual(['alone', 'bad', 'db']);
    expect(it.received.find(({ kind }) => kind === 'start')?.message).toEqual({
      timeoutMs: null,
      autostart: true,
      wait: true,
      join: true,
      ifChanged: true,
      askedAt: expect.any(Number),
    });
    for (const next of ['api', 'web']) {
      ready.get(next === 'api' ? 'db' : 'api')?.();
      while (!starts().includes(next)) await settle();
    }
    ready.get('web')?.();
    ready.get('alone')?.();
    for (let turn = 0; turn < 20; turn += 1) await settle();
    expect(starts()).not.toContain('after-bad');
    expect(starts()).not.toContain('manual');
  });

  it.each([
    ['failed', 'crashed', []],
    ['completed', 'completed', ['shop--web']],
  ] as const)(
    'starts services of a stack only after its hook create, which has %s',
    async (_, status, started) => {
      const path = join(tempDir(), 'store.mdb');
      const before = await setting({ path });
      const inShop = { stack: 'shop', port: null };
      for (const one of [
        input('shop--hook-create', { kind: 'task', ...inShop }),
        input('shop--web', { autostart: true, ...inShop }),
      ])
        await before.registry.ask('register', { input: one });
      const end = { run: 'r1', status, exitCode: 0, signal: null, exitUnknown: false, at: 1 };
      await before.store.table('ends').put('shop--hook-create', end);
      await before.world.node.stop();
      await before.store.close();
      const it = await setting({ path });
      await it.registry.ask('boot', { autostart: true });
      for (let turn = 0; turn < 20; turn += 1) await settle();
      expect(it.received.filter(({ kind }) => kind === 'start').map(({ name }) => name)).toEqual(started);
    },
  );

  it('leaves out the members of a call of a group that is continued', async () => {
    const path = join(tempDir(), 'store.mdb');
    const before = await setting({ path });
    const groups = { old: 'old', moved: 'other', joined: 'site', member: 'site', past: 'past', alone: null };
    for (const [name, group] of Object.entries(groups))
      await before.registry.ask('register', { input: input(name, { autostart: true, group }) });
    const call = { step: 'start', graceMs: null, timeoutMs: null, at: 0 } as const;
    const calls = before.store.table('restarts');
    await calls.put('site', { ...call, members: ['moved', 'member'] });
    // Of an earlier version, and from before the boot.
    await calls.put('old', call);
    await calls.put('past', { ...call, at: -1, members: ['past'] });
    await before.world.node.stop();
    await before.store.close();
    const it = await setting({ path });
    await it.registry.ask('boot', { autostart: true });
    for (let turn = 0; turn < 20; turn += 1) await settle();
    const started = it.received.filter(({ kind }) => kind === 'start').map(({ name }) => name);
    expect(started.toSorted()).toEqual(['alone', 'joined', 'past']);
  });

  it('for a returning process host starts nothing', async () => {
    const it = await again([input('web', { autostart: true })]);
    await it.registry.ask('boot', { autostart: false });
    for (let turn = 0; turn < 20; turn += 1) await settle();
    expect(it.received.map(({ kind }) => kind)).toEqual(['adopt']);
  });

  it('continues when a service cannot adopt its run', async () => {
    const it = await again([input('a'), input('b')]);
    it.host.answer(runsOf('a', 'b'));
    it.services.adopt = async (name) => {
      if (name === 'a') throw fail('internal', 'broken');
      return null;
    };
    expect(await it.registry.ask('boot', { autostart: true })).toBeNull();
  });

  it('shows a service without a run from the store, without waking its actor', async () => {
    const it = await again(['web', 'db', 'owed', 'fresh'].map((name) => input(name)));
    const ended = { run: 'r', at: 1, exitCode: 3, signal: null, exitUnknown: false };
    const crashed: LastEnd = { ...ended, status: 'crashed' };
    await it.store.table('ends').put('db', crashed);
    await it.store.table('ends').put('owed', { ...crashed, restart: { attempt: 1, at: 2 } });
    it.host.answer(runsOf('web'));
    await it.registry.ask('boot', { autostart: true });
    expect(it.received.map(({ kind, name }) => `${kind} ${name}`)).toEqual(['adopt owed', 'adopt web']);
    expect(shown(it).states).toEqual([
      { name: 'db', status: 'crashed', restarts: 0, process: null, end: crashed, isDoorOpen: false },
      { name: 'fresh', status: 'stopped', restarts: 0, process: null, end: null, isDoorOpen: false },
    ]);
  });

  it('does not query a host that is not up yet, and notifies services with a pending restart', async () => {
    const it = await again(['web', 'owed'].map((name) => input(name)));
    const crashed = {
      run: 'r',
      at: 1,
      exitCode: 3,
      signal: null,
      exitUnknown: false,
      status: 'crashed',
    } as const;
    await it.store.table('ends').put('owed', { ...crashed, restart: { attempt: 1, at: 2 } });
    await it.registry.ask('boot', { autostart: true, nothingRuns: true });
    expect(it.host.of('runs')).toEqual([]);
    expect(shown(it).specs.map(({ name }) => name)).toEqual(['owed', 'web']);
    expect(shown(it).states).toEqual([
      { name: 'web', status: 'stopped', restarts: 0, process: null, end: null, isDoorOpen: false },
    ]);
    expect(it.received.map(({ kind, name }) => `${kind} ${name}`)).toEqual(['adopt owed']);
  });

  it('lets every service look for its run when the host does not answer', async () => {
    const it = await again([input('a'), input('b')]);
    it.host.answer({
      runs: () => {
        throw fail('internal', 'no');
      },
    });
    await it.registry.ask('boot', { autostart: true });
    expect(it.received.map(({ kind, name }) => `${kind} ${name}`)).toEqual(['adopt a', 'adopt b']);
  });

  it('ends runs of removed services and of commands, without waiting for them, and leaves others', async () => {
    const it = await again([input('web')]);
    const command = `run-${'0'.repeat(16)}`;
    for (const [type, name] of [
      ['service.removed', 'gone'],
      ['service.removed', 'older'],
      ['service.registered', 'older'],
    ] as const)
      it.events.push({ type, name, run: null, data: '{}' });
    const stopped = deferred<ReplyOf<HostProtocol, 'stop'>>();
    it.host.answer({
      runs: () => ({ runs: [row('web'), row('lost'), row('older'), row('gone'), row(command)] }),
      stop: () => stopped.promise,
    });
    await it.registry.ask('boot', { autostart: true });
    await it.host.next('stop');
    const exit = { exitCode: 0, signal: null, exitUnknown: false, escalated: false };
    stopped.resolve({ ...exit, reaped: 1, left: [], portFree: true, ms: 1 });
    await eventually(() => it.host.of('forget').length === 2);
    const ended = [{ service: 'gone' }, { service: command }];
    expect(it.host.of('stop')).toMatchObject(ended);
    expect(it.host.of('forget')).toEqual(ended);
    expect(it.leftOut).toEqual(['lost', 'older']);
  });

  it('refuses every change once it is closed', async () => {
    const it = await setting();
    await it.registry.ask('register', { input: input('web') });
    await it.registry.ask('close', {});
    const change = [
      it.registry.ask('register', { input: input('api') }),
      it.registry.ask('remove', { name: 'web', agent: false, graceMs: null }),
    ];
    for (const one of change) await expect(one).rejects.toMatchObject({ code: 'daemon_busy' });
    expect((await it.registry.ask('members', { group: null })).members).toHaveLength(1);
  });
});

describe('after kill -9', () => {
  let child = '';
  beforeAll(async () => {
    child = await bundle('test/actors/registry/registry_child.ts');
  });

  it('every acknowledged registration exists, with its port', async () => {
    const path = join(tempDir(), 'store.mdb');
    const program = run(process.execPath, [child, path]);
    await program.line(() => program.lines.length > 700);
    program.child.kill('SIGKILL');
    await program.exited;
    const store = openStore(path);
    const services = store.table('services');
    expect(services.all()).toHaveLength(500);
    for (const line of program.lines) {
      const [name = '', port, round] = line.split(' ');
      const stored = services.get(name);
      expect(stored?.spec.port).toBe(Number(port));
      expect(stored?.revision).toBeGreaterThan(Number(round));
    }
    await store.close();
  });
});

describe('the registry with random registrations', () => {
  const NAMES = ['a', 'b', 'c', 'd'];
  const change = fc.record({
    name: fc.constantFrom(...NAMES),
    remove: fc.constantFrom(true, false, false, false),
    port: fc.constantFrom(0, 9001, 9002),
    cmd: fc.constantFrom('x', 'y'),
    env: fc.constantFrom<ServiceInput['env']>(null, [], [['K', 'v']]),
    dependsOn: fc.subarray(NAMES, { maxLength: 2 }),
  });

  it('has the revisions, ports, conflicts and cycles of a plain model', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(change, { maxLength: 25 }), async (changes) => {
        const it = await setting();
        const model = new Map<
          string,
          { revision: number; spec: object; port: number; env: unknown; deps: string[] }
        >();
        let conflicts = 0;
        const reaches = (from: string, to: string, deps: string[], own: string): boolean => {
          const of = (name: string) => (name === own ? deps : (model.get(name)?.deps ?? []));
          let reach = new Set([from]);
          for (let step = 0; step < 4; step += 1) reach = new Set([...reach, ...[...reach].flatMap(of)]);
          return reach.has(to);
        };
        for (const { name, remove, port, cmd, env, dependsOn } of changes) {
          const before = model.get(name);
          if (remove) {
            const removed = it.registry.ask('remove', { name, agent: false, graceMs: null });
            if (before) expect(await removed).toEqual({ port: before.port });
            else await expect(removed).rejects.toMatchObject({ code: 'unknown_service' });
            model.delete(name);
            continue;
          }
          const registered = it.registry.ask('register', {
            input: input(name, { port, cmd, env, dependsOn }),
          });
          if (dependsOn.some((next) => reaches(next, name, dependsOn, name))) {
            await expect(registered).rejects.toMatchObject({ code: 'invalid_spec' });
            continue;
          }
          const used = new Set([...model].filter(([other]) => other !== name).map(([, one]) => one.port));
          const kept = before && !used.has(before.port) ? before.port : 200;
          let expected = port || kept;
          while (port === 0 && used.has(expected)) expected += 1;
          const spec = { port: expected, cmd, env: env ?? before?.env ?? [], deps: dependsOn };
          const same = before && JSON.stringify(spec) === JSON.stringify(before.spec);
          const revision = before ? before.revision + (same ? 0 : 1) : 1;
          if (used.has(expected) && expected !== before?.port) conflicts += 1;
          model.set(name, { ...spec, spec, revision });
          const { stored, created } = await registered;
          expect(created).toBe(!before);
          expect(stored.revision).toBe(revision);
          expect(stored.spec).toMatchObject({ port: expected, cmd, env: spec.env, dependsOn });
        }
        expect(dataOf(it, 'port.conflict')).toHaveLength(conflicts);
        const rows = it.store.table('services').all();
        expect(rows.map(([name, { revision }]) => [name, revision])).toEqual(
          [...model].map(([name, { revision }]) => [name, revision]).toSorted(),
        );
      }),
      { numRuns: 25 },
    );
  });
});
