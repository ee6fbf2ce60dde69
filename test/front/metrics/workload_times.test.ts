// How long workloads have slept: docs/reference.md "Metrics".
import { expect, it } from 'vitest';
import { WorkloadTimes } from '../../../src/front/metrics/workload_times.ts';

it('the sleep of a workload is summed, and wakes are measured from their start', () => {
  const times = new WorkloadTimes();
  const seen = (state: 'awake' | 'sleeping' | 'asleep' | 'waking', now: number): void =>
    times.observe({ id: 'w', clusterId: 'c', state }, now);
  seen('asleep', 1_000);
  seen('asleep', 2_000);
  expect(times.asleepSeconds('w', 3_000)).toBe(2);
  seen('waking', 4_000);
  seen('awake', 8_000);
  expect(times.asleepSeconds('w', 9_000)).toBe(3);
  seen('asleep', 10_000);
  seen('awake', 11_000);
  expect(times.asleepSeconds('w', 20_000)).toBe(4);
  expect(times.wakesByCluster()).toEqual([['c', { buckets: [0, 0, 1, 1, 1, 1, 1, 1], count: 1, sum: 4 }]]);
  times.forget('w');
  times.forgetCluster('c');
  expect([times.asleepSeconds('w', 0), times.wakesByCluster()]).toEqual([0, []]);
});
