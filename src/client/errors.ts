// The error class of the client: an error of the daemon, or the reason for a missing answer.
import type { ErrorCode } from '../protocol/errors.ts';

/** Codes of the client itself. All other codes are the daemon's: docs/reference.md "Errors". */
export type ClientErrorCode =
  | 'unreachable'
  | 'deadline'
  | 'bad_answer'
  | 'closed'
  | 'unproven'
  | 'login_needed'
  | 'issuer_unreachable';

export interface FieldError {
  path: string;
  message: string;
}

/** Compare `code`, never the class: another bundle has its own copy of it. */
export class BerthError extends Error {
  override readonly name = 'BerthError';
  readonly code: ErrorCode | ClientErrorCode | (string & {});
  /** The HTTP status; 0 without an answer. */
  readonly status: number;
  readonly hint: string;
  /** For `invalid_spec`: every wrong field. */
  readonly details: readonly FieldError[];
  /** For a 503: the wait that the daemon asks for, in milliseconds. */
  readonly retryAfterMs: number | null;

  constructor(
    code: BerthError['code'],
    message: string,
    more: {
      status?: number;
      hint?: string;
      details?: readonly FieldError[];
      retryAfterMs?: number | null;
    } = {},
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.code = code;
    this.status = more.status ?? 0;
    this.hint = more.hint ?? '';
    this.details = more.details ?? [];
    this.retryAfterMs = more.retryAfterMs ?? null;
  }

  /** The daemon's error body, as `--json` prints it. */
  toJSON(): { code: string; message: string; hint: string; details?: readonly FieldError[] } {
    const { code, message, hint, details } = this;
    return details.length > 0 ? { code, message, hint, details } : { code, message, hint };
  }
}

/** Whether `error` is a BerthError. Goes by its shape, because each bundle has its own copy of the class. */
export function isBerthError(error: unknown): error is BerthError {
  return error instanceof Error && error.name === 'BerthError' && 'code' in error && 'status' in error;
}

/** Whether a retry may help: no answer, a broken one, or a server that is shutting down. */
export const isRetryable = (error: BerthError): boolean => error.status === 0 || error.status >= 500;

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

function fieldErrors(value: unknown): FieldError[] {
  if (!Array.isArray(value)) return [];
  return value.map((row: { path?: unknown; message?: unknown } | null) => ({
    path: text(row?.path),
    message: text(row?.message),
  }));
}

/**
 * The error for an answer other than 2xx. Without our error body (from a proxy or another server) it is
 * `bad_answer`.
 */
export function errorFromAnswer(status: number, retryAfter: string | null, body: string): BerthError {
  const seconds = Number(retryAfter ?? Number.NaN);
  const retryAfterMs = Number.isFinite(seconds) ? seconds * 1000 : null;
  let value: { code?: unknown; message?: unknown; hint?: unknown; details?: unknown } | null;
  try {
    value = JSON.parse(body);
  } catch {
    value = null;
  }
  if (typeof value?.code !== 'string' || typeof value.message !== 'string') {
    return new BerthError('bad_answer', `the answer was HTTP ${status} without an error body of berth`, {
      status,
      hint: 'Check that berth is listening there.',
      retryAfterMs,
    });
  }
  const details = fieldErrors(value.details);
  return new BerthError(value.code, value.message, { status, hint: text(value.hint), details, retryAfterMs });
}
