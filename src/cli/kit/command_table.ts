// The table of all commands, one row each, and the lookup of a row by the words of a call.
import type { Command } from './command.ts';

export interface CommandRow {
  /** One word, or two for a command of a family. */
  name: string;
  /** Other names, with the same number of words. */
  aliases?: readonly string[];
  /** One line, in lower case and without a full stop. */
  summary: string;
  /** Heading of its section in the help. */
  heading: string;
  /** The command works, but the help does not list it. */
  isHidden?: boolean;
  /** No agent may call it: it gives tokens, or administers the daemon. */
  isPersonal?: boolean;
  load: () => Promise<Command>;
}

export interface CommandTable {
  rows: readonly CommandRow[];
  /** The first word of each family of two-word commands, with the family's summary. */
  families: ReadonlyMap<string, string>;
}

/** A row of the table with its command loaded. */
export interface LoadedCommand {
  row: CommandRow;
  command: Command;
}

/** Finds the row for `words` by name or alias; a two-word name takes precedence over a one-word name. */
function findCommand({ rows }: CommandTable, words: readonly string[]): CommandRow | undefined {
  const [first = '', second] = words;
  const named = (wanted: string) =>
    rows.find(({ name, aliases }) => name === wanted || aliases?.includes(wanted));
  return (second === undefined ? undefined : named(`${first} ${second}`)) ?? named(first);
}

/** Finds the row for `words` and loads its command; undefined if no row matches. */
export async function loadCommand(
  table: CommandTable,
  words: readonly string[],
): Promise<LoadedCommand | undefined> {
  const row = findCommand(table, words);
  return row && { row, command: await row.load() };
}

/** Every row that help lists, with its command. */
export function loadListedCommands({ rows }: CommandTable): Promise<LoadedCommand[]> {
  const listed = rows.filter(({ isHidden }) => !isHidden);
  return Promise.all(listed.map(async (row) => ({ row, command: await row.load() })));
}
