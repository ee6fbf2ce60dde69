import { fail } from '../../protocol/errors.ts';
import type { Failure } from '../../runtime/actor.ts';

/** The refusal of what an agent that waits for an answer cannot do, with the lines of its question. */
export const questionFailure = (message: string, lines: readonly string[]): Failure =>
  fail('agent_blocked', message, { details: lines.map((line) => ({ path: 'question', message: line })) });
