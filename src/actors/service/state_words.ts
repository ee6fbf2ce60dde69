// Who is believed about what an agent is doing: docs/reference.md "State of an agent". Pure.
import type {
  AgentStateName,
  HookWord,
  ReportedState,
  StateAuthority,
  StateReason,
  TerminalReading,
} from '../../protocol/agent_state.ts';
import type { StateReading } from '../../protocol/screen_rules.ts';
import { AGENT_STATE } from '../../settings/agent_limits.ts';

/** What one authority says. */
export interface StateWord {
  state: ReportedState;
  rule: string;
  /** Epoch milliseconds. */
  at: number;
}

/** The authorities that say something by themselves, in the order in which they are believed. */
export const SPEAKERS = ['hook', 'osc', 'screen'] as const satisfies readonly StateAuthority[];
export type StateWords = Readonly<Record<(typeof SPEAKERS)[number], StateWord | null>>;

/** What is known of a run that has a process, or is getting one. */
export interface StateFacts {
  /** Epoch milliseconds, as are all times here. */
  now: number;
  /** Its process is being made, or has a ready-check of its own that has not passed. */
  isStarting: boolean;
  startedAt: number;
  terminal: TerminalReading;
  /** When somebody has typed last; null: nobody has. */
  typedAt: number | null;
  hook: HookWord | null;
  /** The screen as it was drawn last. */
  drawn: { reading: StateReading; at: number } | null;
  /** The rules of its type were recorded from the running program, so they know the screens of its prompt. */
  hasRecordedRules: boolean;
  /** Its screen has shown something. */
  hasShown: boolean;
}

export interface DecidedState {
  state: AgentStateName;
  reason: StateReason;
  /** The time at which time alone may change it; null: never. */
  until: number | null;
}

/** When the output has been quiet for long enough not to count as work. */
const quietAt = ({ terminal }: StateFacts): number => (terminal.lastOutputAt ?? 0) + AGENT_STATE.outputMs;

/** What was drawn shows what has become of the moment `time`. */
const isDrawnSince = ({ drawn }: StateFacts, time: number | null): boolean =>
  time !== null && drawn !== null && drawn.at > time;

/** Somebody has typed since the question that was told at `at`, and the screen shows something else. */
function isAnswered(facts: StateFacts, at: number): boolean {
  const { drawn, typedAt } = facts;
  const shown = drawn?.reading.screen?.state;
  return (typedAt ?? 0) > at && isDrawnSince(facts, typedAt) && shown !== undefined && shown !== 'blocked';
}

/**
 * What a hook has said last, as long as the screen does not show that it is over: a question that a person
 * has answered, or work that ended without a word, as by an interrupt.
 */
function hookWord(facts: StateFacts): StateWord | null {
  const { drawn, hook, now } = facts;
  if (!hook) return null;
  const isOver =
    hook.state === 'blocked'
      ? isAnswered(facts, hook.at)
      : hook.state === 'working' &&
        drawn?.reading.screen?.state === 'idle' &&
        now >= quietAt(facts) &&
        isDrawnSince(facts, hook.at);
  return isOver ? null : { state: hook.state, rule: 'reported', at: hook.at };
}

/**
 * A rule on the title or the last notification, the status that the program tells, or the progress that it
 * shows. That it is idle or asks counts only where no rule knows better: it says so before its screen does.
 */
function oscWord(facts: StateFacts): StateWord | null {
  const { drawn, now, terminal, typedAt } = facts;
  const { notification, progress, status } = terminal.signals;
  const match = drawn?.reading.beside;
  // A notification is about the moment: what a person types is the answer to it.
  const isOver = match?.within === 'notification' && (typedAt ?? 0) >= (notification?.at ?? 0);
  if (match && !isOver) return { state: match.state, rule: match.name, at: drawn?.at ?? 0 };
  const isShown = progress?.state === 1 || progress?.state === 3;
  const isFresh = terminal.lastOutputAt !== null && now < terminal.lastOutputAt + AGENT_STATE.progressMs;
  if (status?.state === 'working' && isFresh) return { ...status, rule: 'status' };
  return isShown && isFresh ? { state: 'working', rule: 'progress', at: terminal.lastOutputAt ?? 0 } : null;
}

/** What each authority says now. */
export function wordsOf(facts: StateFacts): StateWords {
  const { drawn } = facts;
  const shown = drawn?.reading.screen;
  return {
    hook: hookWord(facts),
    osc: oscWord(facts),
    screen: drawn && shown ? { state: shown.state, rule: shown.name, at: drawn.at } : null,
  };
}

const decided = (
  state: AgentStateName,
  authority: StateAuthority,
  rule: string,
  until: number | null = null,
): DecidedState => ({ state, reason: { authority, rule }, until });

/** The state of an agent that has a process, or is getting one. */
export function decideState(facts: StateFacts): DecidedState {
  const { isStarting, now, startedAt, terminal } = facts;
  const words = wordsOf(facts);
  const speaking = SPEAKERS.flatMap((authority) => {
    const word = words[authority];
    return word ? [{ authority, ...word }] : [];
  });
  // A question that any of them sees is open, whatever the others say.
  const first = speaking.find(({ state }) => state === 'blocked') ?? speaking[0];
  const quiet = quietAt(facts);
  if (first) {
    // Work that a hook or a progress has told may end by quiet alone.
    const dues = [quiet, (terminal.lastOutputAt ?? 0) + AGENT_STATE.progressMs].filter((due) => due > now);
    return decided(first.state, first.authority, first.rule, dues.length > 0 ? Math.min(...dues) : null);
  }
  if (isStarting) return decided('starting', 'process', 'not-ready');
  // Of a program whose prompt is known, an empty screen is not ready for one, however slow its start.
  if (facts.hasRecordedRules && !facts.hasShown) return decided('starting', 'process', 'no-output');
  const firstOutputDue = startedAt + AGENT_STATE.startingMs;
  if (terminal.lastOutputAt === null && now < firstOutputDue)
    return decided('starting', 'process', 'no-output', firstOutputDue);
  if (now < quiet) return decided('working', 'output', 'moving', quiet);
  const { status } = terminal.signals;
  if (status && status.state !== 'working') return decided(status.state, 'osc', 'status');
  // Rules that know the prompt's screens, and not this one, are shown a question that they do not know.
  return facts.hasRecordedRules && facts.drawn !== null
    ? decided('blocked', 'output', 'no-prompt')
    : decided('idle', 'output', 'quiet');
}
