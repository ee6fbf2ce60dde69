import { expect, it } from 'vitest';
import { Pace } from '../../../src/adapters/kube/pace.ts';
import { virtualClock } from '../../kit/actors.ts';

it('processing a large response pauses after each slice for as long as it took, until it is cancelled', async () => {
  const clock = virtualClock();
  const giveUp = new AbortController();
  let ms = 0;
  const pace = new Pace(
    {
      now: () => clock.now(),
      monotonic: () => ms,
      running: () => ms,
      after: (delay, run) => clock.after(delay, run),
      every: (interval, run) => clock.every(interval, run),
    },
    giveUp.signal,
  );
  const work = (): number => {
    ms += 4;
    return ms;
  };
  expect(await pace.run(work)).toBe(4);
  let isOver = false;
  const second = pace.run(work).then((value) => {
    isOver = true;
    return value;
  });
  await clock.advance(7);
  expect(isOver).toBe(false);
  await clock.advance(1);
  expect(await second).toBe(8);
  await pace.run(work);
  const third = pace.run(work);
  giveUp.abort();
  expect(await third).toBe(16);
  await expect(pace.run(() => expect.fail('as it is'))).rejects.toThrow('as it is');
});
