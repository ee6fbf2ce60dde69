// Bulk sleeps and wakes beside other requests, and with a list that may be late, over the double.
// docs/reference.md "Bulk sleep and wake".
import { describe, expect, it } from 'vitest';
import type { BulkChange } from '../../../src/protocol/cloud.ts';
import { newUlid } from '../../../src/protocol/ulid.ts';
import { ALL_WORKLOADS } from '../../../src/protocol/workload_selection.ts';
import { deferred } from '../../../src/runtime/deferred.ts';
import { CLOUD } from '../../../src/settings/cloud_limits.ts';
import { auditOf, type Cloud, cloud, doubleWith, eventually } from '../../kit/cloud.ts';
import { type Double, type Json, statusOf, workload } from '../../kit/kube_double.ts';

const change = (here: Cloud, to: BulkChange['to'], more: Partial<BulkChange> = {}) =>
  here.workloads.ask(
    'changeMany',
    { ...ALL_WORKLOADS, holdMs: null, isDryRun: false, operation: newUlid(Date.now()), to, ...more },
    { deadlineMs: CLOUD.scaleTimeoutMs },
  );
const idOf = (here: Cloud, name: string): string => here.find(`web/${name}`).id;
const sleep = (here: Cloud, name: string) =>
  here.workloads.ask('sleep', { id: idOf(here, name), by: 'request', holdMs: null });
const wake = (here: Cloud, name: string) =>
  here.workloads.ask('wake', { id: idOf(here, name), by: 'request', waitMs: null });
const count = (double: Double, name: string): number => double.get('Deployment', 'web', name).spec.replicas;
/** Earlier messages have been taken in. */
const areTaken = (here: Cloud) => here.workloads.ask('referenceOf', { id: here.list()[0].id });

type Results = Awaited<ReturnType<typeof change>>;
const outcomesOf = (results: Results): Json =>
  Object.fromEntries(results.map(({ name, outcome, replicas }) => [name, [outcome, replicas]]));

/** A cloud of these workloads, whose pods are Ready at once. */
async function cloudOf(...names: string[]) {
  const double = await doubleWith(...names);
  double.onPatched = (kind, { metadata: { namespace, name }, spec: { replicas } }) =>
    double.change(kind, namespace, name, (object) => {
      object.status = statusOf(replicas, replicas);
    });
  const here = await cloud();
  await here.add(double.kubeconfig);
  return { double, here };
}

/** The patches of these workloads are not answered before `release`; `begun` resolves when all have come. */
function hold(double: Double, names: string[]): { begun: () => Promise<unknown>; release: () => void } {
  const { promise: until, resolve: release } = deferred<void>();
  const isOf = (name: string) => (request: { method: string; path: string }) =>
    request.method === 'PATCH' && request.path.endsWith(`/${name}`);
  for (const name of names) double.fault(isOf(name), { kind: 'held', until });
  const seen = double.requests.length;
  const begun = () => eventually(() => names.every((name) => double.requests.slice(seen).some(isOf(name))));
  return { begun, release };
}

/** So many that some have to wait when the first ones are held. */
const NAMES = Array.from({ length: CLOUD.bulkLanes + 3 }, (_, index) => `w${index}`);
const [FIRST, REST] = [NAMES.slice(0, CLOUD.bulkLanes), NAMES.slice(CLOUD.bulkLanes)];
const each = (names: string[], outcome: unknown[]) =>
  Object.fromEntries(names.map((name) => [name, outcome]));

describe('a bulk change', () => {
  it.each(['asleep', 'awake'] as const)('to %s waits for the opposite change under way', async (to) => {
    const { double, here } = await cloudOf('one');
    if (to === 'asleep') await sleep(here, 'one');
    const { begun, release } = hold(double, ['one']);
    const first = to === 'asleep' ? wake(here, 'one') : sleep(here, 'one');
    await begun();
    const [made, checked] = [change(here, to), change(here, to, { isDryRun: true })];
    await areTaken(here);
    release();
    await first;
    const replicas = to === 'asleep' ? 0 : 3;
    expect(outcomesOf(await made)).toEqual({ one: ['changed', replicas] });
    // It comes after the change.
    expect(outcomesOf(await checked)).toEqual({ one: ['unchanged', replicas] });
    expect(count(double, 'one')).toBe(replicas);
    await here.until('web/one', (row) => row.replicas === replicas);
  });

  it('to awake ends an earlier one to asleep: no workload that it calls awake is put to sleep', async () => {
    const { double, here } = await cloudOf(...NAMES);
    const { begun, release } = hold(double, FIRST);
    const operation = newUlid(Date.now());
    const slept = change(here, 'asleep', { operation, asker: { who: 'token:ci', from: '192.0.2.7' } });
    await begun();
    const woken = change(here, 'awake');
    await areTaken(here);
    release();
    expect(outcomesOf(await woken)).toEqual({
      ...each(FIRST, ['changed', 3]),
      ...each(REST, ['unchanged', 3]),
    });
    const results = await slept;
    expect(outcomesOf(results)).toEqual({ ...each(FIRST, ['changed', 0]), ...each(REST, ['failed', null]) });
    expect(results.at(-1)).toMatchObject({
      code: 'workload_conflict',
      message: 'a later request was to wake it, and takes precedence',
    });
    expect(NAMES.map((name) => count(double, name))).toEqual(NAMES.map(() => 3));
    const told = await eventually(async () => {
      const of = ({ action, workload_id, operation_id }: Json) =>
        action && workload_id && operation_id === operation;
      const found = (await auditOf(here)).filter(of);
      return found.length >= NAMES.length && found;
    });
    expect(told.map(({ type, workload }: Json) => [type, workload]).sort()).toEqual([
      ...FIRST.map((name) => ['operation.done', name]),
      ...REST.map((name) => ['operation.failed', name]),
    ]);
  });

  it.each([
    ['asleep', 'wake', wake, 3],
    ['awake', 'sleep', sleep, 0],
  ] as const)(
    'to %s leaves a workload that it has not begun with to a later %s',
    async (to, _, ask, left) => {
      const { double, here } = await cloudOf(...NAMES);
      if (to === 'awake') await change(here, 'asleep');
      const { begun, release } = hold(double, FIRST);
      const many = change(here, to);
      await begun();
      const [one = '', ...others] = REST;
      expect(await ask(here, one)).toMatchObject({ replicas: left });
      release();
      const made = ['changed', to === 'asleep' ? 0 : 3];
      expect(outcomesOf(await many)).toEqual({
        ...each([...FIRST, ...others], made),
        [one]: ['failed', null],
      });
      expect(count(double, one)).toBe(left);
      // The next one is a later request in turn.
      expect(outcomesOf(await change(here, to))[one]).toEqual(made);
    },
  );

  it('makes its change when the last of the later requests wants the same', async () => {
    const { double, here } = await cloudOf(...NAMES);
    const { begun, release } = hold(double, FIRST);
    const many = change(here, 'asleep');
    await begun();
    const [one = ''] = REST;
    await wake(here, one);
    await sleep(here, one);
    release();
    expect(outcomesOf(await many)[one]).toEqual(['changed', 0]);
    expect(count(double, one)).toBe(0);
  });

  it.each([
    ['asleep', ['w1', 'w2', 'w3', 'w4']],
    ['being put to sleep', ['app', 'w1', 'w2', 'w3']],
  ])('leaves awake what a later wake of a workload needs that is %s', async (is, held) => {
    const { double, here } = await cloudOf('app', 'w1', 'w2', 'w3', 'w4', 'zdb');
    double.change('Deployment', 'web', 'app', ({ metadata }) => {
      metadata.annotations = { 'berth/after': 'zdb' };
    });
    await here.until('web/app', ({ after }) => after !== null);
    for (const name of ['app', 'zdb'])
      double.change('Deployment', 'web', name, (object) => {
        object.status = statusOf(3, 3);
      });
    await here.until('web/zdb', ({ ready_replicas }) => ready_replicas === 3);
    const { begun, release } = hold(double, held);
    const slept = change(here, 'asleep');
    await begun();
    if (is === 'asleep') await here.until('web/app', ({ replicas }) => replicas === 0);
    const woken = wake(here, 'app');
    if (is === 'asleep') await woken;
    await areTaken(here);
    release();
    expect(await woken).toEqual({ replicas: 3 });
    expect(outcomesOf(await slept)).toMatchObject({ app: ['changed', 0], zdb: ['failed', null] });
    expect([count(double, 'app'), count(double, 'zdb')]).toEqual([3, 3]);
  });

  it('does not wake the dependencies of a workload that a later request puts to sleep', async () => {
    const others = Array.from({ length: CLOUD.bulkPlaces }, (_, index) => `a${10 + index}`);
    const { double, here } = await cloudOf(...others, 'db', 'web');
    double.change('Deployment', 'web', 'web', ({ metadata }) => {
      metadata.annotations = { 'berth/after': 'db' };
    });
    await here.until('web/web', ({ after }) => after !== null);
    await change(here, 'asleep');
    const { begun, release } = hold(double, others.slice(0, CLOUD.bulkLanes));
    const woken = change(here, 'awake', { selector: `app in (${[...others, 'web'].join()})` });
    await begun();
    await sleep(here, 'web');
    release();
    expect(outcomesOf(await woken)).toEqual({ ...each(others, ['changed', 3]), web: ['failed', null] });
    expect([count(double, 'db'), count(double, 'web')]).toEqual([0, 0]);
  });

  it('decides by what a workload is when its turn comes', async () => {
    const { double, here } = await cloudOf(...NAMES);
    const [one = ''] = NAMES.slice(-1);
    await sleep(here, one);
    const others = Array.from({ length: CLOUD.bulkPlaces }, (_, index) => `v${10 + index}`);
    for (const name of others) double.put('Deployment', workload('web', name, 3));
    await eventually(() => others.every((name) => here.find(`web/${name}`)));
    const { begun, release } = hold(double, others.slice(0, CLOUD.bulkLanes));
    const many = change(here, 'asleep');
    await begun();
    double.change('Deployment', 'web', one, ({ spec }) => {
      spec.replicas = 2;
    });
    await here.until(`web/${one}`, ({ replicas }) => replicas === 2);
    release();
    expect(outcomesOf(await many)[one]).toEqual(['changed', 0]);
    expect(count(double, one)).toBe(0);
  });
});

describe('the list', () => {
  const scale = (double: Double, name: string, replicas: number): void =>
    double.change('Deployment', 'web', name, ({ spec }) => {
      spec.replicas = replicas;
    });
  const reads = ({ requests }: Double): number =>
    requests.filter(({ method, path }) => method === 'GET' && /deployments\/\w/.test(path)).length;

  it('is believed where it is watched', async () => {
    const { double, here } = await cloudOf(...NAMES);
    await change(here, 'asleep');
    const before = reads(double);
    expect(outcomesOf(await change(here, 'asleep'))).toEqual(each(NAMES, ['unchanged', 0]));
    expect(reads(double)).toBe(before);
  });

  it('is not believed where it may be late, and each workload is read', async () => {
    const double = await doubleWith('one', 'two');
    for (const plural of ['deployments', 'statefulsets']) double.denied.add(`watch ${plural}`);
    const here = await cloud();
    await here.add(double.kubeconfig);
    await here.until('web/one', ({ stale_since }) => stale_since !== null);
    await change(here, 'asleep');
    scale(double, 'one', 2);
    expect(here.find('web/one').replicas).toBe(0);
    expect(outcomesOf(await change(here, 'asleep', { isDryRun: true }))).toEqual({
      one: ['would_change', 2],
      two: ['unchanged', 0],
    });
    expect(outcomesOf(await change(here, 'asleep'))).toEqual({ one: ['changed', 0], two: ['unchanged', 0] });
    expect(count(double, 'one')).toBe(0);
    await change(here, 'awake');
    scale(double, 'one', 0);
    expect(here.find('web/one').replicas).toBe(2);
    expect(outcomesOf(await change(here, 'awake', { isDryRun: true }))).toEqual({
      one: ['would_change', 0],
      two: ['unchanged', 3],
    });
    expect(outcomesOf(await change(here, 'awake'))).toEqual({ one: ['changed', 2], two: ['unchanged', 3] });
    expect(count(double, 'one')).toBe(2);
  });
});
