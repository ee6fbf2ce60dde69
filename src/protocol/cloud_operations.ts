// Cloud operations: a change of the cloud part that was asked for, as a row with an id.
// docs/reference.md "Operations and retries".
import type { CloudSubject } from './cloud_events.ts';
import type { ErrorCode, FailureDetail } from './errors.ts';

/**
 * `asked`: under way, or cut off by the end of the daemon; `done`: it has its final result, also an error
 * that no retry can mend; `failed`: it may be tried again with the same key.
 */
export const OPERATION_STATES = ['asked', 'done', 'failed'] as const;
export type OperationState = (typeof OPERATION_STATES)[number];

export interface OperationFailure extends FailureDetail {
  code: ErrorCode;
  message: string;
}

/** How an operation has ended. */
export interface OperationResult {
  /** The answer as JSON; null: it has failed. */
  answer: string | null;
  failure: OperationFailure | null;
  /** For the audit log; null: nothing more. Holds no secret. */
  reason: string | null;
}

/** What is asked for, by whom. */
export interface OperationRequest {
  /** Of the header Idempotency-Key; null: none. */
  key: string | null;
  /** The hash of what is asked for: the same key stands for the same. */
  fingerprint: string;
  /** The API's name of it, such as `sleepWorkload`. */
  action: string;
  /** Who asks, and from which address; null: a policy does. */
  who: string;
  from: string | null;
  subject: CloudSubject;
}

export interface StoredOperation extends OperationRequest {
  id: string;
  /** Epoch milliseconds. */
  askedAt: number;
  state: OperationState;
  /** null: it is under way. */
  settledAt: number | null;
  result: OperationResult | null;
  /** Whether its end is in the journal of events. */
  isTold: boolean;
}

export interface CloudOperationsProtocol {
  /**
   * Stores the operation before anything is done. With a key that is known it is that operation: one under
   * way is waited for, one that is done is not done again. `run`: the caller does it under this id, and says
   * `settle` when it has ended. Fails key_reused, storage_full.
   */
  begin(message: { request: OperationRequest }): { id: string; run: boolean; result: OperationResult | null };
  /** Replies when the result, and the event that tells of it, are on disk. */
  settle(message: { id: string; subject: CloudSubject; result: OperationResult }): null;
  /** null: not known, or no longer. */
  read(message: { id: string }): { operation: StoredOperation | null };
}
