// Most calls have no options and skip the parser: their result must equal commander's.
import { describe, expect, it } from 'vitest';
import { COMMAND_TABLE } from '../../../src/cli/commands.ts';
import { type LoadedCommand, loadCommand, loadListedCommands } from '../../../src/cli/kit/command_table.ts';
import { commandWords } from '../../../src/cli/kit/global_options.ts';
import { type ParsedCall, parseCommandLine } from '../../../src/cli/kit/parser.ts';
import { readPlainCall } from '../../../src/cli/kit/plain_call.ts';

const called = async (name: string): Promise<LoadedCommand> => {
  const found = await loadCommand(COMMAND_TABLE, name.split(' '));
  if (!found) throw new Error(`there is no ${name}`);
  return found;
};
const parsed = (argv: string[], one: LoadedCommand | undefined): ParsedCall =>
  parseCommandLine(argv, COMMAND_TABLE, one);

describe.each(COMMAND_TABLE.rows.map(({ name }) => name))('berth %s', (name) => {
  it('is parsed the same way by the fast path', async () => {
    const one = await called(name);
    const takes = one.command.args ?? [];
    const least = takes.filter(({ syntax }) => syntax.startsWith('<')).length;
    const isVariadic = takes.some(({ syntax }) => syntax.includes('...'));
    for (let count = 0; count <= takes.length + 2; count += 1) {
      const words = Array.from({ length: count }, (_, at) => `word${at}`);
      const argv = [...name.split(' '), ...words];
      const plain = readPlainCall(argv, one);
      if (count < least || (count > takes.length && !isVariadic)) {
        expect(plain).toBeUndefined();
        expect(() => parsed(argv, one)).toThrow();
        continue;
      }
      const options = Object.entries(one.command.options ?? {}).map(([key, { defaultValue }]) => [
        key,
        defaultValue,
      ]);
      expect(plain).toEqual({
        args: words,
        options: Object.fromEntries(options),
        globals: { format: 'table', url: undefined, stateDir: undefined, config: undefined },
      });
      expect(parsed(argv, one)).toEqual(plain);
    }
  });

  it('has a help with its arguments and options', async () => {
    const one = await called(name);
    const outcome = parsed([...name.split(' '), '--help'], one);
    const help = 'help' in outcome ? outcome.help : '';
    for (const { about } of one.command.args ?? []) expect(help.replace(/\s+/g, ' ')).toContain(about);
    for (const { flags } of Object.values(one.command.options ?? {})) expect(help).toContain(flags);
    // Commands of examples are whole, to be copied, with what they do below them.
    expect(help.split('\n').filter((line) => line.length > 80 && !/^ {2}\S/.test(line))).toEqual([]);
    for (const [line, about] of one.command.examples ?? []) {
      const shown = help.split('\n').find((text) => text.includes(line) && !text.startsWith('Usage'));
      if ((shown?.length ?? 0) > 80) expect(shown).not.toContain(about);
    }
  });
});

it.each(['start', 'stop', 'restart', 'status'])('berth agent %s is described for agents', async (verb) => {
  const { command } = await called(`agent ${verb}`);
  expect(command.about).toContain('agent');
  expect((command.args ?? []).map(({ about }) => about).join()).toMatch(/^the agents?$/);
  for (const [line] of command.examples ?? []) expect(line).toContain('berth agent ');
});

it('everything after -- counts as arguments', async () => {
  const one = await called('add');
  const argv = ['add', 'web', '--', 'run', '-p', '--', 'x'];
  expect(readPlainCall(argv, one)?.args).toEqual(['web', 'run', '-p', '--', 'x']);
  expect(parsed(argv, one)).toMatchObject({ args: ['web', 'run', '-p', '--', 'x'] });
  expect(readPlainCall(['add', 'web', '-p', '1', '--', 'x'], one)).toBeUndefined();
});

it('global options may be before and after the command', async () => {
  const one = await called('ps');
  const globals = { format: 'jsonl', url: 'http://x', stateDir: '/s', config: '/c' };
  const given = ['-o', 'jsonl', '--url', 'http://x', '--state-dir=/s', '--config', '/c'];
  expect(parsed([...given, 'ps', '-q'], one)).toEqual({
    globals,
    args: [],
    options: {
      status: undefined,
      group: undefined,
      all: false,
      quiet: true,
      everyState: false,
      stack: undefined,
      project: undefined,
    },
  });
  expect(parsed(['ps', 'web', ...given], one)).toMatchObject({ globals, args: ['web'] });
});

it.each(['-v', '-V', '--version'])('%s prints the version', (flag) => {
  expect(parsed([flag], undefined)).toMatchObject({ version: true });
  const elsewhere = parsed(['--state-dir', '/elsewhere', flag], undefined);
  expect(elsewhere).toMatchObject({ version: true, globals: { stateDir: '/elsewhere' } });
});

it('ps -a is accepted, and logs --tail as logs -n', async () => {
  expect(parsed(['ps', '-a'], await called('ps'))).toMatchObject({ options: { everyState: true } });
  for (const name of ['logs', 'agent logs']) {
    const argv = [...name.split(' '), 'web', '--tail', '5'];
    expect(parsed(argv, await called(name))).toMatchObject({ args: ['web'], options: { tail: 5 } });
  }
});

describe.each([
  ['service install --print', 'daemon install'],
  ['--json k8s ls', 'k8s workloads'],
  ['list -q', 'ps'],
  ['validate -q', 'config'],
])('berth %s', (line, name) => {
  it(`calls ${name}`, async () => {
    const argv = line.split(' ');
    const one = await loadCommand(COMMAND_TABLE, commandWords(argv));
    expect(one?.row.name).toBe(name);
    expect(parsed(argv, one)).toMatchObject({ args: [] });
  });
});

it('the help of a command family explains the family, and how to learn more', async () => {
  const outcome = parseCommandLine(
    ['k8s'],
    COMMAND_TABLE,
    undefined,
    await loadListedCommands(COMMAND_TABLE),
  );
  const help = 'help' in outcome ? outcome.help : '';
  expect(help).toContain('\nPut Kubernetes workloads to sleep, wake them and connect to them.\n');
  expect(help).toContain('`berth help k8s <command>` describes a command.');
});

it('the help lists every command with its arguments', async () => {
  const listed = await loadListedCommands(COMMAND_TABLE);
  const outcome = parseCommandLine(['--help'], COMMAND_TABLE, undefined, listed);
  const help = 'help' in outcome ? outcome.help : '';
  expect(help).toMatch(/^ {2}start \[names\.\.\.\]/m);
  expect(help).toMatch(/^ {2}url <name>/m);
  expect(help).not.toContain('__complete');
  expect(help.split('\n').filter((line) => line.length > 80)).toEqual([]);
});

it.each([
  ['nothing', '--help'],
  ['-h', 'nothing'],
  ['k8s', 'nothing', '--help'],
])('the help of a command that does not exist is a usage error: berth %s %s', async (...argv) => {
  const listed = await loadListedCommands(COMMAND_TABLE);
  expect(() => parseCommandLine(argv, COMMAND_TABLE, undefined, listed)).toThrow(
    /unknown command 'nothing'|too many arguments/,
  );
  expect(parseCommandLine(['k8s', '--help'], COMMAND_TABLE, undefined, listed)).toMatchObject({
    help: expect.stringContaining('berth k8s'),
  });
});

it('a command of other tools is answered with the one of Berth', async () => {
  const listed = await loadListedCommands(COMMAND_TABLE);
  const wrong = (): unknown => parseCommandLine(['scale', 'web=3'], COMMAND_TABLE, undefined, listed);
  expect(wrong).toThrow(expect.objectContaining({ hint: expect.stringContaining('one process') }));
});

it('an unknown word after a command family is answered with its commands', async () => {
  const listed = await loadListedCommands(COMMAND_TABLE);
  const wrong = (): unknown => parseCommandLine(['agent', 'nothing'], COMMAND_TABLE, undefined, listed);
  expect(wrong).toThrow(
    expect.objectContaining({ hint: expect.stringMatching(/^`berth agent` has .*\bspinup, /) }),
  );
});

it('a command family with options but without a command is answered with its commands', async () => {
  const listed = await loadListedCommands(COMMAND_TABLE);
  const wrong = (): unknown => parseCommandLine(['group', '--json'], COMMAND_TABLE, undefined, listed);
  expect(wrong).toThrow(
    expect.objectContaining({
      message: '`berth group` needs a command',
      hint: '`berth group` has ls, start, stop, restart.',
    }),
  );
});
