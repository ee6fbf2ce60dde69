// The paths of the cloud API: one table, as routes.ts is for the daemon. docs/reference.md "Endpoints".

import type { AutoSleepSettings, ClusterInput } from '../../protocol/cloud.ts';
import { fail } from '../../protocol/errors.ts';
import type { TetherInput } from '../../protocol/tethers.ts';
import { CLOUD, HTTP, THREADS } from '../../settings/limits.ts';
import type { CloudViews } from '../views/cloud_views.ts';
import { type ApiRoute, type BodyInput, callRoute, type RequestContext } from './route.ts';

export interface CloudContext {
  views: CloudViews;
  /** Resolves when the cloud's threads are up and have told the views what there is. Rejects as a Failure. */
  ensure: () => Promise<void>;
}

const cloudShapes = async () => (await import('./schemas.ts')).cloudShapes();

const clusterInput: BodyInput<ClusterInput> = {
  schema: 'ClusterInput',
  load: async () => (await cloudShapes()).checkCluster,
};
const autoSleepInput: BodyInput<{ enabled: boolean | null; minutes: number | null }> = {
  schema: 'AutoSleepInput',
  load: async () => (await cloudShapes()).checkAutoSleep,
};
const tetherInput: BodyInput<Omit<TetherInput, 'workloadId'>> = {
  schema: 'TetherInput',
  load: async () => (await cloudShapes()).checkTether,
};

const CLUSTER = ['cluster_unreachable', 'cluster_denied'] as const;

const clusters = (desk: RequestContext['desk']) => desk.ref('clusters');
const workloads = (desk: RequestContext['desk']) => desk.ref('workloads');
const tethers = (desk: RequestContext['desk']) => desk.ref('tethers');

function cluster(views: CloudViews, id: string): Uint8Array {
  const json = views.cluster(id);
  if (json === null) throw fail('unknown_cluster', `there is no cluster ${id}`);
  return Buffer.from(json);
}

function autoSleep(views: CloudViews, id: string): AutoSleepSettings {
  const settings = views.autoSleep(id);
  if (settings === null) throw fail('unknown_workload', `there is no workload ${id}`);
  return settings;
}

/** Wraps handlers: the first request of all starts the cloud's threads, later ones are answered at once. */
function opener({ views, ensure }: CloudContext) {
  let isOpen = false;
  return <C, R>(run: (call: C) => R | Promise<R>) =>
    (given: C): R | Promise<R> => {
      if (isOpen) {
        views.assertAvailable();
        return run(given);
      }
      return ensure().then(() => {
        isOpen = true;
        views.assertAvailable();
        return run(given);
      });
    };
}

/** The rows of the cloud API. Reads are answered from the views; everything else is asked of the owners. */
export function cloudRoutes(desk: CloudContext): readonly ApiRoute[] {
  const { views } = desk;
  const open = opener(desk);
  return [...clusterRows(views, open), ...workloadRows(views, open), ...tetherRows(views, open)];
}

type Open = ReturnType<typeof opener>;

function clusterRows(views: CloudViews, open: Open): ApiRoute[] {
  return [
    callRoute({
      method: 'GET',
      path: '/k8s/clusters',
      summary: 'Every registered cluster, oldest first',
      reply: 'ClusterList',
      run: open(() => views.clusters()),
    }),
    callRoute({
      method: 'POST',
      path: '/k8s/clusters',
      summary: 'Register a cluster; no connection is made',
      status: 201,
      reply: 'ClusterAdded',
      errors: ['invalid_spec', 'name_in_use'],
      input: clusterInput,
      run: open(({ desk, body }: RequestContext & { body: ClusterInput }) =>
        clusters(desk).ask('register', { input: body }),
      ),
    }),
    callRoute({
      method: 'GET',
      path: '/k8s/clusters/{id}',
      summary: 'One cluster, with what is known of it and what the account may do',
      reply: 'ClusterDetail',
      errors: ['unknown_cluster'],
      nameKind: 'id',
      run: open(({ name }: RequestContext) => cluster(views, name)),
    }),
    callRoute({
      method: 'DELETE',
      path: '/k8s/clusters/{id}',
      summary: 'Forget a cluster and close its tethers; its workloads are left as they are',
      reply: 'RemovedById',
      errors: ['unknown_cluster'],
      nameKind: 'id',
      run: open(({ desk, name }: RequestContext) => clusters(desk).ask('remove', { id: name })),
    }),
    callRoute({
      method: 'POST',
      path: '/k8s/clusters/{id}/sync',
      summary: 'List the Deployments and StatefulSets of a cluster, and watch them from now on',
      reply: 'Synced',
      errors: ['unknown_cluster', ...CLUSTER],
      nameKind: 'id',
      run: open(({ desk, name }: RequestContext) =>
        clusters(desk).ask('sync', { id: name }, { deadlineMs: CLOUD.syncTimeoutMs + THREADS.askDeadlineMs }),
      ),
    }),
  ];
}

const wakeQuery = {
  wait: { kind: 'flag', summary: 'true: answer when a pod is Ready' },
  timeout: {
    kind: 'integer',
    least: 0,
    most: HTTP.maxQueryDurationMs,
    summary: `How long to wait for it (ms); default ${CLOUD.defaultWakeWaitMs}`,
  },
} as const;

type WakeCall = Pick<RequestContext, 'desk' | 'name'> & {
  query: { wait: boolean | null; timeout: number | null };
};

function wake({ desk, name, query }: WakeCall) {
  const waitMs = query.wait ? (query.timeout ?? CLOUD.defaultWakeWaitMs) : null;
  const deadlineMs = CLOUD.scaleTimeoutMs + (waitMs ?? 0);
  return workloads(desk).ask('wake', { id: name, waitMs }, { deadlineMs });
}

async function sleep({ desk, name }: Pick<RequestContext, 'desk' | 'name'>) {
  const message = { id: name, by: 'request' } as const;
  const { replicas } = await workloads(desk).ask('sleep', message, { deadlineMs: CLOUD.scaleTimeoutMs });
  return { replicas };
}

function workloadRows(views: CloudViews, open: Open): ApiRoute[] {
  return [
    callRoute({
      method: 'GET',
      path: '/k8s/workloads',
      summary: 'The Deployments and StatefulSets of all clusters, or of one',
      reply: 'WorkloadList',
      query: { cluster_id: { kind: 'word', summary: 'Only those of this cluster' } },
      run: open(({ query }: { query: { cluster_id: string | null } }) => views.workloads(query.cluster_id)),
    }),
    callRoute({
      method: 'POST',
      path: '/k8s/workloads/{id}/sleep',
      summary: 'Save the count of replicas and scale to 0; harmless when asleep',
      reply: 'Replicas',
      errors: ['unknown_workload', 'sleep_refused', ...CLUSTER],
      nameKind: 'id',
      run: open(sleep),
    }),
    callRoute({
      method: 'POST',
      path: '/k8s/workloads/{id}/wake',
      summary: 'Give back the saved count of replicas, or 1; harmless when awake',
      reply: 'Replicas',
      errors: ['unknown_workload', 'ready_timeout', ...CLUSTER],
      nameKind: 'id',
      query: wakeQuery,
      run: open(wake),
    }),
    callRoute({
      method: 'GET',
      path: '/k8s/workloads/{id}/auto-sleep',
      summary: 'The auto-sleep settings of a workload',
      reply: 'AutoSleep',
      errors: ['unknown_workload'],
      nameKind: 'id',
      run: open(({ name }: RequestContext) => autoSleep(views, name)),
    }),
    callRoute({
      method: 'PATCH',
      path: '/k8s/workloads/{id}/auto-sleep',
      summary: 'Change the auto-sleep settings of a workload; what is left out stays',
      reply: 'AutoSleep',
      errors: ['invalid_spec', 'unknown_workload'],
      nameKind: 'id',
      input: autoSleepInput,
      run: open(
        ({
          desk,
          name,
          body,
        }: RequestContext & { body: { enabled: boolean | null; minutes: number | null } }) =>
          workloads(desk).ask('autoSleep', { id: name, ...body }),
      ),
    }),
    callRoute({
      method: 'POST',
      path: '/k8s/workloads/{id}/tether',
      summary: 'Make a tether to a port of the workload; activate opens it',
      status: 201,
      reply: 'TetherAdded',
      errors: ['invalid_spec', 'unknown_workload', 'port_in_use'],
      nameKind: 'id',
      input: tetherInput,
      run: open(({ desk, name, body }: RequestContext & { body: Omit<TetherInput, 'workloadId'> }) =>
        tethers(desk).ask('create', { workloadId: name, ...body }),
      ),
    }),
  ];
}

function tetherRows(views: CloudViews, open: Open): ApiRoute[] {
  return [
    callRoute({
      method: 'GET',
      path: '/k8s/tethers',
      summary: 'Every tether, oldest first',
      reply: 'TetherList',
      run: open(() => views.tethers()),
    }),
    callRoute({
      method: 'POST',
      path: '/k8s/tethers/{id}/activate',
      summary: 'Open the local port of a tether; harmless when it is open',
      reply: 'TetherActive',
      errors: ['unknown_tether', 'port_in_use'],
      nameKind: 'id',
      run: open(({ desk, name }: RequestContext) => tethers(desk).ask('activate', { id: name })),
    }),
    callRoute({
      method: 'POST',
      path: '/k8s/tethers/{id}/deactivate',
      summary: 'Close the connections and the local port of a tether; harmless when idle',
      reply: 'Done',
      errors: ['unknown_tether'],
      nameKind: 'id',
      run: open(({ desk, name }: RequestContext) => tethers(desk).ask('deactivate', { id: name })),
    }),
    callRoute({
      method: 'DELETE',
      path: '/k8s/tethers/{id}',
      summary: 'Close a tether and forget it',
      reply: 'RemovedById',
      errors: ['unknown_tether'],
      nameKind: 'id',
      run: open(({ desk, name }: RequestContext) => tethers(desk).ask('remove', { id: name })),
    }),
  ];
}
