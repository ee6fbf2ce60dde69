// Tethers on the real cluster: which pod a connection gets, and what happens when there is none.
import { beforeAll, expect, it } from 'vitest';
import { openKubeCluster } from '../../../src/adapters/kube/kube_cluster.ts';
import { podsResource as podRowsOf } from '../../../src/adapters/kube/pods.ts';
import { deferred } from '../../../src/runtime/deferred.ts';
import { realTime, settle } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import type { Json } from '../../kit/kube_double.ts';
import { api, create, describeReal, sandbox } from '../../kit/kube_real.ts';
import { access, answer, client, field, lastError, podsOf, RULE, server } from './tether_kit.ts';

describeReal('a tether and its pods', () => {
  const box = sandbox();

  beforeAll(() => box.create('Deployment', server('pair', 2)));

  it('gives the next connection to another pod when its own was deleted', async () => {
    const pods = podsOf(box, 'pair');
    await pods.ready(2);
    const { port } = await field({ sandbox: box, name: 'pair' });
    const open = client(port, 'stay\n');
    const name = (await open.until((text) => text.endsWith('\n'))).trim();
    await pods.remove(name);
    expect(await open.ended).toMatch(/^(end|ECONNRESET)$/);
    for (let round = 0; round < 4; round += 1) expect((await answer(port, 'name\n')).trim()).not.toBe(name);
  }, 60_000);

  it('wakes a workload once for all clients, and serves them with the bytes they had sent', async () => {
    await box.create('Deployment', server('dozy', 0));
    let wakes = 0;
    const onWake = async (): Promise<void> => {
      wakes += 1;
      await box.scale('Deployment', 'dozy', 1);
    };
    const { port } = await field({ sandbox: box, name: 'dozy', state: 'asleep', onWake });
    const answers = await Promise.all(Array.from({ length: 20 }, () => answer(port, 'name\n')));
    const [name] = await podsOf(box, 'dozy').ready(1);
    expect(new Set(answers)).toEqual(new Set([`${name}\n`]));
    expect(wakes).toBe(1);
  }, 60_000);

  it('follows a workload that was recreated with another selector', async () => {
    await box.create('Deployment', server('former', 1));
    await podsOf(box, 'former').ready(1);
    const { port, route } = await field({ sandbox: box, name: 'former' });
    await answer(port, 'name\n');
    await box.remove('Deployment', 'former');
    await podsOf(box, 'former').ready(0);
    const anew = server('latter', 1);
    await box.create('Deployment', { ...anew, metadata: { name: 'former' } });
    const [pod] = await podsOf(box, 'latter').ready(1);
    route.workload.selector = 'app=latter';
    expect(await answer(port, 'name\n')).toBe(`${pod}\n`);
  }, 60_000);

  it.each(['Deployment', 'StatefulSet'] as const)(
    'wakes a %s although its selector matches a Ready pod of another workload',
    async (kind) => {
      const shop = `shop-${kind.toLowerCase()}`;
      const labelled = (name: string, replicas: number, labels: Json): Json => {
        const object = server(name, replicas);
        object.spec.template.metadata.labels = { shop, ...labels };
        return object;
      };
      const worker = labelled(`worker-${shop}`, 1, { app: `worker-${shop}` });
      worker.spec.selector.matchLabels = worker.spec.template.metadata.labels;
      await box.create('Deployment', worker);
      const object = labelled(`api-${shop}`, 0, { app: `api-${shop}` });
      object.spec.selector.matchLabels = { shop };
      await box.create(
        kind,
        kind === 'StatefulSet' ? { ...object, spec: { ...object.spec, serviceName: shop } } : object,
      );
      await podsOf(box, `worker-${shop}`).ready(1);
      const onWake = () => box.scale(kind, `api-${shop}`, 1);
      const { port, route } = await field({ sandbox: box, name: `api-${shop}`, state: 'asleep', onWake });
      Object.assign(route.workload, { kind, selector: `shop=${shop}` });
      const [name] = await Promise.all([answer(port, 'name\n'), podsOf(box, `api-${shop}`).ready(1)]);
      expect(name).toContain(`api-${shop}-`);
    },
    60_000,
  );

  it('wakes a workload that has no pods although it is marked awake', async () => {
    await box.create('Deployment', server('stale', 0));
    const onWake = () => box.scale('Deployment', 'stale', 1);
    const { port, workloads } = await field({ sandbox: box, name: 'stale', onWake });
    expect(await answer(port, 'name\n')).toContain('stale-');
    // Nor a second time once there is one.
    const wakes = workloads.of('wake').length;
    expect(await answer(port, 'name\n')).toContain('stale-');
    expect(workloads.of('wake')).toHaveLength(wakes);
  }, 80_000);

  it('does not wake a workload for a tether that may not wake it', async () => {
    const tether = await field({ sandbox: box, name: 'none', state: 'asleep', wake: false });
    expect(await client(tether.port, 'name\n').ended).toBe('ECONNRESET');
    expect(await lastError(tether)).toContain('does not wake');
    expect(tether.workloads.of('wake')).toEqual([]);
  });

  it('does not wake a workload for clients that have disconnected, and does not keep their connections', async () => {
    const left = deferred<void>();
    const tether = await field({
      sandbox: box,
      name: 'none',
      state: 'asleep',
      onRoute: () => left.promise,
    });
    for (const [first, leave] of [
      ['', 'destroy'],
      ['', 'resetAndDestroy'],
      ['name\n', 'resetAndDestroy'],
      ['name\n', 'destroy'],
    ] as const) {
      const { socket } = client(tether.port);
      await new Promise((resolve) => socket.once('connect', resolve));
      if (first !== '') await new Promise((resolve) => socket.write(first, resolve));
      socket[leave]();
    }
    // The sockets need a turn to report their close.
    for (let turn = 0; turn < 20; turn += 1) await settle();
    left.resolve();
    const over = await tether.until(({ connections, bytesIn }) => connections === 0 && bytesIn > 0);
    expect(over.lastError).toBeNull();
    expect(tether.workloads.of('wake')).toEqual([]);
    expect(tether.workloads.of('activity').length).toBeGreaterThan(0);
  });

  const hopeless: [reason: string, object: Json, expected: RegExp][] = [
    [
      'ImagePullBackOff',
      server('nopull', 1, { image: 'berth.invalid/none:1' }),
      /ErrImagePull|ImagePullBackOff/,
    ],
    ['CrashLoopBackOff', server('crash', 1, { command: 'exit 3' }), /CrashLoopBackOff/],
  ];
  for (const [reason, object, expected] of hopeless) {
    it(`resets clients when the pods are in ${reason}, and reports the reason`, async () => {
      await box.create('Deployment', object);
      const tether = await field({ sandbox: box, name: object.metadata.name });
      expect(await client(tether.port, 'name\n').ended).toBe('ECONNRESET');
      expect(await lastError(tether)).toMatch(expected);
    }, 60_000);
  }

  it('serves a client that connected when no node had room', async () => {
    const nowhere = { nodeSelector: { 'berth.invalid/none': 'yes' } };
    await box.create('Deployment', server('noroom', 1, { spec: nowhere }));
    const tether = await field({ sandbox: box, name: 'noroom' });
    const waiting = answer(tether.port, 'name\n');
    const cluster = openKubeCluster(access(), RULE, realTime);
    const { trouble } = await eventually(async () => {
      const { rows } = await cluster.list(podRowsOf(tether.route.workload));
      return rows.find(({ mayPass }) => mayPass);
    });
    await cluster.close();
    expect(trouble).toMatch(/Unschedulable: .*node/);
    const anywhere = { spec: { template: { spec: { nodeSelector: null } } } };
    await api('PATCH', box.path('Deployment', 'noroom'), anywhere, 'application/merge-patch+json');
    expect(await waiting).toContain('noroom-');
  }, 60_000);

  it('reports what the account may not do', async () => {
    const account = `/api/v1/namespaces/${box.namespace}/serviceaccounts`;
    await create(account, { metadata: { name: 'nobody' } });
    const token = (await api('POST', `${account}/nobody/token`, { spec: {} })).body.status.token;
    const tether = await field({ sandbox: box, name: 'pair', token });
    expect(await client(tether.port, 'name\n').ended).toBe('ECONNRESET');
    expect(await lastError(tether)).toContain('may not list pods');
  });

  it("reports the node's message about a port without a listener", async () => {
    const tether = await field({ sandbox: box, name: 'pair', containerPort: 7999 });
    expect(await client(tether.port, 'name\n').ended).toBe('ECONNRESET');
    expect(await lastError(tether)).toContain('connection refused');
  }, 60_000);
});
