// Parses a command line with commander: options, help, suggestions. No other file imports commander. The
// parser is loaded only for calls that readPlainCall does not read.
import {
  Argument as CommanderArgument,
  Command as CommanderCommand,
  CommanderError,
  Option as CommanderOption,
  InvalidArgumentError,
} from 'commander';
import type { Command, Option } from './command.ts';
import type { CommandRow, CommandTable, LoadedCommand } from './command_table.ts';
import type { GlobalOptions } from './context.ts';
import { exitCodesHelp, isErrorNamed, UsageError } from './exit_codes.ts';
import { commandWords, GLOBAL_OPTIONS, withCommandName } from './global_options.ts';
import { FORMATS } from './output.ts';
import type { CommandCall } from './plain_call.ts';

/** What a call asks for: help, the version, or a command. */
export type ParsedCall = { help: string } | { globals: GlobalOptions; version: true } | CommandCall;

/** The parser of an option in commander's form: a wrong value becomes commander's error. */
function toArgParser(option: Option<unknown>) {
  const { parse } = option;
  if (!parse) return undefined;
  return (value: string, before: unknown): unknown => {
    try {
      return parse(value, before ?? option.defaultValue);
    } catch (error) {
      throw isErrorNamed(error, 'UsageError') ? new InvalidArgumentError(`It ${error.message}.`) : error;
    }
  };
}

function toCommanderOption(option: Option<unknown>): CommanderOption {
  const made = new CommanderOption(option.flags, option.about);
  const parse = toArgParser(option);
  if (parse) made.argParser(parse);
  return made;
}

const DESCRIPTION =
  'Berth runs and supervises your local services and AI agents. ' +
  'It also puts Kubernetes workloads to sleep, wakes them, and connects local ports to them.';

/** The terminal width that every help text fits. */
const HELP_COLUMNS = 80;

const EPILOGUE = `
\`berth help <command>\` describes a command.
Every command takes the options above.

Exit codes:
${exitCodesHelp()}
`;

const GLOBAL_OPTIONS_LINE = `
Every command also takes ${GLOBAL_OPTIONS.map(({ flags }) => flags.replace(/ <.*/, '')).join(', ')}:
see \`berth help\`.
`;

function createProgram(write: (text: string) => void): CommanderCommand {
  const program = new CommanderCommand('berth')
    .description(DESCRIPTION)
    .exitOverride()
    .configureOutput({ writeOut: write, writeErr: () => {}, outputError: () => {} })
    .helpCommand(false)
    .helpOption('-h, --help', 'show this help')
    .option('-v, --version', 'print the version of berth and of the daemon')
    .addOption(new CommanderOption('-V').hideHelp())
    .addHelpText('after', EPILOGUE);
  for (const { flags, about } of GLOBAL_OPTIONS) program.option(flags, about);
  return program;
}

/** The summary of a command as a sentence. */
const asSentence = (summary: string): string => `${summary[0]?.toUpperCase()}${summary.slice(1)}.`;

/** The parent of a command: the program, or the command's family. */
function parentProgram(
  program: CommanderCommand,
  { name, heading }: CommandRow,
  families: CommandTable['families'],
): CommanderCommand {
  const [family, second] = name.split(' ');
  if (second === undefined || family === undefined) return program;
  const existing = program.commands.find((one) => one.name() === family);
  if (existing) return existing;
  const about = families.get(family) ?? '';
  return program
    .command(family)
    .summary(about)
    .description(asSentence(about))
    .helpCommand(false)
    .helpGroup(`${heading}:`)
    .addHelpText('after', `\n\`berth help ${family} <command>\` describes a command.\n`);
}

const lastWord = (name: string): string => name.split(' ').at(-1) ?? name;
/** An alias in another family is an earlier name of the command, which no help lists. */
const isInSameFamily = ({ name }: CommandRow, alias: string): boolean =>
  name.slice(0, -lastWord(name).length) === alias.slice(0, -lastWord(alias).length);

/** Adds a command from its row, without loading it: enough for the list of commands and for suggestions. */
function addCommandRow(
  program: CommanderCommand,
  row: CommandRow,
  families: CommandTable['families'],
): CommanderCommand {
  const existing = program.commands.find((one) => one.name() === row.name);
  if (existing) return existing;
  const made = parentProgram(program, row, families)
    .command(lastWord(row.name), { hidden: row.isHidden === true })
    .description(families.get(row.name) ?? row.summary)
    .helpCommand(false);
  for (const alias of row.aliases ?? []) if (isInSameFamily(row, alias)) made.alias(lastWord(alias));
  if (!row.name.includes(' ')) made.helpGroup(`${row.heading}:`);
  return made;
}

function examplesText(command: Command): string {
  const rows = command.examples ?? [];
  if (rows.length === 0) return '';
  const width = Math.max(...rows.map(([line]) => line.length));
  const isWide = rows.some(([, about]) => `  ${' '.repeat(width)}  ${about}`.length > HELP_COLUMNS);
  // Example commands stay on one line, because users copy them.
  const lines = rows.map(([line, about]) =>
    isWide ? `  ${line}\n      ${about}` : `  ${line.padEnd(width)}  ${about}`,
  );
  return `\nExamples:\n${lines.join('\n')}\n`;
}

function addArguments(made: CommanderCommand, { args = [] }: Command): void {
  for (const { syntax, about } of args) made.addArgument(new CommanderArgument(syntax, about));
}

/** Adds the called command with its arguments and options; `called` receives their values. */
function addCalled(
  program: CommanderCommand,
  { rows, families }: CommandTable,
  { row, command }: LoadedCommand,
  called: (args: string[], options: Record<string, unknown>) => void,
): void {
  // `daemon` is both a command and a family: its help lists the commands of the family too.
  for (const one of rows) if (one.name.startsWith(`${row.name} `)) addCommandRow(program, one, families);
  const made = addCommandRow(program, row, families);
  made.description(`${asSentence(row.summary)}${command.about ? `\n\n${command.about}` : ''}`);
  addArguments(made, command);
  const parameters = Object.entries(command.options ?? {}).map(([key, option]) => ({
    key,
    option,
    made: toCommanderOption(option),
  }));
  for (const one of parameters) made.addOption(one.made);
  made.addHelpText('after', `${examplesText(command)}${GLOBAL_OPTIONS_LINE}`);
  made.action(() => {
    const values = made.opts();
    const given = parameters.map(({ key, option, made: one }) => [
      key,
      values[one.attributeName()] ?? option.defaultValue,
    ]);
    called(made.args, Object.fromEntries(given));
  });
}

function globalOptionsOf(program: CommanderCommand): GlobalOptions {
  const given = program.opts();
  const asked: string = given['output'] ?? (given['json'] ? 'json' : 'table');
  const format = FORMATS.find((one) => one === asked);
  if (!format) throw new UsageError(`-o must be one of ${FORMATS.join(', ')}, not ${asked}`);
  return { format, url: given['url'], stateDir: given['stateDir'], config: given['config'] };
}

/** Hints for commands that other tools have and Berth does not. */
const HINTS_FOR_OTHERS: readonly (readonly [message: string, hint: string])[] = [
  [
    "unknown command 'scale'",
    'A service is one process: register another one for each copy, such as web-2. `berth k8s sleep` and ' +
      '`berth k8s wake` scale workloads.',
  ],
];

/** The commands of the family that `words` begin with, such as `k8s`; undefined: they begin with none. */
function familyHint(program: CommanderCommand, [first]: readonly string[]): string | undefined {
  const family = program.commands.find((one) => one.name() === first);
  if (!family || family.commands.length === 0) return undefined;
  return `\`berth ${first}\` has ${family.commands.map((one) => one.name()).join(', ')}.`;
}

/** A mistake in `argv` that commander found, as a UsageError. */
function toUsageError(program: CommanderCommand, argv: readonly string[], error: CommanderError): UsageError {
  // Commander shows the help of a family that is called without a command, such as `k8s --json`.
  if (error.code === 'commander.help') {
    const words = commandWords(argv);
    return new UsageError(`\`berth ${words[0]}\` needs a command`, familyHint(program, words));
  }
  const message = error.message.replace(/^error: /, '').replace(/\n\(/, ' (');
  const isUnknown = message.startsWith('unknown command');
  const own = HINTS_FOR_OTHERS.find(([start]) => message.startsWith(start))?.[1];
  return new UsageError(
    message,
    own ??
      (isUnknown ? familyHint(program, commandWords(argv)) : undefined) ??
      '`berth help` lists the commands, `berth help <command>` the options of one.',
  );
}

/** Whether `words` name a command of `program`; true for no words. */
function isCommand(program: CommanderCommand, [first, second]: readonly string[]): boolean {
  const named = (parent: CommanderCommand, name: string) =>
    parent.commands.find((one) => one.name() === name || one.aliases().includes(name));
  if (first === undefined) return true;
  const family = named(program, first);
  return family !== undefined && (second === undefined || named(family, second) !== undefined);
}

/**
 * Parses `argv`. `called` is the command that it names; if it names none, help lists the commands `listed`.
 * Throws a UsageError that names the mistake, with a suggestion if a known word is similar.
 */
export function parseCommandLine(
  argv: readonly string[],
  table: CommandTable,
  called: LoadedCommand | undefined,
  listed: readonly LoadedCommand[] = [],
): ParsedCall {
  let help = '';
  const program = createProgram((text) => {
    help += text;
  });
  let outcome: ParsedCall | undefined;
  let words = argv;
  if (called) {
    words = withCommandName(argv, called.row.name);
    addCalled(program, table, called, (args, options) => {
      outcome = { globals: globalOptionsOf(program), args, options };
    });
  } else {
    for (const { row, command } of listed) addArguments(addCommandRow(program, row, table.families), command);
    const family = program.commands.find((one) => one.name() === argv[0] && argv.length === 1);
    if (family) {
      family.outputHelp();
      return { help };
    }
    if (argv.length === 0) return { help: program.helpInformation() };
    // The help of a command that does not exist would hide the mistake.
    if (!isCommand(program, commandWords(argv)))
      words = argv.filter((word) => word !== '--help' && word !== '-h');
    // Commander suggests a command only while the program has no action of its own.
    if (commandWords(argv).length === 0) {
      program.action(() => {
        if (program.opts()['version'] || program.opts()['V'])
          outcome = { globals: globalOptionsOf(program), version: true };
      });
    }
  }
  try {
    program.parse(words, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return { help };
    throw toUsageError(program, argv, error);
  }
  return outcome ?? { help: program.helpInformation() };
}
