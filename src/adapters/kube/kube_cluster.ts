// The part of the Kubernetes API that Berth uses: listings and watches as slim rows, reads and patches of a
// workload, and the account's rights.

import type { ObservedWorkload } from '../../protocol/cloud.ts';
import type { ReviewedRight, ServiceAccountName } from '../../protocol/cluster_account.ts';
import type {
  Autoscaler,
  Collection,
  CurrentWorkload,
  PatchStep,
  WatchedChange,
  WorkloadReference,
} from '../../protocol/cluster_calls.ts';
import type { ClusterAccess, ClusterCapabilities } from '../../protocol/clusters.ts';
import type { WorkloadKind } from '../../protocol/workload_kinds.ts';
import type { Clock } from '../../runtime/actor.ts';
import { CLOUD } from '../../settings/cloud_limits.ts';
import type { AddressRule } from '../address_rule.ts';
import { type ClusterDialerOptions, createClusterDialer } from '../cluster_dialer.ts';
import { reviewCapabilities, reviewRights } from './capabilities.ts';
import { JsonItemStream } from './json_item_stream.ts';
import { KubeError, WireError } from './kube_errors.ts';
import { type BodySink, createKubeHttp, type KubeHttp, type KubeRequest } from './kube_http.ts';
import {
  FIELD_MANAGER,
  type ListPage,
  listPageOf,
  parseJson,
  patchBaseOf,
  seenWorkloadOf,
  watchEventOf,
} from './parse_objects.ts';
import { requestToken } from './service_account.ts';
import { arrayOrEmpty, boundedCount, boundedText, oneLine } from './untrusted_values.ts';
import {
  type V1HorizontalPodAutoscaler,
  type V1OwnerReference,
  type VersionInfo,
  wire,
} from './wire_types.ts';

/** A collection of objects and how they are reduced to rows. */
export interface Resource<Row extends object> {
  collection: Collection;
  /** Such as `deployments.apps in all namespaces`. */
  description: string;
  path: string;
  query: Record<string, string>;
  /** undefined: an invalid object, to be left out. */
  rowOf(object: unknown): Row | undefined;
}

export interface KubeListing<Row> {
  rows: Row[];
  version: string;
}

/** Receives the events of a watch. */
export interface WatchHandler<Row> {
  /** The server has accepted the watch. */
  onOpen(): void;
  /** null: an ignored line, which still shows that the watch is alive. */
  onEvent(event: WatchedChange<Row> | null): void;
  /** Resolves when more events are welcome; undefined: always. */
  whenReady?: (() => Promise<void>) | undefined;
}

/**
 * Calls fail with a KubeError, a WireError or a Failure (cluster_unreachable, cluster_denied, daemon_busy).
 * `kubeFailure` turns any of these into a Failure.
 */
export interface KubeCluster {
  version(): Promise<string>;
  /** The account's abilities in all of these namespaces, or (null) everywhere. */
  capabilities(namespaces: readonly string[] | null): Promise<ClusterCapabilities>;
  /** Which of the rights used by Berth it has in each of these namespaces, or (null) everywhere. */
  rights(namespaces: readonly string[] | null): Promise<ReviewedRight[]>;
  /** A new token of a ServiceAccount, a secret. */
  requestToken(account: ServiceAccountName, lifetimeS: number): Promise<string>;
  /** All pages of a listing. */
  list<Row extends object>(resource: Resource<Row>, signal?: AbortSignal): Promise<KubeListing<Row>>;
  /**
   * The current resourceVersion of the collection, read with a listing of one object. A watch that follows
   * uses the same connection.
   */
  currentVersion<Row extends object>(resource: Resource<Row>, signal?: AbortSignal): Promise<string>;
  /**
   * Resolves when the server ends the watch, rejects when `signal` aborts. An error event is thrown as a
   * KubeError.
   */
  watch<Row extends object>(
    resource: Resource<Row>,
    from: string,
    handler: WatchHandler<Row>,
    signal: AbortSignal,
  ): Promise<void>;
  /** null: there is no such workload. */
  getWorkload(workload: WorkloadReference): Promise<CurrentWorkload | null>;
  /**
   * Applies all steps, or none, and returns the result. A `test` that does not hold is a KubeError with 422.
   * `isDryRun`: the cluster checks the patch as it would apply it, and stores nothing; default false.
   */
  patchWorkload(
    workload: WorkloadReference,
    steps: readonly PatchStep[],
    isDryRun?: boolean,
  ): Promise<ObservedWorkload>;
  /** The HorizontalPodAutoscalers that scale it. */
  autoscalers(workload: WorkloadReference): Promise<Autoscaler[]>;
  close(): Promise<void>;
}

const PLURALS: Readonly<Record<WorkloadKind, string>> = {
  Deployment: 'deployments',
  StatefulSet: 'statefulsets',
};

/** All workloads of one kind in a namespace, or (null) in all. */
export const workloadsResource = (
  kind: WorkloadKind,
  namespace: string | null = null,
): Resource<ObservedWorkload> => ({
  collection: { of: 'workloads', kind, namespace },
  description: `${PLURALS[kind]}.apps in ${namespace === null ? 'all namespaces' : `namespace ${namespace}`}`,
  path: `/apis/apps/v1/${namespace === null ? '' : `namespaces/${encodeURIComponent(namespace)}/`}${PLURALS[kind]}`,
  query: {},
  rowOf: (object) => seenWorkloadOf(kind, object),
});

const workloadPath = ({ kind, namespace, name }: WorkloadReference): string =>
  `/apis/apps/v1/namespaces/${encodeURIComponent(namespace)}/${PLURALS[kind]}/${encodeURIComponent(name)}`;

const actionOn = (verb: string, { kind, namespace, name }: WorkloadReference): string =>
  `${verb} ${PLURALS[kind]}.apps ${name} in namespace ${namespace}`;

/** How often to try a listing whose pages expire meanwhile. The last attempt asks for a single page. */
const LIST_ATTEMPTS = 3;
/**
 * A server may return short pages, even empty ones; up to this many times the number of full pages is
 * accepted.
 */
const MAX_PAGES_FACTOR = 4;
const isListExpired = (error: unknown): boolean => error instanceof KubeError && error.status.status === 410;

/** Collects one page from its bytes. */
function pageSink<Row extends object>(resource: Resource<Row>): BodySink<ListPage & { rows: Row[] }> {
  const rows: Row[] = [];
  const items = new JsonItemStream((item) => {
    const row = resource.rowOf(item);
    if (row !== undefined) rows.push(row);
  });
  return { push: (chunk) => items.push(chunk), end: () => ({ ...listPageOf(items.end()), rows }) };
}

/** Reads one page with its rows. */
function readPage<Row extends object>(
  http: KubeHttp,
  resource: Resource<Row>,
  query: { limit: string; continue?: string },
  options: Pick<KubeRequest, 'signal' | 'precedesStream'>,
): Promise<ListPage & { rows: Row[] }> {
  const request: KubeRequest = {
    action: `list ${resource.description}`,
    path: resource.path,
    query: { ...resource.query, ...query },
    maxBytes: CLOUD.maxListBytes,
    deadlineMs: CLOUD.listTimeoutMs,
    ...options,
  };
  return http.read(request, () => pageSink(resource));
}

async function listAll<Row extends object>(
  http: KubeHttp,
  resource: Resource<Row>,
  limit: number,
  signal?: AbortSignal,
): Promise<KubeListing<Row>> {
  const rows: Row[] = [];
  let next: string | null = '';
  let version = '';
  const options = signal ? { signal } : {};
  const maxPages = MAX_PAGES_FACTOR * Math.ceil(CLOUD.maxWorkloadsPerKind / limit);
  for (let pages = 1; next !== null; pages += 1) {
    // Empty pages with ever new tokens would never end.
    if (pages > maxPages) throw new WireError(`a listing has more than ${maxPages} pages`);
    const query = { limit: String(limit), ...(next === '' ? {} : { continue: next }) };
    const page: ListPage & { rows: Row[] } = await readPage(http, resource, query, options);
    for (const row of page.rows) rows.push(row);
    if (rows.length > CLOUD.maxWorkloadsPerKind)
      throw new WireError(`a listing has more than ${CLOUD.maxWorkloadsPerKind} objects`);
    version = page.version;
    // Neither would a server that repeats its token.
    next = page.next === next ? null : page.next;
  }
  return { rows, version };
}

async function listWithRetry<Row extends object>(
  http: KubeHttp,
  resource: Resource<Row>,
  limit: number,
  signal?: AbortSignal,
): Promise<KubeListing<Row>> {
  for (let round = 1; ; round += 1) {
    try {
      const size = round === LIST_ATTEMPTS ? CLOUD.maxWorkloadsPerKind : limit;
      return await listAll(http, resource, size, signal);
    } catch (error) {
      if (round === LIST_ATTEMPTS || !isListExpired(error)) throw error;
    }
  }
}

function watchRequest<Row extends object>(resource: Resource<Row>, from: string): KubeRequest {
  const { timeoutS } = CLOUD.watch;
  return {
    action: `watch ${resource.description}`,
    path: resource.path,
    query: {
      ...resource.query,
      watch: '1',
      allowWatchBookmarks: 'true',
      resourceVersion: from,
      // Random, so that many watches do not restart at the same time.
      timeoutSeconds: String(timeoutS + Math.floor(Math.random() * timeoutS)),
    },
  };
}

/** The name of the KEDA ScaledObject that owns an object; its autoscaler may have any name. */
function scaledObjectOf(ownerReferences: unknown): string | null {
  const owners = arrayOrEmpty(ownerReferences).map((item) => wire<V1OwnerReference>(item));
  const owner = owners.find((one) => one?.kind === 'ScaledObject' && /^keda\.sh\//.test(`${one.apiVersion}`));
  return owner ? oneLine(owner.name, 253) : null;
}

/** The HorizontalPodAutoscalers whose target is the workload. */
async function autoscalersOf(
  http: KubeHttp,
  { kind, namespace, name }: WorkloadReference,
): Promise<Autoscaler[]> {
  const body = await http.call({
    action: `list horizontalpodautoscalers.autoscaling in namespace ${namespace}`,
    path: `/apis/autoscaling/v1/namespaces/${encodeURIComponent(namespace)}/horizontalpodautoscalers`,
    query: { limit: String(CLOUD.pageSize) },
  });
  return arrayOrEmpty(wire<{ items: unknown[] }>(parseJson(body))?.items).flatMap((item) => {
    const { metadata, spec } = wire<V1HorizontalPodAutoscaler>(item) ?? {};
    const target = spec?.scaleTargetRef;
    return target?.kind === kind && target.name === name
      ? [
          {
            name: oneLine(metadata?.name, 253),
            maxReplicas: boundedCount(spec?.maxReplicas, 0),
            scaledObject: scaledObjectOf(metadata?.ownerReferences),
          },
        ]
      : [];
  });
}

/** The client of one cluster over `http`, with `pageSize` objects in a page of a listing. */
export function createKubeCluster(http: KubeHttp, pageSize: number = CLOUD.pageSize): KubeCluster {
  return {
    async version() {
      const body = await http.call({ action: 'read its version', path: '/version' });
      const version = wire<VersionInfo>(parseJson(body))?.gitVersion;
      if (boundedText(version, 64) === '') throw new WireError('the answer is no version');
      return oneLine(version, 64);
    },
    capabilities: (namespaces) => reviewCapabilities(http, namespaces),
    rights: (namespaces) => reviewRights(http, namespaces),
    requestToken: (account, lifetimeS) => requestToken(http, account, lifetimeS),
    list: (resource, signal) => listWithRetry(http, resource, pageSize, signal),
    async currentVersion(resource, signal) {
      const options = { precedesStream: true, ...(signal ? { signal } : {}) };
      const { version } = await readPage(http, resource, { limit: '1' }, options);
      return version;
    },
    async watch(resource, from, { onOpen, onEvent, whenReady }, signal) {
      const request = watchRequest(resource, from);
      const onLine = (line: Uint8Array): void => {
        const event = watchEventOf(line, resource.rowOf);
        if (event?.type === 'error') throw new KubeError(request.action, event.status);
        onEvent(event ?? null);
      };
      await http.stream(request, { onOpen, onLine, whenReady }, signal);
    },
    async getWorkload(target) {
      let body: Buffer;
      try {
        body = await http.call({ action: actionOn('get', target), path: workloadPath(target) });
      } catch (error) {
        if (error instanceof KubeError && error.status.status === 404) return null;
        throw error;
      }
      const object = parseJson(body);
      return { seen: requireSeen(target, object), ...patchBaseOf(object) };
    },
    async patchWorkload(target, steps, isDryRun = false) {
      const what = actionOn('patch', target);
      const query = { fieldManager: FIELD_MANAGER, ...(isDryRun && { dryRun: 'All' }) };
      return requireSeen(
        target,
        parseJson(
          await http.call({ action: what, method: 'PATCH', path: workloadPath(target), query, body: steps }),
        ),
      );
    },
    autoscalers: (target) => autoscalersOf(http, target),
    close: () => http.close(),
  };
}

function requireSeen(target: WorkloadReference, object: unknown): ObservedWorkload {
  const seen = seenWorkloadOf(target.kind, object);
  if (seen?.namespace === target.namespace && seen.name === target.name) return seen;
  throw new WireError(`the answer is not the ${target.kind} that was asked for`);
}

/** Opens the client of a cluster; no connection is made before the first call. See `createKubeHttp`. */
export const openKubeCluster = (
  access: ClusterAccess,
  rule: AddressRule,
  clock: Clock,
  { assertMayChange, ...options }: ClusterDialerOptions & { assertMayChange?: () => void } = {},
): KubeCluster =>
  createKubeCluster(createKubeHttp(createClusterDialer(access, rule, options), clock, assertMayChange));
