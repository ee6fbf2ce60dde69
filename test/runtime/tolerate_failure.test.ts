import { expect, it } from 'vitest';
import { Failure, tolerateFailure } from '../../src/runtime/actor.ts';

it('gives the value of work that succeeds', async () => {
  expect(await tolerateFailure(Promise.resolve(1), () => 2)).toBe(1);
});

it('gives something else instead of a failure', async () => {
  const failing = Promise.reject(new Failure('busy', 'not now'));
  expect(await tolerateFailure(failing, ({ code }) => code)).toBe('busy');
});

it('lets a defect through', async () => {
  const broken = Promise.reject(new TypeError('x is not a function'));
  await expect(tolerateFailure(broken, () => 2)).rejects.toThrow(TypeError);
});
