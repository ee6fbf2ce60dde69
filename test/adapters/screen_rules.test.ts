// Files of rules for screens, with their faults, and what rules make of a screen.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { loadRules } from '../../src/adapters/screen_rules_file.ts';
import { readState, tryRules } from '../../src/adapters/screen_state.ts';
import type { LoadedRules, RuleSet } from '../../src/protocol/screen_rules.ts';
import { tempDir } from '../kit/actors.ts';
import { must } from '../kit/must.ts';

/** The rules of files, by their names. */
async function loaded(files: Record<string, string>): Promise<LoadedRules & { of(type: string): RuleSet }> {
  const folder = join(tempDir(), 'agents');
  mkdirSync(folder);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const rules = await loadRules({ folders: [folder] });
  return { ...rules, of: (type) => must(rules.sets.find(([known]) => known === type))[1] };
}

const rule = (name: string, rest: string, state = 'blocked'): string =>
  `[[rule]]\nname = "${name}"\nstate = "${state}"\n${rest}\n`;

it('a faulty rule is left out with its line reported, and the others are kept', async () => {
  const { faults, of } = await loaded({
    'codex.toml': [
      '# mine\nstray = 1',
      rule('good', 'contains = ["a"]'),
      rule('Bad', 'contains = ["a"]'),
      rule('state', 'contains = ["a"]', 'asleep'),
      rule('regex', 'last = 3\nmatches = ["("]'),
      rule('empty', 'last = 3'),
      rule('field', 'contains = ["a"]\ncolour = "red"'),
      '[[rule]]\nname = "syntax"\nstate = = "idle"',
      rule('also-good', "matches = ['^b$']"),
    ].join('\n'),
    'nobody.toml': rule('good', 'contains = ["a"]'),
    'notes.txt': 'no rules',
  });
  expect(of('codex').rules.map(({ name }) => name)).toEqual(['good', 'also-good']);
  expect(
    faults.map(({ file, line, message }) => [file.split('/').at(-1), line, message.split(':')[0]]),
  ).toEqual([
    ['codex.toml', 2, 'a file of rules has tables [[rule]] alone'],
    ['codex.toml', 9, 'name must be lower-case letters, digits and hyphens'],
    ['codex.toml', 15, 'state must be one of working, blocked, idle'],
    ['codex.toml', 22, 'matches'],
    ['codex.toml', 24, 'contains, any or matches must be given'],
    ['codex.toml', 33, 'colour is no field of a rule'],
    ['codex.toml', 37, expect.any(String)],
    ['nobody.toml', 1, 'there is no agent type nobody'],
  ]);
});

it('the rules of the type come before those of any agent, and the first match decides', async () => {
  const { of } = await loaded({
    'any.toml': rule('any', 'contains = ["?"]'),
    'codex.toml': rule('own', 'contains = ["?"]\nabsent = ["not"]', 'working'),
  });
  const told = async (type: string, lines: string[]) =>
    (await tryRules(of(type), { lines, title: '', notification: '' })).screen?.name;
  expect(await told('codex', ['really?'])).toBe('own');
  expect(await told('codex', ['really?', 'not'])).toBe('any');
  expect(await told('claude', ['really?'])).toBe('any');
  expect(await told('claude', ['really!'])).toBeUndefined();
});

it('rules match the last lines and the title, and return the lines of the question', async () => {
  const { of } = await loaded({
    'any.toml': [
      rule('last', 'last = 2\ncontains = ["May I?"]\nmatches = ["^│ 1[.]"]'),
      rule('title', 'within = "title"\ncontains = ["busy"]', 'working'),
    ].join(''),
  });
  const shown = { lines: ['May I?', '', '│ 1. yes │', ''], title: 'busy', notification: '' };
  expect(await tryRules(of('any'), shown)).toMatchObject({
    screen: { name: 'last', lines: ['May I?', '│ 1. yes │'] },
    beside: { name: 'title', within: 'title', state: 'working' },
    question: ['May I?', '', '1. yes'],
  });
  const above = { ...shown, lines: ['May I?', '│ 1. yes │', 'more', 'and more'] };
  expect(await tryRules(of('any'), above)).toMatchObject({ screen: null, question: [] });
});

it('a drawing begins where the last one ended', async () => {
  const { of } = await loaded({ 'any.toml': rule('both', 'contains = ["first", "second"]') });
  const task = {
    ...{ cols: 40, rows: 6, rules: of('any'), title: '', notification: '' },
    ...{ maxBytes: 100_000, budgetMs: 1_000, resizes: [] },
  };
  const none = new Uint8Array();
  const one = await readState({ ...task, modes: none, bytes: Buffer.from('first\r\n\x1b]2;a title\x07') });
  expect(one).toMatchObject({ screen: null, title: 'a title' });
  const snapshot = must(one.snapshot);
  expect(snapshot.buffer.byteLength).toBe(snapshot.byteLength);
  const two = await readState({ ...task, modes: snapshot, bytes: Buffer.from('second') });
  expect(two.screen?.lines).toEqual(['first', 'second']);
  expect(two).toMatchObject({ isCut: false, undrawnBytes: 0 });
  const half = await readState({ ...task, modes: none, bytes: Buffer.from('first\r\nsecond\x1b[3') });
  expect(half).toMatchObject({ isCut: false, undrawnBytes: '\x1b[3'.length });
  expect(half.screen?.lines).toEqual(['first', 'second']);
});
