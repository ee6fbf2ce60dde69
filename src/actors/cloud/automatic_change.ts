// A sleep or wake decided by a policy, as an operation: it is stored before it is made, and its end is in the
// audit log with the policy as the one who asked. docs/reference.md "Policies".
import { NO_SUBJECT } from '../../protocol/cloud_events.ts';
import type { OperationResult } from '../../protocol/cloud_operations.ts';
import { isErrorCode } from '../../protocol/errors.ts';
import type { WorkloadSubject } from '../../protocol/policies.ts';
import { type Context, type Failure, isFailure, tolerateFailure } from '../../runtime/actor.ts';
import { CLOUD } from '../../settings/cloud_limits.ts';

export interface AutomaticChange {
  to: 'asleep' | 'awake';
  subject: WorkloadSubject;
  /** The policy or annotation that decides. */
  who: string;
  /** Identifies the change, also after a restart; null: it is never tried again. */
  key: string | null;
}

const ACTIONS = { asleep: 'sleepWorkload', awake: 'wakeWorkload' } as const;

const failed = ({ code, message }: Failure): OperationResult => ({
  answer: null,
  failure: { code: isErrorCode(code) ? code : 'internal', message },
  reason: null,
});

/**
 * Makes the change by calling `work`, which gets the operation's id and resolves with its answer. A key that
 * has already been done is not done again. Resolves with the failure; null: the change was made.
 */
export async function runAutomatic(
  context: Context,
  { to, subject: about, who, key }: AutomaticChange,
  work: (operation: string) => Promise<object>,
): Promise<Failure | null> {
  const operations = context.ref('operations');
  const subject = { ...NO_SUBJECT, ...about };
  const request = { key, fingerprint: key ?? '', action: ACTIONS[to], who, from: null, subject };
  const deadline = { deadlineMs: CLOUD.scaleTimeoutMs };
  const begun = await tolerateFailure(operations.ask('begin', { request }, deadline), (failure) => failure);
  if (isFailure(begun)) return begun;
  const { id, run } = begun;
  if (!run) return null;
  let failure: Failure | null = null;
  const result = await tolerateFailure(
    work(id).then(
      (answer): OperationResult => ({ answer: JSON.stringify(answer), failure: null, reason: null }),
    ),
    (error) => {
      failure = error;
      return failed(error);
    },
  );
  await tolerateFailure(operations.ask('settle', { id, subject, result }, deadline), () => null);
  return failure;
}
