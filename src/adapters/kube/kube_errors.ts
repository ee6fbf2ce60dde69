// The errors of calls to a cluster, and which of them are the cluster's. Everything else is a defect of ours.
import { AssertionError } from 'node:assert';
import { fail } from '../../protocol/errors.ts';
import { type Failure, isFailure } from '../../runtime/actor.ts';

/** The API's description of an error, cut to what may be shown. */
export interface KubeStatus {
  status: number;
  reason: string;
  message: string;
  retryAfterMs: number | null;
}

/** An error response of the API to a request for `action`. */
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

/** A response that violates the API. */
export class WireError extends Error {
  override readonly name: string = 'WireError';
}

const PROGRAMMING_ERRORS = [TypeError, RangeError, ReferenceError, SyntaxError, AssertionError];

/** Whether a deadline has passed. */
export const isTimeout = (error: unknown): boolean => error instanceof Error && error.name === 'TimeoutError';

/** undici's error for a response that is not HTTP. Unlike all its others, it has no code. */
const NOT_HTTP = 'HTTPParserError';

/** Whether the network, TLS or HTTP has failed: Node and undici give such errors a code, except NOT_HTTP. */
export function isTransportError(error: unknown): error is Error & { code?: string } {
  if (!(error instanceof Error)) return false;
  if (error.name === NOT_HTTP) return true;
  if (!('code' in error && typeof error.code === 'string')) return false;
  // undici's code for a malformed request.
  if (error.code === 'UND_ERR_INVALID_ARG') return false;
  return !PROGRAMMING_ERRORS.some((type) => error instanceof type);
}

/** Whether `error` is one that a call may end with even in a correct program; false: a defect. */
export function isCallError(error: unknown): boolean {
  if (isFailure(error) || error instanceof KubeError || error instanceof WireError) return true;
  if (isTransportError(error) || isTimeout(error)) return true;
  return error instanceof Error && error.name === 'AbortError';
}

const AUTHORIZATION_MESSAGES: ReadonlyMap<number, (action: string) => string> = new Map([
  [401, (action: string) => `The cluster does not know the account (401) that wants to ${action}`],
  [403, (action: string) => `The account may not ${action}`],
]);

/** The API server's words for an admission webhook or policy that refused or did not answer. */
const ADMISSION_REFUSALS: readonly [pattern: RegExp, verb: string][] = [
  [/(admission webhook "[^"]{1,253}") denied/, 'has refused'],
  [/failed (?:calling|to call) (webhook "[^"]{1,253}")/, 'has not answered, so the cluster refused'],
  [/(ValidatingAdmissionPolicy '[^']{1,253}')/, 'has refused'],
];

/** Which admission made a change fail, in words for people; null: the error is of another kind. */
function admissionRefusal({ action, status }: KubeError): string | null {
  for (const [pattern, verb] of ADMISSION_REFUSALS) {
    const name = pattern.exec(status.message)?.[1];
    if (name !== undefined) return `The ${name} of the cluster ${verb} to ${action}: ${status.message}`;
  }
  return null;
}

/** Whether an admission webhook or policy prevented the change. */
export const isAdmissionRefusal = (error: unknown): boolean =>
  error instanceof KubeError && admissionRefusal(error) !== null;

/**
 * Whether the cluster rejects the account altogether, because its token or certificate is unknown or expired.
 */
export const isUnauthenticated = (error: unknown): boolean =>
  error instanceof KubeError && error.status.status === 401;

const NEW_CREDENTIALS =
  'The token or certificate has ended or was revoked: give the cluster a new kubeconfig with ' +
  'PATCH /k8s/clusters/{id}, or `berth k8s renew`.';

/**
 * The Failure that a client gets for an error of a call: cluster_denied, admission_denied,
 * cluster_unreachable, or `error` itself if it is one. Throws `error` when it is a defect.
 */
export function kubeFailure(error: unknown): Failure {
  if (isFailure(error)) return error;
  if (error instanceof KubeError) {
    const { status, message } = error.status;
    const refusal = admissionRefusal(error);
    if (refusal !== null) return fail('admission_denied', refusal);
    const denied = AUTHORIZATION_MESSAGES.get(status);
    const text = denied?.(error.action) ?? `The cluster answered ${status} to the request to ${error.action}`;
    return fail(
      denied ? 'cluster_denied' : 'cluster_unreachable',
      message === '' ? text : `${text}: ${message}`,
      status === 401 ? { hint: NEW_CREDENTIALS } : {},
    );
  }
  if (error instanceof Error && isCallError(error))
    return fail('cluster_unreachable', `The cluster does not speak the Kubernetes API: ${error.message}.`);
  throw error;
}
