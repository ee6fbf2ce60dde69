// The state of a service as lists show it, and its tone: what the state means to a person who looks at many.
import type { Agent, Service } from '../client/records.ts';

/** `bad` needs attention; `rest` and `calm` are at rest, `calm` until a connection arrives. */
export type Tone = 'good' | 'busy' | 'bad' | 'rest' | 'calm';

const TONES: Readonly<Record<string, Tone>> = {
  running: 'good',
  starting: 'busy',
  stopping: 'busy',
  stopped: 'rest',
  crashed: 'bad',
  sleeping: 'calm',
  completed: 'good',
  // Of agents.
  working: 'busy',
  blocked: 'bad',
  idle: 'good',
  asleep: 'calm',
  exited: 'rest',
  // Of workloads and clusters.
  awake: 'good',
  waking: 'busy',
  active: 'good',
  unreachable: 'bad',
  refused: 'bad',
  failed: 'bad',
};

/** The state of a service; for a running or sleeping agent, the agent's own state. */
export const stateOf = ({ status }: Pick<Service, 'status'>, agent: Pick<Agent, 'state'> | null): string =>
  agent !== null && (status === 'running' || status === 'sleeping') ? agent.state : status;

/** The tone of a state of a service, an agent, a workload or a cluster; `rest` for an unknown one. */
export const toneOf = (state: string): Tone =>
  Object.hasOwn(TONES, state) ? (TONES[state] ?? 'rest') : 'rest';
