// Reads a call without options, which most calls are, without the parser.
import type { LoadedCommand } from './command_table.ts';
import type { GlobalOptions } from './context.ts';

/** A command with all it is called with. */
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
 * What `argv` calls `command` with; undefined when `argv` has options or the wrong number of arguments, and
 * the parser must read it. Words after `--` are arguments.
 *
 * This is the one exception to "the parser reads the command line". Loading commander takes 3 ms of the 20 ms
 * that `berth url` takes beyond starting Node, and completion runs at every press of Tab. A test holds the
 * result equal to the parser's for every command.
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
