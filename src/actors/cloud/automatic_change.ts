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

/** `withdrawn`: it was not made, because it was no longer wanted when the cluster could take it. */
export type AutomaticOutcome = 'made' | 'withdrawn' | Failure;

const WITHDRAWN: OperationResult = { answer: null, failure: null, reason: 'it was no longer wanted' };

const isWithdrawn = (result: OperationResult | null): boolean =>
  result !== null && result.answer === null && result.failure === null;

function resultOf(outcome: { replicas: number } | Failure, to: AutomaticChange['to']): OperationResult {
  if (isFailure(outcome)) {
    const { code, message } = outcome;
    const failure = { code: isErrorCode(code) ? code : 'internal', message } as const;
    return { answer: null, failure, reason: null };
  }
  if ((outcome.replicas === 0) !== (to === 'asleep')) return WITHDRAWN;
  return { answer: JSON.stringify(outcome), failure: null, reason: null };
}

/**
 * Makes the change by calling `work`, which gets the operation's id and resolves with the replicas
 * afterwards. A key that has already been done is not done again.
 */
export async function runAutomatic(
  context: Context,
  { to, subject: about, who, key }: AutomaticChange,
  work: (operation: string) => Promise<{ replicas: number }>,
): Promise<AutomaticOutcome> {
  const operations = context.ref('operations');
  const subject = { ...NO_SUBJECT, ...about };
  const request = { key, fingerprint: key ?? '', action: ACTIONS[to], who, from: null, subject };
  const deadline = { deadlineMs: CLOUD.scaleTimeoutMs };
  const begun = await tolerateFailure(operations.ask('begin', { request }, deadline), (failure) => failure);
  if (isFailure(begun)) return begun;
  const { id, run } = begun;
  if (!run) return isWithdrawn(begun.result) ? 'withdrawn' : 'made';
  const outcome = await tolerateFailure(work(id), (failure) => failure);
  const result = resultOf(outcome, to);
  const end = { id, subject, result, isWithdrawn: isWithdrawn(result) };
  await tolerateFailure(operations.ask('settle', end, deadline), () => null);
  if (isFailure(outcome)) return outcome;
  return isWithdrawn(result) ? 'withdrawn' : 'made';
}
