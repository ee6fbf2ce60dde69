// The cost of one workload to a daemon that has read many from a cluster.
import { type Ask, withCloud, withDouble } from './cloud.ts';
import type { Daemon } from './kit/daemon.ts';
import { growth, type Row } from './kit/harness.ts';
import { memoryOf } from './kit/process_stats.ts';
import { microseconds, reads } from './scale_services.ts';

const WORKLOADS = [100, 1_000, 10_000];
const KIB = 1_024;

interface Costs {
  sync: number;
  list: number;
  memory: number;
}

async function measure(daemon: Daemon, ask: Ask, token: string, kubeconfig: string): Promise<Costs> {
  const of = [daemon.pid];
  const { id } = await ask('POST', '/k8s/clusters', { name: 'bench', kubeconfig });
  const before = memoryOf(daemon.pid, 'Pss');
  const sync = await microseconds(of, async () => (await ask('POST', `/k8s/clusters/${id}/sync`)).synced);
  const { length } = await ask('GET', '/k8s/workloads');
  const list = await microseconds(
    of,
    async () => (await reads(daemon.port, '/k8s/workloads', `Authorization: Bearer ${token}\r\n`)) * length,
  );
  return { sync, list, memory: ((memoryOf(daemon.pid, 'Pss') - before) * KIB) / length };
}

export async function workloads(): Promise<Row[]> {
  const rows = await growth({
    names: ['sync', 'list of workloads, of each', 'memory of a workload'],
    unit: 'µs of processor time',
    sizes: WORKLOADS,
    sizeName: (size) => `${size} workloads`,
    sample: (size) =>
      withDouble(size, (kubeconfig) =>
        withCloud(async (daemon, ask, token) => {
          const { sync, list, memory } = await measure(daemon, ask, token, kubeconfig);
          return [sync, list, memory];
        }),
      ),
  });
  return rows.map((row) =>
    row.curve?.name === 'memory of a workload' ? { ...row, unit: 'KiB (PSS)' } : row,
  );
}
