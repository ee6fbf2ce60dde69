// The methods for clusters, workloads and tethers: docs/reference.md "Endpoints".

import { clusters } from '../../api/clusters.ts';
import type { ClusterUpdate, NewCluster } from '../../api/clusters_shapes.ts';
import type { QueryInputOf } from '../../api/operation.ts';
import { tethers } from '../../api/tethers.ts';
import type { NewTether } from '../../api/tethers_shapes.ts';
import { workloads } from '../../api/workloads.ts';
import type { AutoSleepChange, BulkSleep, BulkWake, Workload } from '../../api/workloads_shapes.ts';
import { CLOUD } from '../../settings/cloud_limits.ts';
import {
  type CallOptions,
  type ChangeOptions,
  call,
  callForPage,
  type Endpoint,
  type Page,
} from '../api_call.ts';
import { loginMethods } from './access.ts';
import { cloudEventMethods } from './cloud_events.ts';
import { policyMethods } from './policies.ts';
import { principalMethods } from './principals.ts';
import { relayMethods } from './relay.ts';
import { savingsMethods } from './savings.ts';

/** Selects the workloads that pass every given filter. */
export interface WorkloadsOptions extends CallOptions {
  /** Id of a cluster. */
  cluster?: string | undefined;
  namespaces?: readonly string[] | undefined;
  states?: readonly Workload['state'][] | undefined;
  /** A label selector, such as `app=web,tier in (a,b)`. */
  selector?: string | undefined;
}

export interface WorkloadPagesOptions extends WorkloadsOptions {
  /** The most workloads on a page. */
  limit?: number | undefined;
}

const workloadQuery = ({ cluster, namespaces, states, selector }: WorkloadsOptions) => ({
  ...{ cluster_id: cluster, namespace: namespaces, state: states, selector },
});

export interface SleepOptions extends ChangeOptions {
  hold?: number | undefined;
}

export interface WakeOptions extends ChangeOptions {
  wait?: boolean | undefined;
  timeout?: number | undefined;
}

const clusterMethods = (endpoint: Endpoint) => ({
  clusters: ({ signal }: CallOptions = {}) => call(endpoint, clusters.list, { signal }),
  cluster: (id: string, { signal }: CallOptions = {}) => call(endpoint, clusters.read, { name: id, signal }),
  /** Checks and seals the kubeconfig; does not connect. */
  addCluster: (cluster: NewCluster, options: ChangeOptions = {}) =>
    call(endpoint, clusters.register, { body: cluster, ...options }),
  /** Changes its name, provider, namespaces, or renews its credentials with a new kubeconfig. */
  changeCluster: (id: string, change: ClusterUpdate, options: ChangeOptions = {}) =>
    call(endpoint, clusters.change, { name: id, body: change, ...options }),
  /** Closes its tethers. The workloads themselves are left alone. */
  removeCluster: (id: string, options: ChangeOptions = {}) =>
    call(endpoint, clusters.remove, { name: id, ...options }),
  /** Which of the rights used by Berth its account has; asks the cluster. */
  rights: (id: string, { signal }: CallOptions = {}) => call(endpoint, clusters.rights, { name: id, signal }),
  sync: (id: string, options: ChangeOptions = {}) => call(endpoint, clusters.sync, { name: id, ...options }),
});

async function* workloadPages(
  endpoint: Endpoint,
  query: QueryInputOf<typeof workloads.list>,
  signal: AbortSignal | undefined,
): AsyncGenerator<Workload[], void> {
  let next: string | null = null;
  do {
    const request = { query: { ...query, continue: next }, signal };
    const answer: Page<Workload[]> = await callForPage(endpoint, workloads.list, request);
    yield answer.page;
    next = answer.next;
  } while (next !== null);
}

const workloadMethods = (endpoint: Endpoint) => ({
  workloads: ({ signal, ...options }: WorkloadsOptions = {}) =>
    call(endpoint, workloads.list, { query: workloadQuery(options), signal }),
  /** The same workloads, a page at a time. */
  workloadPages: ({ signal, limit, ...options }: WorkloadPagesOptions = {}) =>
    workloadPages(endpoint, { ...workloadQuery(options), limit: limit ?? CLOUD.maxPage }, signal),
  /** One page of them: the one at `from`, the previous page's `next`; null: the first. */
  workloadPage: (
    from: string | null,
    { signal, limit, ...options }: WorkloadPagesOptions = {},
  ): Promise<{ page: Workload[]; next: string | null }> =>
    callForPage(endpoint, workloads.list, {
      query: { ...workloadQuery(options), limit: limit ?? CLOUD.maxPage, continue: from },
      signal,
    }),
  /** One workload with its labels. */
  workload: (id: string, { signal }: CallOptions = {}) =>
    call(endpoint, workloads.read, { name: id, signal }),
  /** With `hold` (milliseconds), connections through tethers do not wake it for that long. */
  sleep: (id: string, { hold, ...options }: SleepOptions = {}) =>
    call(endpoint, workloads.sleep, { name: id, query: { hold }, ...options }),
  /** With `wait`, resolves when one pod is ready; `timeout` in milliseconds. */
  wake: (id: string, { wait, timeout, ...options }: WakeOptions = {}) =>
    call(endpoint, workloads.wake, { name: id, query: { wait, timeout }, ...options }),
  /** Puts all selected workloads to sleep independently: one result per workload. */
  sleepMany: (selection: BulkSleep, options: ChangeOptions = {}) =>
    call(endpoint, workloads.sleepMany, { body: selection, ...options }),
  wakeMany: (selection: BulkWake, options: ChangeOptions = {}) =>
    call(endpoint, workloads.wakeMany, { body: selection, ...options }),
  autoSleep: (id: string, { signal }: CallOptions = {}) =>
    call(endpoint, workloads.autoSleep, { name: id, signal }),
  setAutoSleep: (id: string, settings: AutoSleepChange, options: ChangeOptions = {}) =>
    call(endpoint, workloads.setAutoSleep, { name: id, body: settings, ...options }),
});

const tetherMethods = (endpoint: Endpoint) => ({
  tethers: ({ signal }: CallOptions = {}) => call(endpoint, tethers.list, { signal }),
  /** Creates a tether to a port of the workload `id`. */
  tether: (id: string, tether: NewTether, options: ChangeOptions = {}) =>
    call(endpoint, tethers.create, { name: id, body: tether, ...options }),
  /** Opens the TCP proxy. Use the port in the answer. */
  activate: (id: string, options: ChangeOptions = {}) =>
    call(endpoint, tethers.activate, { name: id, ...options }),
  deactivate: (id: string, options: ChangeOptions = {}) =>
    call(endpoint, tethers.deactivate, { name: id, ...options }),
  removeTether: (id: string, options: ChangeOptions = {}) =>
    call(endpoint, tethers.remove, { name: id, ...options }),
});

/** The methods of the cloud API at `endpoint`. */
export const cloudMethods = (endpoint: Endpoint) => ({
  ...clusterMethods(endpoint),
  ...workloadMethods(endpoint),
  ...tetherMethods(endpoint),
  ...relayMethods(endpoint),
  ...loginMethods(endpoint),
  ...policyMethods(endpoint),
  ...principalMethods(endpoint),
  ...savingsMethods(endpoint),
  ...cloudEventMethods(endpoint),
});
