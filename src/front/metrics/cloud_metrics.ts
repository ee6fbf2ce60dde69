// Every metric of workloads and tethers: docs/reference.md "Metrics".
import type { StoredSavings } from '../../protocol/savings.ts';
import { METRICS } from '../../settings/limits.ts';
import type { Metric, Sample } from './open_metrics.ts';
import { WAKE_BUCKETS, type WakeHistogram } from './workload_times.ts';

export interface CloudReading {
  workloads: readonly WorkloadCounts[];
  /** Of each cluster, by its id. */
  wakes: readonly (readonly [cluster: string, histogram: WakeHistogram])[];
  tethers: readonly TetherCounts[];
  savings: readonly StoredSavings[];
}

/** A workload in JSON, as far as metrics need it. */
export interface WorkloadCounts {
  cluster_id: string;
  namespace: string;
  name: string;
  kind: string;
  replicas: number | null;
  ready_replicas: number | null;
  desired_replicas: number | null;
  /** Since the daemon was started. */
  asleep_seconds: number | null;
}

/** A tether in JSON, as far as metrics need it. */
export interface TetherCounts {
  tether_id: string;
  label: string | null;
  connections: number;
  bytes_in: number;
  bytes_out: number;
}

type Row = Metric<CloudReading>;

const one = (value: number, labels: Sample['labels']): Sample[] => [{ labels, value }];

const COUNTS = ['replicas', 'ready_replicas', 'desired_replicas', 'asleep_seconds'] as const;

/**
 * If there are more workloads than a monitoring system should have series for, they are summed per namespace.
 */
function bounded(workloads: readonly WorkloadCounts[]): readonly WorkloadCounts[] {
  if (workloads.length <= METRICS.maxWorkloads) return workloads;
  const sums = new Map<string, WorkloadCounts>();
  for (const workload of workloads) {
    const { cluster_id, namespace } = workload;
    const key = JSON.stringify([cluster_id, namespace]);
    const sum = sums.get(key) ?? {
      ...workload,
      name: '',
      kind: '',
      replicas: 0,
      ready_replicas: 0,
      desired_replicas: 0,
      asleep_seconds: 0,
    };
    for (const count of COUNTS) sum[count] = (sum[count] ?? 0) + (workload[count] ?? 0);
    sums.set(key, sum);
  }
  return [...sums.values()];
}

function wakeSamples(cluster: string, { buckets, count, sum }: WakeHistogram): Sample[] {
  const bounds = [...WAKE_BUCKETS.map(String), '+Inf'];
  return [
    ...bounds.map((le, index) => ({
      labels: { cluster, le },
      value: buckets[index] ?? count,
      part: '_bucket',
    })),
    { labels: { cluster }, value: sum, part: '_sum' },
    { labels: { cluster }, value: count, part: '_count' },
  ];
}

const perWorkload = (
  { name, help, type = 'gauge' }: Pick<Row, 'name' | 'help'> & Partial<Pick<Row, 'type'>>,
  value: (workload: WorkloadCounts) => number | null,
): Row => ({
  ...{ name, help, type },
  samples: ({ workloads }) =>
    bounded(workloads).flatMap((workload) => {
      const { cluster_id: cluster, namespace, name: workloadName, kind } = workload;
      const count = value(workload);
      return count === null ? [] : one(count, { cluster, namespace, workload: workloadName, kind });
    }),
});

type SavedCount = 'podSeconds' | 'cpuSeconds' | 'memorySeconds';

/** Sums all months. If there are more namespaces than there should be series, they are summed per cluster. */
function savedSamples(savings: readonly StoredSavings[], count: SavedCount): Sample[] {
  const places = new Set(savings.map(({ clusterId, namespace }) => `${clusterId}/${namespace}`));
  const isWhole = places.size <= METRICS.maxWorkloads;
  const sums = new Map<string, { labels: Sample['labels']; value: number }>();
  for (const row of savings) {
    const labels = { cluster: row.clusterId, namespace: isWhole ? row.namespace : '' };
    const key = `${labels.cluster}/${labels.namespace}`;
    const { value } = sums.get(key) ?? { value: 0 };
    sums.set(key, { labels, value: value + row[count] });
  }
  return [...sums.values()];
}

const saved = (name: string, what: string, count: SavedCount): Row => ({
  name,
  type: 'counter',
  help: `Seconds that workloads have slept, times ${what}, since they are counted.`,
  samples: ({ savings }) => savedSamples(savings, count),
});

const perTether = (
  { name, type, help }: Omit<Row, 'samples'>,
  value: (tether: TetherCounts) => number,
): Row => ({
  ...{ name, type, help },
  samples: ({ tethers }) =>
    tethers.flatMap((tether) => one(value(tether), { tether: tether.tether_id, label: tether.label ?? '' })),
});

/** All metrics, in the order of the text. */
export const CLOUD_METRICS: readonly Row[] = [
  perWorkload(
    { name: 'berth_workload_replicas', help: 'Replicas that the workload asks for.' },
    ({ replicas }) => replicas,
  ),
  perWorkload(
    { name: 'berth_workload_ready_replicas', help: 'Replicas of the workload that are ready.' },
    ({ ready_replicas }) => ready_replicas,
  ),
  perWorkload(
    { name: 'berth_workload_desired_replicas', help: 'Replicas to which a wake scales the workload.' },
    ({ desired_replicas }) => desired_replicas,
  ),
  perWorkload(
    {
      name: 'berth_workload_asleep_seconds',
      type: 'counter',
      help: 'Time in which the workload has slept since the daemon was started.',
    },
    ({ asleep_seconds }) => asleep_seconds,
  ),
  {
    name: 'berth_workload_wake_seconds',
    type: 'histogram',
    help: 'Time from the wake of a workload until it was awake, by cluster.',
    samples: ({ wakes }) => wakes.flatMap(([cluster, histogram]) => wakeSamples(cluster, histogram)),
  },
  saved('berth_saved_pod_seconds', 'their pods', 'podSeconds'),
  saved('berth_saved_cpu_request_core_seconds', 'the CPU cores that these request', 'cpuSeconds'),
  saved('berth_saved_memory_request_byte_seconds', 'the bytes that these request', 'memorySeconds'),
  perTether(
    { name: 'berth_tether_connections', type: 'gauge', help: 'Open connections of the tether.' },
    ({ connections }) => connections,
  ),
  perTether(
    { name: 'berth_tether_received_bytes', type: 'counter', help: 'Bytes from clients to the workload.' },
    ({ bytes_in }) => bytes_in,
  ),
  perTether(
    { name: 'berth_tether_sent_bytes', type: 'counter', help: 'Bytes from the workload to clients.' },
    ({ bytes_out }) => bytes_out,
  ),
];
