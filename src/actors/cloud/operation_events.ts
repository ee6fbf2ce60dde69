// The events that report how operations ended: docs/reference.md "Operations and retries".
import type { NewCloudEvent } from '../../protocol/cloud_events.ts';
import {
  CUT_OFF,
  type OperationResult,
  resultCodeOf,
  type StoredOperation,
} from '../../protocol/cloud_operations.ts';

const MAX_REASON_LENGTH = 1_000;

export const shortReason = (text: string | null): string | null => text?.slice(0, MAX_REASON_LENGTH) ?? null;

/** The event of the end of an operation. */
export function endEvent(row: StoredOperation): NewCloudEvent {
  const { id, action, who, from, subject, result } = row;
  const code = resultCodeOf(row) ?? 'ok';
  const reason = shortReason(result?.failure?.message ?? result?.reason ?? null);
  const type =
    code === 'ok' ? 'operation.done' : code === 'interrupted' ? 'operation.interrupted' : 'operation.failed';
  return { ...subject, type, who, from, action, operationId: id, result: code, reason };
}

/** The result of an operation interrupted by the end of the daemon; null: whether it was done is unknown. */
export const cutOffResult = (isDone: false | null): OperationResult & { reason: string } => ({
  answer: null,
  failure: null,
  reason: `${CUT_OFF}; it ${isDone === false ? 'was not done' : 'may have been done'}`,
});
