// Who is believed about what an agent is doing: docs/reference.md "State of an agent". Pure.
import type {
  AgentStateName,
  ReportedState,
  StateAuthority,
  StateReason,
} from '../../protocol/agent_state.ts';
import { AGENT_STATE } from '../../settings/limits.ts';

/** What one authority says. */
export interface StateWord {
  state: ReportedState;
  rule: string;
  /** Epoch milliseconds. */
  at: number;
}

/** The authorities that say something by themselves, in the order in which they are believed. */
const SPEAKERS = ['hook', 'osc', 'screen'] as const satisfies readonly StateAuthority[];
export type StateWords = Readonly<Record<(typeof SPEAKERS)[number], StateWord | null>>;

export interface StateFacts {
  /** Epoch milliseconds. */
  now: number;
  /** Its process is being made, or has a ready-check of its own that has not passed. */
  isStarting: boolean;
  /** Epoch milliseconds. */
  startedAt: number;
  lastOutputAt: number | null;
  words: StateWords;
  /** Its rules know the screen on which it takes a prompt: a quiet screen without it asks something. */
  knowsPrompt: boolean;
}

export interface DecidedState {
  state: AgentStateName;
  reason: StateReason;
  /** Epoch milliseconds at which time alone may change it; null: never. */
  until: number | null;
}

const decided = (
  state: AgentStateName,
  authority: StateAuthority,
  rule: string,
  until: number | null = null,
): DecidedState => ({ state, reason: { authority, rule }, until });

/** The first authority that says something, one that says `blocked` before all others. */
function firstWord(words: StateWords): DecidedState | null {
  const speaking = SPEAKERS.flatMap((authority) => {
    const word = words[authority];
    return word ? [{ authority, ...word }] : [];
  });
  const first = speaking.find(({ state }) => state === 'blocked') ?? speaking[0];
  return first ? decided(first.state, first.authority, first.rule) : null;
}

/** The state of an agent that has a process, or is getting one. */
export function decideState(facts: StateFacts): DecidedState {
  const { isStarting, knowsPrompt, lastOutputAt, now, startedAt, words } = facts;
  const told = firstWord(words);
  if (told) return told;
  if (isStarting) return decided('starting', 'process', 'not-ready');
  const firstOutputDue = startedAt + AGENT_STATE.startingMs;
  if (lastOutputAt === null && now < firstOutputDue)
    return decided('starting', 'process', 'no-output', firstOutputDue);
  const quietAt = (lastOutputAt ?? 0) + AGENT_STATE.outputMs;
  if (now < quietAt) return decided('working', 'output', 'moving', quietAt);
  return knowsPrompt ? decided('blocked', 'output', 'no-prompt') : decided('idle', 'output', 'quiet');
}
