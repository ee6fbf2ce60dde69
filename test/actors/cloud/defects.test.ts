// A defect in the code that handles a cluster's answers crashes the actor; it is never reported as the
// cluster's fault.
import { describe, expect, it } from 'vitest';
import { type KubeCluster, openKubeCluster } from '../../../src/adapters/kube/kube_cluster.ts';
import { realTime } from '../../kit/actors.ts';
import { ANY, type CloudOptions, cloud, clusterInput, doubleWith, eventually } from '../../kit/cloud.ts';

const defect = new TypeError('x is not a function');
const brokenRow = (): never => {
  throw defect;
};

async function cloudWith(
  changes: (cluster: KubeCluster) => Partial<KubeCluster>,
  options: CloudOptions = {},
) {
  const double = await doubleWith('hello');
  const here = await cloud({
    ...options,
    open: (access) => {
      const cluster = openKubeCluster(access, ANY, realTime);
      return { ...cluster, ...changes(cluster) };
    },
  });
  const { id } = await here.clusters.ask('register', {
    input: clusterInput({ kubeconfig: double.kubeconfig }),
  });
  return { double, here, id };
}

describe('a defect', () => {
  it('while a listing is parsed crashes the actor, and the sync fails with crashed', async () => {
    const { here, id } = await cloudWith(({ list }) => ({
      list: (resource, signal) => list({ ...resource, rowOf: brokenRow }, signal),
    }));
    await expect(here.clusters.ask('sync', { id })).rejects.toMatchObject({ code: 'crashed' });
    expect(here.world.crashes.splice(0)).toMatchObject([{ address: 'workloads', error: defect }]);
  });

  it('while the facts of a cluster are read crashes the actor', async () => {
    const { here, id } = await cloudWith(() => ({ version: async () => brokenRow() }));
    await expect(here.clusters.ask('sync', { id })).rejects.toMatchObject({ code: 'crashed' });
    expect(here.world.crashes.splice(0)).toMatchObject([{ address: 'workloads', error: defect }]);
  });

  it('in a watch crashes the actor, which restarts', async () => {
    let isBroken = true;
    const { double, here, id } = await cloudWith(({ watch }) => ({
      watch: (resource, from, onEvent, signal) =>
        watch(isBroken ? { ...resource, rowOf: brokenRow } : resource, from, onEvent, signal),
    }));
    await here.clusters.ask('sync', { id });
    await eventually(() => double.watches.length === 2);
    double.change('Deployment', 'web', 'hello', (object) => {
      object.spec.replicas = 5;
    });
    await eventually(() => here.world.crashes.length > 0);
    isBroken = false;
    expect(here.world.crashes.splice(0)).toMatchObject([{ address: 'workloads', error: defect }]);
    await here.until('web/hello', (row) => row.replicas === 5);
  });

  it('in a background write crashes the actor', async () => {
    const { here, id } = await cloudWith(() => ({}), {
      store: (store) => ({ ...store, saveFacts: async () => brokenRow() }),
    });
    await here.clusters.ask('sync', { id }).catch((error: unknown) => error);
    await eventually(() => here.world.crashes.length > 0);
    expect(here.world.crashes.splice(0)).toMatchObject([{ address: 'clusters', error: defect }]);
  });
});
