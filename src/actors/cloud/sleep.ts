// Putting a workload to sleep and waking it. Each is one patch whose precondition is the object as it was
// read, and the receipt of a sleep is part of that patch. Wherever this stops halfway, the cluster holds
// either the count itself or the receipt with it, so nothing has to be remembered, and every step may be
// repeated.

import type { CurrentWorkload, KubeCluster, WorkloadReference } from '../../adapters/kube/kube_cluster.ts';
import { KubeError, kubeFailure } from '../../adapters/kube/kube_errors.ts';
import { RECEIPT_ANNOTATION } from '../../adapters/kube/parse_objects.ts';
import type { ObservedWorkload, SleepCause, SleepReceipt } from '../../protocol/cloud.ts';
import { fail } from '../../protocol/errors.ts';
import { isFailure } from '../../runtime/actor.ts';
import { CLOUD } from '../../settings/limits.ts';

/** The pod in which Berth runs. */
export interface DaemonPod {
  namespace: string;
  name: string;
}

/**
 * Whether `pod` has the name of a pod of `target`: `<deployment>-<hash>-<suffix>` or
 * `<statefulset>-<ordinal>`.
 */
function isPodOf({ kind, namespace, name }: WorkloadReference, pod: DaemonPod | null): boolean {
  if (pod?.namespace !== namespace || !pod.name.startsWith(`${name}-`)) return false;
  const rest = pod.name.slice(name.length + 1);
  return kind === 'StatefulSet' ? /^\d+$/.test(rest) : /^[a-z0-9]{1,10}-[a-z0-9]{5}$/.test(rest);
}

/** Why the workload must not be scaled to 0; null: it may be. docs/reference.md "Sleep". */
function sleepRefusal(
  target: WorkloadReference,
  fresh: CurrentWorkload,
  ownPod: DaemonPod | null,
): string | null {
  if (target.namespace === 'kube-system') return 'it is in kube-system, which the cluster itself needs';
  if (isPodOf(target, ownPod)) return 'it is what Berth itself runs in';
  if (fresh.losesVolumes)
    return (
      'scaling it to 0 would delete its volumes ' +
      '(persistentVolumeClaimRetentionPolicy.whenScaled is Delete)'
    );
  return null;
}

const targetName = ({ kind, namespace, name }: WorkloadReference): string => `${kind} ${namespace}/${name}`;

async function readFresh(cluster: KubeCluster, target: WorkloadReference): Promise<CurrentWorkload> {
  const fresh = await cluster.getWorkload(target);
  if (!fresh) throw fail('unknown_workload', `${targetName(target)} is no longer in the cluster`);
  return fresh;
}

/**
 * Somebody else has changed or replaced the object since it was read. A wrong uid is 422 before about 1.21.
 */
const isConflict = (error: unknown): boolean =>
  error instanceof KubeError && [404, 409, 422].includes(error.status.status);

/** Whether the change may have been made although the answer is an error, or was lost. */
const isUnknownOutcome = (error: unknown): boolean =>
  error instanceof KubeError
    ? error.status.status >= 500
    : isFailure(error) && error.code === 'cluster_unreachable';

/** An admission webhook answers 403 as well, with other words. */
const isMissingRight = (error: unknown): boolean =>
  error instanceof KubeError && error.status.status === 403 && /cannot patch/.test(error.status.message);

const NEEDS_PATCH =
  'Give the account the right to patch the workload itself. A right on its scale is not enough: ' +
  'the count to wake with is written on the workload in the same step.';

interface WorkloadPatch {
  metadata: { annotations: Record<string, string | null> };
  spec: { replicas: number };
}

/**
 * Reads the object, applies the patch that `decide` gives, and reads it again after a conflict or a lost
 * answer, until `decide` gives null: the object is as it should be. Resolves with the object; throws the
 * error of the last attempt.
 */
async function retryOnConflict(
  cluster: KubeCluster,
  target: WorkloadReference,
  decide: (fresh: CurrentWorkload) => WorkloadPatch | null,
): Promise<ObservedWorkload> {
  let failure: unknown;
  for (let round = 0; round <= CLOUD.maxConflictRetries; round += 1) {
    const fresh = await readFresh(cluster, target);
    const patch = decide(fresh);
    if (patch === null) return fresh.seen;
    const { uid, version } = fresh.seen;
    try {
      const metadata = { uid, resourceVersion: version, ...patch.metadata };
      return await cluster.patchWorkload(target, { ...patch, metadata });
    } catch (error) {
      failure = error;
      if (isMissingRight(error))
        throw fail('cluster_denied', kubeFailure(error).message, { hint: NEEDS_PATCH });
      if (!isConflict(error) && !isUnknownOutcome(error)) throw error;
    }
  }
  throw failure;
}

export interface SleepRequest {
  by: SleepCause;
  /** Epoch milliseconds. */
  at: number;
  ownPod: DaemonPod | null;
  /** False leaves it awake after all, as it was just read: somebody has connected, or it was made anew. */
  isStillWanted: (seen: ObservedWorkload) => boolean;
}

/**
 * Scales to 0 and leaves the receipt; a workload with 0 replicas stays as it is. Resolves with the workload
 * afterwards. Fails sleep_refused, unknown_workload, or with an error of the cluster.
 */
export function putToSleep(
  cluster: KubeCluster,
  target: WorkloadReference,
  request: SleepRequest,
): Promise<ObservedWorkload> {
  return retryOnConflict(cluster, target, (fresh) => {
    const { replicas } = fresh.seen;
    if (replicas === 0 || !request.isStillWanted(fresh.seen)) return null;
    const reason = sleepRefusal(target, fresh, request.ownPod);
    if (reason !== null) throw fail('sleep_refused', `${targetName(target)} is not put to sleep: ${reason}`);
    const receipt: SleepReceipt = { replicas, at: request.at, by: request.by };
    return {
      metadata: { annotations: { [RECEIPT_ANNOTATION]: JSON.stringify(receipt) } },
      spec: { replicas: 0 },
    };
  });
}

/**
 * Scales to the count of the receipt, else `desired`, else 1, and takes the receipt away. A workload with
 * replicas stays as it is: waking never scales down. Resolves with the workload afterwards. Fails
 * unknown_workload, or with an error of the cluster.
 */
export function wakeUp(
  cluster: KubeCluster,
  target: WorkloadReference,
  desired: number | null,
): Promise<ObservedWorkload> {
  return retryOnConflict(cluster, target, ({ seen }) => {
    if (seen.replicas > 0) return null;
    const replicas = seen.receipt?.replicas ?? desired ?? 1;
    return { metadata: { annotations: { [RECEIPT_ANNOTATION]: null } }, spec: { replicas } };
  });
}
