// The dry run of docs/reference.md "Bulk sleep and wake": it changes nothing, and has the results of the change.
import { expect, it } from 'vitest';
import type { BulkChange } from '../../../src/protocol/cloud.ts';
import { ALL_WORKLOADS } from '../../../src/protocol/workload_selection.ts';
import { type Cloud, cloud, doubleWith } from '../../kit/cloud.ts';
import { type Double, type Json, workload } from '../../kit/kube_double.ts';
import { describeReal, kubeconfig, sandbox, sleeper } from '../../kit/kube_real.ts';

const change = { ...ALL_WORKLOADS, holdMs: null };

type Change = Partial<BulkChange> & Pick<BulkChange, 'to'>;

/** The results of a dry run and of the change after it, both by name. */
async function bothOf({ workloads }: Cloud, double: Double, all: Change) {
  const stored = () =>
    double.requests.filter(({ method, query }) => method === 'PATCH' && !query.has('dryRun'));
  const make = (isDryRun: boolean) => workloads.ask('changeMany', { ...change, ...all, isDryRun });
  const before = stored().length;
  const checked = await make(true);
  expect(stored().length).toBe(before);
  const made = await make(false);
  const byName = (results: typeof made) =>
    Object.fromEntries(results.map(({ name, outcome, code, message }) => [name, [outcome, code, message]]));
  return { checked: byName(checked), made: byName(made) };
}

const expectedOf = (made: Record<string, (string | null)[]>) =>
  Object.fromEntries(
    Object.entries(made).map(([name, [outcome, ...rest]]) => [
      name,
      [outcome === 'changed' ? 'would_change' : outcome, ...rest],
    ]),
  );

it('of a sleep has what Berth and the cluster would refuse', async () => {
  const double = await doubleWith('one', 'two', 'kept');
  double.put('Deployment', workload('kube-system', 'dns', 2));
  const persistentVolumeClaimRetentionPolicy = { whenScaled: 'Delete' };
  const spec = { persistentVolumeClaimRetentionPolicy, volumeClaimTemplates: [{}] };
  double.put('StatefulSet', workload('data', 'db', 2, { spec }));
  double.onAdmission = ({ metadata, spec }: Json) => {
    if (metadata.name === 'kept') spec.replicas = Math.max(1, spec.replicas);
  };
  const here = await cloud();
  await here.add(double.kubeconfig);
  await here.workloads.ask('sleep', { id: here.find('web/two').id, by: 'request', holdMs: null });
  const { checked, made } = await bothOf(here, double, { to: 'asleep' });
  expect(checked).toEqual({
    dns: ['failed', 'sleep_refused', expect.stringContaining('kube-system')],
    db: ['failed', 'sleep_refused', expect.stringContaining('delete its volumes')],
    kept: ['failed', 'workload_conflict', expect.stringMatching(/has 1 replica instead of 0$/)],
    one: ['would_change', null, null],
    two: ['unchanged', null, null],
  });
  expect(checked).toEqual(expectedOf(made));
});

it('says that the account must not change what it may read', async () => {
  const double = await doubleWith('one');
  double.denied.add('patch deployments');
  const here = await cloud();
  await here.add(double.kubeconfig);
  const { checked, made } = await bothOf(here, double, { to: 'asleep' });
  expect(checked).toEqual({ one: ['failed', 'cluster_denied', expect.any(String)] });
  expect(checked).toEqual(expectedOf(made));
});

it('of a wake has counts that are not believed, and counts all of its wakes against the quota', async () => {
  const double = await doubleWith('a', 'b', 'c', 'd');
  const here = await cloud({ wakesPerHour: 3 });
  await here.add(double.kubeconfig);
  await here.workloads.ask('changeMany', { ...change, to: 'asleep', isDryRun: false });
  double.change('Deployment', 'web', 'a', ({ metadata: { annotations } }) => {
    annotations['berth/sleep'] = annotations['berth/sleep'].replace('"replicas":3', '"replicas":5000');
  });
  const awake = { to: 'awake', subject: 'token:ci' } as const;
  const { checked } = await bothOf(here, double, { ...awake, selector: 'app in (a,b)' });
  expect(checked).toEqual({
    a: ['failed', 'wake_refused', expect.stringContaining('5000 replicas')],
    b: ['would_change', null, null],
  });
  const rest = await bothOf(here, double, { ...awake, selector: 'app in (c,d)' });
  expect(rest.checked).toEqual({ c: ['would_change', null, null], d: ['would_change', null, null] });
  expect(rest.checked).toEqual(expectedOf(rest.made));
  await here.workloads.ask('changeMany', { ...change, to: 'asleep', isDryRun: false });
  const over = await bothOf(here, double, { ...awake, selector: 'app in (c,d)' });
  expect(Object.values(over.checked).map(([, code]) => code)).toEqual(['quota_exceeded', 'quota_exceeded']);
  expect(over.checked).toEqual(expectedOf(over.made));
});

describeReal('at a real cluster', () => {
  const mine = sandbox();

  it('changes nothing', async () => {
    await mine.create('Deployment', sleeper('one', 1));
    const here = await cloud();
    await here.add(kubeconfig());
    const namespaces = [mine.namespace];
    const make = (to: 'asleep' | 'awake', isDryRun: boolean) =>
      here.workloads.ask('changeMany', { ...change, to, namespaces, isDryRun });
    const stored = async () => {
      const { metadata, spec } = await mine.get('Deployment', 'one');
      return [metadata.generation, metadata.annotations?.['berth/sleep'], spec.replicas];
    };
    const before = await stored();
    expect(await make('asleep', true)).toMatchObject([{ outcome: 'would_change', replicas: 1 }]);
    expect(await stored()).toEqual(before);
    expect(await make('asleep', false)).toMatchObject([{ outcome: 'changed', replicas: 0 }]);
    const asleep = await stored();
    expect(await make('awake', true)).toMatchObject([{ outcome: 'would_change', replicas: 0 }]);
    expect(await stored()).toEqual(asleep);
  });
});
