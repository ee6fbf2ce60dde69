// The calls to a cluster from another thread: a client, the actor with the connections, and an API server.
import { describe, expect, it } from 'vitest';
import { createClusterClient } from '../../../src/actors/cloud/cluster_client.ts';
import { WatchGate } from '../../../src/actors/cloud/watch_gate.ts';
import { clusterActor } from '../../../src/actors/clusters/cluster.ts';
import {
  type KubeCluster,
  openKubeCluster,
  type WatchHandler,
  workloadsResource,
} from '../../../src/adapters/kube/kube_cluster.ts';
import { KubeError, kubeFailure, WireError } from '../../../src/adapters/kube/kube_errors.ts';
import { namespacesResource } from '../../../src/adapters/kube/namespaces.ts';
import { podsResource } from '../../../src/adapters/kube/pods.ts';
import { replicaSetsResource } from '../../../src/adapters/kube/replica_sets.ts';
import type { ObservedWorkload } from '../../../src/protocol/cloud.ts';
import type { ClusterProtocol } from '../../../src/protocol/cluster_calls.ts';
import type { ClusterAccess } from '../../../src/protocol/clusters.ts';
import { realTime, type World, world } from '../../kit/actors.ts';
import { ANY, doubleWith, eventually } from '../../kit/cloud.ts';
import { type Double, workload } from '../../kit/kube_double.ts';

const deployments = workloadsResource('Deployment');
const HELLO = { kind: 'Deployment', namespace: 'web', name: 'hello' } as const;

interface Linked {
  double: Double;
  here: World;
  client: KubeCluster;
  /** The actors with connections that are alive. */
  actors(): number;
}

async function linked(
  open = (access: ClusterAccess) => openKubeCluster(access, ANY, realTime),
): Promise<Linked> {
  const double = await doubleWith('hello');
  const here = world({ clock: realTime });
  here.node.family('cluster:', clusterActor, () => ({ open }));
  await here.stand('workloads');
  const client = createClusterClient({
    access: double.access,
    cluster: here.ref<ClusterProtocol>('cluster:one'),
    ensure: async () => null,
    clock: realTime,
    gate: new WatchGate(async () => undefined),
  });
  const actors = (): number =>
    here.node.read().actors.find(({ address }) => address === 'cluster:')?.actors ?? 0;
  return { double, here, client, actors };
}

/** A watch that writes down what it gets. */
function written(): { seen: string[]; handler: WatchHandler<ObservedWorkload> } {
  const seen: string[] = [];
  const onEvent: WatchHandler<ObservedWorkload>['onEvent'] = (event) => {
    seen.push(event === null ? 'a sign' : 'row' in event ? `${event.type} ${event.row.name}` : event.type);
  };
  return { seen, handler: { onOpen: () => seen.push('open'), onEvent } };
}

describe('a listing from another thread', () => {
  it('arrives whole, however many parts it takes', async () => {
    const { double, client } = await linked();
    for (let index = 0; index < 1_200; index += 1)
      double.put('Deployment', workload('web', `more-${index}`, index));
    const { rows, version } = await client.list(deployments);
    const direct = openKubeCluster(double.access, ANY, realTime);
    expect(rows).toEqual((await direct.list(deployments)).rows);
    expect(rows).toHaveLength(1_201);
    expect(version).toBe(await direct.currentVersion(deployments));
    await direct.close();
    await client.close();
  });

  it('of each collection has the rows of that collection', async () => {
    const { double, client } = await linked();
    const { namespaces } = double;
    const [seen] = (await client.list(deployments)).rows;
    expect(seen).toMatchObject({ ...HELLO, replicas: 3 });
    expect((await client.list(workloadsResource('StatefulSet'))).rows).toEqual([]);
    const listed = (await client.list(namespacesResource)).rows.map(({ name }) => name);
    expect(listed.sort()).toEqual([...namespaces].sort());
    const selected = { ...HELLO, selector: 'app=hello' };
    expect((await client.list(podsResource(selected))).rows.every(({ isOwn }) => isOwn)).toBe(true);
    expect((await client.list(replicaSetsResource(selected))).rows).toEqual([{ isCurrent: true }]);
    await client.close();
  });
});

describe('a watch from another thread', () => {
  it('reports events in the order of the cluster until the server ends it', async () => {
    const { double, client } = await linked();
    const { seen, handler } = written();
    const from = await client.currentVersion(deployments);
    const watched = client.watch(deployments, from, handler, new AbortController().signal);
    await eventually(() => seen.length === 1);
    for (const name of ['b', 'c', 'd']) double.put('Deployment', workload('web', name, 1));
    double.remove('Deployment', 'web', 'b');
    double.watches[0]?.bookmark();
    double.watches[0]?.end();
    await watched;
    expect(seen).toEqual(['open', 'changed b', 'changed c', 'changed d', 'deleted b', 'bookmark']);
    await client.close();
  });

  it('ends with the error that the server reports, after the events before it', async () => {
    const { double, client } = await linked();
    const { seen, handler } = written();
    const from = await client.currentVersion(deployments);
    const watched = client.watch(deployments, from, handler, new AbortController().signal);
    await eventually(() => seen.length === 1);
    double.put('Deployment', workload('web', 'b', 1));
    double.watches[0]?.error(410, 'Expired');
    const error = await watched.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(KubeError);
    expect(error).toMatchObject({
      action: expect.stringContaining('watch '),
      status: { status: 410, reason: 'Expired' },
    });
    expect(seen).toEqual(['open', 'changed b']);
    await client.close();
  });

  it('is ended at the server when its reader gives up, and nothing more is reported', async () => {
    const { double, client } = await linked();
    const { seen, handler } = written();
    const abort = new AbortController();
    const from = await client.currentVersion(deployments);
    const watched = client.watch(deployments, from, handler, abort.signal);
    await eventually(() => double.watches.length === 1 && seen.length === 1);
    abort.abort();
    await expect(watched).rejects.toSatisfy((error: unknown) => kubeFailure(error) !== null);
    await eventually(() => double.watches.length === 0);
    expect(seen).toEqual(['open']);
    await client.close();
  });

  it('that nobody wants any more before the thread is there is never made', async () => {
    const { double, client } = await linked();
    const abort = new AbortController();
    const watched = client.watch(deployments, '1', written().handler, abort.signal);
    abort.abort();
    await expect(watched).rejects.toMatchObject({ name: 'AbortError' });
    await client.version();
    expect(double.requests.map(({ path }) => path)).toEqual(['/version']);
    await client.close();
  });
});

describe('an error of a call from another thread', () => {
  it('is that of the cluster, with its status and the action', async () => {
    const { double, client } = await linked();
    double.denied.add('list deployments');
    const error = await client.list(deployments).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(KubeError);
    expect(error).toMatchObject({
      action: 'list deployments.apps in all namespaces',
      status: { status: 403 },
    });
    expect(kubeFailure(error)).toMatchObject({ code: 'cluster_denied' });
    await client.close();
  });

  it('is a WireError for an answer that is not from the API', async () => {
    const { double, client } = await linked();
    double.fault(() => true, { kind: 'raw', status: 200, headers: {}, body: '<html>' });
    await expect(client.version()).rejects.toBeInstanceOf(WireError);
    await client.close();
  });

  it('is cluster_unreachable for a cluster that is down, and a patch that does not hold is a 422', async () => {
    const { double, client } = await linked();
    const steps = [{ op: 'test', path: '/spec/replicas', value: 7 } as const];
    await expect(client.patchWorkload(HELLO, steps)).rejects.toMatchObject({ status: { status: 422 } });
    await double.stop();
    await expect(client.version()).rejects.toMatchObject({ code: 'cluster_unreachable' });
    await client.close();
  });
});

describe('the actor with the connections', () => {
  it('is opened again by the next call after a crash', async () => {
    let isBroken = true;
    const broken = new TypeError('x is not a function');
    const { here, client } = await linked((access) => {
      const cluster = openKubeCluster(access, ANY, realTime);
      return { ...cluster, version: () => (isBroken ? Promise.reject(broken) : cluster.version()) };
    });
    await expect(client.version()).rejects.toMatchObject({ code: 'cluster_unreachable' });
    expect(here.crashes.splice(0)).toMatchObject([{ address: 'cluster:one', error: broken }]);
    isBroken = false;
    await expect(client.version()).resolves.toMatch(/^v1/);
    await client.close();
  });

  it('ends with its client, whatever was under way, and is not started again', async () => {
    const { double, client, actors } = await linked();
    const { seen, handler } = written();
    const from = await client.currentVersion(deployments);
    const watched = client.watch(deployments, from, handler, new AbortController().signal);
    await eventually(() => seen.length === 1);
    expect(actors()).toBe(1);
    const ended = expect(watched).rejects.toSatisfy((error: unknown) => kubeFailure(error) !== null);
    const listed = client.list(deployments);
    const removed = expect(listed).rejects.toMatchObject({ code: 'cluster_unreachable' });
    await client.close();
    await ended;
    await removed;
    await eventually(() => double.watches.length === 0 && actors() === 0);
    await expect(client.version()).rejects.toMatchObject({ code: 'cluster_unreachable' });
    expect(actors()).toBe(0);
  });

  it('ends when the actor that reads the clusters has ended', async () => {
    const { double, here, client, actors } = await linked();
    const { seen, handler } = written();
    const from = await client.currentVersion(deployments);
    const watched = client.watch(deployments, from, handler, new AbortController().signal);
    await eventually(() => seen.length === 1);
    const ended = expect(watched).rejects.toSatisfy((error: unknown) => kubeFailure(error) !== null);
    await here.node.end('workloads');
    await ended;
    await eventually(() => double.watches.length === 0 && actors() === 0);
  });
});
