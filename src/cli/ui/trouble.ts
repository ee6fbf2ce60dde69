// What is wrong, for people.
import { isBerthError } from '../../client/errors.ts';
import { hintOf } from '../kit/error_hints.ts';

/** An error with its hint, on one line. */
export const troubleText = (error: unknown): string => {
  const message = error instanceof Error ? error.message : String(error);
  return [message, hintOf(error)].filter(Boolean).join('. ').replaceAll('\n', ' ');
};

/** Whether something is there that does not accept the token, or does not know it. */
export const isRefusal = (error: unknown): boolean =>
  isBerthError(error) && (error.status === 401 || error.status === 403 || error.code === 'unproven');
