// Most calls have no options and are not parsed at all: what they come to must be what commander would have made of them.
import { describe, expect, it } from 'vitest';
import { COMMANDS, type CommandRow, FAMILIES } from '../../../src/cli/commands.ts';
import type { Command } from '../../../src/cli/kit/command.ts';
import { type ParsedCall, parseCommandLine } from '../../../src/cli/kit/parser.ts';
import { plainArguments } from '../../../src/cli/main.ts';

const called = async (row: CommandRow): Promise<{ row: CommandRow; command: Command }> => ({
  row,
  command: await row.load(),
});
const parsed = (argv: string[], one: { row: CommandRow; command: Command } | undefined): ParsedCall =>
  parseCommandLine(argv, { commands: COMMANDS, families: FAMILIES, called: one });

describe.each(COMMANDS.map((row) => [row.name, row] as const))('berth %s', (name, row) => {
  it('is the same parsed and unparsed', async () => {
    const one = await called(row);
    const takes = one.command.args ?? [];
    const least = takes.filter(({ syntax }) => syntax.startsWith('<')).length;
    const isVariadic = takes.some(({ syntax }) => syntax.includes('...'));
    for (let count = 0; count <= takes.length + 2; count += 1) {
      const words = Array.from({ length: count }, (_, at) => `word${at}`);
      const argv = [...name.split(' '), ...words];
      const alone = plainArguments(argv, name, one.command);
      if (count < least || (count > takes.length && !isVariadic)) {
        expect(alone).toBeUndefined();
        expect(() => parsed(argv, one)).toThrow();
        continue;
      }
      const options = Object.entries(one.command.options ?? {}).map(([key, { defaultValue }]) => [
        key,
        defaultValue,
      ]);
      expect(alone).toEqual(words);
      expect(parsed(argv, one)).toEqual({
        args: words,
        options: Object.fromEntries(options),
        globals: { format: 'table', url: undefined, stateDir: undefined, config: undefined },
      });
    }
  });

  it('has a help with its arguments and options', async () => {
    const one = await called(row);
    const outcome = parsed([...name.split(' '), '--help'], one);
    const help = 'help' in outcome ? outcome.help : '';
    for (const { about } of one.command.args ?? []) expect(help.replace(/\s+/g, ' ')).toContain(about);
    for (const { flags } of Object.values(one.command.options ?? {})) expect(help).toContain(flags);
  });
});

it('takes what stands behind -- as arguments', async () => {
  const [row] = COMMANDS.filter(({ name }) => name === 'add');
  if (!row) throw new Error('there is no add');
  const one = await called(row);
  const argv = ['add', 'web', '--', 'run', '-p', '--', 'x'];
  expect(plainArguments(argv, 'add', one.command)).toEqual(['web', 'run', '-p', '--', 'x']);
  expect(parsed(argv, one)).toMatchObject({ args: ['web', 'run', '-p', '--', 'x'] });
  expect(plainArguments(['add', 'web', '-p', '1', '--', 'x'], 'add', one.command)).toBeUndefined();
});

it('takes global options before and behind the command', async () => {
  const [row] = COMMANDS.filter(({ name }) => name === 'ps');
  if (!row) throw new Error('there is no ps');
  const one = await called(row);
  const globals = { format: 'jsonl', url: 'http://x', stateDir: '/s', config: '/c' };
  const given = ['-o', 'jsonl', '--url', 'http://x', '--state-dir=/s', '--config', '/c'];
  expect(parsed([...given, 'ps', '-q'], one)).toEqual({
    globals,
    args: [],
    options: { status: undefined, group: undefined, quiet: true },
  });
  expect(parsed(['ps', 'web', ...given], one)).toMatchObject({ globals, args: ['web'] });
});
