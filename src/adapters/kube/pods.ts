// The pods of a workload, as far as a connection needs them: which are ready, and why the others are not.
import type { Resource } from './kube.ts';
import { items, NAME, oneLine, text, UID } from './rows.ts';
import { type V1ContainerStatus, type V1Pod, type V1PodCondition, wire } from './types.ts';

export interface PodRow {
  uid: string;
  namespace: string;
  name: string;
  /** Ready, and not about to end. */
  isReady: boolean;
  /** It ends, or has ended: nothing is to be expected of it. */
  isEnding: boolean;
  /** Why it does not become ready, where that is known. */
  trouble: string | null;
  /** The trouble may pass by itself shortly: there is no node with room at this moment. */
  mayPass: boolean;
}

/** What a container waits for when it will not run without help. */
const HOPELESS = new Set([
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
const ENDED = new Set<unknown>(['Succeeded', 'Failed']);

function containerTrouble(statuses: unknown): string | null {
  for (const item of items(statuses)) {
    const status = wire<V1ContainerStatus>(item);
    const waiting = status?.state?.waiting;
    const reason = text(waiting?.reason, 64);
    if (!HOPELESS.has(reason)) continue;
    const message = oneLine(waiting?.message);
    return `container ${oneLine(status?.name, 63)}: ${reason}${message === '' ? '' : `: ${message}`}`;
  }
  return null;
}

/** The row of a pod; undefined when it is no proper one. */
export function podOf(object: unknown): PodRow | undefined {
  const { metadata, status } = wire<V1Pod>(object) ?? {};
  const namespace = text(metadata?.namespace, 63);
  const name = text(metadata?.name, 253);
  const uid = text(metadata?.uid, 128);
  if (!NAME.test(namespace) || !NAME.test(name) || !UID.test(uid)) return undefined;
  const conditions = items(status?.conditions).map((item) => wire<V1PodCondition>(item));
  const condition = (type: string) => conditions.find((one) => one?.type === type);
  const isEnding = metadata?.deletionTimestamp !== undefined || ENDED.has(status?.phase);
  const scheduled = condition('PodScheduled');
  const isUnschedulable = scheduled?.status === 'False' && scheduled.reason === 'Unschedulable';
  const trouble = isUnschedulable
    ? `Unschedulable: ${oneLine(scheduled.message)}`
    : (containerTrouble(status?.initContainerStatuses) ?? containerTrouble(status?.containerStatuses));
  return {
    uid,
    namespace,
    name,
    isReady: condition('Ready')?.status === 'True' && !isEnding,
    isEnding,
    trouble: trouble === null ? null : `pod ${name}: ${trouble}`,
    mayPass: isUnschedulable,
  };
}

/** The pods of a namespace that a label selector takes. */
export const podsOf = (namespace: string, selector: string): Resource<PodRow> => ({
  what: `pods in namespace ${namespace}`,
  path: `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods`,
  query: { labelSelector: selector },
  rowOf: podOf,
});

/** Why no pod is to be expected, when all that are there have trouble; null while there is hope. */
export function troubleOf(pods: Iterable<PodRow>): { reason: string; mayPass: boolean } | null {
  const expected = [...pods].filter((pod) => !pod.isEnding);
  const [first] = expected;
  if (!first || expected.some((pod) => pod.trouble === null)) return null;
  const worst = expected.find((pod) => !pod.mayPass) ?? first;
  return { reason: worst.trouble ?? '', mayPass: worst.mayPass };
}
