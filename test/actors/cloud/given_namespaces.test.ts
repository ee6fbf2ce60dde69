// Clusters with `namespaces`: nothing outside of them is listed, watched or shown, whatever the account may do.
// docs/reference.md "Sync", "Clusters".
import { isDeepStrictEqual } from 'node:util';
import { expect, it } from 'vitest';
import { deferred } from '../../../src/runtime/deferred.ts';
import { afterThisTest } from '../../kit/actors.ts';
import {
  type Cloud,
  cloud,
  clusterInput,
  doubleWith,
  eventually,
  giveNamespaces,
  openCloudStore,
} from '../../kit/cloud.ts';
import { type Double, type Json, workload } from '../../kit/kube_double.ts';

const detail = (here: Cloud, id: string): Json => JSON.parse(here.views.cluster(id) ?? '');
const shown = (here: Cloud): string[] => here.list().map(({ namespace, name }) => `${namespace}/${name}`);
const shows = (here: Cloud, ...names: string[]) => eventually(() => `${shown(here)}` === `${names}`);
/** Waits until these namespaces are the scope of both kinds; null: all. */
const hasScope = (here: Cloud, id: string, namespaces: string[] | null) => {
  const scope = ['Deployment', 'StatefulSet'].map((kind) => ({ kind, namespaces }));
  return eventually(() => isDeepStrictEqual(detail(here, id).scope, scope));
};

/** `web/hello`, `data/store` and `data/web`, which the account may list in all namespaces. */
async function doubleWithData(): Promise<Double> {
  const double = await doubleWith('hello');
  double.put('StatefulSet', workload('data', 'store', 2));
  double.put('Deployment', workload('data', 'web', 1));
  return double;
}

/** A cloud with that cluster, synced, in `namespaces`. */
async function given(...namespaces: string[]): Promise<{ double: Double; here: Cloud; id: string }> {
  const double = await doubleWithData();
  const here = await cloud();
  const input = clusterInput({ kubeconfig: double.kubeconfig, namespaces });
  const { id } = await here.clusters.ask('register', { input });
  await here.clusters.ask('sync', { id });
  return { double, here, id };
}

it('only the given namespaces are listed and watched', async () => {
  const { double, here, id } = await given('web', 'nowhere');
  expect(shown(here)).toEqual(['web/hello']);
  await hasScope(here, id, ['nowhere', 'web']);
  await eventually(() => double.watches.length === 4);
  double.put('Deployment', workload('data', 'late', 1));
  double.put('Deployment', workload('web', 'late', 1));
  await shows(here, 'web/hello', 'web/late');
  const wide = /^\/apis\/apps\/v1\/(deployments|statefulsets)$/;
  expect(double.requests.filter(({ path }) => wide.test(path))).toEqual([]);
});

it('other namespaces count at once, also none, which stands for all', async () => {
  const { double, here, id } = await given('web');
  await giveNamespaces(here, id, ['data']);
  await shows(here, 'data/store', 'data/web');
  await hasScope(here, id, ['data']);
  await giveNamespaces(here, id, ['data', 'web']);
  await shows(here, 'data/store', 'data/web', 'web/hello');
  await giveNamespaces(here, id, []);
  double.put('Deployment', workload('other', 'new', 1));
  await shows(here, 'data/store', 'data/web', 'other/new', 'web/hello');
  await hasScope(here, id, null);
  expect(detail(here, id).namespaces).toEqual([]);
});

it('other namespaces count although the cluster does not answer, and are listed when it does', async () => {
  const { double, here, id } = await given('web', 'data');
  await double.stop();
  await giveNamespaces(here, id, ['data']);
  await shows(here, 'data/store', 'data/web');
  await giveNamespaces(here, id, ['web']);
  await shows(here);
  await double.start();
  await shows(here, 'web/hello');
  await hasScope(here, id, ['web']);
});

it('other workloads are dropped at once although the cluster is silent', async () => {
  const { double, here, id } = await given();
  const answers = deferred<void>();
  afterThisTest(() => answers.resolve());
  double.fault(() => true, { kind: 'held', until: answers.promise }, Number.POSITIVE_INFINITY);
  await giveNamespaces(here, id, ['web']);
  await shows(here, 'web/hello');
  await hasScope(here, id, ['web']);
});

it('what an earlier version has listed of other namespaces is gone after a restart', async () => {
  const { double, here, id } = await given();
  expect(shown(here)).toHaveLength(3);
  await here.stop();
  const { cloudStore, close } = openCloudStore(here.folder);
  const row = await cloudStore.cluster(id);
  if (row) await cloudStore.saveCluster({ ...row, namespaces: ['web'] });
  await close();
  const later = await cloud({ folder: here.folder, vault: here.vault });
  await shows(later, 'web/hello');
  await hasScope(later, id, ['web']);
  await eventually(() => double.watches.length === 2);
});
