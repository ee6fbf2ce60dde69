// The events that report how operations ended: docs/reference.md "Operations and retries".
import type { NewCloudEvent } from '../../protocol/cloud_events.ts';
import { CUT_OFF, type StoredOperation } from '../../protocol/cloud_operations.ts';

const MAX_REASON_LENGTH = 1_000;

/** The event of the end of an operation. */
export function endEvent(row: StoredOperation): NewCloudEvent {
  const { id, action, who, from, subject, result } = row;
  const failure = result?.failure ?? null;
  const reason = (failure?.message ?? result?.reason ?? null)?.slice(0, MAX_REASON_LENGTH) ?? null;
  const type = failure ? 'operation.failed' : 'operation.done';
  return { ...subject, type, who, from, action, operationId: id, result: failure?.code ?? 'ok', reason };
}

/** The event of an operation interrupted by the end of the daemon. */
export const cutOffEvent = (row: StoredOperation, isDone: boolean | null): NewCloudEvent => ({
  ...endEvent(row),
  type: 'operation.interrupted',
  result: 'interrupted',
  reason: `${CUT_OFF}; it ${isDone === false ? 'was not done' : 'may have been done'}`,
});
