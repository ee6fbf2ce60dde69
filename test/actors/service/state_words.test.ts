// Who is believed, and for how long.
import { expect, it } from 'vitest';
import { decideState, type StateFacts } from '../../../src/actors/service/state_words.ts';
import type { HookWord, ReportedState, TerminalSignals } from '../../../src/protocol/agent_state.ts';
import type { RuleMatch, StateReading } from '../../../src/protocol/screen_rules.ts';
import { must } from '../../kit/must.ts';

const NOW = 1_000_000;
const SIGNALS: TerminalSignals = { title: '', progress: null, notification: null };

/** A screen on which a rule of that state holds, drawn so long ago. */
function drawn(state: ReportedState | null, agoMs = 100): StateFacts['drawn'] {
  const screen = state && { name: 'shown', state, file: '', lines: [] };
  const reading: StateReading = {
    screen,
    beside: null,
    question: [],
    isBlank: false,
    snapshot: null,
    ...{ cols: 80, rows: 24, undrawnBytes: 0, isCut: false },
    title: '',
    ms: 1,
  };
  return { reading, at: NOW - agoMs, titleMovedAt: null };
}

const hook = (state: ReportedState, agoMs: number): HookWord => ({ state, message: null, at: NOW - agoMs });

const factsOf = (facts: Partial<StateFacts>, quietMs = 60_000): StateFacts => ({
  ...{ now: NOW, isStarting: false, startedAt: 0, typedAt: null, hook: null, drawn: null },
  hasRecordedRules: false,
  hasShown: true,
  terminal: { lastOutputAt: NOW - quietMs, isMoving: false, signals: SIGNALS },
  ...facts,
});

const decide = (facts: Partial<StateFacts>, quietMs = 60_000): string => {
  const { state, reason } = decideState(factsOf(facts, quietMs));
  return `${state} ${reason.authority}`;
};

it('the state is that of the hook before that of the screen, and a question comes first', () => {
  expect(decide({ hook: hook('working', 50), drawn: drawn('idle', 100) })).toBe('working hook');
  expect(decide({ hook: hook('idle', 50), drawn: drawn('working') })).toBe('idle hook');
  expect(decide({ hook: hook('idle', 50), drawn: drawn('blocked') })).toBe('blocked screen');
  expect(decide({ hook: hook('blocked', 50), drawn: drawn('idle') })).toBe('blocked hook');
});

it('the state of a hook ends when what it reported has ended', () => {
  const asked = hook('blocked', 5_000);
  expect(decide({ hook: asked, typedAt: NOW - 3_000, drawn: drawn('working', 2_000) })).toBe(
    'working screen',
  );
  expect(decide({ hook: asked, typedAt: NOW - 3_000, drawn: drawn('working', 4_000) })).toBe('blocked hook');
  expect(decide({ hook: asked, typedAt: NOW - 6_000, drawn: drawn('working', 2_000) })).toBe('blocked hook');
  const unknown = { hook: asked, typedAt: NOW - 3_000, drawn: drawn(null, 2_000) };
  expect(decide({ ...unknown, hasRecordedRules: true })).toBe('blocked hook');
  expect(decide(unknown)).toBe('idle output');
  expect(decide({ ...unknown, drawn: drawn(null, 4_000) })).toBe('blocked hook');
  const works = hook('working', 9_000);
  expect(decide({ hook: works, drawn: drawn('idle', 4_000) }, 4_000)).toBe('idle screen');
  expect(decide({ hook: works, drawn: drawn('idle', 1_000) }, 1_000)).toBe('working hook');
  // The drawing is older than the last output.
  expect(decide({ hook: works, drawn: drawn('idle', 5_000) }, 4_000)).toBe('working hook');
});

it('a report of work that no output follows is over once the prompt has been quiet for long enough after it', () => {
  const shown = drawn('idle', 59_000);
  const late = (agoMs: number) => ({ hook: hook('working', agoMs), drawn: shown });
  expect(decide(late(2_900))).toBe('working hook');
  const { until } = decideState(factsOf(late(1_000)));
  expect(until).toBe(NOW + 2_000);
  expect(decide(late(3_000))).toBe('idle screen');
  // The clock was set back since.
  expect(decide(late(-3_600_000))).toBe('idle screen');
});

it('a report that work has ended is over when the screen shows work for longer than the end of a turn', () => {
  expect(decide({ hook: hook('idle', 2_900), drawn: drawn('working', 10) }, 10)).toBe('idle hook');
  expect(decide({ hook: hook('idle', 5_000), drawn: drawn('working', 2_500) }, 10)).toBe('idle hook');
  expect(decide({ hook: hook('idle', 5_000), drawn: drawn('working', 1_000) }, 10)).toBe('working screen');
  expect(decide({ hook: hook('idle', 5_000), drawn: drawn('idle', 1_000) }, 10)).toBe('idle hook');
  // Words of an answer that look like work, repainted or beside what someone types.
  const words = { hook: hook('idle', 9_000), drawn: drawn('working', 3_500) };
  expect(decide(words, 3_600)).toBe('idle hook');
  expect(decide({ ...words, typedAt: NOW - 3_650 }, 2_900)).toBe('idle hook');
  expect(decide({ ...words, typedAt: NOW - 6_000 }, 2_900)).toBe('working screen');
});

it('a report that work has ended is held back while a spinner turns in the title, and not for one left there', () => {
  const shown = must(drawn('idle', 1_000));
  const told: RuleMatch = { name: 'told', state: 'working', file: '', lines: [] };
  /** A title in which the rule was seen 1 s ago, when it had last moved `movedMs` before. */
  const seen = (movedMs: number | null, within: 'title' | 'notification' = 'title') => ({
    ...shown,
    titleMovedAt: movedMs === null ? null : shown.at - movedMs,
    reading: { ...shown.reading, beside: { ...told, within } },
  });
  const facts = (agoMs: number, others: Partial<StateFacts> = {}): Partial<StateFacts> => {
    const signals = { ...SIGNALS, title: '⠸ work', titleMovedAt: NOW - agoMs };
    const terminal = { lastOutputAt: NOW - 100, isMoving: true, signals };
    return { hook: hook('idle', 50), drawn: seen(100), terminal, ...others };
  };
  expect(decide(facts(2_900))).toBe('working osc');
  expect(decide(facts(2_900, { hook: hook('idle', 60_000) }))).toBe('working osc');
  expect(decide(facts(2_900, { typedAt: NOW - 200 }))).toBe('working osc');
  expect(decideState(factsOf(facts(2_950))).until).toBe(NOW + 50);
  // The output moves, the title does not.
  expect(decide(facts(3_000))).toBe('idle hook');
  expect(decide(facts(-3_600_000))).toBe('idle hook');
  expect(decide({ ...facts(100), terminal: { ...factsOf({}).terminal, isMoving: true } })).toBe('idle hook');
  // It has moved since, as one that says at the end that the agent is ready.
  expect(decide(facts(50, { drawn: seen(3_000) }))).toBe('idle hook');
  expect(decide(facts(50, { drawn: seen(null) }))).toBe('idle hook');
  expect(decide(facts(50, { drawn: seen(100, 'notification') }))).toBe('idle hook');
  expect(decide(facts(50, { drawn: shown }))).toBe('idle hook');
});

it('a report that work has ended is held back if the program has just said that it works', () => {
  const says = (state: ReportedState, agoMs: number): Partial<StateFacts> => {
    const signals = { ...SIGNALS, status: { state, at: NOW - agoMs } };
    const terminal = { lastOutputAt: NOW - 100, isMoving: true, signals };
    return { hook: hook('idle', 50), drawn: drawn('idle'), terminal };
  };
  expect(decide(says('working', 2_900))).toBe('working osc');
  expect(decideState(factsOf(says('working', 2_950))).until).toBe(NOW + 50);
  expect(decide(says('working', 3_000))).toBe('idle hook');
  expect(decide(says('idle', 100))).toBe('idle hook');
});

it('progress counts as working as long as the output is recent', () => {
  const progress = { state: 3, percent: 0 } as const;
  const shows = (quietMs: number) =>
    decide({
      drawn: drawn('idle'),
      terminal: { lastOutputAt: NOW - quietMs, isMoving: false, signals: { ...SIGNALS, progress } },
    });
  expect(shows(5_000)).toBe('working osc');
  expect(shows(11_000)).toBe('idle screen');
});

it('the status that a program reports is weighed against the rules of its screen', () => {
  const told = (state: ReportedState, facts: Partial<StateFacts>, quietMs = 5_000) =>
    decide({
      ...facts,
      terminal: {
        ...{ lastOutputAt: NOW - quietMs, isMoving: false },
        signals: { ...SIGNALS, status: { state, at: NOW - 6_000 } },
      },
    });
  const unknown = { drawn: drawn(null), hasRecordedRules: true };
  expect(told('working', { drawn: drawn('idle') })).toBe('working osc');
  expect(told('working', { drawn: drawn('idle') }, 11_000)).toBe('idle screen');
  expect(told('idle', unknown)).toBe('idle osc');
  expect(told('idle', unknown, 1_000)).toBe('working output');
  for (const state of ['working', 'blocked'] as const)
    expect(told('idle', { drawn: drawn(state) })).toBe(`${state} screen`);
  expect(told('blocked', { drawn: drawn(null) })).toBe('blocked osc');
  expect(told('blocked', { drawn: drawn('idle') })).toBe('idle screen');
});

it('a quiet screen that no recorded rule matches counts as blocked', () => {
  const hasRecordedRules = true;
  expect(decide({ drawn: drawn(null), hasRecordedRules })).toBe('blocked output');
  expect(decide({ drawn: drawn(null), hasRecordedRules }, 1_000)).toBe('working output');
  expect(decide({ drawn: drawn(null) })).toBe('idle output');
  expect(decide({ drawn: null, hasRecordedRules })).toBe('idle output');
  expect(decide({ hasRecordedRules, hasShown: false })).toBe('starting process');
  expect(decide({ hasShown: false })).toBe('idle output');
});

it('the state of a silent program does not depend on output from before the clock was set back', () => {
  expect(decide({}, -3_600_000)).toBe('idle output');
  const signals: TerminalSignals = { ...SIGNALS, progress: { state: 3, percent: 0 } };
  const terminal = { lastOutputAt: NOW + 3_600_000, isMoving: false, signals };
  expect(decide({ terminal })).toBe('idle output');
});
