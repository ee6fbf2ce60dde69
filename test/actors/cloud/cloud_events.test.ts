import { appendFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type CloudEventsConfig, cloudEventsActor } from '../../../src/actors/cloud/cloud_events.ts';
import { EventHistory, type EventHistoryLimits } from '../../../src/adapters/storage/event_history.ts';
import type {
  CloudEventFilter,
  CloudEventsProtocol,
  NewCloudEvent,
} from '../../../src/protocol/cloud_events.ts';
import type { CloudViewsProtocol } from '../../../src/protocol/cloud_views.ts';
import type { Ref } from '../../../src/runtime/actor.ts';
import { CLOUD_EVENTS } from '../../../src/settings/cloud_limits.ts';
import { realTime, type Stand, tempDir, type World, world } from '../../kit/actors.ts';
import { ALL_CLOUD_EVENTS, auditOf, cloud, clusterInput, doubleWith, eventually } from '../../kit/cloud.ts';
import { type Json, statusOf } from '../../kit/kube_double.ts';

const LIMITS = CLOUD_EVENTS.history;

interface Journal {
  world: World;
  folder: string;
  views: Stand<CloudViewsProtocol>;
  reports: string[];
  events: Ref<CloudEventsProtocol>;
  again(): Promise<void>;
}

async function journal(
  change: Partial<CloudEventsConfig> & { limits?: EventHistoryLimits } = {},
): Promise<Journal> {
  const folder = join(tempDir(), 'events');
  const here = world({ clock: realTime });
  const reports: string[] = [];
  const { limits = LIMITS, ...rest } = change;
  const config: CloudEventsConfig = {
    openHistory: () => new EventHistory(folder, limits),
    report: (text: string) => reports.push(text),
    subscribed: false,
    names: null,
    ...rest,
  };
  const start = () => here.start('cloudevents', cloudEventsActor, config);
  const views = await here.stand<CloudViewsProtocol>('cloudviews');
  const made: Journal = {
    ...{ world: here, folder, views, reports },
    events: await start(),
    async again() {
      await here.node.end('cloudevents');
      made.events = await start();
    },
  };
  return made;
}

const event = (n: number, more: Partial<NewCloudEvent> = {}): NewCloudEvent => ({
  type: 'workload.asleep',
  reason: `event ${n}`,
  ...more,
});
const many = (count: number, more: Partial<NewCloudEvent> = {}): NewCloudEvent[] =>
  Array.from({ length: count }, (_, index) => event(index + 1, more));
const idsOf = (rows: readonly string[]): number[] => rows.map((row) => JSON.parse(row).id);
const page = (
  { events }: Pick<Journal, 'events'>,
  filter: Partial<CloudEventFilter> = {},
  before: number | null = null,
  limit = 1_000,
) => events.ask('page', { filter: { ...ALL_CLOUD_EVENTS, ...filter }, before, limit });

describe('the history', () => {
  it('numbers events from 1, also across a restart, and returns pages with the newest first', async () => {
    const here = await journal();
    expect(await here.events.ask('append', { events: many(3) })).toEqual({ isStored: true });
    await here.again();
    await Promise.all([1, 2].map((n) => here.events.ask('append', { events: [event(n)] })));
    const first = await page(here, {}, null, 2);
    expect([idsOf(first.rows), first.next]).toEqual([[5, 4], 4]);
    const second = await page(here, {}, first.next, 2);
    expect([idsOf(second.rows), second.next]).toEqual([[3, 2], 2]);
    const third = await page(here, {}, second.next, 2);
    expect([idsOf(third.rows), third.next]).toEqual([[1], null]);
  });

  it('cuts off a line that a kill has truncated, and reuses its number', async () => {
    const here = await journal();
    await here.events.ask('append', { events: many(2) });
    const [file = ''] = readdirSync(here.folder);
    await here.world.node.end('cloudevents');
    appendFileSync(join(here.folder, file), '{"id":3,"at":"2030-01-01T00:00');
    await here.again();
    await here.events.ask('append', { events: [event(3)] });
    expect(idsOf((await page(here)).rows)).toEqual([3, 2, 1]);
  });

  it('filters by every field, whatever the texts', async () => {
    const here = await journal();
    const trap = 'x","who":"agent:claude","workload_id":"W1';
    await here.events.ask('append', {
      events: [
        event(1, { who: 'agent:claude', clusterId: 'C1', namespace: 'web', workloadId: 'W1' }),
        event(2, { reason: trap, type: 'operation.done', operationId: 'O1' }),
        event(3, { clusterId: 'C1', namespace: 'data' }),
      ],
    });
    const found = async (filter: Partial<CloudEventFilter>) => idsOf((await page(here, filter)).rows);
    expect(await found({ who: 'agent:claude' })).toEqual([1]);
    expect(await found({ who: 'berth' })).toEqual([3, 2]);
    expect(await found({ clusterId: 'C1' })).toEqual([3, 1]);
    expect(await found({ clusterId: 'C1', namespaces: ['data', 'other'] })).toEqual([3]);
    expect(await found({ workloadId: 'W1' })).toEqual([1]);
    expect(await found({ operationId: 'O1' })).toEqual([2]);
    expect(await found({ types: ['operation.done', 'operation.failed'] })).toEqual([2]);
    expect(await found({ since: 0, until: 1 })).toEqual([]);
    expect(await found({ since: 1, until: Date.UTC(2200, 0, 1) })).toEqual([3, 2, 1]);
  });

  it('is limited in size and age, a file at a time', async () => {
    const limits = { ...LIMITS, fileBytes: 2_000, totalBytes: 6_000 };
    const here = await journal({ limits });
    for (let n = 0; n < 60; n += 1) await here.events.ask('append', { events: [event(n)] });
    const ids = idsOf((await page(here)).rows);
    expect(ids.length).toBeGreaterThan(8);
    expect(ids.length).toBeLessThan(30);
    expect(ids).toEqual(ids.map((_, index) => 60 - index));
    await here.world.node.end('cloudevents');
    const history = new EventHistory(here.folder, limits);
    history.prune(realTime.now() + LIMITS.maxAgeMs + 1);
    expect(readdirSync(here.folder)).toHaveLength(1);
    expect(history.lastId).toBe(60);
    history.close();
  });

  it('replays events from disk, a batch at a time, and reports what is missing', async () => {
    const here = await journal();
    await here.events.ask('append', { events: many(5) });
    const replay = (after: number, limit = 10) =>
      here.events.ask('replay', { filter: ALL_CLOUD_EVENTS, after, limit });
    expect((await replay(1, 2)).events.map(({ id }) => id)).toEqual([2, 3]);
    expect(await replay(3)).toMatchObject({ lookedTo: 5, oldest: 1 });
    expect(await replay(99)).toEqual({ events: [], lookedTo: 5, oldest: 1 });
  });

  it('knows the names of clusters also after a crash', async () => {
    const folder = join(tempDir(), 'events');
    let isBroken = true;
    const here = await journal({
      openHistory: () => {
        const history = new EventHistory(folder, LIMITS);
        const write = history.write.bind(history);
        history.write = async (lines, now) => {
          if (isBroken) throw new Error('the journal is broken');
          await write(lines, now);
        };
        return history;
      },
    });
    await here.events.ask('named', { names: { C1: 'one' } });
    const append = () => here.events.ask('append', { events: [event(1, { clusterId: 'C1' })] });
    await expect(append()).rejects.toMatchObject({ code: 'crashed' });
    expect(here.world.crashes.splice(0)).toHaveLength(1);
    isBroken = false;
    await append();
    expect(JSON.parse((await page(here)).rows[0] ?? '')).toMatchObject({ cluster_id: 'C1', cluster: 'one' });
  });

  it('is sent to the front once it has subscribed', async () => {
    const here = await journal();
    await here.events.ask('append', { events: many(2) });
    const { kept, lastId, completeFrom } = await here.events.ask('subscribe', {});
    expect([kept.map(({ id }) => id), lastId, completeFrom]).toEqual([[1, 2], 2, 1]);
    await here.events.ask('append', { events: [event(3)] });
    expect((await here.views.next('events')).events.map(({ id }) => id)).toEqual([3]);
  });
});

describe('an event of a workload', () => {
  const typesOf = async (here: Parameters<typeof auditOf>[0]): Promise<string[]> =>
    (await auditOf(here)).map(({ type }: Json) => type);

  it('has its reason, and names the caller', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    const { id, cluster_id } = here.find('web/hello');
    const operation = '01KAS00000000000000000000B';
    double.onPatched = (_, object) =>
      double.change('Deployment', 'web', 'hello', (row) => {
        row.status = statusOf(object.spec.replicas);
      });
    await here.workloads.ask('sleep', { id, by: 'request', holdMs: null, operation });
    await eventually(async () => (await typesOf(here)).includes('workload.asleep'));
    const asleep = (await auditOf(here)).find(({ type }: Json) => type === 'workload.asleep');
    expect(asleep).toMatchObject({
      ...{ who: 'berth', cluster: 'test', cluster_id, namespace: 'web', workload: 'hello', workload_id: id },
      ...{ kind: 'Deployment', operation_id: operation, reason: 'put to sleep by request', result: 'ok' },
    });
    await here.workloads.ask('wake', { id, by: 'request', waitMs: null });
    await eventually(async () => (await typesOf(here)).includes('workload.awake'));
    expect(await typesOf(here)).not.toContain('workload.conflict');
  });

  it('reports a change that undoes a sleep as a conflict', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    await here.workloads.ask('sleep', { id, by: 'request', holdMs: null });
    double.change('Deployment', 'web', 'hello', (object: Json) => {
      object.spec.replicas = 2;
    });
    await eventually(async () => (await typesOf(here)).includes('workload.conflict'));
    const told = (await auditOf(here)).find(({ type }: Json) => type === 'workload.conflict');
    expect(told).toMatchObject({ result: 'workload_conflict', workload_id: id });
    expect(told.reason).toContain('undone');
  });

  it('reports once the failure of a change that Berth began', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    await here.workloads.ask('sleep', { id, by: 'request', holdMs: null });
    double.denied.add('patch deployments');
    const wake = () => here.workloads.ask('wake', { id, by: 'connection', waitMs: null });
    await expect(wake()).rejects.toMatchObject({ code: 'cluster_denied' });
    await expect(wake()).rejects.toMatchObject({ code: 'cluster_denied' });
    const failures = await eventually(async () => {
      const events = await auditOf(here);
      return events.some(({ type }: Json) => type === 'workload.failed') ? events : undefined;
    });
    expect(failures.filter(({ type }: Json) => type === 'workload.failed')).toMatchObject([
      { who: 'berth', workload_id: id, result: 'cluster_denied' },
    ]);
  });

  it('reports that a cluster is unreachable, and that it is reachable again', async () => {
    const here = await cloud();
    const id = '01KAS00000000000000000000C';
    const input = clusterInput({ name: 'far', kubeconfig: (await doubleWith()).kubeconfig });
    await here.clusters.ask('register', { input, id });
    const tell = (reachable: boolean) =>
      here.clusters.ask('updateFacts', { id, reachable, reason: reachable ? null : 'connection refused' });
    // That it can be reached is news only after it could not, also with another kubeconfig.
    for (const reachable of [true, false, false]) await tell(reachable);
    const { kubeconfig } = await doubleWith();
    const change = { name: null, provider: null, kubeconfig, namespaces: null, renewToken: false };
    await here.clusters.ask('change', { id, change });
    await tell(true);
    const told = await eventually(async () => {
      const events = await auditOf(here);
      return events.length === 2 ? events : undefined;
    });
    expect(told.map(({ type }: Json) => type)).toEqual(['cluster.unreachable', 'cluster.reachable']);
    expect(told[0]).toMatchObject({
      cluster_id: id,
      cluster: 'far',
      who: 'berth',
      reason: 'connection refused',
    });
    // The same registration again, by the same operation.
    expect(await here.clusters.ask('register', { input, id })).toEqual({ id, name: 'far' });
  });
});
