// The clusters of the benchmark `shared`, in a process of their own. Their workloads change at a given rate,
// and the process reports the time of each change.
import { setTimeout as pause } from 'node:timers/promises';
import { type Double, kubeDouble, statusOf, workload } from '../test/kit/kube_double.ts';
import { ForkedChild } from './kit/forked_child.ts';

const ROLE = 'shared-doubles';
const REPLICAS = 2;
const TICK_MS = 5;

/** Epoch milliseconds with a fraction, comparable between the processes of this machine. */
export const machineMs = (): number => performance.timeOrigin + performance.now();

/** When each workload was changed. */
export type ChangeTimes = [workload: string, at: number][];

export interface ChangingClusters {
  kubeconfigs: string[];
  /** Scales `count` different workloads to 0, or up again, at `rate` workloads a second. */
  change(count: number, rate: number): Promise<ChangeTimes>;
}

function flip(double: Double, name: string): void {
  double.change('Deployment', 'web', name, (object) => {
    object.spec.replicas = object.spec.replicas === 0 ? REPLICAS : 0;
    object.status = statusOf(object.spec.replicas);
  });
}

async function serve(clusters: number, workloads: number): Promise<void> {
  const doubles = await Promise.all(Array.from({ length: clusters }, () => kubeDouble()));
  const all: [Double, string][] = [];
  for (const [at, double] of doubles.entries()) {
    for (let index = 0; index < workloads; index += 1) {
      const name = `service-${at}-${index}`;
      double.put('Deployment', workload('web', name, REPLICAS));
      all.push([double, name]);
    }
    double.compact();
  }
  let next = 0;
  const change = async (count: number, rate: number): Promise<void> => {
    const times: ChangeTimes = [];
    const began = performance.now();
    while (times.length < count) {
      const due = Math.min(count, Math.floor(((performance.now() - began) / 1_000) * rate));
      while (times.length < due) {
        // Goes through the clusters in turn.
        const index = (next % clusters) * workloads + (Math.floor(next / clusters) % workloads);
        const [double, name] = all[index] ?? [];
        next += 1;
        if (!double || name === undefined) continue;
        times.push([name, machineMs()]);
        flip(double, name);
      }
      await pause(TICK_MS);
    }
    process.send?.(times);
  };
  process.on('message', ([count, rate]: [number, number]) => void change(count, rate));
  process.on('disconnect', () => process.exit());
  process.send?.(doubles.map((double) => double.kubeconfig));
}

/** Runs `use` with `clusters` clusters that have `workloads` workloads each. */
export async function withChangingClusters<T>(
  clusters: number,
  workloads: number,
  use: (clusters: ChangingClusters) => Promise<T>,
): Promise<T> {
  const child = new ForkedChild(import.meta.url, [ROLE, String(clusters), String(workloads)]);
  try {
    const kubeconfigs = await child.next<string[]>();
    return await use({ kubeconfigs, change: (count, rate) => child.ask([count, rate]) });
  } finally {
    child.leave();
  }
}

if (process.argv[2] === ROLE) await serve(Number(process.argv[3]), Number(process.argv[4]));
