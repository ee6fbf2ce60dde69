// Reduces the objects of a cluster to slim rows, field by field. Nothing from an untrusted cluster passes
// unchecked, and invalid objects are left out. Pure.
import type { ObservedWorkload } from '../../protocol/cloud.ts';
import type { WatchedChange } from '../../protocol/cluster_calls.ts';
import { LABEL_KEY, LABEL_VALUE, labelText } from '../../protocol/labels.ts';
import type { WorkloadKind } from '../../protocol/workload_kinds.ts';
import {
  ACTIVITY_ANNOTATION,
  parseActivity,
  parseReceipt,
  parseWakeReceipt,
  RECEIPT_ANNOTATION,
  WAKE_ANNOTATION,
} from './annotations.ts';
import { type KubeStatus, WireError } from './kube_errors.ts';
import { podRequestsOf } from './pod_requests.ts';
import { readSleepAnnotations } from './sleep_annotations.ts';
import { arrayOrEmpty, boundedCount, boundedText, oneLine, timeOrNull } from './untrusted_values.ts';
import {
  type KubeWorkload,
  type V1DeploymentCondition,
  type V1LabelSelectorRequirement,
  type V1ManagedFieldsEntry,
  type V1ObjectMeta,
  type V1Status,
  type Wire,
  wire,
} from './wire_types.ts';

/** The name under which the API server records Berth's writes. */
export const FIELD_MANAGER = 'berth';

/** One page of a listing, without its items. */
export interface ListPage {
  /** The resourceVersion from which a watch continues. */
  version: string;
  /** The token of the next page; null for the last page. */
  next: string | null;
}

export type WatchEvent<Row> = WatchedChange<Row> | { type: 'error'; status: KubeStatus };

/** Names go into paths, so they must be DNS subdomains. */
export const DNS_SUBDOMAIN = /^(?=.{1,253}$)[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/;
export const KUBE_UID = /^[A-Za-z0-9-]{1,128}$/;
const RESOURCE_VERSION = /^[!-~]{1,128}$/;

/** A selector is part of a request's address, and no server accepts much more than this. */
const SELECTOR_LENGTH = 4_096;

const NUMBER = /^[0-9]{1,20}$/;

/**
 * Whether the resourceVersion `one` is certainly older than `other`. Kubernetes itself always uses numbers.
 */
export const isOlderVersion = (one: string, other: string): boolean =>
  NUMBER.test(one) && NUMBER.test(other) && BigInt(one) < BigInt(other);

const isLabel = (value: unknown): value is string => typeof value === 'string' && LABEL_VALUE.test(value);
const isKey = (value: unknown): value is string => typeof value === 'string' && LABEL_KEY.test(value);

const OPERATORS: ReadonlyMap<unknown, (key: string, values: string) => string> = new Map([
  ['In', (key: string, values: string) => `${key} in (${values})`],
  ['NotIn', (key: string, values: string) => `${key} notin (${values})`],
  ['Exists', (key: string) => key],
  ['DoesNotExist', (key: string) => `!${key}`],
]);

/** A label selector in the form of a listing's query; '' when a part is not understood or it is too long. */
function selectorOf(matchLabels: object, matchExpressions: unknown): string {
  const labels = Object.entries(matchLabels).map(([key, value]) =>
    isKey(key) && isLabel(value) ? `${key}=${value}` : '',
  );
  const expressions = arrayOrEmpty(matchExpressions).map((item) => {
    const { key, operator, values } = wire<V1LabelSelectorRequirement>(item) ?? {};
    const write = OPERATORS.get(operator);
    return write && isKey(key) && arrayOrEmpty(values).every(isLabel)
      ? write(key, arrayOrEmpty(values).join(','))
      : '';
  });
  const parts = [...labels, ...expressions];
  return parts.includes('') ? '' : boundedText(parts.join(','), SELECTOR_LENGTH);
}

/**
 * The ReplicaSet named by the Deployment's controller in its progress condition. This identifies one that was
 * adopted under another name, without the right to read ReplicaSets.
 */
function replicaSetOf(conditions: unknown): string | null {
  for (const item of arrayOrEmpty(conditions)) {
    const condition = wire<V1DeploymentCondition>(item);
    if (condition?.type !== 'Progressing') continue;
    const name = /replica ?set "([^"]+)"/i.exec(boundedText(condition.message, 1_000))?.[1] ?? '';
    return DNS_SUBDOMAIN.test(name) ? name : null;
  }
  return null;
}

/** The manager that last wrote spec.replicas, as far as the server recorded it. */
function scaledBy(managedFields: unknown): string | null {
  let latest = { manager: '', time: '' };
  for (const item of arrayOrEmpty(managedFields)) {
    const entry = wire<V1ManagedFieldsEntry>(item);
    const fields = wire<{ 'f:spec': { 'f:replicas': object } }>(entry?.fieldsV1);
    if (fields?.['f:spec']?.['f:replicas'] === undefined) continue;
    const row = { manager: oneLine(entry?.manager, 128), time: boundedText(entry?.time, 40) };
    if (row.time >= latest.time) latest = row;
  }
  return latest.manager === '' ? null : latest.manager;
}

/** Labels and annotations with which tools mark the objects they keep in sync with a source of their own. */
const KEEPER_MARKS: readonly [mark: string, keeper: string][] = [
  ['argocd.argoproj.io/tracking-id', 'Argo CD'],
  ['argocd.argoproj.io/instance', 'Argo CD'],
  ['kustomize.toolkit.fluxcd.io/name', 'Flux'],
  ['helm.toolkit.fluxcd.io/name', 'Flux'],
  ['fleet.cattle.io/bundle-id', 'Fleet'],
];

/**
 * The names under which the same tools write. Argo CD 2 tracks its objects by a label that Helm sets as well,
 * `app.kubernetes.io/instance`, so only its name tells.
 */
const KEEPER_WRITERS: ReadonlyMap<unknown, string> = new Map([
  ['argocd-controller', 'Argo CD'],
  ['argocd-application-controller', 'Argo CD'],
  ['kustomize-controller', 'Flux'],
  ['helm-controller', 'Flux'],
  ['fleetagent', 'Fleet'],
]);

const has = (map: unknown, key: string): boolean =>
  typeof map === 'object' && map !== null && Object.hasOwn(map, key);

/** The tool that keeps the object in sync; `scaler`: the manager that last wrote spec.replicas. */
function keeperOf(metadata: Wire<V1ObjectMeta>, scaler: string | null): string | null {
  const { labels, annotations, managedFields } = metadata ?? {};
  const writer = KEEPER_WRITERS.get(scaler);
  if (writer !== undefined) return writer;
  const marked = KEEPER_MARKS.find(([mark]) => has(labels, mark) || has(annotations, mark));
  if (marked) return marked[1];
  // Berth's own write hides who scaled it before, so whoever wrote the rest counts.
  if (scaler !== FIELD_MANAGER) return null;
  const managers = arrayOrEmpty(managedFields).map((item) => wire<V1ManagedFieldsEntry>(item)?.manager);
  return managers.map((name) => KEEPER_WRITERS.get(name)).find(Boolean) ?? null;
}

/** The row of a Deployment or StatefulSet; undefined for an invalid object. */
export function seenWorkloadOf(kind: WorkloadKind, object: unknown): ObservedWorkload | undefined {
  const { metadata, spec, status } = wire<KubeWorkload>(object) ?? {};
  const namespace = boundedText(metadata?.namespace, 63);
  const name = boundedText(metadata?.name, 253);
  const uid = boundedText(metadata?.uid, 128);
  const version = boundedText(metadata?.resourceVersion, 128);
  if (
    !DNS_SUBDOMAIN.test(namespace) ||
    !DNS_SUBDOMAIN.test(name) ||
    !KUBE_UID.test(uid) ||
    !RESOURCE_VERSION.test(version)
  )
    return undefined;
  const scaler = scaledBy(metadata?.managedFields);
  return {
    kind,
    namespace,
    name,
    uid,
    version,
    createdAt: timeOrNull(metadata?.creationTimestamp),
    generation: boundedCount(metadata?.generation, 0),
    replicas: boundedCount(spec?.replicas, 1),
    pods: boundedCount(status?.replicas, 0),
    ready: boundedCount(status?.readyReplicas, 0),
    observed: boundedCount(status?.observedGeneration, 0) >= boundedCount(metadata?.generation, 0),
    labels: labelText(metadata?.labels),
    selector: selectorOf({ ...spec?.selector?.matchLabels }, spec?.selector?.matchExpressions),
    replicaSet: replicaSetOf(status?.conditions),
    requests: podRequestsOf(spec?.template?.spec),
    receipt: parseReceipt(metadata?.annotations?.[RECEIPT_ANNOTATION]),
    wakeReceipt: parseWakeReceipt(metadata?.annotations?.[WAKE_ANNOTATION]),
    activity: parseActivity(metadata?.annotations?.[ACTIVITY_ANNOTATION]),
    sleep: readSleepAnnotations(metadata?.annotations),
    scaledBy: scaler,
    keeper: keeperOf(metadata, scaler),
  };
}

/** What a change of the workload depends on besides its row. */
export function patchBaseOf(object: unknown): {
  /** Whether scaling the StatefulSet down would delete its volumes and their data. */
  losesVolumes: boolean;
  annotations: Readonly<Record<string, unknown>> | null;
  retentionPolicy: unknown;
} {
  const { metadata, spec } = wire<KubeWorkload>(object) ?? {};
  const policy = spec?.persistentVolumeClaimRetentionPolicy;
  const hasVolumes = arrayOrEmpty(spec?.volumeClaimTemplates).length > 0;
  return {
    losesVolumes: policy?.whenScaled === 'Delete' && hasVolumes,
    annotations: metadata?.annotations ?? null,
    retentionPolicy: policy ?? null,
  };
}

/** Parses JSON in UTF-8. Throws a WireError when it is invalid. */
export function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    throw new WireError('the answer is no JSON');
  }
}

type ListMeta = { resourceVersion: string; continue: string };

/** The metadata of one page of a listing without its items. Throws a WireError when it is not a list. */
export function listPageOf(frame: unknown): ListPage {
  const list = wire<{ metadata: ListMeta; items: unknown[] }>(frame);
  const version = boundedText(list?.metadata?.resourceVersion, 128);
  if (!Array.isArray(list?.items) || !RESOURCE_VERSION.test(version))
    throw new WireError('the answer is no list');
  return { version, next: boundedText(list.metadata?.continue, 16_384) || null };
}

const STATUS_REASONS: ReadonlyMap<number, string> = new Map([
  [401, 'Unauthorized'],
  [403, 'Forbidden'],
  [404, 'NotFound'],
  [409, 'Conflict'],
  [410, 'Expired'],
  [429, 'TooManyRequests'],
]);

/**
 * The Status object of an error; for anything else, the HTTP status only. A watch event has no `httpStatus`.
 */
export function kubeStatusOf(object: unknown, httpStatus: number | null, retryAfter?: unknown): KubeStatus {
  const row = wire<V1Status>(object);
  const seconds = Number(retryAfter ?? row?.details?.retryAfterSeconds);
  const status = httpStatus ?? boundedCount(row?.code, 500);
  return {
    status,
    reason: boundedText(row?.reason, 64) || (STATUS_REASONS.get(status) ?? ''),
    message: oneLine(row?.message),
    retryAfterMs: Number.isFinite(seconds) && seconds >= 0 ? Math.min(seconds, 3_600) * 1_000 : null,
  };
}

/**
 * The event in one line of a watch; undefined for an unknown kind of event or object. Throws a WireError for
 * invalid JSON.
 */
export function watchEventOf<Row>(
  line: Uint8Array,
  rowOf: (object: unknown) => Row | undefined,
): WatchEvent<Row> | undefined {
  const event = wire<{ type: string; object: object }>(parseJson(line));
  const object: unknown = event?.object;
  if (event?.type === 'ERROR') return { type: 'error', status: kubeStatusOf(object, null) };
  const version = boundedText(wire<{ metadata: ListMeta }>(object)?.metadata?.resourceVersion, 128);
  if (!RESOURCE_VERSION.test(version)) return undefined;
  if (event?.type === 'BOOKMARK') return { type: 'bookmark', version };
  const row = rowOf(object);
  if (!row) return { type: 'bookmark', version };
  if (event?.type === 'DELETED') return { type: 'deleted', row, version };
  return event?.type === 'ADDED' || event?.type === 'MODIFIED'
    ? { type: 'changed', row, version }
    : undefined;
}
