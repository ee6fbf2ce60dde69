// The command line: finds the command, loads it, has parsed what was given, runs it, and turns what went wrong into a message
// and an exit code.
import { isBerthError } from '../client/errors.ts';
import { type Cli, cliOf, type Globals } from './cli.ts';
import type { Command } from './command.ts';
import { COMMANDS, FAMILIES, findCommand } from './commands.ts';
import { EXIT, exitCodeOf } from './exit.ts';
import { words } from './globals.ts';
import { plain } from './plain.ts';
import { stderr, stdout } from './streams.ts';
import { version } from './version.ts';

/** What an error is to a user: one message, what to do, and with --json the daemon's error body. */
function messageOf(error: unknown): { code: string; message: string; hint: string } {
  if (isBerthError(error)) return error.toJSON();
  if (!(error instanceof Error)) return { code: 'internal', message: String(error), hint: '' };
  const isOurs = ['UsageError', 'CommandError', 'SettingsError', 'ProjectError'].includes(error.name);
  const hint = 'hint' in error && typeof error.hint === 'string' ? error.hint : '';
  if (isOurs)
    return { code: exitCodeOf(error) === EXIT.usage ? 'usage' : 'failed', message: error.message, hint };
  return { code: 'internal', message: error.stack ?? error.message, hint: 'This is a defect in berth.' };
}

function report(error: unknown, argv: readonly string[]): void {
  const said = messageOf(error);
  const isData = argv.some(
    (word, at) => word === '--json' || (/^json/.test(word) && /^(-o|--output)$/.test(argv[at - 1] ?? '')),
  );
  const hint = said.hint ? `\n${plain(said.hint)}` : '';
  const text = isData ? JSON.stringify(said) : `berth: ${plain(said.message)}${hint}`;
  stderr().write(`${text}\n`);
}

/** Ctrl-C ends the command at once, after the terminal has been put right; what the daemon was asked to do goes on. */
function endOnSignals(interrupt: () => void): void {
  for (const [signal, code] of [
    ['SIGINT', EXIT.interrupted],
    ['SIGTERM', EXIT.terminated],
  ] as const) {
    // Not once: the next one, which `npm` and an impatient user send at once, would end it in the middle of this.
    process.on(signal, () => {
      interrupt();
      process.exit(code);
    });
  }
}

async function call(globals: Globals, work: (cli: Cli) => Promise<number | undefined>): Promise<number> {
  const { cli, interrupt } = cliOf(globals);
  endOnSignals(interrupt);
  return (await work(cli)) ?? EXIT.ok;
}

const NO_GLOBALS: Globals = { format: 'table', url: undefined, stateDir: undefined, config: undefined };

/**
 * The arguments of a call that has no options, as most have none; undefined when it needs to be parsed after all. What
 * comes after `--` is no option.
 */
export function argumentsAlone(
  argv: readonly string[],
  name: string,
  command: Command,
): string[] | undefined {
  const end = argv.indexOf('--');
  const before = end < 0 ? argv : argv.slice(0, end);
  if (before.some((word) => word.startsWith('-'))) return undefined;
  const given = [...before.slice(name.split(' ').length), ...(end < 0 ? [] : argv.slice(end + 1))];
  const takes = command.args ?? [];
  const least = takes.filter(({ syntax }) => syntax.startsWith('<')).length;
  const most = takes.some(({ syntax }) => syntax.includes('...')) ? Number.POSITIVE_INFINITY : takes.length;
  return given.length >= least && given.length <= most ? given : undefined;
}

async function run(argv: readonly string[]): Promise<number> {
  const [first, second] = words(argv);
  const row = first === undefined ? undefined : findCommand(first, second);
  const command = await row?.load();
  const alone = row && command && argumentsAlone(argv, row.name, command);
  if (alone) {
    const options = Object.entries(command.options ?? {}).map(([key, { fallback }]) => [key, fallback]);
    return call(NO_GLOBALS, (cli) => command.run(cli, alone, Object.fromEntries(options)));
  }
  const { parse } = await import('./parser.ts');
  const called = row && command ? { row, command } : undefined;
  const outcome = parse(argv, { commands: COMMANDS, families: FAMILIES, called });
  if ('help' in outcome) {
    stdout().write(outcome.help);
    return EXIT.ok;
  }
  const { globals } = outcome;
  if ('version' in outcome || !command) return call(globals, version);
  return call(globals, (cli) => command.run(cli, outcome.args, outcome.options));
}

/** Runs the command line `argv` (without node and script) and sets the exit code of the process. */
export async function main(argv: string[]): Promise<void> {
  try {
    process.exitCode = await run(argv);
  } catch (error) {
    process.exitCode = exitCodeOf(error);
    report(error, argv);
  }
}
