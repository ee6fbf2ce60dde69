// Which stack a command is for: docs/reference.md "Stacks".
import { beforeEach, expect, it, vi } from 'vitest';
import { chosenStack, UNREGISTERED } from '../../../src/cli/kit/stack_scope.ts';
import { BerthError } from '../../../src/client/errors.ts';
import type { Stack } from '../../../src/client/records.ts';
import { stackNames } from '../../../src/protocol/stacks.ts';
import { must } from '../../kit/must.ts';

beforeEach(() => {
  vi.stubEnv('BERTH_STACK', '');
  // In no project.
  vi.spyOn(process, 'cwd').mockReturnValue('/nowhere');
});

/** A client that knows stacks with these names. */
function clientOf(...names: string[]) {
  const stacks = names.map(
    (name): Stack => ({
      name,
      project: name.split('--')[0] ?? name,
      slug: name.split('--')[1] ?? null,
      branch: null,
      path: `/nowhere/${name}`,
      gone: true,
      named: false,
      services: 1,
      running: 0,
      rssMB: 0,
    }),
  );
  return { stacks: async () => stacks };
}

it('a stack is selected by its name, by project and slug, or by a unique slug', async () => {
  const client = clientOf('shop', 'shop--login', 'blog--login', 'blog--draft');
  expect(await chosenStack(client, { stack: 'shop' })).toBe('shop');
  expect(await chosenStack(client, { stack: 'draft' })).toBe('blog--draft');
  expect(await chosenStack(client, { project: 'shop/login' })).toBe('shop--login');
  await expect(chosenStack(client, { stack: 'login' })).rejects.toThrow(
    'login may be shop--login or blog--login',
  );
});

it('a stack whose slug ends in a hash is selected without the hash, before those of other projects', async () => {
  const client = clientOf('shop--login', 'blog--login-4288');
  await expect(chosenStack(client, { stack: 'login' })).rejects.toThrow(
    'login may be shop--login or blog--login-4288',
  );
  const inBlog = { folder: '/nowhere/blog--login-4288', projectName: async () => 'blog' };
  expect(await chosenStack(client, { stack: 'login', place: inBlog })).toBe('blog--login-4288');
  expect(await chosenStack(client, { project: 'shop/login', place: inBlog })).toBe('shop--login');
  expect(await chosenStack(client, { project: 'blog/login' })).toBe('blog--login-4288');
});

const inProject = (project: string, folder = `/nowhere/${project}`) => ({
  place: { folder, projectName: async () => project },
});

it('a slug of the current project comes before the stacks of others, for every command and for up', async () => {
  const client = clientOf('api', 'shopx', 'shopx--api', 'blog', 'blog--login', 'blog--api-14c2');
  for (const [project, given, name] of [
    ['shopx', 'api', 'shopx--api'],
    ['blog', 'api', 'blog--api-14c2'],
    ['shopx', 'shopx', 'shopx'],
    ['shopx', 'shopx--api', 'shopx--api'],
    ['shopx', 'blog--login', 'blog--login'],
    ['api', 'api', 'api'],
  ] as const)
    for (const rule of [{}, { isOwn: true }, { mayBeNew: true }, { ends: true }]) {
      const choice = { ...inProject(project), ...rule };
      expect(await chosenStack(client, { ...choice, stack: given })).toBe(name);
      vi.stubEnv('BERTH_STACK', given);
      expect(await chosenStack(client, choice)).toBe(name);
      vi.stubEnv('BERTH_STACK', '');
    }
});

it('a slug that several stacks of the current project have is refused with their names', async () => {
  const [one] = await clientOf('shop--login').stacks();
  const hashed = ['/a', '/b'].map((path) => ({
    ...must(one),
    path,
    name: stackNames({ project: 'shop', path, worktree: 'login' })[2] ?? '',
  }));
  const client = { stacks: async () => hashed };
  for (const rule of [{}, { isOwn: true }, { mayBeNew: true }, { ends: true }])
    await expect(chosenStack(client, { ...inProject('shop'), ...rule, stack: 'login' })).rejects.toThrow(
      `login may be ${hashed.map(({ name }) => name).join(' or ')}`,
    );
});

it('of a slug that the current project does not have, up makes a stack, and others find that of another', async () => {
  const live = (await clientOf('api', 'blog--login').stacks()).map((one) => ({ ...one, gone: false }));
  const client = { stacks: async () => live };
  const here = inProject('shopx');
  for (const [given, name] of [
    ['api', 'api'],
    ['login', 'blog--login'],
  ] as const) {
    expect(await chosenStack(client, { ...here, stack: given, isOwn: true })).toBe(`shopx--${given}`);
    expect(await chosenStack(client, { ...here, stack: given })).toBe(name);
    expect(await chosenStack(client, { ...here, stack: given, mayBeNew: true })).toBe(name);
    // It would end what `up` with the same words has not brought up.
    await expect(chosenStack(client, { ...here, stack: given, ends: true })).rejects.toMatchObject({
      message: `${given} may be ${name} of another project or shopx--${given}, which does not exist`,
      hint: expect.stringContaining(`-p ${name.replace('--', '/')}`),
    });
    expect(await chosenStack(client, { ...here, project: name.replace('--', '/'), ends: true })).toBe(name);
    expect(await chosenStack(client, { stack: given, ends: true })).toBe(name);
    expect(await chosenStack(clientOf('api', 'blog--login'), { ...here, stack: given, ends: true })).toBe(
      name,
    );
  }
  expect(await chosenStack(client, { ...here, stack: 'new', mayBeNew: true })).toBe('shopx--new');
  expect(await chosenStack(client, { ...here, project: 'blog/a/b', isOwn: true })).toBe('blog--a-b');
});

it('the project of two folders is the stack of the current one, or both are named', async () => {
  const [one, two] = await clientOf('papi', 'papi-9304').stacks();
  const stacks = [
    { ...must(one), path: '/x/papi', gone: false },
    {
      ...must(two),
      name: stackNames({ project: 'papi', path: '/y/papi', worktree: null })[1] ?? '',
      path: '/y/papi',
    },
  ];
  const own = stacks[1]?.name;
  const both = { stacks: async () => stacks };
  const first = inProject('papi', '/x/papi');
  const second = inProject('papi', '/y/papi');
  const other = { stacks: async () => stacks.slice(0, 1) };
  for (const rule of [{}, { isOwn: true }, { mayBeNew: true }, { ends: true }]) {
    expect(await chosenStack(both, { ...first, ...rule, project: 'papi' })).toBe('papi');
    expect(await chosenStack(both, { ...first, ...rule, stack: 'papi' })).toBe('papi');
    expect(await chosenStack(both, { ...second, ...rule, project: 'papi' })).toBe(own);
    await expect(chosenStack(both, { ...second, ...rule, stack: 'papi' })).rejects.toThrow(
      `papi may be papi or ${own}`,
    );
    await expect(chosenStack(other, { ...second, ...rule, stack: 'papi' })).rejects.toThrow(
      'papi is the stack of the folder /x/papi, and that of /y/papi is not up',
    );
  }
  // The stack of this folder is not registered yet.
  await expect(chosenStack(other, { ...second, project: 'papi', ends: true })).rejects.toThrow('is not up');
  for (const rule of [{ isOwn: true }, { mayBeNew: true }])
    expect(await chosenStack(other, { ...second, ...rule, project: 'papi' })).toBe(UNREGISTERED);
});

it('a project file that cannot be read hides no stack of its folder behind one of another project', async () => {
  const client = clientOf('api', 'shopx--api');
  const broken = (folder: string) => ({
    place: { folder, projectName: () => Promise.reject(new Error('no YAML')) },
  });
  expect(await chosenStack(client, { ...broken('/nowhere/shopx--api'), stack: 'api' })).toBe('shopx--api');
  await expect(chosenStack(client, { ...broken('/nowhere'), stack: 'api' })).rejects.toThrow(
    'the project file in /nowhere cannot be read: no YAML',
  );
  expect(await chosenStack(client, { ...broken('/nowhere'), stack: 'shopx--api' })).toBe('shopx--api');
});

it('a stack that does not exist is an error, unless it may be new', async () => {
  const client = clientOf('shop');
  await expect(chosenStack(client, { stack: 'shpo' })).rejects.toMatchObject({
    message: 'there is no stack shpo',
    hint: expect.stringContaining('berth stacks'),
  });
  await expect(chosenStack(client, { project: 'shop/none' })).rejects.toThrow('there is no stack shop--none');
  expect(await chosenStack(client, { stack: 'new', mayBeNew: true })).toBe('new');
});

it('a stack is used as named with a daemon that lists no stacks', async () => {
  const client = {
    stacks: () => Promise.reject(new BerthError('forbidden_token', 'this token does not reach that far')),
  };
  expect(await chosenStack(client, { stack: 'shop' })).toBe('shop');
});
