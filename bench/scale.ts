// How cost grows: each of these at sizes that lie up to ten times apart, as the cost of one unit. What stands
// for the floor is the size before: a ratio of 1 is growth in proportion. Processor time wherever that is
// what grows: it is the same on a busy machine.
import type { Benchmark } from './kit/harness.ts';
import { eventRates, subscribers } from './scale_events.ts';
import { registeredServices, runningServices } from './scale_services.ts';
import { workloads } from './scale_workloads.ts';

export const scaleServices: Benchmark = {
  name: 'scale-services',
  question: 'What does one more service cost when there are many? (The floor is the size before.)',
  run: async () => [...(await registeredServices()), ...(await runningServices())],
};

export const scaleEvents: Benchmark = {
  name: 'scale-events',
  question: 'What does one more subscriber cost, and one more event? (The floor is the size before.)',
  run: async () => [...(await subscribers()), ...(await eventRates())],
};

export const scaleWorkloads: Benchmark = {
  name: 'scale-workloads',
  question: 'What does one more workload cost? (The floor is the size before.)',
  run: workloads,
};
