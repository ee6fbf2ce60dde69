// Waiting until a pod of a workload is Ready, and why none is.
import type { KubeCluster } from '../../adapters/kube/kube_cluster.ts';
import { podsResource } from '../../adapters/kube/pods.ts';
import type { ObservedWorkload } from '../../protocol/cloud.ts';
import type { Clock } from '../../runtime/actor.ts';

export class ReadinessWaiters {
  private readonly clock: Clock;
  private readonly waiting = new Map<string, Set<(isReady: boolean) => void>>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Resolves with what `resolve` is told of `id`, or with false after `ms`. */
  wait(id: string, ms: number): Promise<boolean> {
    return new Promise((resolve) => {
      const list = this.waiting.get(id) ?? new Set();
      this.waiting.set(id, list);
      const finish = (isReady: boolean): void => {
        cancel();
        list.delete(finish);
        if (list.size === 0 && this.waiting.get(id) === list) this.waiting.delete(id);
        resolve(isReady);
      };
      const cancel = this.clock.after(ms, () => finish(false));
      list.add(finish);
    });
  }

  /** Ends every wait for `id`: a pod is Ready, or, with false, none will be. */
  resolve(id: string, isReady: boolean): void {
    for (const finish of [...(this.waiting.get(id) ?? [])]) finish(isReady);
  }
}

/** What the pods of a workload wait for, in one line for people; '' when there is no known trouble. */
export async function podTroubles(cluster: KubeCluster, seen: ObservedWorkload): Promise<string> {
  if (seen.selector === '') return '';
  const { rows } = await cluster.list(podsResource(seen));
  const troubles = rows.flatMap(({ isOwn, trouble }) => (isOwn && trouble !== null ? [trouble] : []));
  return troubles.slice(0, 3).join('; ');
}
