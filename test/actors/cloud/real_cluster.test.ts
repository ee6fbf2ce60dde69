// Clusters and workloads on a real Kubernetes.
import { connect, createServer, type Socket } from 'node:net';
import { beforeAll, expect, it } from 'vitest';
import { createClusterDialer } from '../../../src/adapters/cluster_dialer.ts';
import { createKubeCluster } from '../../../src/adapters/kube/kube_cluster.ts';
import { createKubeHttp } from '../../../src/adapters/kube/kube_http.ts';
import { parseKubeconfig } from '../../../src/adapters/kube/kubeconfig.ts';
import type { ClusterInput } from '../../../src/protocol/clusters.ts';
import { afterThisTest, realTime } from '../../kit/actors.ts';
import { ANY, type Cloud, cloud, eventually } from '../../kit/cloud.ts';
import { freePort } from '../../kit/free_ports.ts';
import { apiServer, hasApiServer } from '../../kit/kube_api_server.ts';
import type { Json } from '../../kit/kube_double.ts';
import {
  api,
  create,
  describeReal,
  kubeconfig,
  localKubeconfig,
  realKubeconfig,
  sandbox,
  sleeper,
} from '../../kit/kube_real.ts';

const input = (more: Partial<ClusterInput>): ClusterInput => ({
  name: 'real',
  provider: 'other',
  kubeconfig: kubeconfig(),
  inCluster: false,
  namespaces: [],
  renewToken: false,
  ...more,
});
const monotonic = (): number => performance.now();

describeReal('a real cluster', () => {
  const mine = sandbox();
  const named = (name: string): string => `${mine.namespace}/${name}`;
  let here: Cloud;

  async function begin(): Promise<void> {
    here = await cloud();
    await here.add(kubeconfig());
  }
  const sleep = (id: string) => here.workloads.ask('sleep', { id, by: 'request', holdMs: null });
  const wake = (id: string, waitMs: number | null = null) =>
    here.workloads.ask('wake', { id, by: 'request', waitMs }, { deadlineMs: 60_000 });

  beforeAll(() => mine.create('Deployment', sleeper('known', 0)));
  const logins: [string, string | null][] = [
    ['its raw text', realKubeconfig],
    ['base64', realKubeconfig && Buffer.from(realKubeconfig).toString('base64')],
    ['a bearer token', localKubeconfig('token')],
    ['a client certificate', localKubeconfig('admin')],
  ];
  // A cluster given by its kubeconfig has one login only: the other logins are skipped.
  for (const [login, config] of logins)
    it.skipIf(config === null)(`is registered with ${login}, synced and described`, async () => {
      const one = await cloud();
      const { id } = await one.clusters.ask('register', { input: input({ kubeconfig: config ?? '' }) });
      expect(JSON.parse(one.views.cluster(id) ?? '')).toMatchObject({ reachable: null, last_sync_at: null });
      const { synced } = await one.clusters.ask('sync', { id });
      // Others may use the cluster at the same time, so the sync must only include our own workloads.
      expect(synced).toBeGreaterThanOrEqual(1);
      expect(one.find(named('known'))).toMatchObject({ kind: 'Deployment', replicas: 0 });
      expect(JSON.parse(one.views.cluster(id) ?? '')).toMatchObject({
        version: expect.stringMatching(/^v1\.\d+/),
        reachable: true,
        capabilities: { sync: true, watch: true, sleep: true, tether: true, denied: [] },
      });
    });

  it('is synced over many pages', async () => {
    const names = Array.from({ length: 60 }, (_, index) => `page-${index}`);
    await Promise.all(names.map((name) => mine.create('Deployment', sleeper(name, 0))));
    // Real pages and tokens, only more of them.
    here = await cloud({
      open: (access) => createKubeCluster(createKubeHttp(createClusterDialer(access, ANY), realTime), 7),
    });
    await here.add(kubeconfig());
    const found = here.list().filter((row) => row.namespace === mine.namespace && row.name !== 'known');
    expect(found.map((row) => row.name).sort()).toEqual([...names].sort());
    expect(found.every((row) => row.replicas === 0 && row.state === 'asleep')).toBe(true);
    await Promise.all(names.map((name) => mine.remove('Deployment', name)));
    await eventually(() =>
      here.list().every((row) => !row.name.startsWith('page-') || row.namespace !== mine.namespace),
    );
  });

  it('shows within 2 s a change of scale made elsewhere', async () => {
    await mine.create('Deployment', sleeper('scaled', 0));
    await begin();
    for (const replicas of [1, 2, 0]) {
      const before = monotonic();
      await mine.scale('Deployment', 'scaled', replicas);
      await here.until(named('scaled'), (row) => row.replicas === replicas);
      expect(monotonic() - before).toBeLessThan(2_000);
    }
  });

  it.each(['Deployment', 'StatefulSet'])('puts a %s to sleep, twice, and wakes it', async (kind) => {
    const name = `nap-${kind.toLowerCase()}`;
    await mine.create(
      kind,
      sleeper(name, 2, {
        spec: kind === 'StatefulSet' ? { serviceName: name, podManagementPolicy: 'Parallel' } : {},
      }),
    );
    await begin();
    await here.until(named(name), (row) => row.ready_replicas === 2);
    const { id } = here.find(named(name));
    expect(await sleep(id)).toEqual({ replicas: 0, slept: true });
    expect(here.find(named(name))).toMatchObject({
      kind,
      replicas: 0,
      desired_replicas: 2,
      sleep_reason: 'put to sleep by request',
    });
    const object: Json = await mine.get(kind, name);
    expect(object.spec.replicas).toBe(0);
    expect(JSON.parse(object.metadata.annotations['berth/sleep'])).toMatchObject({
      replicas: 2,
      by: 'request',
    });
    expect(object.metadata.managedFields.some((row: Json) => row.manager === 'berth')).toBe(true);
    await here.until(named(name), (row) => row.state === 'asleep' && row.ready_replicas === 0);
    expect(await sleep(id)).toEqual({ replicas: 0, slept: true });
    expect(here.find(named(name)).desired_replicas).toBe(2);
    expect(await wake(id, 30_000)).toEqual({ replicas: 2 });
    expect(here.find(named(name)).ready_replicas).toBeGreaterThanOrEqual(1);
    expect((await mine.get(kind, name)).metadata.annotations?.['berth/sleep']).toBeUndefined();
    expect(await wake(id)).toEqual({ replicas: 2 });
    await here.until(named(name), (row) => row.state === 'awake' && row.ready_replicas === 2);
  });

  it('wakes a workload that Berth never put to sleep', async () => {
    await mine.create('Deployment', sleeper('never', 0));
    await begin();
    const { id } = await here.until(named('never'), () => true);
    expect(await wake(id, 30_000)).toEqual({ replicas: 1 });
  });

  it('handles a workload deleted and recreated under its name', async () => {
    await mine.create('Deployment', sleeper('again', 1));
    await begin();
    const { id } = here.find(named('again'));
    await here.workloads.ask('autoSleep', { id, enabled: true, minutes: 99 });
    await sleep(id);
    await mine.remove('Deployment', 'again');
    await eventually(() => here.find(named('again')) === undefined);
    await mine.create('Deployment', sleeper('again', 3));
    expect(await here.until(named('again'), (row) => row.replicas === 3)).toMatchObject({
      id,
      desired_replicas: null,
      last_activity_at: null,
      auto_sleep_enabled: true,
      idle_timeout_minutes: 99,
    });
    expect(await sleep(id)).toEqual({ replicas: 0, slept: true });
    expect(here.find(named('again')).desired_replicas).toBe(3);
  });

  it('puts a workload to sleep while someone else scales it, and never loses the count', async () => {
    await mine.create('Deployment', sleeper('race', 1, { container: { image: 'none:none' } }));
    await begin();
    const { id } = here.find(named('race'));
    for (let round = 0; round < 5; round += 1) {
      const replicas = 2 + (round % 3);
      const [slept] = await Promise.all([sleep(id), mine.scale('Deployment', 'race', replicas)]);
      expect(slept.replicas).toBe(0);
      const { spec } = await mine.get('Deployment', 'race');
      // The last writer wins; asleep, it keeps a count that somebody once asked for.
      if (spec.replicas === 0) expect([1, 2, 3, 4]).toContain(here.find(named('race')).desired_replicas);
      expect((await wake(id)).replicas).toBeGreaterThanOrEqual(1);
    }
  });

  it('refuses to put kube-system to sleep', async () => {
    await begin();
    const system = here.list().find((row) => row.namespace === 'kube-system');
    // This cluster may have no such workloads.
    if (system) await expect(sleep(system.id)).rejects.toMatchObject({ code: 'sleep_refused' });
  });

  it('reports why a pod does not become ready', async () => {
    await mine.create(
      'Deployment',
      sleeper('broken', 0, { container: { image: 'registry.invalid/none:1' } }),
    );
    await begin();
    const { id } = here.find(named('broken'));
    // The node takes a moment to find out.
    const failure = await eventually(async () => {
      const error: Json = await wake(id, 200).catch((caught) => caught);
      return /ErrImagePull|ImagePullBackOff/.test(error.message) ? error : undefined;
    });
    expect(failure).toMatchObject({ code: 'ready_timeout' });
  });

  const limited = localKubeconfig('limited');
  it.skipIf(limited === null)(
    'explains to a limited account what it may not do, and changes nothing',
    async () => {
      const one = await cloud();
      const { id } = await one.clusters.ask('register', { input: input({ kubeconfig: limited ?? '' }) });
      await expect(one.clusters.ask('sync', { id })).rejects.toMatchObject({
        code: 'cluster_denied',
        message: /may not list (deployments|statefulsets)\.apps in all namespaces.*forbidden/,
      });
      expect(one.list()).toEqual([]);
      expect(JSON.parse(one.views.cluster(id) ?? '')).toMatchObject({
        reachable: true,
        last_sync_at: null,
        capabilities: {
          sync: false,
          sleep: false,
          denied: expect.arrayContaining(['patch deployments.apps']),
        },
      });
    },
  );

  it('explains to an account that may only scale why that is not enough, and changes nothing', async () => {
    const { namespace } = mine;
    const rbac = '/apis/rbac.authorization.k8s.io/v1';
    const subjects = [{ kind: 'ServiceAccount', name: 'scaler', namespace }];
    const roleRef = (kind: string, name: string) => ({ apiGroup: 'rbac.authorization.k8s.io', kind, name });
    const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`;
    await create(accounts, { metadata: { name: 'scaler' } });
    await create(`${rbac}/namespaces/${namespace}/roles`, {
      metadata: { name: 'scaler' },
      rules: [{ apiGroups: ['apps'], resources: ['deployments/scale'], verbs: ['get', 'update', 'patch'] }],
    });
    const own = { metadata: { name: 'scaler' }, roleRef: roleRef('Role', 'scaler'), subjects };
    await create(`${rbac}/namespaces/${namespace}/rolebindings`, own);
    const everywhere = { metadata: { name: namespace }, roleRef: roleRef('ClusterRole', 'view'), subjects };
    await create(`${rbac}/clusterrolebindings`, everywhere);
    const { body } = await api('POST', `${accounts}/scaler/token`, { spec: {} });
    const { server, ca } = parseKubeconfig(kubeconfig(), Date.now());
    const authority = ca ? { 'certificate-authority-data': Buffer.from(ca).toString('base64') } : {};
    await mine.create('Deployment', sleeper('scaled', 2));
    here = await cloud();
    const id = await here.add(
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Config',
        'current-context': 'a',
        contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
        clusters: [{ name: 'a', cluster: { server, ...authority } }],
        users: [{ name: 'a', user: { token: body.status.token } }],
      }),
    );
    expect(JSON.parse(here.views.cluster(id) ?? '').capabilities).toMatchObject({ sync: true, sleep: false });
    const workload = here.find(named('scaled'));
    await expect(sleep(workload.id)).rejects.toMatchObject({
      code: 'cluster_denied',
      message: /may not patch deployments\.apps scaled in namespace .*cannot patch/,
      detail: { hint: /A right on its scale is not enough/ },
    });
    const { metadata, spec } = await mine.get('Deployment', 'scaled');
    expect([spec.replicas, metadata.annotations?.['berth/sleep']]).toEqual([2, undefined]);
    expect(here.find(named('scaled'))).toMatchObject({ state: 'awake', desired_replicas: null });
  });

  const token = localKubeconfig('token');
  it.skipIf(token === null)('distinguishes an unknown login from a known account', async () => {
    const one = await cloud();
    const wrong = (token ?? '').replace(/token: .*/, 'token: not-a-token');
    const { id } = await one.clusters.ask('register', { input: input({ kubeconfig: wrong }) });
    await expect(one.clusters.ask('sync', { id })).rejects.toMatchObject({
      code: 'cluster_denied',
      message: /401/,
    });
  });

  interface Load {
    /** The calls that have succeeded. */
    done: number;
    /** The codes of those that have failed, in order. */
    codes: string[];
    stop(): Promise<void>;
  }

  /** Puts workloads to sleep and wakes them until `stop`. */
  function load(ids: readonly string[]): Load {
    let isOver = false;
    const loops = ids.map(async (id) => {
      while (!isOver) {
        for (const work of [() => sleep(id), () => wake(id)]) {
          await work().then(
            () => {
              running.done += 1;
            },
            (error: Json) => running.codes.push(error.code),
          );
        }
        await realTime.advance(20);
      }
    });
    const running: Load = {
      done: 0,
      codes: [],
      async stop() {
        isOver = true;
        await Promise.all(loops);
      },
    };
    return running;
  }
  /** Resolves when calls have succeeded since now. */
  const isBusy = async (work: Load): Promise<void> => {
    const { done } = work;
    await eventually(() => work.done >= done + 2 * counts.length);
  };
  /** Resolves when a call has failed for want of the server since `from`. */
  const hasFailed = (work: Load, from: number): Promise<boolean> =>
    eventually(() => work.codes.slice(from).includes('cluster_unreachable'));

  const counts = [1, 2, 3, 4];
  const loaded = (count: number): string => `load-${count}`;
  async function makeLoaded(): Promise<void> {
    await Promise.all(
      counts.map((count) =>
        mine.create('Deployment', sleeper(loaded(count), count, { container: { image: 'none:none' } })),
      ),
    );
  }
  /** Checks that every sleeping workload has its count, and that the watch continues. */
  async function checkLoaded(): Promise<void> {
    for (const count of counts) {
      const { id } = here.find(named(loaded(count)));
      expect((await eventually(() => wake(id).catch(() => undefined))).replicas).toBe(count);
      expect((await mine.get('Deployment', loaded(count))).spec.replicas).toBe(count);
      await mine.scale('Deployment', loaded(count), 0);
      await here.until(named(loaded(count)), (row) => row.replicas === 0);
    }
  }

  it('may be disconnected and come back while in use', async () => {
    const server = new URL(parseKubeconfig(kubeconfig(), Date.now()).server);
    const open = new Set<Socket>();
    const proxy = createServer((client) => {
      const far = connect(Number(server.port || 443), server.hostname);
      for (const socket of [client, far])
        socket.on('error', () => undefined).on('close', () => open.delete(socket));
      open.add(client).add(far);
      client.pipe(far).pipe(client);
    });
    const port = freePort();
    const listen = (): Promise<void> =>
      new Promise((resolve) => proxy.listen(port, '127.0.0.1', () => resolve()));
    await listen();
    const cut = async (): Promise<void> => {
      const closed = new Promise((resolve) => proxy.close(resolve));
      for (const socket of open) socket.resetAndDestroy();
      await closed;
    };
    afterThisTest(cut);
    await makeLoaded();
    here = await cloud();
    const through = kubeconfig().replace(
      /server: .*/,
      `server: https://127.0.0.1:${port}\n    tls-server-name: ${server.hostname}`,
    );
    await here.add(through);
    const work = load(counts.map((count) => here.find(named(loaded(count))).id));
    for (let round = 0; round < 3; round += 1) {
      await isBusy(work);
      const failures = work.codes.length;
      await cut();
      await hasFailed(work, failures);
      await listen();
    }
    await work.stop();
    expect(new Set(work.codes)).toEqual(new Set(['cluster_unreachable']));
    await checkLoaded();
  });

  it.skipIf(!hasApiServer)(
    'may have its API server stopped and started while in use',
    async () => {
      const server = await apiServer();
      await makeLoaded();
      here = await cloud();
      const id = await here.add(server.kubeconfig);
      const reachable = () => JSON.parse(here.views.cluster(id) ?? '').reachable;
      const work = load(counts.map((count) => here.find(named(loaded(count))).id));
      await isBusy(work);
      const failures = work.codes.length;
      await server.stop();
      await eventually(() => reachable() === false);
      await hasFailed(work, failures);
      await server.start();
      // The watches recover on their own.
      await eventually(() => reachable() === true);
      await work.stop();
      // A starting server may also deny what it cannot decide yet.
      expect(['cluster_unreachable', 'cluster_denied']).toEqual(
        expect.arrayContaining([...new Set(work.codes)]),
      );
      await checkLoaded();
    },
    120_000,
  );
});
