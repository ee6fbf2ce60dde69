// Cloud operations: a requested change of the cloud part, as a row with an id.
// docs/reference.md "Operations and retries".
import type { CloudSubject } from './cloud_events.ts';
import type { ErrorCode, FailureDetail } from './errors.ts';

/**
 * `asked`: under way, or interrupted by the end of the daemon. `done`: it has its final result, which may be
 * an error that no retry can fix. `failed`: it may be tried again with the same key.
 */
export const OPERATION_STATES = ['asked', 'done', 'failed'] as const;
export type OperationState = (typeof OPERATION_STATES)[number];

/** The reason of an operation whose response the end of the daemon prevented. */
export const CUT_OFF = 'the daemon ended before it had answered';

export interface OperationFailure extends FailureDetail {
  code: ErrorCode;
  message: string;
}

/** The result of an operation. */
export interface OperationResult {
  /** The answer as JSON; null: it failed, or was interrupted. */
  answer: string | null;
  failure: OperationFailure | null;
  /** For the audit log; null if there is nothing to add. Must not contain a secret. */
  reason: string | null;
}

/** What is requested, and by whom. */
export interface OperationRequest {
  /** From the header Idempotency-Key; null if none. */
  key: string | null;
  /** A hash of the request: one key may only be used for one request. */
  fingerprint: string;
  /** The operation's name in the API, such as `sleepWorkload`. */
  action: string;
  /** Who asks, and from which address; `from` is null for a policy. */
  who: string;
  from: string | null;
  subject: CloudSubject;
  /**
   * The name or id in the request's path. Stored for removals: null if there is nothing to remove, so that a
   * removal that was carried out can be told from one that found nothing.
   */
  target?: string | null | undefined;
}

export interface StoredOperation extends OperationRequest {
  id: string;
  /** Epoch milliseconds. */
  askedAt: number;
  state: OperationState;
  /** null: still under way. */
  settledAt: number | null;
  result: OperationResult | null;
  /** Whether its end is in the event journal. */
  isTold: boolean;
}

/**
 * How an operation ended: `ok`, the code of its error, or `interrupted` by the end of the daemon. null: it is
 * under way.
 */
export function resultCodeOf({ state, result }: StoredOperation): string | null {
  if (state === 'asked') return null;
  return result?.failure?.code ?? (state === 'failed' ? 'interrupted' : 'ok');
}

export interface CloudOperationsProtocol {
  /**
   * Stores the operation before anything is done. A known key returns the existing operation: one under way
   * is waited for, one that is done is not repeated. `run`: the caller must carry it out under this id and
   * call `settle` afterwards. Fails key_reused; storage_full, also while
   * the ends of too many operations wait for the journal.
   */
  begin(message: { request: OperationRequest }): { id: string; run: boolean; result: OperationResult | null };
  /**
   * Replies once the result and its event are on disk, or the journal has refused the event. It is then
   * written as soon as the journal takes it. The reply has the result of the operation as a whole: a retry
   * that finds nothing left to remove was preceded by an attempt that has removed it. `isWithdrawn`: nothing
   * was changed, because it was no longer wanted; that is no event.
   */
  settle(message: { id: string; subject: CloudSubject; result: OperationResult; isWithdrawn?: boolean }): {
    result: OperationResult;
  };
  /** null: unknown, or deleted since. */
  read(message: { id: string }): { operation: StoredOperation | null };
}
