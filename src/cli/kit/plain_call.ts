// Reads calls without options, which are the most common, without the parser.
import type { LoadedCommand } from './command_table.ts';
import type { GlobalOptions } from './context.ts';

/** The global options, arguments and options of one call. */
export interface CommandCall {
  globals: GlobalOptions;
  args: string[];
  options: Record<string, unknown>;
}

const DEFAULT_GLOBAL_OPTIONS: GlobalOptions = {
  format: 'table',
  url: undefined,
  stateDir: undefined,
  config: undefined,
};

/**
 * Reads the call of `command` in `argv`; undefined if `argv` has options or the wrong number of arguments,
 * so that the parser must read it. Words after `--` are arguments.
 *
 * This is the one exception to "the parser reads the command line". Loading commander takes 3 ms of the 20 ms
 * that `berth url` takes beyond starting Node, and completion runs at every press of Tab. A test checks that
 * the result equals the parser's for every command.
 */
export function readPlainCall(
  argv: readonly string[],
  { row, command }: LoadedCommand,
): CommandCall | undefined {
  const end = argv.indexOf('--');
  const before = end < 0 ? argv : argv.slice(0, end);
  if (before.some((word) => word.startsWith('-'))) return undefined;
  const args = [...before.slice(row.name.split(' ').length), ...(end < 0 ? [] : argv.slice(end + 1))];
  const takes = command.args ?? [];
  const least = takes.filter(({ syntax }) => syntax.startsWith('<')).length;
  const most = takes.some(({ syntax }) => syntax.includes('...')) ? Number.POSITIVE_INFINITY : takes.length;
  if (args.length < least || args.length > most) return undefined;
  const options = Object.entries(command.options ?? {}).map(([key, { defaultValue }]) => [key, defaultValue]);
  return { globals: DEFAULT_GLOBAL_OPTIONS, args, options: Object.fromEntries(options) };
}
