// The Kubernetes API as far as it is used here: listings and watches of slim rows, one read and one patch, and what the
// account may do.
import { CLOUD } from '../../limits.ts';
import type { Capabilities, ClusterAccess, SeenWorkload, WorkloadKind } from '../../protocol/cloud.ts';
import type { AddressRule } from '../addresses.ts';
import { type DoorOptions, doorOf } from '../dial.ts';
import { capabilitiesOf } from './capabilities.ts';
import { KubeError, type KubeHttp, type KubeRequest, kubeHttp } from './http.ts';
import { JsonItems } from './json_items.ts';
import {
  eventOf,
  items,
  losesVolumes,
  MANAGER,
  oneLine,
  type Page,
  pageOf,
  parseJson,
  text,
  type WatchEvent,
  WireError,
  workloadOf,
} from './rows.ts';
import { type V1HorizontalPodAutoscaler, type VersionInfo, wire } from './types.ts';

/** Which workload of the cluster. */
export interface Target {
  kind: WorkloadKind;
  namespace: string;
  name: string;
}

/** A collection of objects and how they are reduced to rows. */
export interface Resource<Row> {
  /** As in `deployments.apps in all namespaces`. */
  what: string;
  path: string;
  query: Record<string, string>;
  /** undefined: it is no proper object, and left out. */
  rowOf(object: unknown): Row | undefined;
}

/** A workload as it is at this moment, as the base of a change. */
export interface Fresh {
  seen: SeenWorkload;
  losesVolumes: boolean;
}

export interface Listing<Row> {
  rows: Row[];
  version: string;
}

/** Calls fail with a KubeError, a WireError or a Failure (cluster_unreachable, daemon_busy); `explain` makes a Failure of any. */
export interface KubeCluster {
  version(): Promise<string>;
  capabilities(): Promise<Capabilities>;
  /** Every page. */
  list<Row>(resource: Resource<Row>, signal?: AbortSignal): Promise<Listing<Row>>;
  /** The version of the cluster now, as a listing of one object gives it. */
  position<Row>(resource: Resource<Row>, signal?: AbortSignal): Promise<string>;
  /** Ends when the server ends it, rejects when `signal` aborts; an error event of the watch is thrown as a KubeError. */
  watch<Row>(
    resource: Resource<Row>,
    from: string,
    onEvent: (event: Exclude<WatchEvent<Row>, { type: 'error' }> | null) => void,
    signal: AbortSignal,
  ): Promise<void>;
  /** null: it is not there. */
  read(target: Target): Promise<Fresh | null>;
  /** A merge patch; a uid or resourceVersion in it is a precondition (409). Returns what it is afterwards. */
  patch(target: Target, body: object): Promise<SeenWorkload>;
  /** The names of the HorizontalPodAutoscalers that scale it. */
  autoscalers(target: Target): Promise<string[]>;
  close(): Promise<void>;
}

const PLURALS: Readonly<Record<WorkloadKind, string>> = {
  Deployment: 'deployments',
  StatefulSet: 'statefulsets',
};

/** All workloads of one kind in all namespaces. */
export const workloadsOf = (kind: WorkloadKind): Resource<SeenWorkload> => ({
  what: `${PLURALS[kind]}.apps in all namespaces`,
  path: `/apis/apps/v1/${PLURALS[kind]}`,
  query: {},
  rowOf: (object) => workloadOf(kind, object),
});

const pathOf = ({ kind, namespace, name }: Target): string =>
  `/apis/apps/v1/namespaces/${encodeURIComponent(namespace)}/${PLURALS[kind]}/${encodeURIComponent(name)}`;

const nameOf = (verb: string, { kind, namespace, name }: Target): string =>
  `${verb} ${PLURALS[kind]}.apps ${name} in namespace ${namespace}`;

/** How often a listing whose pages have expired meanwhile begins anew. */
const LISTINGS = 3;
/** A server may give pages that are not full, even empty ones: so many times the pages that full ones would be. */
const SPARSE = 4;
const isExpired = (error: unknown): boolean => error instanceof KubeError && error.status.status === 410;

/** One page, its rows given to `onRow` as they come. */
async function readPage<Row>(
  http: KubeHttp,
  resource: Resource<Row>,
  query: { limit: string; continue?: string },
  onRow: (row: Row) => void,
  signal?: AbortSignal,
): Promise<Page> {
  const items = new JsonItems((item) => {
    const row = resource.rowOf(item);
    if (row !== undefined) onRow(row);
  });
  const request: KubeRequest = {
    what: `list ${resource.what}`,
    path: resource.path,
    query: { ...resource.query, ...query },
    mostBytes: CLOUD.listBytes,
    deadlineMs: CLOUD.listMs,
    ...(signal ? { signal } : {}),
  };
  await http.read(request, (chunk) => items.feed(chunk));
  return pageOf(items.end());
}

async function listAll<Row>(
  http: KubeHttp,
  resource: Resource<Row>,
  limit: number,
  signal?: AbortSignal,
): Promise<Listing<Row>> {
  const rows: Row[] = [];
  let next: string | null = '';
  let version = '';
  const most = SPARSE * Math.ceil(CLOUD.rows / limit);
  for (let pages = 1; next !== null; pages += 1) {
    // Empty pages with ever new tokens would be read for ever.
    if (pages > most) throw new WireError(`a listing has more than ${most} pages`);
    const query = { limit: String(limit), ...(next === '' ? {} : { continue: next }) };
    const page: Page = await readPage(http, resource, query, (row) => rows.push(row), signal);
    if (rows.length > CLOUD.rows) throw new WireError(`a listing has more than ${CLOUD.rows} objects`);
    version = page.version;
    // A server that gives the same token again would be read for ever.
    next = page.next === next ? null : page.next;
  }
  return { rows, version };
}

async function list<Row>(
  http: KubeHttp,
  resource: Resource<Row>,
  limit: number,
  signal?: AbortSignal,
): Promise<Listing<Row>> {
  for (let round = 1; ; round += 1) {
    try {
      return await listAll(http, resource, limit, signal);
    } catch (error) {
      if (round === LISTINGS || !isExpired(error)) throw error;
    }
  }
}

function watchRequest<Row>(resource: Resource<Row>, from: string): KubeRequest {
  const { timeoutS } = CLOUD.watch;
  return {
    what: `watch ${resource.what}`,
    path: resource.path,
    query: {
      ...resource.query,
      watch: '1',
      allowWatchBookmarks: 'true',
      resourceVersion: from,
      // Spread, so that many watches do not begin anew at the same time.
      timeoutSeconds: String(timeoutS + Math.floor(Math.random() * timeoutS)),
    },
  };
}

/** The HorizontalPodAutoscalers of the namespace whose target it is. */
async function autoscalersOf(http: KubeHttp, { kind, namespace, name }: Target): Promise<string[]> {
  const body = await http.call({
    what: `list horizontalpodautoscalers.autoscaling in namespace ${namespace}`,
    path: `/apis/autoscaling/v1/namespaces/${encodeURIComponent(namespace)}/horizontalpodautoscalers`,
    query: { limit: String(CLOUD.page) },
  });
  return items(wire<{ items: unknown[] }>(parseJson(body))?.items).flatMap((item) => {
    const { metadata, spec } = wire<V1HorizontalPodAutoscaler>(item) ?? {};
    const target = spec?.scaleTargetRef;
    return target?.kind === kind && target.name === name ? [oneLine(metadata?.name, 253)] : [];
  });
}

/** The client of one cluster over `http`; listings have `page` objects in a page. */
export function kubeCluster(http: KubeHttp, page: number = CLOUD.page): KubeCluster {
  return {
    async version() {
      const body = await http.call({ what: 'read its version', path: '/version' });
      const version = wire<VersionInfo>(parseJson(body))?.gitVersion;
      if (text(version, 64) === '') throw new WireError('the answer is no version');
      return oneLine(version, 64);
    },
    capabilities: () => capabilitiesOf(http),
    list: (resource, signal) => list(http, resource, page, signal),
    async position(resource, signal) {
      const { version } = await readPage(http, resource, { limit: '1' }, () => undefined, signal);
      return version;
    },
    async watch(resource, from, onEvent, signal) {
      const request = watchRequest(resource, from);
      const onLine = (line: Uint8Array): void => {
        const event = eventOf(line, resource.rowOf);
        if (event?.type === 'error') throw new KubeError(request.what, event.status);
        onEvent(event ?? null);
      };
      await http.stream(request, onLine, signal);
    },
    async read(target) {
      let body: Buffer;
      try {
        body = await http.call({ what: nameOf('get', target), path: pathOf(target) });
      } catch (error) {
        if (error instanceof KubeError && error.status.status === 404) return null;
        throw error;
      }
      const object = parseJson(body);
      return { seen: seenOf(target, object), losesVolumes: losesVolumes(object) };
    },
    async patch(target, body) {
      const what = nameOf('patch', target);
      const query = { fieldManager: MANAGER };
      return seenOf(
        target,
        parseJson(await http.call({ what, method: 'PATCH', path: pathOf(target), query, body })),
      );
    },
    autoscalers: (target) => autoscalersOf(http, target),
    close: () => http.close(),
  };
}

function seenOf(target: Target, object: unknown): SeenWorkload {
  const seen = workloadOf(target.kind, object);
  if (seen?.namespace === target.namespace && seen.name === target.name) return seen;
  throw new WireError(`the answer is not the ${target.kind} that was asked for`);
}

/** Opens the client of a cluster; no connection is made before the first call. */
export const openCluster = (access: ClusterAccess, rule: AddressRule, options?: DoorOptions): KubeCluster =>
  kubeCluster(kubeHttp(doorOf(access, rule, options)));
