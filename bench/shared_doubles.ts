// Clusters for the benches of a shared database, in a process of their own: they change at a given rate, and
// say when they did.
import { setTimeout as pause } from 'node:timers/promises';
import { type Double, kubeDouble, statusOf, workload } from '../test/kit/kube_double.ts';
import { ForkedChild } from './kit/forked_child.ts';

const ROLE = 'shared-doubles';
const REPLICAS = 2;
const TICK_MS = 5;

/** The time of this machine in milliseconds, the same in every process. */
export const machineMs = (): number => performance.timeOrigin + performance.now();

/** When a workload was changed. */
export type ChangeTimes = [workload: string, at: number][];

export interface ChangingClusters {
  kubeconfigs: string[];
  /** Scales `count` workloads to 0 or up again, `rate` each second, none twice. */
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
        // Over all clusters in turn.
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

/** Runs `use` with so many clusters of `workloads` each. */
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
