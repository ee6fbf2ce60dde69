// The names of stacks, and the removal of a stack beside registrations: the real registry and store, with
// services that the test scripts. docs/reference.md "Stacks".
import { describe, expect, it } from 'vitest';
import { stacksActor } from '../../../src/actors/stacks/stacks.ts';
import type { StoreTable, StoreTables } from '../../../src/adapters/storage/store_tables.ts';
import type { LastEnd } from '../../../src/protocol/service.ts';
import { deferred } from '../../../src/runtime/deferred.ts';
import { tempDir } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import { type Setting, setting } from '../../kit/registry.ts';
import { input } from '../../kit/service_inputs.ts';

const inShop = (service: string) => ({ input: input(`shop--${service}`, { stack: 'shop' }) });
const namesIn = async ({ registry }: Setting): Promise<string[]> => {
  const { members } = await registry.ask('members', { group: null, stack: 'shop' });
  return members.map(({ name }) => name);
};

it('refuses registrations in a stack while it is being removed, and accepts them afterwards', async () => {
  const here = await setting();
  const stacks = await here.world.start('stacks', stacksActor, { store: here.store });
  await here.registry.ask('register', inShop('web'));
  const retired = deferred<null>();
  here.services.retire = () => retired.promise;
  const removal = stacks.ask('remove', { name: 'shop', force: false });
  await eventually(() => here.received.some(({ kind }) => kind === 'retire'));
  await expect(here.registry.ask('register', inShop('late'))).rejects.toMatchObject({ code: 'daemon_busy' });
  await here.registry.ask('register', { input: input('other') });
  retired.resolve(null);
  expect(await removal).toEqual({ services: ['shop--web'] });
  expect(await namesIn(here)).toEqual([]);
  await here.registry.ask('register', inShop('late'));
  expect(await namesIn(here)).toEqual(['shop--late']);
});

it('removes a service whose registration was under way when the removal began', async () => {
  const written = deferred<void>();
  let isWriting = false;
  const here = await setting({
    store: (store) => ({
      loss: () => store.loss(),
      table<N extends keyof StoreTables>(name: N): StoreTable<StoreTables[N]> {
        const table = store.table(name);
        const put = async (key: string, value: StoreTables[N]): Promise<void> => {
          if (key === 'shop--late') {
            isWriting = true;
            await written.promise;
          }
          await table.put(key, value);
        };
        return { ...table, put };
      },
    }),
  });
  const stacks = await here.world.start('stacks', stacksActor, { store: here.store });
  await here.registry.ask('register', inShop('web'));
  const registered = here.registry.ask('register', inShop('late'));
  await eventually(() => isWriting);
  here.services.retire = async () => {
    written.resolve();
    await registered;
    return null;
  };
  expect(await stacks.ask('remove', { name: 'shop', force: false })).toEqual({
    services: ['shop--web', 'shop--late'],
  });
  expect(await namesIn(here)).toEqual([]);
});

it('checks only the folder of the requested stack', async () => {
  const here = await setting();
  const stacks = await here.world.start('stacks', stacksActor, { store: here.store });
  for (const project of ['blog', 'shop'])
    await stacks.ask('claim', {
      claim: { project, path: `/nowhere/${project}`, worktree: null, branch: null, name: null },
    });
  const named = async (name: string | null) =>
    (await stacks.ask('list', { name })).stacks.map((row) => row.name);
  expect(await named(null)).toEqual(['blog', 'shop']);
  expect(await named('shop')).toEqual(['shop']);
  expect(await named('shop--other')).toEqual([]);
});

it('gives each stack a `${slug}` of its own, unless its name is chosen', async () => {
  const here = await setting();
  const stacks = await here.world.start('stacks', stacksActor, { store: here.store });
  const claim = async (project: string, worktree: string | null, name: string | null = null) => {
    const place = { project, path: `/nowhere/${project}/${worktree}`, worktree, branch: worktree };
    return (await stacks.ask('claim', { claim: { ...place, name } })).stack.name;
  };
  expect(await claim('shop', 'login')).toBe('shop--login');
  // The folder of shop--login is gone, but its database stays until the stack is removed.
  expect(await claim('blog', 'login')).toBe('blog--login-4288');
  expect(await claim('login', null)).toMatch(/^login-[0-9a-f]{4}$/);
  expect(await claim('wiki', null)).toBe('wiki');
  expect(await claim('blog', 'wiki')).toMatch(/^blog--wiki-[0-9a-f]{4}$/);
  expect(await claim('wiki', 'login', 'wiki--login')).toBe('wiki--login');
  expect(await claim('blog', 'login')).toBe('blog--login-4288');
  await stacks.ask('remove', { name: 'blog--login-4288', force: false });
  await stacks.ask('remove', { name: 'wiki--login', force: false });
  await stacks.ask('remove', { name: 'shop--login', force: false });
  expect(await claim('blog', 'login')).toBe('blog--login');
});

it('stays the stack of its folder when it is claimed by its name, on another branch', async () => {
  const here = await setting();
  const stacks = await here.world.start('stacks', stacksActor, { store: here.store });
  const place = { project: 'shop', path: '/nowhere/login', worktree: 'login' };
  const first = await stacks.ask('claim', { claim: { ...place, branch: 'login', name: null } });
  const named = { ...place, worktree: 'next', branch: 'next', name: first.stack.name };
  const { stack } = await stacks.ask('claim', { claim: named });
  expect(stack).toMatchObject({ name: 'shop--login', branch: 'next', isNamed: false });
});

it('gives no stack the name of a group of another one, and no group that of a stack', async () => {
  const here = await setting();
  const stacks = await here.world.start('stacks', stacksActor, { store: here.store });
  const service = (stack: string, group: string) => ({ input: input(`${stack}--web`, { stack, group }) });
  const place = { project: 'shop', path: '/nowhere/login', worktree: 'login', branch: 'login', name: null };
  await here.registry.ask('register', service('shop', 'shop--login'));
  const { stack } = await stacks.ask('claim', { claim: place });
  expect(stack.name).toMatch(/^shop--login-[0-9a-f]{4}$/);
  await here.registry.ask('register', service(stack.name, stack.name));

  for (const [name, group] of [
    ['shop', stack.name],
    ['shop--login', 'shop--login'],
  ] as const)
    await expect(here.registry.ask('register', service(name, group))).rejects.toMatchObject({
      code: 'name_in_use',
      message: `${group} is a stack, and also the name of a group of the stack shop`,
    });
  // By hand, a service may join the group of any stack.
  await here.registry.ask('register', { input: input('mine', { group: stack.name }) });
});

describe('the hooks of a stack', () => {
  const END = { run: 'r1', exitCode: 0, signal: null, exitUnknown: false, at: 1 };
  const COMPLETED = { ...END, status: 'completed' } as const;
  const UNDONE = { ...END, status: 'stopped', undone: true } as const;

  /** A stack with both hooks, and what its services receive. `statuses`: of the hooks that are not `stopped`. */
  async function withHooks(creation: LastEnd, statuses: Record<string, string> = {}) {
    const here = await setting();
    const stacks = await here.world.start('stacks', stacksActor, { store: here.store });
    for (const hook of ['hook-create', 'hook-remove'])
      await here.registry.ask('register', {
        input: input(`shop--${hook}`, { stack: 'shop', kind: 'task', cwd: tempDir() }),
      });
    await here.store.table('ends').put('shop--hook-create', creation);
    here.services.status = (name) => statuses[name] ?? 'stopped';
    const received = () =>
      here.received.flatMap(({ kind, name }) =>
        ['start', 'stop', 'undo'].includes(kind) ? [`${kind} ${name.replace('shop--hook-', '')}`] : [],
      );
    return { here, stacks, received };
  }

  it.each([
    ['has completed', COMPLETED, 'completed', []],
    ['is undone', UNDONE, 'stopped', []],
    ['runs again', UNDONE, 'running', ['stop create']],
  ] as const)('undo create before remove starts, when create %s', async (_, end, status, stops) => {
    const { stacks, received } = await withHooks(end, { 'shop--hook-create': status });
    await stacks.ask('remove', { name: 'shop', force: false });
    expect(received()).toEqual([...stops, 'undo create', 'start remove']);
  });

  it('start create only while remove does not run, and then let both run again', async () => {
    const statuses = { 'shop--hook-remove': 'running' };
    const { here, stacks, received } = await withHooks(UNDONE, statuses);
    const request = { timeoutMs: null, wait: true, ifChanged: true, join: true };
    const create = () => stacks.ask('create', { stack: 'shop', request });
    await expect(create()).rejects.toMatchObject({ code: 'daemon_busy' });
    statuses['shop--hook-remove'] = 'completed';
    await create();
    expect(received()).toEqual(['undo remove', 'start create']);

    statuses['shop--hook-remove'] = 'stopped';
    const removed = deferred<null>();
    here.services.retire = () => removed.promise;
    const removal = stacks.ask('remove', { name: 'shop', force: false });
    await expect(create()).rejects.toMatchObject({ code: 'daemon_busy' });
    removed.resolve(null);
    await removal;
  });
});
