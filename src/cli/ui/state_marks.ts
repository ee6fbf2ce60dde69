// A state as a shape, a word and a colour, so that no state depends on its colour alone.
import type { Agent, Service, Workload } from '../../client/records.ts';
import { endText } from '../../presentation/format.ts';
import { stateOf, toneOf } from '../../presentation/state_tone.ts';
import { type Look, type Piece, piece } from './styled_line.ts';

const SHAPES: Readonly<Record<string, string>> = {
  running: '●',
  starting: '◐',
  stopping: '◐',
  stopped: '○',
  crashed: '✗',
  sleeping: '☾',
  completed: '✓',
  // Of agents.
  working: '▶',
  blocked: '◆',
  idle: '●',
  asleep: '☾',
  exited: '○',
  // Of workloads.
  awake: '●',
  waking: '◐',
};

/** The colour of a state. */
export const lookOf = (state: string): Look => toneOf(state);

/** The shape of a state. */
export const shapeOf = (state: string): Piece =>
  piece(Object.hasOwn(SHAPES, state) ? (SHAPES[state] ?? '·') : '·', lookOf(state));

/** The word for a state; for a crashed service, with how it ended. */
export function stateText(service: Service, agent: Agent | null): string {
  const state = stateOf(service, agent);
  return state === 'crashed' ? [state, endText(service)].filter(Boolean).join(' ') : state;
}

/** The word for a workload's state, with its replicas. */
export const workloadText = ({ state, ready_replicas: ready, replicas }: Workload): string =>
  state === 'asleep' ? state : `${state} ${ready}/${replicas}`;
