// Changes of a workload in its cluster. Each change is one patch, with preconditions on the identity, the
// count and the annotations as they were read. Other writes to the object at the same time do not conflict.
import { CUT_OFF_ANNOTATION } from '../../adapters/kube/annotations.ts';
import type { KubeCluster } from '../../adapters/kube/kube_cluster.ts';
import { isAdmissionRefusal, KubeError, kubeFailure } from '../../adapters/kube/kube_errors.ts';
import type { ObservedWorkload } from '../../protocol/cloud.ts';
import type { CurrentWorkload, PatchStep, WorkloadReference } from '../../protocol/cluster_calls.ts';
import { fail } from '../../protocol/errors.ts';
import { isFailure } from '../../runtime/actor.ts';
import { CLOUD } from '../../settings/cloud_limits.ts';

/** Such as `Deployment web/hello`. */
export const targetName = ({ kind, namespace, name }: WorkloadReference): string =>
  `${kind} ${namespace}/${name}`;

/** The calls that a change of a workload makes. */
export type ScalableCluster = Pick<KubeCluster, 'getWorkload' | 'patchWorkload' | 'autoscalers'>;

/** The same cluster for a dry run: it checks each patch, also with its webhooks, and stores nothing. */
export const dryRunOf = (cluster: KubeCluster): ScalableCluster => ({
  getWorkload: (target) => cluster.getWorkload(target),
  patchWorkload: (target, steps) => cluster.patchWorkload(target, steps, true),
  autoscalers: (target) => cluster.autoscalers(target),
});

async function readFresh(cluster: ScalableCluster, target: WorkloadReference): Promise<CurrentWorkload> {
  const fresh = await cluster.getWorkload(target);
  if (!fresh) throw fail('unknown_workload', `${targetName(target)} is no longer in the cluster`);
  return fresh;
}

/** Whether a precondition no longer holds: a test of the patch failed (422), or the object is gone. */
const isConflict = (error: unknown): boolean =>
  error instanceof KubeError && [404, 409, 422].includes(error.status.status) && !isAdmissionRefusal(error);

const isUnanswered = (error: unknown): boolean => isFailure(error) && error.code === 'cluster_unreachable';

/** Whether the change may have been made although the answer was an error or lost. */
const isUnknownOutcome = (error: unknown): boolean =>
  error instanceof KubeError ? error.status.status >= 500 && !isAdmissionRefusal(error) : isUnanswered(error);

/** An admission webhook also answers 403, but with other words. */
const isMissingRight = (error: unknown): boolean =>
  error instanceof KubeError && error.status.status === 403 && /cannot patch/.test(error.status.message);

const NEEDS_PATCH =
  'Give the account the right to patch the workload itself. A right on its scale is not enough: ' +
  'the count to wake with is written on the workload in the same step.';

/** The JSON pointer to an annotation. */
export const pointerOf = (annotation: string): string =>
  `/metadata/annotations/${annotation.replaceAll('~', '~0').replaceAll('/', '~1')}`;

/** Patch steps that set annotations, and remove those whose value is null. */
export function annotationSteps(
  { annotations }: CurrentWorkload,
  values: Readonly<Record<string, string | null>>,
): PatchStep[] {
  const rows = Object.entries(values);
  if (annotations === null)
    return [
      // If someone adds the first annotation meanwhile, the test fails and theirs is kept.
      { op: 'test', path: '/metadata/annotations', value: null },
      {
        op: 'add',
        path: '/metadata/annotations',
        value: Object.fromEntries(rows.filter(([, value]) => value !== null)),
      },
    ];
  return rows.flatMap(([annotation, value]): PatchStep[] => {
    const path = pointerOf(annotation);
    if (value !== null) return [{ op: 'add', path, value }];
    return Object.hasOwn(annotations, annotation) ? [{ op: 'remove', path }] : [];
  });
}

/** Ensures that the patch applies to the same object. */
export const sameObject = ({ seen }: CurrentWorkload): PatchStep => ({
  op: 'test',
  path: '/metadata/uid',
  value: seen.uid,
});

/** Ensures that the workload was not scaled since it was read. */
export const sameCount = ({ seen }: CurrentWorkload): PatchStep => ({
  op: 'test',
  path: '/spec/replicas',
  value: seen.replicas,
});

/** Patch steps that scale it, unless it was scaled since or the operation was marked as interrupted. */
export const scaleSteps = (fresh: CurrentWorkload, to: number): PatchStep[] => {
  const { annotations } = fresh;
  const isNotCutOff: PatchStep[] = annotations
    ? [{ op: 'test', path: pointerOf(CUT_OFF_ANNOTATION), value: annotations[CUT_OFF_ANNOTATION] ?? null }]
    : [];
  return [...isNotCutOff, sameCount(fresh), { op: 'replace', path: '/spec/replicas', value: to }];
};

/** `isLost`: the last patch may have been made, but its answer was lost. */
type Decide = (fresh: CurrentWorkload, isLost: boolean) => PatchStep[] | null | Promise<PatchStep[] | null>;

/**
 * Reads the object, applies the patch from `decide`, and reads again after a conflict or a lost answer, until
 * `decide` returns null: the object is as desired. Resolves with the object. Throws workload_conflict, or the
 * error of the last attempt.
 */
export async function retryOnConflict(
  cluster: ScalableCluster,
  target: WorkloadReference,
  decide: Decide,
): Promise<ObservedWorkload> {
  let failure: unknown;
  let unanswered = 0;
  for (let round = 0; round <= CLOUD.maxConflictRetries; round += 1) {
    const fresh = await readFresh(cluster, target);
    const steps = await decide(fresh, isUnknownOutcome(failure));
    if (steps === null) return fresh.seen;
    try {
      return await cluster.patchWorkload(target, [sameObject(fresh), ...steps]);
    } catch (error) {
      failure = error;
      if (isMissingRight(error))
        throw fail('cluster_denied', kubeFailure(error).message, { hint: NEEDS_PATCH });
      if (!isConflict(error) && !isUnknownOutcome(error)) throw error;
      // Each may take long, and after the time limit of the whole the change would be reported as failed.
      if (isUnanswered(error)) unanswered += 1;
      if (unanswered > CLOUD.maxUnansweredRetries) throw error;
    }
  }
  if (!isConflict(failure)) throw failure;
  const attempts = CLOUD.maxConflictRetries + 1;
  throw fail(
    'workload_conflict',
    `${targetName(target)} was changed by something else at each of ${attempts} attempts: ` +
      kubeFailure(failure).message,
  );
}
