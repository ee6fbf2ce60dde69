// Tethers with the cloud's own actors on the real cluster: from the registration of the cluster to the wake
// by a connection.
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { clustersActor } from '../../../src/actors/cloud/clusters.ts';
import { workloadsActor } from '../../../src/actors/cloud/workloads.ts';
import { tetherActor } from '../../../src/actors/tethers/tether.ts';
import { tethersActor } from '../../../src/actors/tethers/tethers.ts';
import { createClusterDialer } from '../../../src/adapters/cluster_dialer.ts';
import { openKubeCluster } from '../../../src/adapters/kube/kube_cluster.ts';
import { KubeError } from '../../../src/adapters/kube/kube_errors.ts';
import { createKubeHttp } from '../../../src/adapters/kube/kube_http.ts';
import { parseKubeconfig } from '../../../src/adapters/kube/kubeconfig.ts';
import { openLoopbackPeers } from '../../../src/adapters/process/loopback_peers.ts';
import { embeddedCloudStore } from '../../../src/adapters/storage/embedded_cloud.ts';
import { openStore } from '../../../src/adapters/storage/store.ts';
import { createVault, type Vault } from '../../../src/adapters/storage/vault.ts';
import { CloudViews } from '../../../src/front/views/cloud_views.ts';
import { cloudViewsActor } from '../../../src/front/views/cloud_views_actor.ts';
import type { WorkloadsProtocol } from '../../../src/protocol/cloud.ts';
import type { ClustersProtocol } from '../../../src/protocol/clusters.ts';
import { NO_QUOTAS } from '../../../src/protocol/quotas.ts';
import { type TethersProtocol, tetherSettings } from '../../../src/protocol/tethers.ts';
import type { ThreadsProtocol } from '../../../src/protocol/threads.ts';
import type { Ref } from '../../../src/runtime/actor.ts';
import { afterThisTest, realTime, tempDir, world } from '../../kit/actors.ts';
import { giveNamespaces } from '../../kit/cloud.ts';
import { eventually } from '../../kit/eventually.ts';
import { ownPorts } from '../../kit/free_ports.ts';
import { kubeconfigFor, serviceAccount } from '../../kit/kube_accounts.ts';
import type { Json } from '../../kit/kube_double.ts';
import { describeReal, kubeconfig, sandbox } from '../../kit/kube_real.ts';
import { access, answer, client, heldConnections, podsOf, RULE, server } from './tether_kit.ts';

interface Cloud {
  clusters: Ref<ClustersProtocol>;
  workloads: Ref<WorkloadsProtocol>;
  tethers: Ref<TethersProtocol>;
  workload(name: string): Promise<Json>;
  /** Resolves when a workload is not listed. */
  without(name: string): Promise<unknown>;
  tether(id: string): Json;
  stop(): Promise<void>;
}

async function cloud(folder: string, key: Vault, ports: readonly [number, number]): Promise<Cloud> {
  const here = world({ clock: realTime });
  const store = openStore(join(folder, 'store.mdb'));
  const cloudStore = embeddedCloudStore(store);
  const peers = await openLoopbackPeers();
  let stopped: Promise<void> | null = null;
  const stop = (): Promise<void> => {
    stopped ??= here.node.stop().then(async () => {
      await store.close();
      peers.close();
    });
    return stopped;
  };
  afterThisTest(stop);
  const views = new CloudViews();
  await here.start('cloudviews', cloudViewsActor, views);
  const workloads = await here.start('workloads', workloadsActor, {
    store: cloudStore,
    vault: key,
    open: (access) => openKubeCluster(access, RULE, realTime),
    podAccess: null,
    ownPod: null,
    self: 'here',
    quotas: NO_QUOTAS,
  });
  await here.stand<ThreadsProtocol>('threads');
  here.node.family('tether:', tetherActor, () => ({
    rule: RULE,
    peers,
    networkClock: realTime,
    held: heldConnections(),
    link: null,
  }));
  const tethersRef = await here.start('tethers', tethersActor, {
    store: cloudStore,
    ports,
    hasRelay: false,
    remote: null,
    isServer: false,
    quotas: NO_QUOTAS,
  });
  const clusters = await here.start('clusters', clustersActor, {
    store: cloudStore,
    vault: key,
    parse: async (text) => parseKubeconfig(text, Date.now()),
    rule: RULE,
    allowInCluster: false,
    inPod: false,
  });
  const list = (text: Uint8Array): Json[] => JSON.parse(Buffer.from(text).toString());
  return {
    clusters,
    workloads,
    tethers: tethersRef,
    workload: (name) => eventually(() => list(views.workloads(null)).find((one) => one.name === name)),
    without: (name) => eventually(() => !list(views.workloads(null)).some((one) => one.name === name)),
    tether: (id) => list(views.tethers()).find((one) => one.tether_id === id),
    stop,
  };
}

describeReal('tethers and the cloud', () => {
  const box = sandbox();

  beforeAll(async () => {
    await box.create('Deployment', server('three', 1));
    await podsOf(box, 'three').ready(1);
  });

  async function tethered(
    here: Cloud,
    name: string,
    config = kubeconfig(),
  ): Promise<{ id: string; port: number; cluster: string }> {
    const input = {
      name: `c-${randomBytes(4).toString('hex')}`,
      provider: 'other',
      kubeconfig: config,
      inCluster: false,
      namespaces: [],
      renewToken: false,
    };
    const { id: cluster } = await here.clusters.ask('register', { input });
    await here.clusters.ask('sync', { id: cluster });
    const { id: workloadId } = await here.workload(name);
    const made = await here.tethers.ask('create', {
      workloadId,
      containerPort: 7000,
      label: null,
      wake: true,
      ...tetherSettings({}),
    });
    const { local_port: port } = await here.tethers.ask('activate', { id: made.tether_id });
    return { id: made.tether_id, port, cluster };
  }

  it('wake a sleeping workload, and record its use', async () => {
    await box.create('Deployment', server('one', 1));
    await podsOf(box, 'one').ready(1);
    const here = await cloud(tempDir(), createVault(randomBytes(32)), ownPorts(10));
    const { id, port } = await tethered(here, 'one');
    const workload = await here.workload('one');
    expect(workload.last_activity_at).toBeNull();
    await here.workloads.ask('sleep', { id: workload.id, by: 'request', holdMs: null });
    const names = await Promise.all([1, 2, 3].map(() => answer(port, 'name\n')));
    expect(new Set(names).size).toBe(1);
    expect((await here.workload('one')).last_activity_at).not.toBeNull();
    await eventually(() => here.tether(id).connections === 0);
    expect(here.tether(id)).toMatchObject({
      bytes_in: 15,
      bytes_out: names.join('').length,
      last_error: null,
      previous_port: null,
    });
  }, 60_000);

  it('lose their connections when it is put to sleep, and wake it with the next one', async () => {
    await box.create('Deployment', server('two', 1));
    await podsOf(box, 'two').ready(1);
    const here = await cloud(tempDir(), createVault(randomBytes(32)), ownPorts(10));
    const { port } = await tethered(here, 'two');
    const open = client(port, 'stay\n');
    const before = await open.until((text) => text.endsWith('\n'));
    await here.workloads.ask('sleep', { id: (await here.workload('two')).id, by: 'request', holdMs: null });
    expect(await open.ended).toMatch(/^(end|ECONNRESET)$/);
    const after = await answer(port, 'name\n');
    expect(after).toContain('two-');
    expect(after).not.toBe(before);
  }, 60_000);

  it('serve on the same port after a restart', async () => {
    const folder = tempDir();
    const key = createVault(randomBytes(32));
    const ports = ownPorts(10);
    const before = await cloud(folder, key, ports);
    const { id, port } = await tethered(before, 'three');
    expect(await answer(port, 'name\n')).toContain('three-');
    await before.stop();
    const after = await cloud(folder, key, ports);
    await after.tethers.ask('boot', {});
    expect(after.tether(id)).toMatchObject({ state: 'active', local_port: port });
    expect(await answer(port, 'name\n')).toContain('three-');
  }, 60_000);

  it('continue with the new credentials when those of their cluster are renewed', async () => {
    const { namespace } = box;
    const [first, second] = [await serviceAccount(namespace, 'one'), await serviceAccount(namespace, 'two')];
    const here = await cloud(tempDir(), createVault(randomBytes(32)), ownPorts(10));
    const { id, port, cluster } = await tethered(here, 'three', kubeconfigFor(first.token, namespace));
    const open = client(port, 'stay\n');
    await open.until((text) => text.endsWith('\n'));
    const change = { name: null, provider: null, namespaces: null, renewToken: false };
    const renewed = { ...change, kubeconfig: kubeconfigFor(second.token, namespace) };
    await here.clusters.ask('change', { id: cluster, change: renewed });
    await first.end();
    const old = access(kubeconfigFor(first.token));
    const http = createKubeHttp(createClusterDialer(old, RULE), realTime);
    afterThisTest(() => http.close());
    await eventually(async () => {
      const failure = await http.call({ action: 'ask', path: '/version' }).catch((error: unknown) => error);
      return failure instanceof KubeError && failure.status.status === 401;
    });
    expect(await answer(port, 'name\n')).toContain('three-');
    open.socket.write('again\n');
    await open.until((text) => text.split('\n').length === 3);
    expect(here.tether(id)).toMatchObject({ state: 'active', local_port: port, last_error: null });
  }, 60_000);

  it('stay, with the name of their workload, when its namespace is no longer listed', async () => {
    const here = await cloud(tempDir(), createVault(randomBytes(32)), ownPorts(10));
    const { id, port, cluster } = await tethered(here, 'three');
    expect(await answer(port, 'name\n')).toContain('three-');
    await giveNamespaces(here, cluster, ['elsewhere']);
    await here.without('three');
    expect(await client(port).ended).toMatch(/^(end|ECONNRESET)$/);
    const tether = await eventually(() => here.tether(id).last_error && here.tether(id));
    expect(tether).toMatchObject({
      ...{ state: 'active', last_error: expect.stringContaining('there is no workload') },
      workload: { kind: 'Deployment', namespace: box.namespace, name: 'three' },
    });
    await giveNamespaces(here, cluster, [box.namespace]);
    await here.workload('three');
    expect(await answer(port, 'name\n')).toContain('three-');
  }, 60_000);

  it('are removed with their cluster', async () => {
    const here = await cloud(tempDir(), createVault(randomBytes(32)), ownPorts(10));
    const { id, port, cluster } = await tethered(here, 'three');
    const open = client(port, 'stay\n');
    await open.until((text) => text.endsWith('\n'));
    await here.clusters.ask('remove', { id: cluster });
    expect(await open.ended).toMatch(/^(end|close|ECONNRESET)$/);
    expect(await client(port).ended).toBe('ECONNREFUSED');
    expect(here.tether(id)).toBeUndefined();
  }, 60_000);
});
