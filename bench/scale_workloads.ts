// The cost of one workload to a daemon that has read many from a cluster.
import { type Ask, withCloud, withDouble } from './cloud.ts';
import type { Daemon } from './kit/daemon.ts';
import { growth, type Row } from './kit/harness.ts';
import { memoryOf } from './kit/process_stats.ts';
import { microseconds, reads } from './scale_services.ts';

const WORKLOADS = [100, 1_000, 10_000];
const KIB = 1_024;

/** Syncs of a small cluster while the large one is also registered. */
const SMALL_SYNCS = 50;
const PAGE = 500;

/** Returns the costs in the order of the rows. */
async function measure(daemon: Daemon, ask: Ask, token: string, kubeconfig: string): Promise<number[]> {
  const of = [daemon.pid];
  const { id } = await ask('POST', '/k8s/clusters', { name: 'bench', kubeconfig });
  const before = memoryOf(daemon.pid, 'Pss');
  const sync = await microseconds(of, async () => (await ask('POST', `/k8s/clusters/${id}/sync`)).synced);
  const { length } = await ask('GET', '/k8s/workloads');
  const memory = ((memoryOf(daemon.pid, 'Pss') - before) * KIB) / length;
  const read = (path: string) => reads(daemon.port, path, `Authorization: Bearer ${token}\r\n`);
  const list = await microseconds(of, async () => (await read('/k8s/workloads')) * length);
  const page = await microseconds(of, () => read(`/k8s/workloads?limit=${PAGE}`));
  const beside = await withDouble(1, async (small) => {
    const cluster = await ask('POST', '/k8s/clusters', { name: 'small', kubeconfig: small });
    return microseconds(of, async () => {
      for (let done = 0; done < SMALL_SYNCS; done += 1) await ask('POST', `/k8s/clusters/${cluster.id}/sync`);
      return SMALL_SYNCS;
    });
  });
  return [sync, list, page, beside, memory];
}

export async function workloads(): Promise<Row[]> {
  const rows = await growth({
    names: [
      ...['sync', 'list of workloads, of each', `page of ${PAGE}`, 'sync of one beside them'],
      'memory of a workload',
    ],
    unit: 'µs of processor time',
    sizes: WORKLOADS,
    sizeName: (size) => `${size} workloads`,
    sample: (size) =>
      withDouble(size, (kubeconfig) =>
        withCloud((daemon, ask, token) => measure(daemon, ask, token, kubeconfig)),
      ),
  });
  return rows.map((row) =>
    row.curve?.name === 'memory of a workload' ? { ...row, unit: 'KiB (PSS)' } : row,
  );
}
