import { expect, it } from 'vitest';
import { Failure, tolerateFailure } from '../../src/runtime/actor.ts';

it('work that succeeds gives its value', async () => {
  expect(await tolerateFailure(Promise.resolve(1), () => 2)).toBe(1);
});

it('a Failure gives the other value', async () => {
  const failing = Promise.reject(new Failure('busy', 'not now'));
  expect(await tolerateFailure(failing, ({ code }) => code)).toBe('busy');
});

it('a defect is thrown', async () => {
  const broken = Promise.reject(new TypeError('x is not a function'));
  await expect(tolerateFailure(broken, () => 2)).rejects.toThrow(TypeError);
});
