// State: the rows of all workloads, a link to each cluster that is followed, sleeps and wakes under way. Rebuilt from: the
// store, then the clusters themselves.
import { explain } from '../../adapters/kube/http.ts';
import { CLOUD, THREADS } from '../../limits.ts';
import type {
  AutoSleep,
  CloudViewsProtocol,
  ClusterFacts,
  ClustersProtocol,
  Route,
  SeenWorkload,
  SleepCause,
  StoredWorkload,
  WorkloadKind,
  WorkloadsProtocol,
  WorkloadView,
} from '../../protocol/cloud.ts';
import { fail } from '../../protocol/errors.ts';
import {
  actor,
  type Clock,
  type Context,
  type Handlers,
  type Message,
  type Ref,
} from '../../runtime/actor.ts';
import { Turns } from '../turns.ts';
import type { LinkOwner } from './cluster_link.ts';
import { ClusterLinks, type LinksConfig } from './cluster_links.ts';
import { putToSleep, type Self, wakeUp } from './sleep.ts';
import { podTroubles, Readiness } from './workload_readiness.ts';
import {
  autoSleepOf,
  isIdle,
  isReady,
  isUndone,
  observe,
  withAutoSleep,
  workloadId,
} from './workload_rows.ts';
import { WorkloadTable } from './workload_table.ts';

export interface WorkloadsConfig extends LinksConfig {
  /** The pod this runs in: it is never put to sleep. */
  self: Self | null;
}

class Workloads implements LinkOwner {
  readonly clock: Clock;
  private readonly context: Context;
  private readonly self: Self | null;
  private readonly clusters: Ref<ClustersProtocol>;
  private readonly table: WorkloadTable;
  private readonly links: ClusterLinks;
  private readonly readiness: Readiness;
  /** Sleeps and wakes of one workload go one after the other. */
  private readonly turns = new Turns();
  private readonly waking = new Map<string, Promise<SeenWorkload>>();
  private readonly startedAt: number;

  constructor(context: Context, config: WorkloadsConfig) {
    this.context = context;
    this.self = config.self;
    this.clock = context.clock;
    this.startedAt = context.clock.now();
    this.clusters = context.ref('clusters');
    this.readiness = new Readiness(context.clock);
    this.links = new ClusterLinks(config, this);
    const views = context.ref<CloudViewsProtocol>('cloudviews');
    const shown = {
      workloads: (rows: WorkloadView[]) => views.tell('workloads', { rows }),
      workloadsGone: (ids: string[]) => views.tell('workloadsGone', { ids }),
      workloadsKept: (ids: string[]) => views.tell('workloadsKept', { ids }),
    };
    this.table = new WorkloadTable(config.store, shown, context.clock, (id, before, after) =>
      this.onChange(id, before, after),
    );
    context.scope.defer(() => this.table.settled());
    context.scope.defer(() => this.links.close());
  }

  async start(): Promise<void> {
    await this.table.load();
    await this.links.begin();
  }

  async sync(clusterId: string): Promise<{ synced: number }> {
    const link = await this.links.link(clusterId);
    const synced = await link.sync();
    await this.table.settled();
    return { synced };
  }

  async detach(clusterId: string): Promise<null> {
    const closed = this.links.drop(clusterId);
    this.table.drop(clusterId);
    await Promise.all([closed, this.table.settled()]);
    return null;
  }

  attach(clusterId: string): null {
    this.links.restore(clusterId);
    return null;
  }

  sleep(id: string, by: SleepCause): Promise<{ replicas: number; slept: boolean }> {
    // Who wants it awake from now on wants it awake after this sleep.
    this.waking.delete(id);
    return this.turns.take(id, async () => {
      const { seen: target, clusterId } = this.known(id);
      const mayStill = (fresh: SeenWorkload): boolean => by === 'request' || this.isIdle(id, fresh);
      const order = { by, at: this.clock.now(), self: this.self, mayStill };
      const seen = await this.links
        .calling(clusterId, (cluster) => putToSleep(cluster, target, order))
        .catch(async (error: unknown) => {
          if (by === 'idle') await this.note(id, `auto-sleep: ${explain(error).message}`);
          throw error;
        });
      await this.take(clusterId, target, seen);
      return { replicas: seen.replicas, slept: seen.replicas === 0 };
    });
  }

  async wake(id: string, waitMs: number | null): Promise<{ replicas: number }> {
    const { replicas } = await (this.waking.get(id) ?? this.startWake(id));
    if (waitMs !== null) await this.ready(id, waitMs);
    return { replicas };
  }

  async autoSleep({ id, enabled, minutes }: Message<WorkloadsProtocol, 'autoSleep'>): Promise<AutoSleep> {
    this.known(id);
    this.table.update(id, (row) => withAutoSleep(row, enabled, minutes, this.clock.now()));
    await this.table.settled();
    return autoSleepOf(this.known(id));
  }

  idle(): { ids: string[] } {
    // What the tethers carry is not known yet.
    if (this.clock.now() - this.startedAt < CLOUD.settleMs) return { ids: [] };
    return { ids: this.table.ids().filter((id) => this.isIdle(id)) };
  }

  async route(id: string): Promise<Route> {
    const { clusterId } = this.known(id);
    const access = await this.links.access(clusterId);
    const { seen, state } = this.known(id);
    const { kind, namespace, name, selector, replicas } = seen;
    return { clusterId, access, workload: { id, kind, namespace, name, selector }, state, replicas };
  }

  activity(id: string, at: number): null {
    const later = (row: StoredWorkload) => ({
      ...row,
      lastActivityAt: Math.max(at, row.lastActivityAt ?? 0),
    });
    this.table.update(id, later, true);
    return null;
  }

  traffic({ id, lastByteAt }: Message<WorkloadsProtocol, 'traffic'>): null {
    // Several tethers may lead to one workload.
    if (lastByteAt > (this.table.get(id)?.lastByteAt ?? 0))
      this.table.update(id, (row) => ({ ...row, lastByteAt }), true);
    return null;
  }

  listed(clusterId: string, kinds: readonly WorkloadKind[], rows: SeenWorkload[], startedAt: number): void {
    this.table.replace(clusterId, kinds, rows, startedAt);
  }

  changed(clusterId: string, row: SeenWorkload, gone: boolean): void {
    if (gone) this.table.lose(clusterId, row);
    else this.table.see(clusterId, row);
  }

  looked(id: string, facts: ClusterFacts): void {
    this.clusters.tell('looked', { id, ...facts });
  }

  crashed(error: unknown): void {
    this.context.crash(error);
  }

  private known(id: string): StoredWorkload {
    const row = this.table.get(id);
    if (!row) throw fail('unknown_workload', `there is no workload ${id}`);
    return row;
  }

  /** `fresh`: as it was just read, which the watch may not have told yet. */
  private isIdle(id: string, fresh?: SeenWorkload): boolean {
    const row = this.table.get(id);
    if (!row) return false;
    const now = this.clock.now();
    const current = fresh ? observe(row, row.clusterId, fresh, now) : row;
    return isIdle(current, now);
  }

  private startWake(id: string): Promise<SeenWorkload> {
    const woken = this.turns
      .take(id, async () => {
        const { seen: target, clusterId, desiredReplicas } = this.known(id);
        const seen = await this.links.calling(clusterId, (cluster) =>
          wakeUp(cluster, target, desiredReplicas),
        );
        await this.take(clusterId, target, seen);
        return seen;
      })
      .finally(() => {
        if (this.waking.get(id) === woken) this.waking.delete(id);
      });
    this.waking.set(id, woken);
    return woken;
  }

  /** Keeps what a change of ours has made of a workload, on disk and in the views. */
  private async take(clusterId: string, before: SeenWorkload, seen: SeenWorkload): Promise<void> {
    const uid = this.table.get(workloadId(clusterId, seen))?.seen.uid;
    // The watch may be ahead of the answer: one that was deleted, or made anew, since it was asked stays so.
    const isCurrent = uid === seen.uid || uid === before.uid;
    if (this.links.has(clusterId) && isCurrent) this.table.see(clusterId, seen);
    await this.table.settled();
  }

  /** Reads one itself: the watch may lag, and an account need not have the right to one. */
  private async look({ clusterId, seen: before }: StoredWorkload): Promise<void> {
    const fresh = await this.links.calling(clusterId, (cluster) => cluster.read(before));
    if (fresh) await this.take(clusterId, before, fresh.seen);
    else this.table.lose(clusterId, before);
  }

  private async note(id: string, sleepReason: string): Promise<void> {
    this.table.update(id, (row) => ({ ...row, sleepReason }));
    await this.table.settled();
  }

  /** Resolves when a pod of it is Ready. Fails unknown_workload, or ready_timeout with what its pods wait for. */
  private async ready(id: string, ms: number): Promise<void> {
    const woken = this.known(id).seen;
    if (isReady(woken) || (woken.replicas > 0 && (await this.readiness.wait(id, ms)))) return;
    const waited = this.known(id);
    if (waited.seen.replicas > 0) await this.look(waited).catch(() => undefined);
    const { seen, clusterId, sleepReason } = this.known(id);
    const name = `${seen.kind} ${seen.namespace}/${seen.name}`;
    if (seen.replicas === 0)
      throw fail('ready_timeout', `${name} has no Ready pod: it was ${sleepReason}`, {
        hint: 'Wake it again.',
      });
    if (isReady(seen)) return;
    const troubles = await this.links
      .calling(clusterId, (cluster) => podTroubles(cluster, seen))
      .catch(() => '');
    throw fail(
      'ready_timeout',
      `${name} has no Ready pod after ${ms} ms${troubles === '' ? '' : `: ${troubles}`}`,
      {
        hint: 'The events of its pods say what they wait for: kubectl describe pod.',
      },
    );
  }

  private onChange(id: string, before?: StoredWorkload, after?: StoredWorkload): void {
    // Who waits for a pod is told at once that none will come.
    if (!after || after.seen.replicas === 0) this.readiness.settle(id, false);
    else if (isReady(after.seen)) this.readiness.settle(id, true);
    if (before && after && isUndone(before, after)) void this.nameAutoscaler(after);
  }

  /** Says which HorizontalPodAutoscaler scales a workload whose sleep was undone: the object itself does not tell. */
  private async nameAutoscaler({ id, clusterId, seen, sleepReason }: StoredWorkload): Promise<void> {
    const names = await this.links.calling(clusterId, (cluster) => cluster.autoscalers(seen)).catch(() => []);
    if (names.length === 0) return;
    const reason = `${sleepReason}; HorizontalPodAutoscaler ${names.join(', ')} scales it`;
    this.table.update(id, (row) => (row.sleepReason === sleepReason ? { ...row, sleepReason: reason } : row));
  }
}

async function init(context: Context, config: WorkloadsConfig): Promise<Handlers<WorkloadsProtocol>> {
  const workloads = new Workloads(context, config);
  await workloads.start();
  return {
    sync: ({ clusterId }) => context.later(workloads.sync(clusterId)),
    detach: ({ clusterId }) => context.later(workloads.detach(clusterId)),
    attach: ({ clusterId }) => workloads.attach(clusterId),
    sleep: ({ id, by }) => context.later(workloads.sleep(id, by)),
    wake: ({ id, waitMs }) => context.later(workloads.wake(id, waitMs)),
    autoSleep: (message) => context.later(workloads.autoSleep(message)),
    idle: () => workloads.idle(),
    route: ({ id }) => context.later(workloads.route(id)),
    activity: ({ id, at }) => workloads.activity(id, at),
    traffic: (message) => workloads.traffic(message),
  };
}

/** At `workloads`: see WorkloadsProtocol. */
export const WORKLOADS = actor<WorkloadsProtocol, WorkloadsConfig>('workloads', init, {
  mailbox: THREADS.mailbox,
});
