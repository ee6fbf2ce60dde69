// The command line: finds and loads the command, runs it with its arguments, and turns an error into a
// message and an exit code.
import { rejoinAgent } from '../adapters/process/agent_ancestor.ts';
import { isBerthError } from '../client/errors.ts';
import { agentKeyOf } from '../client/local_daemon.ts';
import { printVersion } from './commands/version.ts';
import { COMMAND_TABLE } from './commands.ts';
import { type LoadedCommand, loadCommand, loadListedCommands } from './kit/command_table.ts';
import { type CommandContext, createCommandContext, type GlobalOptions } from './kit/context.ts';
import { hintOf } from './kit/error_hints.ts';
import { CommandError, EXIT_CODE, exitCodeOf } from './kit/exit_codes.ts';
import { commandWords } from './kit/global_options.ts';
import type { ParsedCall } from './kit/parser.ts';
import { readPlainCall } from './kit/plain_call.ts';
import { safeJson, sanitize } from './kit/sanitize.ts';
import { hangUp, stderr, stdout } from './kit/standard_streams.ts';

const OWN_ERRORS = [
  ...['UsageError', 'CommandError', 'SettingsError', 'StateFileError', 'ProjectError'],
  ...['KubeconfigError', 'LoginError'],
];

const DEFECT_HINT =
  'This is a defect in berth, or something else than berth answers there. With BERTH_DEBUG=1 it says where.';

/** An error as --json prints it: the daemon's error body, or one of the same form. */
function toErrorBody(error: unknown): { code: string; message: string; hint: string } {
  if (isBerthError(error)) return error.toJSON();
  if (!(error instanceof Error)) return { code: 'internal', message: String(error), hint: '' };
  const isOurs = OWN_ERRORS.includes(error.name);
  const hint = 'hint' in error && typeof error.hint === 'string' ? error.hint : '';
  if (isOurs)
    return { code: exitCodeOf(error) === EXIT_CODE.usage ? 'usage' : 'failed', message: error.message, hint };
  const { code, syscall, message, name } = error as NodeJS.ErrnoException;
  if (syscall === 'uv_cwd')
    return { code: 'failed', message: 'the current folder has been removed', hint: '' };
  // A system error about a file or an address is not a defect of Berth.
  if (code !== undefined && syscall !== undefined) return { code: 'failed', message, hint: '' };
  const [line = ''] = message.split('\n');
  const text = process.env['BERTH_DEBUG'] ? (error.stack ?? message) : `${name}: ${line}`;
  return { code: 'internal', message: text, hint: DEFECT_HINT };
}

/** Whether `argv` asks for JSON. Searches its words, because it may not be a valid call. */
const asksForJson = (argv: readonly string[]): boolean =>
  argv.some(
    (word, at) => word === '--json' || (/^json/.test(word) && /^(-o|--output)$/.test(argv[at - 1] ?? '')),
  );

function reportError(error: unknown, argv: readonly string[]): void {
  const body = toErrorBody(error);
  const hint = isBerthError(error) ? hintOf(error) : body.hint;
  const text = [`berth: ${body.message}`, hint].filter(Boolean).map(sanitize).join('\n');
  stderr().write(`${asksForJson(argv) ? safeJson(body) : text}\n`);
}

/**
 * Ctrl-C, SIGTERM and a closed terminal restore the terminal and end the command at once. The daemon still
 * completes what was requested.
 */
function endOnSignals(interrupt: () => void): void {
  for (const [signal, code] of [
    ['SIGINT', EXIT_CODE.interrupted],
    ['SIGTERM', EXIT_CODE.terminated],
  ] as const) {
    // Not `once`: npm sends a second signal at once, which would end the process before the terminal is
    // restored.
    process.on(signal, () => {
      interrupt();
      process.exit(code);
    });
  }
  process.on('SIGHUP', () => {
    try {
      interrupt();
    } finally {
      hangUp();
    }
  });
}

async function runInContext(
  globals: GlobalOptions,
  work: (context: CommandContext) => Promise<number | undefined>,
): Promise<number> {
  const { context, interrupt } = createCommandContext(globals);
  endOnSignals(interrupt);
  return (await work(context)) ?? EXIT_CODE.ok;
}

const PERSONAL_HINT = 'Call it from a shell of your own.';

/** Parses calls that `readPlainCall` does not. Loads the parser and, to list commands, all of them. */
async function parse(argv: readonly string[], called: LoadedCommand | undefined): Promise<ParsedCall> {
  const { parseCommandLine } = await import('./kit/parser.ts');
  const listed = called ? [] : await loadListedCommands(COMMAND_TABLE);
  return parseCommandLine(argv, COMMAND_TABLE, called, listed);
}

async function runCommandLine(argv: readonly string[]): Promise<number> {
  const called = await loadCommand(COMMAND_TABLE, commandWords(argv));
  const plain = called && readPlainCall(argv, called);
  // Loaded only here: see readPlainCall.
  const outcome = plain ?? (await parse(argv, called));
  if ('help' in outcome) {
    stdout().write(asksForJson(argv) ? `${safeJson({ help: outcome.help })}\n` : outcome.help);
    return EXIT_CODE.ok;
  }
  const { globals } = outcome;
  rejoinAgent(process.env, globals);
  if ('version' in outcome || !called) return runInContext(globals, printVersion);
  if (called.row.isPersonal && agentKeyOf(process.env))
    throw new CommandError(`berth ${called.row.name} is a person's alone, and not an agent's`, PERSONAL_HINT);
  return runInContext(globals, (context) => called.command.run(context, outcome.args, outcome.options));
}

/** Runs the command line `argv` (without node and script) and sets the exit code of the process. */
export async function main(argv: string[]): Promise<void> {
  try {
    process.exitCode = await runCommandLine(argv);
  } catch (error) {
    process.exitCode = exitCodeOf(error);
    reportError(error, argv);
  }
}
