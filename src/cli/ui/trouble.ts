// Describes errors to the user.
import { isBerthError } from '../../client/errors.ts';
import { hintOf } from '../kit/error_hints.ts';

/** An error with its hint, on one line. */
export const troubleText = (error: unknown): string => {
  const message = error instanceof Error ? error.message : String(error);
  return [message, hintOf(error)].filter(Boolean).join('. ').replaceAll('\n', ' ');
};

/** Whether a server answers that denies the token, or that cannot prove that it knows the token. */
export const isRefusal = (error: unknown): boolean =>
  isBerthError(error) && (error.status === 401 || error.status === 403 || error.code === 'unproven');
