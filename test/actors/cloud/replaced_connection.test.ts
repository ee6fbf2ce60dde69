// docs/reference.md "Clusters": what is under way in a cluster while it gets new credentials. The new ones are
// those of another double, so what each double is asked shows which are used.
import { describe, expect, it } from 'vitest';
import { openKubeCluster } from '../../../src/adapters/kube/kube_cluster.ts';
import { type Deferred, deferred } from '../../../src/runtime/deferred.ts';
import { CLOUD } from '../../../src/settings/cloud_limits.ts';
import { afterThisTest, realTime, type TestClock, virtualClock } from '../../kit/actors.ts';
import { ANY, type Cloud, cloud, doubleWith, eventually } from '../../kit/cloud.ts';
import type { Double, Seen } from '../../kit/kube_double.ts';

const isPatch = ({ method }: Seen): boolean => method === 'PATCH';
const patches = ({ requests }: Double): number => requests.filter(isPatch).length;

interface Renewable {
  here: Cloud;
  id: string;
  /** The double before and after the renewal, with the same workloads. */
  old: Double;
  next: Double;
  /** The ports of the clusters whose clients were closed. */
  closed: number[];
  /** Holds the next request of the old double that `fits`. Resolves `seen` when it is there. */
  hold(fits: (request: Seen) => boolean): { gate: Deferred<void>; seen: Promise<void> };
  renew(): Promise<unknown>;
  sleep(name: string): Promise<{ replicas: number; slept: boolean }>;
}

async function renewable(clock: TestClock = realTime): Promise<Renewable> {
  const old = await doubleWith('hello', 'other');
  const next = await doubleWith();
  for (const name of ['hello', 'other']) next.put('Deployment', old.get('Deployment', 'web', name));
  const closed: number[] = [];
  const here = await cloud({
    clock,
    open: (access) => {
      const cluster = openKubeCluster(access, ANY, realTime);
      const close = async (): Promise<void> => {
        closed.push(Number(new URL(access.server).port));
        await cluster.close();
      };
      return { ...cluster, close };
    },
  });
  const id = await here.add(old.kubeconfig);
  const change = { name: null, provider: null, namespaces: null, renewToken: false };
  return {
    ...{ here, id, old, next, closed },
    hold(fits) {
      const gate = deferred<void>();
      const seen = deferred<void>();
      afterThisTest(() => gate.resolve());
      const isHeld = (request: Seen): boolean => {
        if (!fits(request)) return false;
        seen.resolve();
        return true;
      };
      old.fault(isHeld, { kind: 'held', until: gate.promise });
      return { gate, seen: seen.promise };
    },
    renew: () => here.clusters.ask('change', { id, change: { ...change, kubeconfig: next.kubeconfig } }),
    sleep: (name) =>
      here.workloads.ask(
        'sleep',
        { id: here.find(`web/${name}`).id, by: 'request', holdMs: null },
        { deadlineMs: 2 * CLOUD.scaleTimeoutMs },
      ),
  };
}

describe('new credentials', () => {
  it.each([
    ['read', ({ method, path }: Seen) => method === 'GET' && path.endsWith('/hello')],
    ['patch', isPatch],
  ])('let a change whose %s is under way finish, once, and serve all others at once', async (_, fits) => {
    const { old, next, closed, hold, renew, sleep } = await renewable();
    const { gate, seen } = hold(fits);
    const slept = sleep('hello');
    await seen;
    await renew();
    expect(await sleep('other')).toEqual({ replicas: 0, slept: true });
    expect([patches(next), closed]).toEqual([1, []]);
    gate.resolve();
    expect(await slept).toEqual({ replicas: 0, slept: true });
    expect([patches(old), patches(next)]).toEqual([1, 1]);
    await eventually(() => closed.includes(old.port));
    expect(closed).toEqual([old.port]);
  });

  it('end a change that takes longer than any may', async () => {
    const clock = virtualClock();
    const { old, closed, hold, renew, sleep } = await renewable(clock);
    const { seen } = hold(isPatch);
    const failed = expect(sleep('hello')).rejects.toMatchObject({ code: 'cluster_unreachable' });
    await seen;
    await renew();
    await clock.advance(CLOUD.scaleTimeoutMs - 1);
    expect(closed).toEqual([]);
    await clock.advance(1);
    await failed;
    expect(closed).toEqual([old.port]);
  });

  it('start a sync over that is under way', async () => {
    const { here, id, hold, renew, next } = await renewable();
    next.remove('Deployment', 'web', 'other');
    // A watch may begin only now, and must not be held in place of the sync.
    const { seen } = hold(({ path, query }) => path.endsWith('/deployments') && !query.has('watch'));
    const synced = here.clusters.ask('sync', { id });
    await seen;
    await renew();
    expect(await synced).toEqual({ synced: 1 });
    expect(here.list().map(({ name }) => name)).toEqual(['hello']);
  });

  it('do not keep a removal of the cluster from ending what is under way at once', async () => {
    const { here, id, hold, renew, sleep } = await renewable();
    const { seen } = hold(isPatch);
    const failed = expect(sleep('hello')).rejects.toMatchObject({ code: 'cluster_unreachable' });
    await seen;
    await renew();
    await here.clusters.ask('remove', { id });
    await failed;
  });
});

it('a renewed token does not end a change that is under way', async () => {
  const double = await doubleWith('hello');
  const clock = virtualClock();
  double.now = () => clock.now();
  const here = await cloud({ clock });
  const id = await here.add(double.kubeconfig);
  const config = JSON.parse(double.kubeconfig);
  config.users[0].user = { token: double.accountToken(clock.now(), 600) };
  const change = { name: null, provider: null, namespaces: null };
  const renewing = { ...change, kubeconfig: JSON.stringify(config), renewToken: true };
  await here.clusters.ask('change', { id, change: renewing });
  const gate = deferred<void>();
  afterThisTest(() => gate.resolve());
  double.fault(isPatch, { kind: 'held', until: gate.promise });
  const slept = here.workloads.ask(
    'sleep',
    { id: here.find('web/hello').id, by: 'request', holdMs: null },
    { deadlineMs: 1_000_000 },
  );
  await eventually(() => patches(double) === 1);
  const due = JSON.parse(here.views.cluster(id) ?? '').token_renewal.due_at;
  await clock.advance(200_000);
  await eventually(() => JSON.parse(here.views.cluster(id) ?? '').token_renewal.due_at !== due);
  gate.resolve();
  // The double refuses tokens that were replaced.
  expect(await here.clusters.ask('sync', { id })).toEqual({ synced: 1 });
  expect(await slept).toEqual({ replicas: 0, slept: true });
  expect(here.find('web/hello')).toMatchObject({ replicas: 0, desired_replicas: 3 });
  expect(patches(double)).toBe(1);
});
