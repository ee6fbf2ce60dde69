// The operations of workloads: docs/reference.md "Endpoints".
import { WORKLOAD_STATES } from '../protocol/workload_kinds.ts';
import { CLOUD } from '../settings/cloud_limits.ts';
import { HTTP } from '../settings/limits.ts';
import { OPEN_METRICS_TYPE, operationsOf } from './operation.ts';

const operation = operationsOf('workloads');

const timeout = {
  kind: 'integer',
  least: 0,
  most: HTTP.maxQueryDurationMs,
  summary: `How long to wait for it (ms); default ${CLOUD.defaultWakeWaitMs}`,
} as const;

const hold = {
  kind: 'integer',
  least: 0,
  most: HTTP.maxQueryDurationMs,
  summary: 'Time (ms) in which no connection through a tether wakes it; default 0',
} as const;

/** The errors of a change in the cluster. */
const CHANGE_ERRORS = [
  'workload_conflict',
  'cluster_unreachable',
  'cluster_denied',
  'admission_denied',
] as const;

export const workloads = {
  list: operation({
    id: 'listWorkloads',
    kind: 'call',
    method: 'GET',
    path: '/k8s/workloads',
    agentRight: 'never',
    summary: 'The Deployments and StatefulSets of all clusters, or of one',
    query: {
      cluster_id: { kind: 'word', summary: 'Only those of this cluster' },
      namespace: { kind: 'list', summary: 'Only those of these namespaces' },
      state: { kind: 'list', of: WORKLOAD_STATES, summary: 'Only those in one of these states' },
      selector: { kind: 'word', summary: 'Only those whose labels this label selector selects' },
      limit: {
        kind: 'integer',
        least: 1,
        most: CLOUD.maxPage,
        summary: 'The maximum per page; the response header Link names the next page',
      },
      continue: {
        kind: 'word',
        summary: 'Where the page begins: the value from the Link of the page before',
      },
    },
    answer: 'WorkloadList',
    errors: ['invalid_spec', 'unknown_cluster'],
    needs: 'cloud',
  }),
  read: operation({
    id: 'getWorkload',
    kind: 'read',
    method: 'GET',
    path: '/k8s/workloads/{id}',
    agentRight: 'never',
    summary: 'One workload with its labels',
    answer: 'WorkloadDetail',
    missing: 'unknown_workload',
    keyKind: 'id',
    needs: 'cloud',
  }),
  sleepMany: operation({
    id: 'sleepWorkloads',
    kind: 'call',
    method: 'POST',
    path: '/k8s/workloads/sleep',
    agentRight: 'never',
    summary: 'Put all selected workloads to sleep, independently of each other',
    body: 'BulkSleep',
    answer: 'BulkAnswer',
    errors: ['invalid_spec', 'unknown_cluster'],
    needs: 'cloud',
  }),
  wakeMany: operation({
    id: 'wakeWorkloads',
    kind: 'call',
    method: 'POST',
    path: '/k8s/workloads/wake',
    agentRight: 'never',
    summary: 'Wake all selected workloads, independently of each other',
    body: 'BulkWake',
    answer: 'BulkAnswer',
    errors: ['invalid_spec', 'unknown_cluster'],
    needs: 'cloud',
  }),
  sleep: operation({
    id: 'sleepWorkload',
    kind: 'call',
    method: 'POST',
    path: '/k8s/workloads/{id}/sleep',
    agentRight: 'never',
    summary: 'Save the replica count and scale to 0; harmless when asleep',
    query: { hold },
    answer: 'Replicas',
    errors: ['unknown_workload', 'sleep_refused', ...CHANGE_ERRORS],
    keyKind: 'id',
    needs: 'cloud',
  }),
  wake: operation({
    id: 'wakeWorkload',
    kind: 'call',
    method: 'POST',
    path: '/k8s/workloads/{id}/wake',
    agentRight: 'never',
    summary: 'Restore the saved replica count, or 1; harmless when awake',
    query: { wait: { kind: 'flag', summary: 'true: return when a pod is Ready' }, timeout },
    answer: 'Replicas',
    errors: ['unknown_workload', 'wake_refused', 'quota_exceeded', 'ready_timeout', ...CHANGE_ERRORS],
    keyKind: 'id',
    needs: 'cloud',
  }),
  autoSleep: operation({
    id: 'getAutoSleep',
    kind: 'read',
    method: 'GET',
    path: '/k8s/workloads/{id}/auto-sleep',
    agentRight: 'never',
    summary: 'The auto-sleep settings of a workload',
    answer: 'AutoSleepSettings',
    missing: 'unknown_workload',
    keyKind: 'id',
    needs: 'cloud',
  }),
  setAutoSleep: operation({
    id: 'changeAutoSleep',
    kind: 'call',
    method: 'PATCH',
    path: '/k8s/workloads/{id}/auto-sleep',
    agentRight: 'never',
    summary: 'Change the auto-sleep settings of a workload; absent fields are unchanged',
    body: 'AutoSleepChange',
    answer: 'AutoSleepSettings',
    errors: ['invalid_spec', 'unknown_workload'],
    keyKind: 'id',
    needs: 'cloud',
  }),
  metrics: operation({
    id: 'getCloudMetrics',
    kind: 'call',
    method: 'GET',
    path: '/k8s/metrics',
    agentRight: 'never',
    summary: 'Metrics of workloads and tethers for Prometheus',
    contentType: OPEN_METRICS_TYPE,
    answer: 'CloudMetricsText',
    needs: 'cloud',
  }),
};
