import { expect, it } from 'vitest';
import { ChangeAllowances } from '../../../src/actors/cloud/change_allowances.ts';
import type { NewCloudEvent } from '../../../src/protocol/cloud_events.ts';
import { CLOUD_EVENTS } from '../../../src/settings/cloud_limits.ts';
import { virtualClock } from '../../kit/actors.ts';

it('a cluster that changes constantly leaves room for the events of others', async () => {
  const clock = virtualClock();
  const allowances = new ChangeAllowances(clock);
  const change = (clusterId: string): NewCloudEvent[] =>
    allowances.admit(clusterId, [{ clusterId, type: 'workload.asleep' }]);
  const { burst, refillMs } = CLOUD_EVENTS.changes;
  let recorded = 0;
  for (let index = 0; index < burst + 500; index += 1) recorded += change('one').length;
  expect(recorded).toBe(burst);
  expect(change('two')).toHaveLength(1);
  await clock.advance(refillMs);
  expect(change('one')).toMatchObject([
    { clusterId: 'one', type: 'events.lost', reason: expect.stringMatching(/^500 changes/) },
    { clusterId: 'one', type: 'workload.asleep' },
  ]);
  expect(change('one')).toEqual([]);
});
