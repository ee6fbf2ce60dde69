// How cost grows with size: each benchmark measures the cost of one unit at several sizes, each at most ten
// times the one before. The floor is the cost at the size before, so a ratio of 1 means that the total cost
// grows in proportion. Costs are processor time where possible, because a busy machine does not change it.
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
