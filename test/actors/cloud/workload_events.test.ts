import { expect, it } from 'vitest';
import { WorkloadEvents } from '../../../src/actors/cloud/workload_events.ts';
import { observe } from '../../../src/actors/cloud/workload_record.ts';
import type { StoredWorkload } from '../../../src/protocol/cloud.ts';
import type { CloudEventsProtocol, NewCloudEvent } from '../../../src/protocol/cloud_events.ts';
import type { MessageOf } from '../../../src/runtime/actor.ts';
import { CLOUD_EVENTS } from '../../../src/settings/cloud_limits.ts';
import { virtualClock } from '../../kit/actors.ts';

const OBSERVER = { self: 'here', now: 0 };

/** A workload of `clusterId` as it is with so many replicas. */
const workload = (clusterId: string, replicas: number): StoredWorkload =>
  observe(
    undefined,
    clusterId,
    {
      ...{
        kind: 'Deployment',
        name: 'w',
        namespace: 'web',
        uid: 'u',
        version: '1',
        pods: 1,
        ready: 1,
        replicas,
      },
      ...{ observed: true, labels: '', selector: 'app=w', scaledBy: null, keeper: null, generation: 1 },
      ...{ replicaSet: null, receipt: null, wakeReceipt: null, activity: null },
    },
    OBSERVER,
  );

it('a cluster that changes without end leaves room for the events of others', async () => {
  const clock = virtualClock();
  const told: NewCloudEvent[] = [];
  const journal: ConstructorParameters<typeof WorkloadEvents>[0] = {
    tell: (_, message) => {
      told.push(...(message as MessageOf<CloudEventsProtocol, 'append'>).events);
    },
  };
  const events = new WorkloadEvents(journal, clock);
  const flap = (clusterId: string): void => {
    events.onChange(workload(clusterId, 1), workload(clusterId, 0), 'here');
  };
  const { burst, refillMs } = CLOUD_EVENTS.changes;
  for (let index = 0; index < burst + 500; index += 1) flap('one');
  expect(told).toHaveLength(burst);
  flap('two');
  expect(told).toHaveLength(burst + 1);
  expect(told.at(-1)).toMatchObject({ clusterId: 'two', type: expect.stringMatching(/^workload\./) });
  await clock.advance(refillMs);
  flap('one');
  flap('one');
  expect(told.slice(burst + 1)).toMatchObject([
    { clusterId: 'one', type: 'events.lost', reason: expect.stringMatching(/^500 changes/) },
    { clusterId: 'one', type: expect.stringMatching(/^workload\./) },
  ]);
});
