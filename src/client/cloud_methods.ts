// The cloud's API, a method per endpoint: docs/reference.md "Endpoints".
import { type CallOptions, callApi, type Endpoint, encodePath, type Query } from './api_call.ts';
import type {
  AutoSleepSettings,
  Cluster,
  ClusterDetail,
  NewCluster,
  NewTether,
  Tether,
  Workload,
} from './records.ts';

const CLUSTERS = '/k8s/clusters';
const WORKLOADS = '/k8s/workloads';
const TETHERS = '/k8s/tethers';

/** The methods for clusters, workloads and tethers. */
export function cloudMethods(endpoint: Endpoint) {
  const get = <T>(target: string, options: CallOptions = {}, query: Query = []) =>
    callApi<T>(endpoint, 'GET', target, { ...options, query });
  const change = <T>(
    method: string,
    target: string,
    detail: CallOptions & { query?: Query; body?: unknown },
  ) => callApi<T>(endpoint, method, target, { ...detail, noDeadline: true });

  return {
    clusters: (options?: CallOptions) => get<Cluster[]>(CLUSTERS, options),
    cluster: (id: string, options?: CallOptions) => get<ClusterDetail>(encodePath(CLUSTERS, id), options),
    /** Checks and seals the kubeconfig; makes no connection. */
    addCluster: (cluster: NewCluster, options: CallOptions = {}) =>
      change<{ id: string; name: string }>('POST', CLUSTERS, { ...options, body: cluster }),
    /** Closes its tethers; its workloads stay as they are. */
    removeCluster: (id: string, options: CallOptions = {}) =>
      change<{ removed: true; id: string }>('DELETE', encodePath(CLUSTERS, id), options),
    sync: (id: string, options: CallOptions = {}) =>
      change<{ synced: number }>('POST', encodePath(CLUSTERS, id, 'sync'), options),

    workloads: (options: CallOptions & { cluster?: string | undefined } = {}) =>
      get<Workload[]>(WORKLOADS, options.signal ? { signal: options.signal } : {}, [
        ['cluster_id', options.cluster],
      ]),
    sleep: (id: string, options: CallOptions = {}) =>
      change<{ replicas: number }>('POST', encodePath(WORKLOADS, id, 'sleep'), options),
    /** With `wait` it resolves when one pod is ready; `timeout` in milliseconds. */
    wake: (
      id: string,
      options: CallOptions & { wait?: boolean | undefined; timeout?: number | undefined } = {},
    ) => {
      const { wait, timeout, ...rest } = options;
      return change<{ replicas: number }>('POST', encodePath(WORKLOADS, id, 'wake'), {
        ...rest,
        query: [
          ['wait', wait],
          ['timeout', timeout],
        ],
      });
    },
    autoSleep: (id: string, options?: CallOptions) =>
      get<AutoSleepSettings>(encodePath(WORKLOADS, id, 'auto-sleep'), options),
    setAutoSleep: (id: string, settings: Partial<AutoSleepSettings>, options: CallOptions = {}) =>
      change<AutoSleepSettings>('PATCH', encodePath(WORKLOADS, id, 'auto-sleep'), {
        ...options,
        body: settings,
      }),

    tethers: (options?: CallOptions) => get<Tether[]>(TETHERS, options),
    tether: (id: string, tether: NewTether, options: CallOptions = {}) =>
      change<{ tether_id: string; local_port: number }>('POST', encodePath(WORKLOADS, id, 'tether'), {
        ...options,
        body: tether,
      }),
    /** Opens the TCP proxy; the answer's port is the one that counts. */
    activate: (id: string, options: CallOptions = {}) =>
      change<{ tether_id: string; local_port: number; state: 'active' }>(
        'POST',
        encodePath(TETHERS, id, 'activate'),
        options,
      ),
    deactivate: (id: string, options: CallOptions = {}) =>
      change<{ ok: true }>('POST', encodePath(TETHERS, id, 'deactivate'), options),
    removeTether: (id: string, options: CallOptions = {}) =>
      change<{ removed: true; id: string }>('DELETE', encodePath(TETHERS, id), options),
  };
}
