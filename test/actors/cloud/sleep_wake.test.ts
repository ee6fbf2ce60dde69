// Sleep and wake over the wire-accurate double.
import { describe, expect, it } from 'vitest';
import { type KubeCluster, openKubeCluster } from '../../../src/adapters/kube/kube_cluster.ts';
import { deferred } from '../../../src/runtime/deferred.ts';
import { CLOUD } from '../../../src/settings/cloud_limits.ts';
import { afterThisTest, realTime, virtualClock } from '../../kit/actors.ts';
import { ANY, cloud, doubleWith, eventually } from '../../kit/cloud.ts';
import { type Json, kubeDouble, statusOf, workload } from '../../kit/kube_double.ts';

describe('sleep and wake', () => {
  it('save the count, scale to 0 with a receipt, and restore the count', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    double.onPatched = (_, object) =>
      double.change('Deployment', 'web', 'hello', (row) => {
        row.status = statusOf(object.spec.replicas);
      });
    expect(await here.workloads.ask('sleep', { id, by: 'request', holdMs: null })).toEqual({
      replicas: 0,
      slept: true,
    });
    expect(here.find('web/hello')).toMatchObject({
      replicas: 0,
      desired_replicas: 3,
      sleep_reason: 'put to sleep by request',
    });
    await here.until('web/hello', (row) => row.state === 'asleep');
    const { annotations } = double.get('Deployment', 'web', 'hello').metadata;
    expect(JSON.parse(annotations['berth/sleep'])).toEqual({
      replicas: 3,
      at: expect.any(Number),
      by: 'request',
      from: 'here',
      holdUntil: null,
      uid: double.get('Deployment', 'web', 'hello').metadata.uid,
      generation: 1,
    });
    const { body } = double.requests.find(({ method }) => method === 'PATCH') ?? {};
    expect(body.filter(({ op }: Json) => op === 'test').map(({ path }: Json) => path)).toEqual([
      '/metadata/uid',
      '/metadata/annotations/berth~1op',
      '/spec/replicas',
    ]);
    expect(await here.workloads.ask('sleep', { id, by: 'request', holdMs: null })).toEqual({
      replicas: 0,
      slept: true,
    });
    expect(double.requests.filter(({ method }) => method === 'PATCH')).toHaveLength(1);
    expect(here.find('web/hello').desired_replicas).toBe(3);
    expect(await here.workloads.ask('wake', { id, by: 'request', waitMs: 1_000 })).toEqual({ replicas: 3 });
    expect(double.get('Deployment', 'web', 'hello').metadata.annotations['berth/sleep']).toBeUndefined();
    expect(await here.until('web/hello', (row) => row.state === 'awake')).toMatchObject({
      replicas: 3,
      desired_replicas: 3,
      sleep_reason: null,
    });
    expect(await here.workloads.ask('wake', { id, by: 'request', waitMs: null })).toEqual({ replicas: 3 });
    expect(double.requests.filter(({ method }) => method === 'PATCH')).toHaveLength(2);
  });

  it('tell tethers before pods are ended, and when a sleep has failed', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    const told = () => here.tethers.of('workloadSleeping').map(({ isSleeping }) => isSleeping);
    let before: boolean[] = [];
    double.onPatched = () => {
      before = told();
    };
    await here.workloads.ask('sleep', { id, by: 'request', holdMs: null });
    expect([before, told()]).toEqual([[true], [true]]);
    await here.workloads.ask('wake', { id, by: 'request', waitMs: null });
    double.fault(({ method }) => method === 'PATCH', { kind: 'status', status: 403 });
    await expect(here.workloads.ask('sleep', { id, by: 'request', holdMs: null })).rejects.toMatchObject({
      code: 'cluster_denied',
    });
    expect(told()).toEqual([true, true, false]);
    // It is in use again when its turn in the sweep comes.
    expect(await here.workloads.ask('sleep', { id, by: 'idle', holdMs: null })).toMatchObject({
      slept: false,
    });
    expect(told()).toEqual([true, true, false]);
  });

  it('show operations under way', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    await here.workloads.ask('sleep', { id, by: 'request', holdMs: null });
    expect(here.find('web/hello').state).toBe('sleeping');
    const status = (replicas: number, ready?: number): void =>
      double.change('Deployment', 'web', 'hello', (row) => {
        row.status = statusOf(replicas, ready);
      });
    status(0);
    await here.until('web/hello', (row) => row.state === 'asleep');
    await here.workloads.ask('wake', { id, by: 'request', waitMs: null });
    expect(here.find('web/hello').state).toBe('waking');
    status(3, 0);
    await here.until('web/hello', (row) => row.state === 'waking' && row.ready_replicas === 0);
    status(3, 1);
    await here.until('web/hello', (row) => row.state === 'awake' && row.ready_replicas === 1);
  });

  it('wake with 1 replica a workload that Berth never put to sleep', async () => {
    const double = await kubeDouble();
    afterThisTest(() => double.stop());
    double.put('StatefulSet', workload('data', 'store', 0));
    const here = await cloud();
    await here.add(double.kubeconfig);
    expect(here.find('data/store')).toMatchObject({
      replicas: 0,
      desired_replicas: null,
      state: 'asleep',
      sleep_reason: 'scaled to 0 outside of Berth',
    });
    const { id } = here.find('data/store');
    expect(await here.workloads.ask('sleep', { id, by: 'request', holdMs: null })).toEqual({
      replicas: 0,
      slept: true,
    });
    expect(here.find('data/store').desired_replicas).toBeNull();
    expect(await here.workloads.ask('wake', { id, by: 'request', waitMs: null })).toEqual({ replicas: 1 });
  });

  it('use the receipt when the store was lost', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    await here.workloads.ask('sleep', { id: here.find('web/hello').id, by: 'request', holdMs: null });
    await here.stop();
    const fresh = await cloud();
    await fresh.add(double.kubeconfig);
    expect(fresh.find('web/hello')).toMatchObject({ replicas: 0, desired_replicas: 3 });
    expect(
      await fresh.workloads.ask('wake', { id: fresh.find('web/hello').id, by: 'request', waitMs: null }),
    ).toEqual({
      replicas: 3,
    });
  });

  it.each([
    ['is longer than any Berth asks for', Date.now(), 3_600_001],
    ['is of a time far ahead', Date.UTC(2100, 0, 1), 3_600_000],
  ])('wake by a connection despite a hold that %s', async (_what, at, holdMs) => {
    const double = await doubleWith('hello');
    double.change('Deployment', 'web', 'hello', (object) => {
      const receipt = { replicas: 2, at, from: 'a\u202eb', holdUntil: at + holdMs };
      object.spec.replicas = 0;
      object.metadata.annotations = { 'berth/sleep': JSON.stringify(receipt) };
    });
    const here = await cloud();
    await here.add(double.kubeconfig);
    expect(here.find('web/hello').sleep_reason).toMatch(/ a b$/);
    await here.workloads.ask('wake', { id: here.find('web/hello').id, by: 'connection', waitMs: null });
    expect(here.find('web/hello').replicas).toBe(2);
  });

  it.each(['<script>', 'a & b', '\u2028'])(
    'use a receipt with %j, which Go encodes differently',
    async (policy) => {
      const double = await doubleWith('hello');
      double.change('Deployment', 'web', 'hello', (object) => {
        object.spec.replicas = 0;
        object.metadata.annotations = { 'berth/sleep': JSON.stringify({ replicas: 2, at: 1, policy }) };
      });
      const here = await cloud();
      await here.add(double.kubeconfig);
      const { id } = here.find('web/hello');
      expect(await here.workloads.ask('wake', { id, by: 'request', waitMs: null })).toEqual({ replicas: 2 });
    },
  );

  it('use desired_replicas when the receipt was lost', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    await here.workloads.ask('sleep', { id, by: 'request', holdMs: null });
    double.change('Deployment', 'web', 'hello', (object) => {
      object.metadata.annotations = { 'berth/sleep': 'garbage' };
    });
    await here.until('web/hello', (row) => row.sleep_reason === 'scaled to 0 outside of Berth');
    expect(await here.workloads.ask('wake', { id, by: 'request', waitMs: null })).toEqual({ replicas: 3 });
  });

  it('retry conflicts with the current version', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    let meddled = 0;
    double.fault(
      (request) => {
        if (request.method !== 'PATCH' || meddled === 2) return false;
        meddled += 1;
        double.change('Deployment', 'web', 'hello', (object) => {
          object.spec.replicas = 3 + meddled;
        });
        return false;
      },
      { kind: 'stall' },
    );
    expect(await here.workloads.ask('sleep', { id, by: 'request', holdMs: null })).toEqual({
      replicas: 0,
      slept: true,
    });
    expect(here.find('web/hello').desired_replicas).toBe(5);
    expect(double.requests.filter(({ method }) => method === 'PATCH')).toHaveLength(3);
  });

  it('give up on a workload that changes constantly', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    double.fault(
      ({ method }) => method === 'PATCH',
      { kind: 'status', status: 422, reason: 'Invalid', message: 'no test holds' },
      99,
    );
    await expect(
      here.workloads.ask('sleep', { id: here.find('web/hello').id, by: 'request', holdMs: null }),
    ).rejects.toMatchObject({
      code: 'workload_conflict',
      message: /changed by something else at each of 6 attempts.*422.*no test holds/,
    });
    expect(double.get('Deployment', 'web', 'hello').spec.replicas).toBe(3);
  });

  it.each([
    ['sleep', 3, 0],
    ['wake', 0, 1],
  ] as const)('read the real outcome after a lost response (%s)', async (kind, before, after) => {
    const double = await kubeDouble();
    afterThisTest(() => double.stop());
    double.put('Deployment', workload('web', 'hello', before));
    const here = await cloud();
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    double.fault(({ method }) => method === 'PATCH', { kind: 'lost' });
    const answer =
      kind === 'sleep'
        ? here.workloads.ask('sleep', { id, by: 'request', holdMs: null })
        : here.workloads.ask('wake', { id, by: 'request', waitMs: null });
    expect(await answer).toMatchObject({ replicas: after });
    expect(double.requests.filter(({ method }) => method === 'PATCH')).toHaveLength(1);
    if (kind === 'sleep') expect(here.find('web/hello').desired_replicas).toBe(3);
  });

  it('end within their time limit when the cluster answers no change, and are not made later', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    const isPatch = ({ method }: { method: string }): boolean => method === 'PATCH';
    double.fault(isPatch, { kind: 'reset' }, Number.POSITIVE_INFINITY);
    const answer = here.workloads.ask('sleep', { id, by: 'request', holdMs: null });
    await expect(answer).rejects.toMatchObject({ code: 'cluster_unreachable' });
    // Further ones would not fit into the time limit: see limit_invariants.ts.
    expect(double.requests.filter(isPatch)).toHaveLength(1 + CLOUD.maxUnansweredRetries);
  });

  it('of a deleted workload fail as unknown', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    for (const watch of [...double.watches]) watch.stall();
    double.remove('Deployment', 'web', 'hello');
    await expect(here.workloads.ask('sleep', { id, by: 'request', holdMs: null })).rejects.toMatchObject({
      code: 'unknown_workload',
    });
    await expect(
      here.workloads.ask('sleep', { id: 'nonsense', by: 'request', holdMs: null }),
    ).rejects.toMatchObject({
      code: 'unknown_workload',
    });
  });

  it.each([
    ['deleted', null],
    ['made anew', 5],
  ])('leave a workload alone that is %s before the response arrives', async (_, replicas) => {
    const double = await doubleWith('hello');
    const answered = deferred<void>();
    const here = await cloud({
      open: (access) => {
        const cluster = openKubeCluster(access, ANY, realTime);
        const patch: KubeCluster['patchWorkload'] = async (target, body) => {
          const seen = await cluster.patchWorkload(target, body);
          await answered.promise;
          return seen;
        };
        return { ...cluster, patchWorkload: patch };
      },
    });
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    double.onPatched = () => {
      double.remove('Deployment', 'web', 'hello');
      if (replicas !== null) double.put('Deployment', workload('web', 'hello', replicas));
    };
    const shown = () => here.list().map((row) => row.replicas);
    const expected = replicas === null ? [] : [replicas];
    const slept = here.workloads.ask('sleep', { id, by: 'request', holdMs: null });
    await eventually(() => JSON.stringify(shown()) === JSON.stringify(expected));
    answered.resolve();
    expect((await slept).slept).toBe(true);
    expect(shown()).toEqual(expected);
  });

  it.each([
    ['anything in kube-system', () => workload('kube-system', 'dns', 2), null, /kube-system/],
    [
      'a StatefulSet whose volumes would be deleted',
      () =>
        workload('data', 'db', 2, {
          spec: {
            persistentVolumeClaimRetentionPolicy: { whenScaled: 'Delete' },
            volumeClaimTemplates: [{}],
          },
        }),
      null,
      /delete its volumes/,
    ],
    [
      'what Berth itself runs in',
      () => workload('data', 'berth', 2),
      { namespace: 'data', name: 'berth-1' },
      /Berth itself/,
    ],
  ] as const)('refuse %s', async (_, make, ownPod, message) => {
    const double = await kubeDouble();
    afterThisTest(() => double.stop());
    double.put('StatefulSet', make());
    const here = await cloud(ownPod ? { ownPod } : {});
    await here.add(double.kubeconfig);
    const [row] = here.list();
    await expect(
      here.workloads.ask('sleep', { id: row.id, by: 'request', holdMs: null }),
    ).rejects.toMatchObject({
      code: 'sleep_refused',
      message,
    });
    expect(double.requests.some(({ method }) => method === 'PATCH')).toBe(false);
  });

  it('sleep a StatefulSet that keeps its volumes', async () => {
    const double = await kubeDouble();
    afterThisTest(() => double.stop());
    const policy = {
      persistentVolumeClaimRetentionPolicy: { whenScaled: 'Retain', whenDeleted: 'Delete' },
      volumeClaimTemplates: [{}],
    };
    double.put('StatefulSet', workload('data', 'db', 2, { spec: policy }));
    const here = await cloud();
    await here.add(double.kubeconfig);
    expect(
      await here.workloads.ask('sleep', { id: here.list()[0].id, by: 'request', holdMs: null }),
    ).toMatchObject({
      replicas: 0,
    });
  });

  it('leave everything as it was when denied', async () => {
    const double = await doubleWith('hello');
    double.denied.add('patch deployments');
    const here = await cloud();
    await here.add(double.kubeconfig);
    await expect(
      here.workloads.ask('sleep', { id: here.find('web/hello').id, by: 'request', holdMs: null }),
    ).rejects.toMatchObject({
      code: 'cluster_denied',
      message: /may not patch deployments\.apps hello in namespace web/,
    });
    expect(here.find('web/hello')).toMatchObject({ replicas: 3, desired_replicas: null, state: 'awake' });
  });

  it('wake once for many simultaneous requests', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    await here.workloads.ask('sleep', { id, by: 'request', holdMs: null });
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => here.workloads.ask('wake', { id, by: 'request', waitMs: null })),
    );
    expect(new Set(answers.map(({ replicas }) => replicas))).toEqual(new Set([3]));
    expect(double.requests.filter(({ method }) => method === 'PATCH')).toHaveLength(2);
  });

  it('run one after the other', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    const answers = await Promise.all([
      here.workloads.ask('sleep', { id, by: 'request', holdMs: null }),
      here.workloads.ask('wake', { id, by: 'request', waitMs: null }),
      here.workloads.ask('sleep', { id, by: 'request', holdMs: null }),
      here.workloads.ask('sleep', { id, by: 'request', holdMs: null }),
    ]);
    expect(answers.map(({ replicas }) => replicas)).toEqual([0, 3, 0, 0]);
    expect(here.find('web/hello').desired_replicas).toBe(3);
  });

  it('leave the workload awake when the last of them was a wake', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    await here.workloads.ask('sleep', { id, by: 'request', holdMs: null });
    const answers = await Promise.all([
      here.workloads.ask('wake', { id, by: 'request', waitMs: null }),
      here.workloads.ask('sleep', { id, by: 'request', holdMs: null }),
      here.workloads.ask('wake', { id, by: 'request', waitMs: null }),
      here.workloads.ask('wake', { id, by: 'request', waitMs: null }),
    ]);
    expect(answers.map(({ replicas }) => replicas)).toEqual([3, 0, 3, 3]);
    expect(double.get('Deployment', 'web', 'hello').spec.replicas).toBe(3);
    expect(double.requests.filter(({ method }) => method === 'PATCH')).toHaveLength(4);
  });

  it('wait for a pod of this wake, not for one that is terminating', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    await here.workloads.ask('sleep', { id, by: 'request', holdMs: null });
    // The controller has seen neither the sleep nor the wake: the three ready pods are the old ones.
    expect(here.find('web/hello')).toMatchObject({ ready_replicas: 3 });
    await expect(here.workloads.ask('wake', { id, by: 'request', waitMs: 50 })).rejects.toMatchObject({
      code: 'ready_timeout',
    });
    const waiting = here.workloads.ask('wake', { id, by: 'request', waitMs: 20_000 });
    double.change('Deployment', 'web', 'hello', (row) => {
      row.status = statusOf(3, 1);
    });
    expect(await waiting).toEqual({ replicas: 3 });
  });

  it('find a ready pod, or a deleted workload, where watching is not allowed', async () => {
    const double = await doubleWith('hello');
    for (const plural of ['deployments', 'statefulsets']) double.denied.add(`watch ${plural}`);
    const here = await cloud();
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    await here.workloads.ask('sleep', { id, by: 'request', holdMs: null });
    double.onPatched = () =>
      double.change('Deployment', 'web', 'hello', (row) => {
        row.status = statusOf(3, 1);
      });
    expect(await here.workloads.ask('wake', { id, by: 'request', waitMs: 20 })).toEqual({ replicas: 3 });
    expect(here.find('web/hello')).toMatchObject({ ready_replicas: 1, state: 'awake' });
    await here.workloads.ask('sleep', { id, by: 'request', holdMs: null });
    double.onPatched = () => double.remove('Deployment', 'web', 'hello');
    await expect(here.workloads.ask('wake', { id, by: 'request', waitMs: 20 })).rejects.toMatchObject({
      code: 'unknown_workload',
    });
  });

  it('end the wait for a pod at once when none can appear any more', async () => {
    const clock = virtualClock();
    const double = await doubleWith('slept', 'scaled', 'deleted', 'forgotten');
    const here = await cloud({ clock });
    const clusterId = await here.add(double.kubeconfig);
    await eventually(() => double.watches.length === 2);
    // Time stands still: no wait can end by its timeout.
    const woken = async (name: string) => {
      const { id } = here.find(`web/${name}`);
      await here.workloads.ask('sleep', { id, by: 'request', holdMs: null });
      const waiting = here.workloads
        .ask('wake', { id, by: 'request', waitMs: 20_000 })
        .catch((error: unknown) => error);
      await here.until(`web/${name}`, ({ replicas }) => replicas === 3);
      return { id, waiting };
    };
    const slept = await woken('slept');
    await here.workloads.ask('sleep', { id: slept.id, by: 'request', holdMs: null });
    expect(await slept.waiting).toMatchObject({
      code: 'ready_timeout',
      message: 'Deployment web/slept has no Ready pod: it was put to sleep by request',
    });
    const scaled = await woken('scaled');
    double.change('Deployment', 'web', 'scaled', (object) => {
      object.spec.replicas = 0;
    });
    expect(await scaled.waiting).toMatchObject({
      code: 'ready_timeout',
      message: 'Deployment web/scaled has no Ready pod: it was scaled to 0 outside of Berth',
    });
    const deleted = await woken('deleted');
    double.remove('Deployment', 'web', 'deleted');
    expect(await deleted.waiting).toMatchObject({ code: 'unknown_workload' });
    const forgotten = await woken('forgotten');
    await here.clusters.ask('remove', { id: clusterId });
    expect(await forgotten.waiting).toMatchObject({ code: 'unknown_workload' });
  });

  it('report why no pod is ready in time', async () => {
    const double = await kubeDouble();
    afterThisTest(() => double.stop());
    double.put('Deployment', workload('web', 'hello', 0));
    const here = await cloud();
    await here.add(double.kubeconfig);
    const pod = (deployment: string, message: string) => ({
      metadata: {
        name: `${deployment}-6b-1`,
        namespace: 'web',
        uid: `u-${deployment}`,
        resourceVersion: '1',
        labels: { app: 'hello', 'pod-template-hash': '6b' },
        ownerReferences: [{ kind: 'ReplicaSet', name: `${deployment}-6b`, controller: true }],
      },
      status: {
        phase: 'Pending',
        containerStatuses: [{ name: 'main', state: { waiting: { reason: 'ImagePullBackOff', message } } }],
      },
    });
    // The selector may match pods of others too.
    const pods = [pod('other', 'not its own'), pod('hello', 'no such image')];
    const body = JSON.stringify({ metadata: { resourceVersion: '1' }, items: pods });
    double.fault(({ path }) => path.endsWith('/namespaces/web/pods'), {
      kind: 'raw',
      status: 200,
      headers: {},
      body,
    });
    await expect(
      here.workloads.ask('wake', { id: here.find('web/hello').id, by: 'request', waitMs: 20 }),
    ).rejects.toMatchObject({
      code: 'ready_timeout',
      message: /no Ready pod after 20 ms: pod hello-6b-1: .*ImagePullBackOff: no such image$/,
    });
  });
});
