// A restart goes on watching where the last life has come to, and lists again only where it must.
import { describe, expect, it } from 'vitest';
import type { CloudBatch } from '../../../src/adapters/storage/cloud_store.ts';
import { deferred } from '../../../src/runtime/deferred.ts';
import { virtualClock } from '../../kit/actors.ts';
import { type Cloud, cloud, doubleWith, eventually } from '../../kit/cloud.ts';
import { type Double, type Seen, workload } from '../../kit/kube_double.ts';

/** Listings of workloads, not the look at the current version. */
const listings = ({ requests }: Double): Seen[] =>
  requests.filter(
    ({ path, query }) =>
      /\/(deployments|statefulsets)$/.test(path) && !query.get('watch') && query.get('limit') !== '1',
  );

const namespaceReads = ({ requests }: Double): number =>
  requests.filter(({ path }) => path === '/api/v1/namespaces').length;

/** Changes while nobody watches: one changes, one goes, one comes. */
function changeMeanwhile(double: Double): void {
  double.change('Deployment', 'web', 'changed', (object) => {
    object.spec.replicas = 9;
  });
  double.remove('Deployment', 'web', 'gone');
  double.put('Deployment', workload('web', 'new', 2));
}

const seen = (here: Cloud): Promise<unknown> =>
  eventually(() => {
    const rows = here.list().map(({ name, replicas, stale_since }) => [name, replicas, stale_since]);
    return (
      JSON.stringify(rows) ===
      JSON.stringify([
        ['changed', 9, null],
        ['kept', 3, null],
        ['new', 2, null],
      ])
    );
  });

/** A cloud that has synced a double, which was stopped then. */
async function stopped(): Promise<{ double: Double; before: Cloud }> {
  const double = await doubleWith('changed', 'gone', 'kept');
  const before = await cloud();
  await before.add(double.kubeconfig);
  await eventually(() => double.watches.length === 2);
  await before.stop();
  double.requests.length = 0;
  return { double, before };
}

const restarted = ({ folder, vault }: Cloud): Promise<Cloud> => cloud({ folder, vault });

describe('after a restart', () => {
  it('the watch resumes, and nothing is listed', async () => {
    const { double, before } = await stopped();
    changeMeanwhile(double);
    await seen(await restarted(before));
    expect(listings(double)).toEqual([]);
  });

  it('one TLS handshake is enough for all connections to a cluster', async () => {
    const { double, before } = await stopped();
    const { connections, resumedSessions } = double;
    await restarted(before);
    await eventually(() => namespaceReads(double) === 1);
    expect(double.connections - connections).toBe(3);
    expect(double.resumedSessions - resumedSessions).toBe(2);
  });

  it('the namespaces are read once every cluster is watched', async () => {
    const clock = virtualClock();
    const { double: slow, before } = await stopped();
    const quick = await doubleWith('kept');
    const both = await restarted(before);
    await both.add(quick.kubeconfig, 'quick');
    await eventually(() => namespaceReads(slow) === 1 && namespaceReads(quick) === 1);
    await both.stop();
    const answer = deferred<void>();
    const isVersion = ({ query }: Seen): boolean => query.get('limit') === '1';
    slow.fault(isVersion, { kind: 'held', until: answer.promise });
    const watchesOfSlow: number[] = [];
    quick.fault(
      ({ path }) => {
        if (path === '/api/v1/namespaces') watchesOfSlow.push(slow.watches.length);
        return false;
      },
      { kind: 'reset' },
    );
    for (const double of [slow, quick]) double.requests.length = 0;
    await cloud({ folder: both.folder, vault: both.vault, clock });
    await eventually(() => quick.watches.length === 2 && slow.requests.length === 1);
    answer.resolve();
    await eventually(() => namespaceReads(slow) === 1 && namespaceReads(quick) === 1);
    expect(watchesOfSlow).toEqual([2]);
  });

  it('what has not changed is sent to clients once, and then only that it is up to date', async () => {
    const { before } = await stopped();
    const { folder, vault } = before;
    const sent: string[] = [];
    const record = ({ views }: CloudBatch): void => {
      for (const view of views)
        sent.push('view' in view ? `${view.view?.name} ${view.view?.staleSince}` : `now ${view.staleSince}`);
    };
    const here = await cloud({
      ...{ folder, vault },
      store: (store) => ({ ...store, save: (batch) => store.save(batch).finally(() => record(batch)) }),
    });
    await eventually(() => here.list().length === 3 && here.list().every((row) => row.stale_since === null));
    const rows = sent.filter((view) => !view.startsWith('now'));
    expect(rows.map((view) => view.split(' ')[0]).sort()).toEqual(['changed', 'gone', 'kept']);
    expect(rows.every((view) => !view.endsWith('null'))).toBe(true);
    expect(sent.filter((view) => view === 'now null')).toHaveLength(3);
  });

  it('a version that is too old for the server causes a new listing', async () => {
    const { double, before } = await stopped();
    changeMeanwhile(double);
    double.compact();
    await seen(await restarted(before));
    expect(listings(double).map(({ path }) => path)).toContain('/apis/apps/v1/deployments');
  });

  it('a server restored from a backup causes a new listing', async () => {
    const { double, before } = await stopped();
    double.rewind(1);
    changeMeanwhile(double);
    await seen(await restarted(before));
    await eventually(() => listings(double).length === 2);
  });

  it('another server in place of the first causes a new listing, though its versions are higher', async () => {
    const { before } = await stopped();
    const other = await doubleWith('changed', 'gone', 'kept');
    changeMeanwhile(other);
    for (let round = 0; round < 5; round += 1) other.change('Deployment', 'web', 'kept', () => undefined);
    const after = await restarted(before);
    const [{ id }] = JSON.parse(after.views.clusters().toString());
    await after.clusters.ask('change', {
      id,
      change: {
        ...{ name: null, provider: null, namespaces: null, renewToken: false },
        kubeconfig: other.kubeconfig,
      },
    });
    await seen(after);
    await eventually(() => listings(other).length === 2);
  });

  it('an account that may no longer watch has its cluster listed at once', async () => {
    const { double, before } = await stopped();
    for (const plural of ['deployments', 'statefulsets']) double.denied.add(`watch ${plural}`);
    changeMeanwhile(double);
    const after = await restarted(before);
    await eventually(() => after.list().some(({ name }) => name === 'new'));
  });

  it('the position of the watch is that on disk: changes that could not be saved are watched again', async () => {
    const double = await doubleWith('changed', 'gone', 'kept');
    let isDead = false;
    const lost = new Set<string>();
    const before = await cloud({
      // As before a kill: nothing reaches the disk any more.
      store: (store) => ({
        ...store,
        async save(batch) {
          if (!isDead) return store.save(batch);
          for (const { id } of batch.records) lost.add(id);
        },
      }),
    });
    await before.add(double.kubeconfig);
    await eventually(() => double.watches.length === 2);
    isDead = true;
    changeMeanwhile(double);
    await eventually(() => lost.size === 3);
    await before.stop();
    await seen(await restarted(before));
  });
});
