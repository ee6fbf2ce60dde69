// Which stack a command is for: docs/reference.md "Stacks".
import { beforeEach, expect, it, vi } from 'vitest';
import { chosenStack } from '../../../src/cli/kit/stack_scope.ts';
import { BerthError } from '../../../src/client/errors.ts';
import type { Stack } from '../../../src/client/records.ts';

beforeEach(() => vi.stubEnv('BERTH_STACK', ''));

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
