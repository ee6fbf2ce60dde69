// The rules that Berth has, on the recorded screens: right in 98 of 100, and never idle with a question open.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { decideState } from '../../src/actors/service/state_words.ts';
import { loadRules } from '../../src/adapters/screen_rules_file.ts';
import { tryRules } from '../../src/adapters/screen_state.ts';
import type { AgentStateName } from '../../src/protocol/agent_state.ts';
import { type AgentType, agentKind } from '../../src/protocol/agent_types.ts';
import type { RuleSet } from '../../src/protocol/screen_rules.ts';
import { must } from '../kit/must.ts';
import { type RecordedScreen, readScreens } from './screen_files.ts';

const TYPES = readdirSync(import.meta.dirname).flatMap((file) => /^(\w+)\.txt$/.exec(file)?.[1] ?? []);
const { sets, faults } = await loadRules({
  folders: ['/nonexistent', join(import.meta.dirname, '../../src/agent-rules')],
});
const rulesOf = (type: string): RuleSet => must(sets.find(([of]) => of === type))[1];

/** Questions have the command that is asked about, and the first answer. */
const ASKED: readonly (readonly [situation: string, command: string])[] = [
  ['first question', 'touch one'],
  ['refused question', 'echo two; rm -rf ./nothing'],
  ['question of an MCP server', 'run tool "stop"?\n\nname: ka'],
];
const FIRST_ANSWER = /1\. Yes, proceed|1\. Allow\b|^Allow once/;

const DRAWN = {
  isBlank: false,
  snapshot: null,
  cols: 80,
  rows: 24,
  undrawnBytes: 0,
  isCut: false,
  ms: 0,
} as const;

/** What is told of a screen that has been quiet for long: the output knows nothing about it. */
async function toldOf(rules: RuleSet, { lines, title }: RecordedScreen): Promise<[AgentStateName, string]> {
  const found = await tryRules(rules, { lines, title, notification: '' });
  const { state, reason } = decideState({
    ...{ now: 1_000_000, isStarting: false, startedAt: 0, typedAt: null, hook: null },
    hasRecordedRules: true,
    hasShown: true,
    terminal: { lastOutputAt: 1, isMoving: false, signals: { title, progress: null, notification: null } },
    drawn: { reading: { ...found, ...DRAWN, title }, at: 1, titleMovedAt: null },
  });
  return [state, `${reason.authority}:${reason.rule}`];
}

it('the rules of every coding agent are valid', () => {
  expect(faults).toEqual([]);
  for (const [type, { rules }] of sets) {
    const isCoding = type !== 'any' && agentKind(type as AgentType).coding !== null;
    expect(rules.some(({ state }) => state === 'idle')).toBe(isCoding);
  }
});

describe.each(TYPES)('the screens of %s', (type) => {
  it('give the recorded state, and never idle while a question is open', async () => {
    const rules = rulesOf(type);
    const screens = readScreens(type);
    const wrong: string[] = [];
    for (const screen of screens) {
      const { cols, situation, state } = screen;
      const [told, rule] = await toldOf(rules, screen);
      if (state === 'blocked') expect(told, situation).not.toBe('idle');
      if (told !== state) wrong.push(`${situation} (${cols}): ${state}, told ${told} by ${rule}`);
    }
    expect(screens.length).toBeGreaterThanOrEqual(60);
    expect(wrong.slice(0, screens.length * 0.02)).toEqual(wrong);
  });

  it('give all lines of a question, without the frame around them', async () => {
    for (const { cols, lines, situation, state, title } of readScreens(type)) {
      const [, command] = ASKED.find(([about]) => situation.startsWith(about)) ?? [];
      if (state !== 'blocked' || command === undefined) continue;
      const { question } = await tryRules(rulesOf(type), { lines, title, notification: '' });
      const asked = question.join('\n');
      expect(asked, `${situation} (${cols})`).toContain(command);
      expect(
        question.some((line) => FIRST_ANSWER.test(line)),
        `${situation} (${cols})`,
      ).toBe(true);
      expect(asked, `${situation} (${cols})`).not.toMatch(/[│╭╰┃]|\n\n\n|^\n|\n$/);
    }
  });
});

it('an open dialog of opencode is a question with its title and lines, wherever it lies', async () => {
  const screens = readScreens('opencode').filter(({ situation }) => situation.startsWith('dialog '));
  const open = screens.filter(({ state }) => state === 'blocked');
  expect(open.length).toBeGreaterThanOrEqual(100);
  for (const screen of open) {
    const { cols, lines, situation, title } = screen;
    const about = `${situation} (${cols})`;
    expect(await toldOf(rulesOf('opencode'), screen), about).toEqual([
      'blocked',
      expect.stringMatching(/^screen:(?:dialog|form)$/),
    ]);
    const { question } = await tryRules(rulesOf('opencode'), { lines, title, notification: '' });
    expect(
      question.some((line) => / {8}esc\b/.test(line)),
      about,
    ).toBe(true);
    // So is one with a title that no rule knows, if it has a search or is a form.
    if (!/^dialog (?:palette|models|agents|fork|rename) (?!with text)/.test(situation)) continue;
    const renamed = lines.map((line) => line.replace(/\w+( {20,}esc)/, 'Unknown$1'));
    expect(await toldOf(rulesOf('opencode'), { ...screen, lines: renamed }), about).toEqual([
      'blocked',
      'screen:other-dialog',
    ]);
  }
  for (const screen of screens.filter(({ state }) => state === 'idle'))
    expect((await toldOf(rulesOf('opencode'), screen))[0], `${screen.situation} (${screen.cols})`).toBe(
      'idle',
    );
});

it('gemini with a prompt in its own queue is working, although its title says that it is ready', async () => {
  for (const screen of readScreens('gemini').filter(({ situation }) => situation === 'begun')) {
    const at = screen.lines.findIndex((line) => line.includes('? for shortcuts'));
    const queue = ['', '  Queued (press ↑ to edit):', '    hello'];
    const lines = screen.lines.toSpliced(at, 0, ...queue);
    expect(await toldOf(rulesOf('gemini'), { ...screen, lines })).toEqual(['working', 'screen:queued']);
    expect(await toldOf(rulesOf('gemini'), screen)).toEqual(['idle', 'screen:prompt']);
  }
});
