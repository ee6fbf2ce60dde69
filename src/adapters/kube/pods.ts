// The pods of a workload: which are ready for connections, and why the others are not.
import type { SelectedWorkload } from '../../protocol/cluster_calls.ts';
import type { Resource } from './kube_cluster.ts';
import { DNS_SUBDOMAIN, KUBE_UID } from './parse_objects.ts';
import { arrayOrEmpty, boundedText, oneLine, timeOrNull } from './untrusted_values.ts';
import {
  type V1ContainerStatus,
  type V1OwnerReference,
  type V1Pod,
  type V1PodCondition,
  type Wire,
  wire,
} from './wire_types.ts';

export interface PodRow {
  uid: string;
  namespace: string;
  name: string;
  /** Whether it belongs to the workload. The selector may match other pods as well. */
  isOwn: boolean;
  /** Ready, and not being deleted. */
  isReady: boolean;
  /** Whether its containers are running and it is not being deleted. */
  isRunning: boolean;
  /**
   * When it became Ready or stopped being Ready, by the cluster's clock (epoch milliseconds); null: unknown.
   */
  readyChangedAt: number | null;
  /** Whether it is ending or has ended, so it will not become ready. */
  isEnding: boolean;
  /** Why it does not become ready; null: unknown, or it does. */
  trouble: string | null;
  /**
   * Whether the trouble may pass by itself: no node has room until old pods have ended or a new node has been
   * added.
   */
  mayPass: boolean;
}

/** The reasons of waiting containers that need help to start. */
const STUCK_REASONS = new Set([
  'ImagePullBackOff',
  'ErrImagePull',
  'ErrImageNeverPull',
  'InvalidImageName',
  'ImageInspectError',
  'RegistryUnavailable',
  'CrashLoopBackOff',
  'CreateContainerConfigError',
  'CreateContainerError',
  'RunContainerError',
]);
const ENDED_PHASES = new Set<unknown>(['Succeeded', 'Failed']);

function containerTrouble(statuses: unknown): string | null {
  for (const item of arrayOrEmpty(statuses)) {
    const status = wire<V1ContainerStatus>(item);
    const waiting = status?.state?.waiting;
    const reason = boundedText(waiting?.reason, 64);
    if (!STUCK_REASONS.has(reason)) continue;
    const message = oneLine(waiting?.message);
    return `container ${oneLine(status?.name, 63)}: ${reason}${message === '' ? '' : `: ${message}`}`;
  }
  return null;
}

/**
 * Whether the workload controls the pod. For a Deployment, the controller is one of its ReplicaSets,
 * recognised by its name or from the status, because reading ReplicaSets would need another right.
 */
function isOwned(
  metadata: Wire<NonNullable<V1Pod['metadata']>>,
  { kind, name, replicaSet = null }: Omit<SelectedWorkload, 'selector'>,
): boolean {
  const controller = arrayOrEmpty(metadata?.ownerReferences)
    .map((item) => wire<V1OwnerReference>(item))
    .find((reference) => reference?.controller === true);
  if (kind === 'StatefulSet') return controller?.kind === kind && controller.name === name;
  const hash = boundedText(metadata?.labels?.['pod-template-hash'], 63);
  if (controller?.kind !== 'ReplicaSet') return false;
  return controller.name === `${name}-${hash}` || (replicaSet !== null && controller.name === replicaSet);
}

/** The row of a pod as seen from `workload`; undefined for an invalid object. */
export function podRowOf(object: unknown, workload: Omit<SelectedWorkload, 'selector'>): PodRow | undefined {
  const { metadata, status } = wire<V1Pod>(object) ?? {};
  const namespace = boundedText(metadata?.namespace, 63);
  const name = boundedText(metadata?.name, 253);
  const uid = boundedText(metadata?.uid, 128);
  if (!DNS_SUBDOMAIN.test(namespace) || !DNS_SUBDOMAIN.test(name) || !KUBE_UID.test(uid)) return undefined;
  const conditions = arrayOrEmpty(status?.conditions).map((item) => wire<V1PodCondition>(item));
  const condition = (type: string) => conditions.find((one) => one?.type === type);
  const isEnding = metadata?.deletionTimestamp !== undefined || ENDED_PHASES.has(status?.phase);
  const scheduled = condition('PodScheduled');
  const isUnschedulable = scheduled?.status === 'False' && scheduled.reason === 'Unschedulable';
  const trouble = isUnschedulable
    ? `Unschedulable: ${oneLine(scheduled.message)}`
    : (containerTrouble(status?.initContainerStatuses) ?? containerTrouble(status?.containerStatuses));
  return {
    uid,
    namespace,
    name,
    isOwn: isOwned(metadata, workload),
    isReady: condition('Ready')?.status === 'True' && !isEnding,
    isRunning: status?.phase === 'Running' && !isEnding,
    readyChangedAt: timeOrNull(condition('Ready')?.lastTransitionTime),
    isEnding,
    trouble: trouble === null ? null : `pod ${name}: ${trouble}`,
    mayPass: isUnschedulable,
  };
}

/** The pods that a workload's selector matches: its own, and perhaps others. */
export const podsResource = (workload: SelectedWorkload): Resource<PodRow> => ({
  collection: { of: 'pods', workload },
  description: `pods in namespace ${workload.namespace}`,
  path: `/api/v1/namespaces/${encodeURIComponent(workload.namespace)}/pods`,
  query: { labelSelector: workload.selector },
  rowOf: (object) => podRowOf(object, workload),
});

/** Why no pod will become ready, if every pod that is not ending has trouble; otherwise null. */
export function podsTrouble(pods: Iterable<PodRow>): { reason: string; mayPass: boolean } | null {
  const expected = [...pods].filter((pod) => !pod.isEnding);
  const troubles = expected.flatMap(({ trouble, mayPass }) =>
    trouble === null ? [] : [{ reason: trouble, mayPass }],
  );
  if (troubles.length < expected.length) return null;
  return troubles.find(({ mayPass }) => !mayPass) ?? troubles[0] ?? null;
}
