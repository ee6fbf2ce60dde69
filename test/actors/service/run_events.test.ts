// What the journal says of a wake.
import { expect, it } from 'vitest';
import { wokeEvent } from '../../../src/actors/service/run_events.ts';
import { virtualClock } from '../../kit/actors.ts';

it('the duration of a wake is monotonic, unless an earlier daemon has begun it', async () => {
  const clock = virtualClock();
  const wokeAt = clock.now();
  const wokeSince = clock.monotonic();
  await clock.advance(250);
  const moved = { ...clock, now: () => clock.now() + 3_600_000 };
  const dataOf = (run: { id: string; wokeSince?: number }) =>
    JSON.parse(wokeEvent('web', run, wokeAt, moved).data);
  expect(dataOf({ id: 'r1', wokeSince })).toEqual({ name: 'web', ms: 250 });
  expect(dataOf({ id: 'r1' })).toEqual({ name: 'web', ms: 3_600_250 });
});
