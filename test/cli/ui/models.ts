// States of the terminal interface, for the tests of what it draws and of what keys do.

import { initialModel, type Message, type Model, type Step } from '../../../src/cli/ui/model.ts';
import { textOf } from '../../../src/cli/ui/styled_line.ts';
import { update } from '../../../src/cli/ui/update.ts';
import { frameLines } from '../../../src/cli/ui/view.ts';
import type { Agent, Service, Workload } from '../../../src/client/records.ts';

export const NOW = Date.parse('2026-01-02T03:04:05.000Z');

export const serviceOf = (name: string, more: Partial<Service> = {}): Service => ({
  name,
  port: 3000,
  group: null,
  status: 'running',
  pid: 42,
  url: 'http://localhost:3000',
  startedAt: '2026-01-02T03:00:00.000Z',
  restarts: 0,
  protocol: 'http',
  gatewayUrl: null,
  project: null,
  stack: null,
  service: null,
  ...more,
});

export const agentOf = (name: string, more: Partial<Agent> = {}): Agent => ({
  port: 8100,
  name,
  active: true,
  pid: 43,
  hostname: `${name}.localhost`,
  agent_type: null,
  group: 'Agents',
  project: null,
  stack: null,
  service: null,
  state: 'idle',
  stateSince: '2026-01-02T03:00:00.000Z',
  stateReason: { authority: 'process', rule: 'x' },
  question: [],
  title: '',
  lastOutputAt: null,
  viewers: 0,
  cwd: '/',
  sessionId: null,
  ...more,
});

/** The service that an agent is. */
export const agentService = (name: string): Service => serviceOf(name, { group: 'Agents', port: 8100 });

const WORKLOAD: Workload = {
  id: 'w1',
  name: 'store',
  namespace: 'data',
  kind: 'StatefulSet',
  replicas: 1,
  desired_replicas: null,
  auto_sleep_enabled: false,
  idle_timeout_minutes: 30,
  last_activity_at: null,
  cluster_id: 'c1',
  ready_replicas: 1,
  state: 'awake',
  sleep_reason: null,
  wake_reason: null,
  stale_since: null,
  policy: null,
  after: null,
  managed_by: [],
};

/** As many workloads as a cluster may have. */
export const workloads = (count: number): Workload[] =>
  Array.from({ length: count }, (_, index) => ({ ...WORKLOAD, id: `w${index}`, name: `store-${index}` }));

/** The state after the messages, and the effects of the last one. */
export function told(model: Model, ...messages: Message[]): Step {
  let step: Step = [model];
  for (const message of messages) step = update(step[0], message);
  return step;
}

export const pressed = (...keys: string[]): Message[] => keys.map((key) => ({ kind: 'key', key }));

/** A connected interface that shows `services`. */
export function showing(
  services: readonly Service[],
  { columns = 80, rows = 24, agents = [] as readonly Agent[] } = {},
): Model {
  const connected = { kind: 'connection', connection: { state: 'connected' }, address: 'http://x' } as const;
  return told(initialModel({ columns, rows }, NOW, '', ''), connected, {
    kind: 'lists',
    services,
    agents,
  })[0];
}

/** The screen as text. */
export const screenOf = (model: Model): string[] => frameLines(model).map(textOf);
