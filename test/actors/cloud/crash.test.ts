// What a sleep and a wake leave behind when the program dies at any of their calls to the cluster or the
// store, before or after the call takes effect. No such point may lose the count.
import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { openKubeCluster } from '../../../src/adapters/kube/kube_cluster.ts';
import { createVault } from '../../../src/adapters/storage/vault.ts';
import { fail } from '../../../src/protocol/errors.ts';
import { afterThisTest, realTime, tempDir } from '../../kit/actors.ts';
import { ANY, type Cloud, cloud, eventually, openCloudStore } from '../../kit/cloud.ts';
import { type Double, kubeDouble, workload } from '../../kit/kube_double.ts';

/** One life of the program: it dies at a call, and no later call takes effect. */
class Life {
  /** Calls so far, once counting has begun. */
  readonly names: string[] = [];
  isCounting = false;
  isDead = false;
  readonly died: Promise<void>;
  private readonly dieAt: number;
  private readonly when: 'before' | 'after';
  private onDeath = (): void => undefined;
  private readonly hanging: (() => void)[] = [];
  private isOver = false;

  constructor(dieAt: number, when: 'before' | 'after') {
    this.dieAt = dieAt;
    this.when = when;
    this.died = new Promise((resolve) => {
      this.onDeath = resolve;
    });
  }

  /** `target` for the length of this life; a call that hangs ends as `after` says once the test is over. */
  mortal<T extends object>(target: T, names: readonly (keyof T)[], after: () => unknown): T {
    return new Proxy(target, {
      get: (object, name) => {
        const method = Reflect.get(object, name);
        if (typeof method !== 'function') return method;
        if (!names.includes(name as keyof T)) return method.bind(object);
        return (...args: unknown[]) => this.call(String(name), () => method.apply(object, args), after);
      },
    });
  }

  /** Ends the test: hanging calls continue without effect. */
  release(): void {
    this.isDead = true;
    this.isOver = true;
    for (const go of this.hanging.splice(0)) go();
  }

  private async call(name: string, run: () => unknown, after: () => unknown): Promise<unknown> {
    if (this.isDead) return this.hang(after);
    if (this.isCounting) this.names.push(name);
    const isLast = this.isCounting && this.names.length === this.dieAt;
    if (isLast && this.when === 'before') return this.die(after);
    const result = await run();
    if (isLast || this.isDead) return this.die(after);
    return result;
  }

  private die(after: () => unknown): Promise<unknown> {
    this.isDead = true;
    this.onDeath();
    return this.hang(after);
  }

  private async hang(after: () => unknown): Promise<unknown> {
    if (!this.isOver) await new Promise<void>((resolve) => this.hanging.push(resolve));
    return after();
  }
}

const CLUSTER_CALLS = [
  'getWorkload',
  'patchWorkload',
  'list',
  'watch',
  'currentVersion',
  'version',
  'capabilities',
  'autoscalers',
] as const;
const STORE_CALLS = ['save', 'saveFacts', 'clusters', 'cluster'] as const;

interface Lives {
  double: Double;
  begin(life: Life): Promise<Cloud>;
  /** In the first life, and its workload. */
  here: Cloud;
  id: string;
}

/** The lives of a program that has a cluster with one workload of that many replicas; the first has begun. */
async function lives(replicas: number, first: Life): Promise<Lives> {
  const double = await kubeDouble();
  afterThisTest(() => double.stop());
  double.put('Deployment', workload('web', 'hello', replicas));
  const { cloudStore } = openCloudStore(tempDir());
  const key = createVault(randomBytes(32));
  const begin = async (life: Life): Promise<Cloud> => {
    const here = await cloud({
      shared: cloudStore,
      vault: key,
      open: (access) =>
        life.mortal(openKubeCluster(access, ANY, realTime), CLUSTER_CALLS, () => {
          throw fail('cluster_unreachable', 'the program has died');
        }),
      store: (store) => life.mortal(store, STORE_CALLS, () => []),
    });
    afterThisTest(() => life.release());
    return here;
  };
  const here = await begin(first);
  await here.add(double.kubeconfig);
  return { double, begin, here, id: here.find('web/hello').id };
}

const replicasOf = (double: Double): number => double.get('Deployment', 'web', 'hello').spec.replicas;
const scale = (double: Double, replicas: number): void =>
  double.change('Deployment', 'web', 'hello', (object) => {
    object.spec.replicas = replicas;
  });
const forever = (): Life => new Life(0, 'before');

/** Runs `work` until it dies or completes. */
async function interrupted(life: Life, work: Promise<unknown>): Promise<void> {
  life.isCounting = true;
  await Promise.race([Promise.allSettled([work]), life.died]);
  life.isDead = true;
}

/** More calls than a sleep or a wake makes, so that the last points kill nothing. */
const POINT_COUNT = 6;
const POINTS = Array.from({ length: POINT_COUNT }, (_, index) => index + 1).flatMap((point) =>
  (['before', 'after'] as const).map((when): [number, 'before' | 'after'] => [point, when]),
);

describe('an interrupted sleep', () => {
  it.each(POINTS)('at call %i, %s its effect, loses nothing', async (point, when) => {
    const first = new Life(point, when);
    const { double, begin, here, id } = await lives(3, first);
    await interrupted(first, here.workloads.ask('sleep', { id, by: 'request', holdMs: null }));
    const isAsleep = replicasOf(double) === 0;
    // Somebody scales the workload meanwhile, if it is still awake.
    if (!isAsleep) scale(double, 5);
    const count = isAsleep ? 3 : 5;
    const next = await begin(forever());
    await next.until('web/hello', (row) => row.replicas === replicasOf(double));
    if (isAsleep) await next.until('web/hello', (row) => row.desired_replicas === 3);
    expect(await next.workloads.ask('wake', { id, by: 'request', waitMs: null })).toEqual({
      replicas: count,
    });
    expect(await next.workloads.ask('sleep', { id, by: 'request', holdMs: null })).toEqual({
      replicas: 0,
      slept: true,
    });
    expect(await next.workloads.ask('wake', { id, by: 'request', waitMs: null })).toEqual({
      replicas: count,
    });
    expect(replicasOf(double)).toBe(count);
  });

  it.each(POINTS)(
    'at call %i, %s its effect, can be followed by a wake at once after a restart, before the first sync',
    async (point, when) => {
      const first = new Life(point, when);
      const { begin, here, id } = await lives(3, first);
      await interrupted(first, here.workloads.ask('sleep', { id, by: 'request', holdMs: null }));
      const next = await begin(forever());
      expect(await next.workloads.ask('wake', { id, by: 'request', waitMs: null })).toEqual({ replicas: 3 });
    },
  );
});

describe('an interrupted wake', () => {
  it.each(POINTS)('at call %i, %s its effect, loses nothing', async (point, when) => {
    const first = new Life(point, when);
    const { double, begin, here, id } = await lives(4, first);
    await here.workloads.ask('sleep', { id, by: 'request', holdMs: null });
    await interrupted(first, here.workloads.ask('wake', { id, by: 'request', waitMs: null }));
    const next = await begin(forever());
    await next.until('web/hello', (row) => row.replicas === replicasOf(double));
    expect(await next.workloads.ask('wake', { id, by: 'request', waitMs: null })).toEqual({ replicas: 4 });
    await next.workloads.ask('sleep', { id, by: 'request', holdMs: null });
    expect(next.find('web/hello').desired_replicas).toBe(4);
    expect(await next.workloads.ask('wake', { id, by: 'request', waitMs: null })).toEqual({ replicas: 4 });
  });
});

describe('the tested calls', () => {
  it('are all calls of a sleep and a wake', async () => {
    const life = forever();
    const { double, here, id } = await lives(3, life);
    await eventually(() => double.watches.length === 2);
    // The namespaces are listed once the watches are open, beside whatever else is asked.
    await eventually(() => double.requests.some(({ path }) => path.startsWith('/api/v1/namespaces')));
    life.isCounting = true;
    await here.workloads.ask('sleep', { id, by: 'request', holdMs: null });
    const slept = life.names.splice(0);
    await here.workloads.ask('wake', { id, by: 'request', waitMs: null });
    for (const names of [slept, life.names]) {
      expect(names.slice(0, 3)).toEqual(['getWorkload', 'patchWorkload', 'save']);
      // What the watch tells of the change may be saved once more. A call that is added needs a point more.
      expect(names.slice(3).every((name) => name === 'save')).toBe(true);
      expect(names.length).toBeLessThan(POINT_COUNT);
    }
  });
});
