// berth help
import { type Command, defineCommand } from '../kit/command.ts';
import { type CommandTable, loadCommand, loadListedCommands } from '../kit/command_table.ts';
import { UsageError } from '../kit/exit_codes.ts';
import type { Output } from '../kit/output.ts';

/** Prints a help text, as JSON if the output format is JSON. */
function printHelp(out: Output, help: string): void {
  if (out.isData) out.record({ help }, () => help);
  else out.raw(help);
}

/** The command that prints the help of another command in `table`, as that command's --help does. */
export const helpCommand = (table: CommandTable): Command =>
  defineCommand({
    args: [{ syntax: '[command...]', about: 'the command, such as up or group start' }],
    examples: [['berth help up', 'the same as berth up --help']],
    run: async (context, words) => {
      const called = await loadCommand(table, words);
      const isKnown = words.length === 0 || called || table.families.has(words.join(' '));
      if (!isKnown)
        throw new UsageError(`there is no command ${words.join(' ')}`, '`berth help` lists the commands.');
      const { parseCommandLine } = await import('../kit/parser.ts');
      const listed = called ? [] : await loadListedCommands(table);
      const outcome = parseCommandLine([...words, '--help'], table, called, listed);
      if ('help' in outcome) printHelp(context.out, outcome.help);
    },
  });
