import { expect, it } from 'vitest';
import { deferred } from '../../src/runtime/deferred.ts';
import { Semaphore } from '../../src/runtime/semaphore.ts';
import { settle } from '../kit/actors.ts';

it('as many as its count run at once, in the order of the calls, also after a failure', async () => {
  const semaphore = new Semaphore(2);
  const began: number[] = [];
  const works = Array.from({ length: 5 }, () => deferred<void>());
  const runs = works.map(({ promise }, index) =>
    semaphore.run(() => {
      began.push(index);
      return promise;
    }),
  );
  await settle();
  expect(began).toEqual([0, 1]);
  works[1]?.reject(new Error('as asked'));
  await expect(runs[1]).rejects.toThrow('as asked');
  await settle();
  expect(began).toEqual([0, 1, 2]);
  for (const { resolve } of works) resolve();
  await Promise.allSettled(runs);
  expect(began).toEqual([0, 1, 2, 3, 4]);
  const again = [deferred<void>(), deferred<void>()];
  const more = again.map(({ promise }, index) =>
    semaphore.run(() => {
      began.push(5 + index);
      return promise;
    }),
  );
  await settle();
  expect(began.slice(5)).toEqual([5, 6]);
  for (const { resolve } of again) resolve();
  await Promise.all(more);
});
