// Puts workloads to sleep and wakes them, each with one patch of workload_patch.ts. The receipt of a sleep is
// part of that patch. Wherever this stops halfway, the cluster holds either the count or the receipt with the
// count in it. So nothing has to be remembered, and every step may be repeated.

import { CUT_OFF_ANNOTATION, RECEIPT_ANNOTATION, WAKE_ANNOTATION } from '../../adapters/kube/annotations.ts';
import { kubeFailure } from '../../adapters/kube/kube_errors.ts';
import type { ObservedWorkload } from '../../protocol/cloud.ts';
import type { CurrentWorkload, PatchStep, WorkloadReference } from '../../protocol/cluster_calls.ts';
import { fail } from '../../protocol/errors.ts';
import type { SleepCause, SleepReceipt, WakeCause, WakeReceipt } from '../../protocol/receipts.ts';
import { Failure } from '../../runtime/actor.ts';
import { CLOUD } from '../../settings/cloud_limits.ts';
import { intendedCount, isAlteredSleep, isSleptBy, isUnchangedSince, isWokenBy } from './receipt_checks.ts';
import {
  annotationSteps,
  pointerOf,
  retryOnConflict,
  type ScalableCluster,
  sameCount,
  scaleSteps,
  targetName,
} from './workload_patch.ts';
import { replicasText } from './workload_reasons.ts';

/** The pod in which Berth runs. */
export interface DaemonPod {
  namespace: string;
  name: string;
}

/**
 * Whether `pod` is named like a pod of `target`: `<deployment>-<hash>-<suffix>` or `<statefulset>-<ordinal>`.
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

export interface SleepRequest {
  by: SleepCause;
  /** Epoch milliseconds. */
  at: number;
  /** Until when connections do not wake it (epoch milliseconds); null: they wake it at once. */
  holdUntil: number | null;
  /** The name of this Berth. */
  from: string;
  ownPod: DaemonPod | null;
  /** The id of the requesting operation, left on the workload so that it is done only once. */
  operation: string | undefined;
  /** The policy that decided; undefined: a person did. */
  policy: string | undefined;
  /**
   * Given the state just read, false leaves it awake after all: someone has connected, or it was recreated.
   */
  isStillWanted: (seen: ObservedWorkload) => boolean;
}

/** What the cluster has made of the request to sleep; null: what was requested. */
function alteration({ replicas, receipt }: ObservedWorkload, at: number): string | null {
  if (replicas > 0) return `it has ${replicasText(replicas)} instead of 0`;
  return receipt?.at === at
    ? null
    : `its annotation ${RECEIPT_ANNOTATION}, which keeps the count, is missing`;
}

/** The count and the annotations that a workload had before a request. */
interface Restored {
  replicas: number;
  annotations: Readonly<Record<string, string | null>>;
}

/** The cluster changed a request. */
export class AlteredRequest extends Failure {
  /** The workload afterwards; null: it could not be put back. */
  readonly after: ObservedWorkload | null;

  constructor({ code, message, detail }: Failure, after: ObservedWorkload | null) {
    super(code, message, detail);
    this.after = after;
  }
}

const textOrNull = (value: unknown): string | null => (typeof value === 'string' ? value : null);

/**
 * The failure of a request that the cluster changed, so that `change`. Before that it gives the workload back
 * what it had, unless something else has scaled it since.
 */
async function putBack(
  cluster: ScalableCluster,
  target: WorkloadReference,
  altered: ObservedWorkload,
  { replicas, annotations }: Restored,
  change: string,
): Promise<AlteredRequest> {
  // The answer to a patch is the object as it was stored, so no other client has changed it since.
  const restored = retryOnConflict(cluster, target, (fresh) =>
    fresh.seen.uid !== altered.uid || fresh.seen.replicas !== altered.replicas
      ? null
      : [...scaleSteps(fresh, replicas), ...annotationSteps(fresh, annotations)],
  );
  const { after, rest } = await restored.then(
    (seen) => ({
      after: seen,
      rest:
        seen.replicas === replicas
          ? ''
          : `, and it could not be put back: it has ${replicasText(seen.replicas)}`,
    }),
    (error: unknown) => ({
      after: null,
      rest: `, and it could not be put back: ${kubeFailure(error).message}`,
    }),
  );
  const failure = fail(
    'workload_conflict',
    `${targetName(target)} was not ${replicas === 0 ? 'woken' : 'put to sleep'}: an admission webhook or ` +
      `policy of the cluster changed the request, so that ${change}${rest}`,
    { hint: 'Exempt the workload from what sets its replicas or annotations.' },
  );
  return new AlteredRequest(failure, after);
}

/**
 * Scales to 0 and leaves the receipt; a workload with 0 replicas is left alone. Resolves with the workload
 * afterwards. Fails sleep_refused, unknown_workload, workload_conflict, or with an error of the cluster.
 */
export async function putToSleep(
  cluster: ScalableCluster,
  target: WorkloadReference,
  { by, at, holdUntil, from, ownPod, operation, policy, isStillWanted }: SleepRequest,
): Promise<ObservedWorkload> {
  /** What the last patch was for. */
  const tried: { from: CurrentWorkload | null } = { from: null };
  const seen = await retryOnConflict(cluster, target, (fresh, isLost) => {
    const { replicas, receipt: held } = fresh.seen;
    const { from: sent } = tried;
    // A webhook may have removed the receipt from a patch whose answer was lost.
    const isStripped = isLost && replicas === 0 && held === null;
    if (sent && isStripped && isUnchangedSince(fresh.seen, sent.seen)) return null;
    tried.from = null;
    if (replicas === 0 || isSleptBy(fresh.seen, operation) || !isStillWanted(fresh.seen)) return null;
    const reason = sleepRefusal(target, fresh, ownPod);
    if (reason !== null) throw fail('sleep_refused', `${targetName(target)} is not put to sleep: ${reason}`);
    const decided = { ...(operation && { operation }), ...(policy && { policy }) };
    const { uid, generation } = fresh.seen;
    const count = intendedCount(fresh.seen);
    const receipt: SleepReceipt = { replicas: count, at, by, from, holdUntil, ...decided, uid, generation };
    const values = { [RECEIPT_ANNOTATION]: JSON.stringify(receipt), [WAKE_ANNOTATION]: null };
    const path = '/spec/persistentVolumeClaimRetentionPolicy';
    // A retention policy set meanwhile must not delete volumes.
    const retention: PatchStep[] =
      target.kind === 'StatefulSet' ? [{ op: 'test', path, value: fresh.retentionPolicy }] : [];
    tried.from = fresh;
    return [...retention, ...scaleSteps(fresh, 0), ...annotationSteps(fresh, values)];
  });
  const { from: before } = tried;
  const change = before && alteration(seen, at);
  if (before === null || change === null) return seen;
  const annotations = {
    [RECEIPT_ANNOTATION]: null,
    [WAKE_ANNOTATION]: textOrNull(before.annotations?.[WAKE_ANNOTATION]),
  };
  throw await putBack(cluster, target, seen, { replicas: intendedCount(before.seen), annotations }, change);
}

/**
 * Finds out whether the interrupted `operation` put it to sleep or woke it. If not, it never will: an earlier
 * patch may still be on its way, and is refused from now on. Resolves with the workload afterwards. Fails as
 * `putToSleep`.
 */
export function endCutOff(
  cluster: ScalableCluster,
  target: WorkloadReference,
  operation: string,
): Promise<ObservedWorkload> {
  return retryOnConflict(cluster, target, (fresh) => {
    const { seen } = fresh;
    const isMarked = fresh.annotations?.[CUT_OFF_ANNOTATION] === operation;
    if (isMarked || isSleptBy(seen, operation) || isWokenBy(seen, operation)) return null;
    const mark = { [CUT_OFF_ANNOTATION]: operation };
    // The daemon ended before it had put it back.
    if (seen.receipt?.operation === operation && isAlteredSleep(seen))
      return [
        ...scaleSteps(fresh, intendedCount(seen)),
        ...annotationSteps(fresh, { ...mark, [RECEIPT_ANNOTATION]: null }),
      ];
    return [sameCount(fresh), ...annotationSteps(fresh, mark)];
  });
}

export interface WakeRequest {
  by: WakeCause;
  /** Epoch milliseconds. */
  at: number;
  /** The name of this Berth. */
  from: string;
  /** The count to use without a receipt; null: 1. */
  desired: number | null;
  /** The highest count that Berth has seen. */
  maxReplicas: number;
  /** Whether the receipt in the state just read is of a sleep that was undone. */
  isSpent: (seen: ObservedWorkload) => boolean;
  /** As in SleepRequest. */
  operation: string | undefined;
  policy: string | undefined;
}

/** Throws wake_refused for an implausibly high count. docs/reference.md "Wake". */
async function checkCount(
  cluster: ScalableCluster,
  target: WorkloadReference,
  replicas: number,
  maxReplicas: number,
): Promise<void> {
  const known = Math.max(maxReplicas, CLOUD.trustedReplicas);
  if (replicas <= known) return;
  const scalers = await cluster.autoscalers(target);
  if (scalers.some((scaler) => replicas <= scaler.maxReplicas)) return;
  throw fail(
    'wake_refused',
    `${targetName(target)} is not woken: its annotation ${RECEIPT_ANNOTATION} asks for ${replicas} replicas. ` +
      `Berth has seen at most ${maxReplicas} of it, no HorizontalPodAutoscaler allows so many, and more ` +
      `than ${CLOUD.trustedReplicas} are not taken on trust`,
    { hint: 'Correct or remove the annotation, or set the count with kubectl scale.' },
  );
}

/**
 * Scales to the count in the receipt of the current sleep, or `desired`, or 1, and removes the receipt. A
 * workload with replicas is left alone, unless the cluster changed its sleep and it was not put back: waking
 * never scales down. A schedule only wakes what a schedule put to sleep. Resolves with the workload
 * afterwards. Fails wake_refused, unknown_workload, workload_conflict, or with an error of the cluster.
 */
export async function wakeUp(
  cluster: ScalableCluster,
  target: WorkloadReference,
  { by, at, from, desired, maxReplicas, isSpent, operation, policy }: WakeRequest,
): Promise<ObservedWorkload> {
  /** What the last patch was for. */
  const tried: { from: CurrentWorkload | null; replicas: number } = { from: null, replicas: 0 };
  const woken = await retryOnConflict(cluster, target, async (fresh, isLost) => {
    const { seen, annotations } = fresh;
    // A webhook may have kept it asleep by a patch whose answer was lost.
    const isKeptAsleep = isLost && seen.replicas === 0 && seen.wakeReceipt?.at === at;
    if (tried.from && isKeptAsleep && isUnchangedSince(seen, tried.from.seen)) return null;
    tried.from = null;
    if ((seen.replicas > 0 && !isAlteredSleep(seen)) || isWokenBy(seen, operation)) return null;
    const saved = seen.replicas === 0 && isSpent(seen) ? null : seen.receipt;
    if (by === 'schedule' && saved?.by !== 'schedule') return null;
    if (saved) await checkCount(cluster, target, saved.replicas, maxReplicas);
    const replicas = saved?.replicas ?? (intendedCount(seen) || (desired ?? 1));
    const path = pointerOf(RECEIPT_ANNOTATION);
    const held = annotations?.[RECEIPT_ANNOTATION];
    const sameReceipt: PatchStep[] = held === undefined ? [] : [{ op: 'test', path, value: held }];
    const decided = { ...(operation && { operation }), ...(policy && { policy }) };
    const { uid, generation } = seen;
    const receipt: WakeReceipt = { at, by, from, replicas, ...decided, uid, generation };
    const values = { [RECEIPT_ANNOTATION]: null, [WAKE_ANNOTATION]: JSON.stringify(receipt) };
    Object.assign(tried, { from: fresh, replicas });
    return [...sameReceipt, ...scaleSteps(fresh, replicas), ...annotationSteps(fresh, values)];
  });
  const { from: before, replicas } = tried;
  // With fewer replicas it is awake, and its receipt keeps the count for the next sleep.
  if (before === null || woken.replicas > 0) return woken;
  const annotations = {
    [RECEIPT_ANNOTATION]: textOrNull(before.annotations?.[RECEIPT_ANNOTATION]),
    [WAKE_ANNOTATION]: textOrNull(before.annotations?.[WAKE_ANNOTATION]),
  };
  const change = `it has 0 replicas instead of ${replicas}`;
  throw await putBack(cluster, target, woken, { replicas: 0, annotations }, change);
}
