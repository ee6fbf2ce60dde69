// Why a workload gets no pod, or a pod does not start, according to the cluster's own events.
import type { SelectedWorkload } from '../../protocol/cluster_calls.ts';
import type { KubeCluster, Resource } from './kube_cluster.ts';
import type { PodRow } from './pods.ts';
import { boundedText, oneLine } from './untrusted_values.ts';
import { type CoreV1Event, wire } from './wire_types.ts';

/** An event that reports trouble. */
interface TroubleEvent {
  /** Such as `FailedCreate: exceeded quota`. */
  text: string;
  /** RFC 3339; '' when unknown. */
  at: string;
}

/** Reasons of events that say what a pod waits for. All other reasons are in its status. */
const TROUBLE_REASONS: ReadonlySet<string> = new Set([
  'FailedCreate',
  'FailedMount',
  'FailedAttachVolume',
  'FailedMapVolume',
  'FailedCreatePodSandBox',
]);

function troubleEventOf(object: unknown): TroubleEvent | undefined {
  const { reason, message, lastTimestamp, eventTime, metadata } = wire<CoreV1Event>(object) ?? {};
  const code = boundedText(reason, 64);
  if (!TROUBLE_REASONS.has(code)) return undefined;
  const at = lastTimestamp ?? eventTime ?? metadata?.creationTimestamp;
  return { text: `${code}: ${oneLine(message)}`, at: boundedText(at, 40) };
}

/** The warnings about the object of that kind and name. */
export const warningsResource = (namespace: string, kind: string, name: string): Resource<TroubleEvent> => ({
  collection: { of: 'events', namespace, kind, name },
  description: `events in namespace ${namespace}`,
  path: `/api/v1/namespaces/${encodeURIComponent(namespace)}/events`,
  query: { fieldSelector: `type=Warning,involvedObject.kind=${kind},involvedObject.name=${name}` },
  rowOf: troubleEventOf,
});

/** The most pods whose events are read. */
const MAX_PODS = 2;

/**
 * The latest event about each object: the one that creates the pods of `workload`, and those of `pods` that
 * are not ready. Fails as `KubeCluster.list`.
 */
export async function eventTroubles(
  cluster: KubeCluster,
  workload: SelectedWorkload,
  pods: readonly PodRow[],
): Promise<string[]> {
  const { kind, namespace, name, replicaSet } = workload;
  const waiting = pods.filter(({ isReady, isEnding }) => !isReady && !isEnding).slice(0, MAX_PODS);
  const maker = kind === 'StatefulSet' ? { kind, name } : { kind: 'ReplicaSet', name: replicaSet ?? '' };
  // An event of earlier trouble stays for an hour. If there is a pod, it is not what is being waited for now.
  const objects = [
    ...(waiting.length === 0 && maker.name !== '' ? [maker] : []),
    ...waiting.map((pod) => ({ kind: 'Pod', name: pod.name })),
  ];
  const latest = await Promise.all(
    objects.map(async (object) => {
      const { rows } = await cluster.list(warningsResource(namespace, object.kind, object.name));
      const [last] = rows.toSorted((one, other) => (one.at < other.at ? 1 : -1));
      return last ? [`${object.kind} ${object.name}: ${last.text}`] : [];
    }),
  );
  return latest.flat();
}
