// Asks the user before something is done.
import { createInterface } from 'node:readline/promises';
import type { CommandContext } from './context.ts';
import { UsageError } from './exit_codes.ts';
import { sanitize } from './sanitize.ts';
import { stderr } from './standard_streams.ts';

/** Whether there is somebody who can be asked. */
export const canAsk = ({ out }: CommandContext): boolean => process.stdin.isTTY === true && !out.isData;

/** Whether the user agrees to `question`. Throws a UsageError where nobody can be asked. */
export async function isAgreed(context: CommandContext, question: string): Promise<boolean> {
  if (!canAsk(context)) throw new UsageError('nobody can be asked here', 'Pass --yes.');
  const lines = createInterface({ input: process.stdin, output: stderr() });
  try {
    return /^y(es)?$/i.test((await lines.question(`${sanitize(question)} [y/N] `)).trim());
  } finally {
    lines.close();
  }
}
