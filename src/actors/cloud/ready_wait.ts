// Waits until a woken workload has a Ready pod.
import type { KubeCluster } from '../../adapters/kube/kube_cluster.ts';
import type { StoredWorkload } from '../../protocol/cloud.ts';
import { fail } from '../../protocol/errors.ts';
import { type Clock, tolerateFailure } from '../../runtime/actor.ts';
import { deferred } from '../../runtime/deferred.ts';
import { targetName } from './workload_patch.ts';
import { hasReadyPod, podTroubles } from './workload_readiness.ts';

/** How often to check for a Ready pod when the workload's record does not change. */
const READY_CHECK_MS = 1_000;

/** Waiters for the next change of a workload's record. */
class ChangeWaiters {
  private readonly clock: Clock;
  private readonly waiting = new Map<string, Set<() => void>>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Resolves true at the next `notify` of `id`; false after `ms` without one, or when cancelled. */
  next(id: string, ms: number): { changed: Promise<boolean>; cancel(): void } {
    const { promise, resolve } = deferred<boolean>();
    const list = this.waiting.get(id) ?? new Set();
    this.waiting.set(id, list);
    const finish = (isChanged: boolean): void => {
      cancelTimer();
      list.delete(onChange);
      if (list.size === 0 && this.waiting.get(id) === list) this.waiting.delete(id);
      resolve(isChanged);
    };
    const onChange = (): void => finish(true);
    const cancelTimer = this.clock.after(ms, () => finish(false));
    list.add(onChange);
    return { changed: promise, cancel: () => finish(false) };
  }

  notify(id: string): void {
    for (const finish of [...(this.waiting.get(id) ?? [])]) finish();
  }

  notifyAll(): void {
    for (const id of [...this.waiting.keys()]) this.notify(id);
  }
}

export interface ReadyWaitOptions {
  clock: Clock;
  /** The record of a workload. Throws unknown_workload. */
  get(id: string): StoredWorkload;
  /** Runs `work` on a connected cluster. */
  call<R>(clusterId: string, work: (cluster: KubeCluster) => Promise<R>): Promise<R>;
  /** Reads the workload from its cluster. */
  refresh(row: StoredWorkload): Promise<void>;
}

/** Lets callers wait until workloads have a Ready pod. Its owner reports each change of a record. */
export class ReadyWait {
  private readonly options: ReadyWaitOptions;
  private readonly changes: ChangeWaiters;
  /** The server shuts down. */
  isEnded = false;

  constructor(options: ReadyWaitOptions) {
    this.options = options;
    this.changes = new ChangeWaiters(options.clock);
  }

  onChange(id: string): void {
    this.changes.notify(id);
  }

  /** Ends every wait, now and later: the server shuts down. */
  end(): void {
    this.isEnded = true;
    this.changes.notifyAll();
  }

  /**
   * Resolves when a pod is Ready. Fails unknown_workload; ready_timeout with the reasons the pods are not
   * ready; daemon_busy when the server shuts down.
   */
  async untilReady(id: string, ms: number): Promise<void> {
    const { clock, get, call, refresh } = this.options;
    const end = clock.monotonic() + ms;
    for (let isFirst = true; get(id).seen.replicas > 0; isFirst = false) {
      const { clusterId, seen } = get(id);
      if (this.isEnded)
        throw fail('daemon_busy', `the server ended before ${targetName(seen)} had a Ready pod`);
      const leftMs = Math.max(0, end - clock.monotonic());
      const { changed, cancel } = this.changes.next(id, Math.min(READY_CHECK_MS, leftMs));
      const isUp = await tolerateFailure(
        call(clusterId, (cluster) => hasReadyPod(cluster, seen)),
        () => false,
      );
      if (isUp) cancel();
      if (isUp) return;
      // The watch may lag, or the account may lack the right to watch.
      if (!(await changed)) await tolerateFailure(refresh(get(id)), () => undefined);
      if (!isFirst && clock.monotonic() >= end) break;
    }
    await this.failUnready(id, ms);
  }

  /** Fails ready_timeout with the reasons the pods are not ready, or unknown_workload. */
  private async failUnready(id: string, ms: number): Promise<never> {
    const { seen, clusterId, sleepReason } = this.options.get(id);
    const name = targetName(seen);
    if (seen.replicas === 0)
      throw fail('ready_timeout', `${name} has no Ready pod: it was ${sleepReason}`, {
        hint: 'Wake it again.',
      });
    const troubles = await tolerateFailure(
      this.options.call(clusterId, (cluster) => podTroubles(cluster, seen)),
      () => '',
    );
    throw fail(
      'ready_timeout',
      `${name} has no Ready pod after ${ms} ms${troubles === '' ? '' : `: ${troubles}`}`,
      { hint: 'The events of its pods say what they wait for: kubectl describe pod.' },
    );
  }
}
