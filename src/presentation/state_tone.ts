// The tone in which a state is shown: what the state means to a person who looks at many.

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

/** The tone of a state of a service, an agent, a workload or a cluster; `rest` for an unknown one. */
export const toneOf = (state: string): Tone =>
  Object.hasOwn(TONES, state) ? (TONES[state] ?? 'rest') : 'rest';
