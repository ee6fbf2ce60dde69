// The errors of calls to a cluster as failures, which cross threads, and back.
import { fail } from '../../protocol/errors.ts';
import { Failure, isFailure } from '../../runtime/actor.ts';
import { isCallError, KubeError, WireError } from './kube_errors.ts';

const KUBE_ERROR = 'kube_error';
const WIRE_ERROR = 'wire_error';

/** A call's error as a Failure. Throws `error` when it is a defect. */
export function carriedFailure(error: unknown): Failure {
  if (isFailure(error)) return error;
  if (error instanceof KubeError) {
    const { action, status, message } = error;
    return new Failure(KUBE_ERROR, message, { action, status });
  }
  if (error instanceof Error && error.name === 'AbortError')
    return fail('cluster_unreachable', 'the call was ended: the cluster was removed, or has new credentials');
  if (error instanceof Error && isCallError(error)) return new Failure(WIRE_ERROR, error.message);
  throw error;
}

/**
 * The error that `carriedFailure` was given. Failures of the runtime, because the other thread is lost or
 * late, become cluster_unreachable.
 */
export function restoredError(error: unknown): unknown {
  if (!isFailure(error)) return error;
  switch (error.code) {
    case KUBE_ERROR: {
      // As carried above.
      const { action, status } = error.detail as Pick<KubeError, 'action' | 'status'>;
      return new KubeError(action, status);
    }
    case WIRE_ERROR:
      return new WireError(error.message);
    case 'gone':
    case 'crashed':
    case 'deadline':
      return fail('cluster_unreachable', 'the thread that calls this cluster has ended, and starts again');
    case 'overloaded':
      return fail('daemon_busy', 'too many calls are waiting for this cluster');
    default:
      return error;
  }
}
