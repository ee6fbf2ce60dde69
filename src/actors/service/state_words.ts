// Decides which source to believe about an agent's state: docs/reference.md "State of an agent". Pure.
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

/** What one source says. */
export interface StateWord {
  state: ReportedState;
  rule: string;
  /** Epoch milliseconds. */
  at: number;
}

/** The sources that speak for themselves, the most trusted first. */
export const SPEAKERS = ['hook', 'osc', 'screen'] as const satisfies readonly StateAuthority[];
export type StateWords = Readonly<Record<(typeof SPEAKERS)[number], StateWord | null>>;

/** What is known about a run that has a process, or is about to. */
export interface StateFacts {
  /** Epoch milliseconds, as are all times here. */
  now: number;
  /** Whether its process is being started, or has a ready-check that has not passed. */
  isStarting: boolean;
  startedAt: number;
  terminal: TerminalReading;
  /** When someone last typed; null: never. */
  typedAt: number | null;
  hook: HookWord | null;
  /** The last drawing of its screen. */
  drawn: { reading: StateReading; at: number; titleMovedAt: number | null } | null;
  /**
   * The rules of its type were recorded from the running program, so they know what its prompt looks like.
   */
  hasRecordedRules: boolean;
  /** Whether its screen has ever shown something. */
  hasShown: boolean;
}

export interface DecidedState {
  state: AgentStateName;
  reason: StateReason;
  /** When the passing of time may change the state; null: never. */
  until: number | null;
}

/** `ms` after `at`; 0: `at` never was, or long ago: in the future means that the clock was set back. */
const after = ({ now }: StateFacts, at: number | null, ms: number): number =>
  at === null || at > now ? 0 : at + ms;

const outputPlus = (facts: StateFacts, ms: number): number => after(facts, facts.terminal.lastOutputAt, ms);

/** When the output will have been quiet for long enough not to count as work. */
const quietAt = (facts: StateFacts): number => outputPlus(facts, AGENT_STATE.outputMs);

/** When the output will have been quiet for long enough after the last report of a hook, too. */
const quietAfterHook = (facts: StateFacts): number =>
  Math.max(quietAt(facts), after(facts, facts.hook?.at ?? null, AGENT_STATE.outputMs));

/** Whether the last drawing of the screen shows all output. */
function isScreenCurrent({ drawn, now, terminal: { lastOutputAt } }: StateFacts): boolean {
  return drawn !== null && (lastOutputAt === null || lastOutputAt > now || drawn.at >= lastOutputAt);
}

/** Whether the screen has been drawn since `time`, and so shows what followed. */
const isDrawnSince = ({ drawn }: StateFacts, time: number | null): boolean =>
  time !== null && drawn !== null && drawn.at > time;

/** Whether someone has typed since the question reported at `at`, and the screen now shows something else. */
function isAnswered(facts: StateFacts, at: number): boolean {
  const { drawn, hasRecordedRules, typedAt } = facts;
  // Where the rules know the prompt, a screen that they do not know may still show the question.
  const shown = drawn?.reading.screen?.state ?? (hasRecordedRules ? 'blocked' : 'unknown');
  return (typedAt ?? 0) > at && isDrawnSince(facts, typedAt) && shown !== 'blocked';
}

/** Whether the last output may be the echo of what someone has typed. */
const isEcho = ({ terminal: { lastOutputAt }, typedAt }: StateFacts): boolean =>
  typedAt !== null && lastOutputAt !== null && lastOutputAt < typedAt + AGENT_STATE.outputMs;

/** When the title will have stood still for long enough not to be a spinner that turns. */
const titleStillAt = (facts: StateFacts): number =>
  after(facts, facts.terminal.signals.titleMovedAt ?? null, AGENT_STATE.outputMs);

/** When the status that the program reports will have stood for long enough not to count as new. */
const statusStillAt = (facts: StateFacts): number =>
  after(facts, facts.terminal.signals.status?.at ?? null, AGENT_STATE.outputMs);

/** Whether the title showed work and moved when it was examined, and still moves. */
function isTitleSpinning(facts: StateFacts): boolean {
  const { drawn, now } = facts;
  const { state, within } = drawn?.reading.beside ?? {};
  // A title that says once that the agent works, and at the end that it is ready, is no spinner.
  const hasMoved = drawn !== null && drawn.at < (drawn.titleMovedAt ?? 0) + AGENT_STATE.outputMs;
  return within === 'title' && state === 'working' && hasMoved && now < titleStillAt(facts);
}

/** Whether the program has just said that it works: its title may not have been examined since. */
const hasSaidWorking = (facts: StateFacts): boolean =>
  facts.terminal.signals.status?.state === 'working' && facts.now < statusStillAt(facts);

/** Whether the screen or title shows that what a hook has reported is outdated. */
const HOOK_IS_OVER: Readonly<Record<ReportedState, (facts: StateFacts, hook: HookWord) => boolean>> = {
  // A person has answered the question.
  blocked: (facts, { at }) => isAnswered(facts, at),
  // Work that ended without a report, as after an interrupt.
  working: (facts) =>
    facts.drawn?.reading.screen?.state === 'idle' &&
    facts.now >= quietAfterHook(facts) &&
    isScreenCurrent(facts),
  // Work that goes on, or began without a report. At first the screen may still show the end of the turn, but
  // a spinner and a status end with it. Words on a screen that is quiet, or moves because someone types, are
  // no work.
  idle: (facts, { at }) =>
    isTitleSpinning(facts) ||
    hasSaidWorking(facts) ||
    (facts.drawn?.reading.screen?.state === 'working' &&
      isDrawnSince(facts, after(facts, at, AGENT_STATE.outputMs)) &&
      facts.now < quietAt(facts) &&
      !isEcho(facts)),
};

/** The last report of a hook, unless it is outdated. */
function hookWord(facts: StateFacts): StateWord | null {
  const { hook } = facts;
  if (!hook || HOOK_IS_OVER[hook.state](facts, hook)) return null;
  return { state: hook.state, rule: 'reported', at: hook.at };
}

/**
 * What a rule on the title or the last notification says, or the status or progress that the program reports.
 * `idle` and `blocked` count only where no screen rule knows better, because a program may report them before
 * its screen shows them.
 */
function oscWord(facts: StateFacts): StateWord | null {
  const { drawn, now, terminal, typedAt } = facts;
  const { notification, progress, status } = terminal.signals;
  const match = drawn?.reading.beside;
  // A notification is about the moment, and what a person types answers it.
  const isOver = match?.within === 'notification' && (typedAt ?? 0) >= (notification?.at ?? 0);
  if (match && !isOver) return { state: match.state, rule: match.name, at: drawn?.at ?? 0 };
  const isShown = progress?.state === 1 || progress?.state === 3;
  const isFresh = now < outputPlus(facts, AGENT_STATE.progressMs);
  if (status?.state === 'working' && isFresh) return { ...status, rule: 'status' };
  return isShown && isFresh ? { state: 'working', rule: 'progress', at: terminal.lastOutputAt ?? 0 } : null;
}

/** What each source says now. */
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

/** The state of an agent that has a process, or is about to. */
export function decideState(facts: StateFacts): DecidedState {
  const { isStarting, now, startedAt, terminal } = facts;
  const words = wordsOf(facts);
  const speaking = SPEAKERS.flatMap((authority) => {
    const word = words[authority];
    return word ? [{ authority, ...word }] : [];
  });
  // A question seen by any source is open, whatever the others say.
  const first = speaking.find(({ state }) => state === 'blocked') ?? speaking[0];
  const quiet = quietAt(facts);
  if (first) {
    // Work reported by a hook, title, status or progress may end by quiet alone.
    const ends = [
      ...[quiet, quietAfterHook(facts), titleStillAt(facts), statusStillAt(facts)],
      outputPlus(facts, AGENT_STATE.progressMs),
    ];
    const dues = ends.filter((due) => due > now);
    return decided(first.state, first.authority, first.rule, dues.length > 0 ? Math.min(...dues) : null);
  }
  if (isStarting) return decided('starting', 'process', 'not-ready');
  // If the program's prompt is known, an empty screen is not ready for one, however slowly it starts.
  if (facts.hasRecordedRules && !facts.hasShown) return decided('starting', 'process', 'no-output');
  const firstOutputDue = startedAt + AGENT_STATE.startingMs;
  if (terminal.lastOutputAt === null && now < firstOutputDue)
    return decided('starting', 'process', 'no-output', firstOutputDue);
  if (now < quiet) return decided('working', 'output', 'moving', quiet);
  const { status } = terminal.signals;
  if (status && status.state !== 'working') return decided(status.state, 'osc', 'status');
  // The rules know the prompt but not this screen, so it shows an unknown question.
  return facts.hasRecordedRules && facts.drawn !== null
    ? decided('blocked', 'output', 'no-prompt')
    : decided('idle', 'output', 'quiet');
}
