import { fail } from '../../protocol/errors.ts';
import type { Failure } from '../../runtime/actor.ts';

/**
 * The refusal of a request that an agent waiting for an answer cannot serve, with the lines of its question.
 */
export const questionFailure = (message: string, lines: readonly string[]): Failure =>
  fail('agent_blocked', message, { details: lines.map((line) => ({ path: 'question', message: line })) });
