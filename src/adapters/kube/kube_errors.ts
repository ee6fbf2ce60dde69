// What can go wrong with a call to a cluster, and which of it is the cluster's. Everything else is a defect
// of ours.
import { AssertionError } from 'node:assert';
import { fail } from '../../protocol/errors.ts';
import { type Failure, isFailure } from '../../runtime/actor.ts';

/** What the API says of an error, cut to what may be shown. */
export interface KubeStatus {
  status: number;
  reason: string;
  message: string;
  retryAfterMs: number | null;
}

/** An answer of the API that is no success, to a request for `action`. */
export class KubeError extends Error {
  override readonly name = 'KubeError';
  readonly action: string;
  readonly status: KubeStatus;
  constructor(action: string, status: KubeStatus) {
    super(status.message || status.reason || `status ${status.status}`);
    this.action = action;
    this.status = status;
  }
}

/** An answer that is not what the API promises. */
export class WireError extends Error {
  override readonly name: string = 'WireError';
}

const PROGRAMMING_ERRORS = [TypeError, RangeError, ReferenceError, SyntaxError, AssertionError];

/** Whether a deadline has passed. */
export const isTimeout = (error: unknown): boolean => error instanceof Error && error.name === 'TimeoutError';

/** Whether the network, TLS or HTTP has failed: Node and undici give every such error a code. */
export function isTransportError(error: unknown): error is Error & { code: string } {
  if (!(error instanceof Error && 'code' in error && typeof error.code === 'string')) return false;
  // undici's word for a request that is not well-formed.
  if (error.code === 'UND_ERR_INVALID_ARG') return false;
  return !PROGRAMMING_ERRORS.some((type) => error instanceof type);
}

/** Whether a call may end with `error` though nothing is wrong with the program; false: a defect. */
export function isCallError(error: unknown): boolean {
  if (isFailure(error) || error instanceof KubeError || error instanceof WireError) return true;
  if (isTransportError(error) || isTimeout(error)) return true;
  return error instanceof Error && error.name === 'AbortError';
}

const AUTHORIZATION_MESSAGES: ReadonlyMap<number, (action: string) => string> = new Map([
  [401, (action: string) => `The cluster does not know the account (401) that wants to ${action}`],
  [403, (action: string) => `The account may not ${action}`],
]);

/**
 * The failure that a client is told of an error of a call: cluster_denied, cluster_unreachable, or the
 * Failure that it is. Throws `error` itself when it is a defect.
 */
export function kubeFailure(error: unknown): Failure {
  if (isFailure(error)) return error;
  if (error instanceof KubeError) {
    const { status, message } = error.status;
    const denied = AUTHORIZATION_MESSAGES.get(status);
    const text = denied?.(error.action) ?? `The cluster answered ${status} to the request to ${error.action}`;
    return fail(
      denied ? 'cluster_denied' : 'cluster_unreachable',
      message === '' ? text : `${text}: ${message}`,
    );
  }
  if (error instanceof Error && isCallError(error))
    return fail('cluster_unreachable', `The cluster does not speak the Kubernetes API: ${error.message}.`);
  throw error;
}
