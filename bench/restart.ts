// The restart of a daemon that has 1,000 clusters with 100 workloads each: the time from its start until it
// watches every cluster again, and the processor time of its busiest thread meanwhile, below which no number
// of processors brings it. The floor is a bare client that opens the same watches. One test double of an
// API server, in a process of its own, is registered 1,000 times.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { createClusterDialer } from '../src/adapters/cluster_dialer.ts';
import { createKubeCluster, type KubeCluster, workloadsResource } from '../src/adapters/kube/kube_cluster.ts';
import { createKubeHttp } from '../src/adapters/kube/kube_http.ts';
import { parseKubeconfig } from '../src/adapters/kube/kubeconfig.ts';
import { WORKLOAD_KINDS, type WorkloadKind } from '../src/protocol/workload_kinds.ts';
import { systemClock } from '../src/runtime/clock.ts';
import { kubeDouble, workload } from '../test/kit/kube_double.ts';
import { cloudClient } from './cloud.ts';
import { startDaemon, withFolder } from './kit/daemon.ts';
import { ForkedChild } from './kit/forked_child.ts';
import { type Benchmark, costs } from './kit/harness.ts';
import { busiestThreadMs, threadMs } from './kit/process_stats.ts';

const ROLE = 'restart-double';
const CLUSTERS = 1_000;
const WORKLOADS = 100;
const WATCHES = CLUSTERS * WORKLOAD_KINDS.length;
const LANES = 8;
const TURNS = 2;
const POLL_MS = 5;

async function serveDouble(): Promise<void> {
  const double = await kubeDouble();
  for (let index = 0; index < WORKLOADS; index += 1)
    double.put(WORKLOAD_KINDS[index % 2] ?? 'Deployment', workload('web', `service-${index}`, 2));
  double.compact();
  process.on('disconnect', () => process.exit());
  process.on('message', async (count: number) => {
    while (double.watches.length !== count) await pause(POLL_MS);
    double.requests.length = 0;
    process.send?.('reached');
  });
  process.send?.(double.kubeconfig);
}

interface WatchedDouble {
  kubeconfig: string;
  /** Resolves when exactly `count` watches are open. */
  watches(count: number): Promise<void>;
}

async function withDouble<T>(use: (double: WatchedDouble) => Promise<T>): Promise<T> {
  const child = new ForkedChild(import.meta.url, [ROLE]);
  try {
    const kubeconfig = await child.next<string>();
    return await use({ kubeconfig, watches: (count) => child.ask(count) });
  } finally {
    child.leave();
  }
}

/** Runs `work` for each index below `count`, `LANES` at a time. */
async function inLanes(count: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) {
      next += 1;
      await work(next - 1);
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}

/**
 * The floor: asks each cluster for its version and opens the same watches, without reading any workload.
 * Returns seconds, and those of processor time of this thread.
 */
async function openWatches({ kubeconfig, watches }: WatchedDouble): Promise<number[]> {
  const clusters: KubeCluster[] = [];
  const aborts: AbortController[] = [];
  const began = performance.now();
  const busyBefore = threadMs(process.pid);
  const openWatch = async (cluster: KubeCluster, kind: WorkloadKind): Promise<void> => {
    const version = await cluster.currentVersion(workloadsResource(kind));
    const abort = new AbortController();
    aborts.push(abort);
    await new Promise<void>((resolve) => {
      const handler = { onOpen: resolve, onEvent: () => undefined };
      cluster.watch(workloadsResource(kind), version, handler, abort.signal).catch(() => undefined);
    });
  };
  await inLanes(CLUSTERS, async () => {
    // Each cluster has a certificate authority and credentials of its own.
    const dialer = createClusterDialer(parseKubeconfig(kubeconfig, Date.now()), {
      allow: 'any',
      apiOnLoopback: true,
    });
    const cluster = createKubeCluster(createKubeHttp(dialer, systemClock));
    clusters.push(cluster);
    await Promise.all(WORKLOAD_KINDS.map((kind) => openWatch(cluster, kind)));
  });
  const took = [performance.now() - began, threadMs(process.pid) - busyBefore];
  for (const abort of aborts) abort.abort();
  await Promise.all(clusters.map((cluster) => cluster.close()));
  await watches(0);
  return took.map((ms) => ms / 1_000);
}

const tokenIn = (folder: string): string => readFileSync(join(folder, 'state', 'cloud-token'), 'utf8').trim();

async function registerAll(folder: string, kubeconfig: string): Promise<void> {
  const daemon = await startDaemon(folder);
  const ask = cloudClient(daemon, tokenIn(folder));
  try {
    await inLanes(CLUSTERS, async (index) => {
      const { id } = await ask('POST', '/k8s/clusters', { name: `bench-${index}`, kubeconfig });
      await ask('POST', `/k8s/clusters/${id}/sync`);
    });
  } finally {
    await daemon.end();
  }
}

/**
 * Seconds from the start of the daemon until it lists no workload as stale, and those of processor time of
 * its busiest thread.
 */
async function restartOnce(folder: string, { watches }: WatchedDouble): Promise<number[]> {
  const began = performance.now();
  const all = watches(WATCHES);
  const daemon = await startDaemon(folder);
  try {
    const ask = cloudClient(daemon, tokenIn(folder));
    await all;
    let rows: { stale_since: string | null }[];
    do rows = await ask('GET', '/k8s/workloads');
    while (rows.some((row) => row.stale_since !== null));
    const took = [performance.now() - began, busiestThreadMs(daemon.pid)];
    if (rows.length !== CLUSTERS * WORKLOADS) throw new Error(`${rows.length} listed`);
    return took.map((ms) => ms / 1_000);
  } finally {
    await daemon.end();
    await watches(0);
  }
}

export const restart: Benchmark = {
  name: 'restart',
  question: 'How soon are 1,000 clusters with 100,000 workloads fresh after a restart?',
  run: () =>
    withDouble((double) =>
      withFolder(async (folder) => {
        await registerAll(folder, double.kubeconfig);
        await double.watches(0);
        return costs(['1,000 clusters, 100,000 workloads', 'processor time of the busiest thread'], 's', {
          floor: () => openWatches(double),
          subject: () => restartOnce(folder, double),
          turns: TURNS,
        });
      }),
    ),
};

if (process.argv[2] === ROLE) await serveDouble();
