// The methods for clusters, workloads and tethers: docs/reference.md "Endpoints".

import { clusters } from '../../api/clusters.ts';
import type { ClusterUpdate, NewCluster } from '../../api/clusters_shapes.ts';
import { tethers } from '../../api/tethers.ts';
import type { NewTether } from '../../api/tethers_shapes.ts';
import { workloads } from '../../api/workloads.ts';
import type { AutoSleepChange } from '../../api/workloads_shapes.ts';
import { type CallOptions, call, type Endpoint } from '../api_call.ts';

export interface WorkloadsOptions extends CallOptions {
  cluster?: string | undefined;
}

export interface SleepOptions extends CallOptions {
  hold?: number | undefined;
}

export interface WakeOptions extends CallOptions {
  wait?: boolean | undefined;
  timeout?: number | undefined;
}

const clusterMethods = (endpoint: Endpoint) => ({
  clusters: ({ signal }: CallOptions = {}) => call(endpoint, clusters.list, { signal }),
  cluster: (id: string, { signal }: CallOptions = {}) => call(endpoint, clusters.read, { name: id, signal }),
  /** Checks and seals the kubeconfig; does not connect. */
  addCluster: (cluster: NewCluster, { signal }: CallOptions = {}) =>
    call(endpoint, clusters.register, { body: cluster, signal }),
  /** Changes its name, provider, namespaces, or renews its credentials with a new kubeconfig. */
  changeCluster: (id: string, change: ClusterUpdate, { signal }: CallOptions = {}) =>
    call(endpoint, clusters.change, { name: id, body: change, signal }),
  /** Closes its tethers; its workloads stay as they are. */
  removeCluster: (id: string, { signal }: CallOptions = {}) =>
    call(endpoint, clusters.remove, { name: id, signal }),
  sync: (id: string, { signal }: CallOptions = {}) => call(endpoint, clusters.sync, { name: id, signal }),
});

const workloadMethods = (endpoint: Endpoint) => ({
  workloads: ({ cluster, signal }: WorkloadsOptions = {}) =>
    call(endpoint, workloads.list, { query: { cluster_id: cluster }, signal }),
  /** With `hold` (milliseconds), no connection through a tether wakes it for so long. */
  sleep: (id: string, { hold, signal }: SleepOptions = {}) =>
    call(endpoint, workloads.sleep, { name: id, query: { hold }, signal }),
  /** With `wait`, resolves when one pod is ready; `timeout` in milliseconds. */
  wake: (id: string, { wait, timeout, signal }: WakeOptions = {}) =>
    call(endpoint, workloads.wake, { name: id, query: { wait, timeout }, signal }),
  autoSleep: (id: string, { signal }: CallOptions = {}) =>
    call(endpoint, workloads.autoSleep, { name: id, signal }),
  setAutoSleep: (id: string, settings: AutoSleepChange, { signal }: CallOptions = {}) =>
    call(endpoint, workloads.setAutoSleep, { name: id, body: settings, signal }),
});

const tetherMethods = (endpoint: Endpoint) => ({
  tethers: ({ signal }: CallOptions = {}) => call(endpoint, tethers.list, { signal }),
  /** Creates a tether to a port of the workload `id`. */
  tether: (id: string, tether: NewTether, { signal }: CallOptions = {}) =>
    call(endpoint, tethers.create, { name: id, body: tether, signal }),
  /** Opens the TCP proxy. Use the port in the answer. */
  activate: (id: string, { signal }: CallOptions = {}) =>
    call(endpoint, tethers.activate, { name: id, signal }),
  deactivate: (id: string, { signal }: CallOptions = {}) =>
    call(endpoint, tethers.deactivate, { name: id, signal }),
  removeTether: (id: string, { signal }: CallOptions = {}) =>
    call(endpoint, tethers.remove, { name: id, signal }),
});

/** The methods of the cloud API at `endpoint`. */
export const cloudMethods = (endpoint: Endpoint) => ({
  ...clusterMethods(endpoint),
  ...workloadMethods(endpoint),
  ...tetherMethods(endpoint),
});
