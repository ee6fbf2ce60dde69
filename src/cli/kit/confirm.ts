// Asks the user to confirm an action.
import { createInterface } from 'node:readline/promises';
import type { CommandContext } from './context.ts';
import { UsageError } from './exit_codes.ts';
import { sanitize } from './sanitize.ts';
import { stderr } from './standard_streams.ts';

/** Whether the command can ask the user: stdin is a terminal, and the output is not JSON. */
export const canAsk = ({ out }: CommandContext): boolean => process.stdin.isTTY === true && !out.isData;

/** Asks `question`; true if the user answers yes. Throws a UsageError if the user cannot be asked. */
export async function isAgreed(context: CommandContext, question: string): Promise<boolean> {
  if (!canAsk(context)) throw new UsageError('nobody can be asked here', 'Pass --yes.');
  const lines = createInterface({ input: process.stdin, output: stderr() });
  try {
    return /^y(es)?$/i.test((await lines.question(`${sanitize(question)} [y/N] `)).trim());
  } finally {
    lines.close();
  }
}
