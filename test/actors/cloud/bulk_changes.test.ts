// docs/reference.md "Bulk sleep and wake", over the double with as many workloads as one request may have.
import { expect, it } from 'vitest';
import { BulkChanges } from '../../../src/actors/cloud/bulk_changes.ts';
import { RequestOrder } from '../../../src/actors/cloud/request_order.ts';
import { observe } from '../../../src/actors/cloud/workload_record.ts';
import { openKubeCluster } from '../../../src/adapters/kube/kube_cluster.ts';
import { NO_SUBJECT } from '../../../src/protocol/cloud_events.ts';
import { fail } from '../../../src/protocol/errors.ts';
import { newUlid } from '../../../src/protocol/ulid.ts';
import { ALL_WORKLOADS } from '../../../src/protocol/workload_selection.ts';
import { deferred } from '../../../src/runtime/deferred.ts';
import { CLOUD } from '../../../src/settings/cloud_limits.ts';
import { realTime } from '../../kit/actors.ts';
import { ANY, auditOf, type Cloud, cloud, doubleWith, eventually, giveNamespaces } from '../../kit/cloud.ts';
import { type Json, statusOf, workload } from '../../kit/kube_double.ts';
import { observedWorkload } from '../../kit/observed_workload.ts';

const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `w${1_000 + index}`);
const change = { ...ALL_WORKLOADS, holdMs: null, isDryRun: false };

const asker = { who: 'token:ci', from: '192.0.2.7' };
/** What the audit log has of each workload that the operation has changed or failed to change. */
async function told(here: Cloud, operation: string): Promise<Json[]> {
  // What has been sent to the journal before is on disk then, as it is before the end of an operation.
  await here.cloudEvents.ask('append', { events: [{ type: 'workload.asleep' }] });
  return (await auditOf(here)).filter(
    ({ action, operation_id, workload_id }: Json) => action && workload_id && operation_id === operation,
  );
}
const toldNames = async (here: Cloud, operation: string): Promise<string[]> =>
  (await told(here, operation)).map(({ workload }) => workload).sort();

it('500 workloads are put to sleep and woken in one request, and other calls to the cluster get through', async () => {
  const double = await doubleWith(...names(500));
  double.put('Deployment', workload('other', 'alone', 2));
  const here = await cloud();
  const clusterId = await here.add(double.kubeconfig);
  const many = here.workloads.ask(
    'changeMany',
    { ...change, to: 'asleep', namespaces: ['web'] },
    { deadlineMs: 120_000 },
  );
  const { id } = here.find('other/alone');
  // Beside the long queue: its own call waits for a few of the others at most.
  const alone = here.workloads.ask('sleep', { id, by: 'request', holdMs: null }).then(() => 'alone' as const);
  expect(await Promise.race([alone, many.then(() => 'many' as const)])).toBe('alone');
  const slept = await many;
  expect(new Set(slept.map(({ outcome }) => outcome))).toEqual(new Set(['changed']));
  expect(slept.map(({ name }) => name)).toEqual(names(500));
  expect(slept.every(({ replicas, clusterId: of }) => replicas === 0 && of === clusterId)).toBe(true);
  expect(double.get('Deployment', 'web', 'w1499').spec.replicas).toBe(0);
  const again = await here.workloads.ask('changeMany', { ...change, to: 'asleep', clusterId });
  expect(new Set(again.map(({ outcome }) => outcome))).toEqual(new Set(['unchanged']));
  const woken = await here.workloads.ask(
    'changeMany',
    { ...change, to: 'awake', selector: 'app in (w1000,w1001,alone)' },
    { deadlineMs: 120_000 },
  );
  expect(woken.map(({ name, replicas }) => [name, replicas])).toEqual([
    ['alone', 2],
    ['w1000', 3],
    ['w1001', 3],
  ]);
}, 120_000);

it('a bulk change during which the lease was uncertain fails as a whole, and goes on when it is repeated', async () => {
  const double = await doubleWith(...names(12));
  const patches = () => double.requests.filter(({ method }) => method === 'PATCH').length;
  let allowed = Number.POSITIVE_INFINITY;
  const assertMayChange = (): void => {
    if (allowed === 0) throw fail('standing_by', 'the shared database does not confirm the lease');
    allowed -= 1;
  };
  const here = await cloud({ open: (access) => openKubeCluster(access, ANY, realTime, { assertMayChange }) });
  const clusterId = await here.add(double.kubeconfig);
  const operation = newUlid(Date.now());
  const sleepAll = () =>
    here.workloads.ask('changeMany', { ...change, to: 'asleep', clusterId, operation, asker });
  allowed = 5;
  await expect(sleepAll()).rejects.toMatchObject({ code: 'standing_by', message: /does not confirm/ });
  expect(patches()).toBe(5);
  expect(await told(here, operation)).toMatchObject(names(5).map(() => ({ result: 'ok' })));
  // However often changes are refused, the cluster counts as reachable.
  for (let more = 0; more < CLOUD.circuitBreaker.failureThreshold; more += 1)
    await expect(sleepAll()).rejects.toMatchObject({ code: 'standing_by', message: /lease$/ });
  allowed = 100;
  expect(new Set((await sleepAll()).map(({ outcome }) => outcome))).toEqual(new Set(['changed']));
  expect(patches()).toBe(12);
  expect(await toldNames(here, operation)).toEqual(names(12));
});

it('the audit log has each workload that a bulk change has changed or failed to change', async () => {
  const double = await doubleWith('one', 'two');
  double.put('Deployment', workload('kube-system', 'dns', 2));
  double.change('Deployment', 'web', 'one', ({ metadata }) => {
    metadata.annotations = { 'berth/after': 'two' };
  });
  double.onPatched = (kind, { metadata: { namespace, name }, spec: { replicas } }) =>
    double.change(kind, namespace, name, (object) => {
      object.status = statusOf(replicas, replicas);
    });
  const here = await cloud();
  const clusterId = await here.add(double.kubeconfig);
  await here.workloads.ask('sleep', { id: here.find('web/two').id, by: 'request', holdMs: null });
  const [slept, woken] = [newUlid(Date.now()), newUlid(Date.now())];
  const all = { ...change, clusterId, asker };
  await here.workloads.ask('changeMany', { ...all, to: 'asleep', operation: slept });
  await here.workloads.ask('changeMany', { ...all, selector: 'app=one', to: 'awake', operation: woken });
  const by = { who: 'token:ci', from: '192.0.2.7', cluster: 'test', kind: 'Deployment' };
  const isDone = { ...by, type: 'operation.done', result: 'ok', reason: null, namespace: 'web' };
  expect(await told(here, slept)).toMatchObject([
    { ...isDone, action: 'sleepWorkloads', workload: 'one', workload_id: here.find('web/one').id },
    {
      ...by,
      ...{ type: 'operation.failed', action: 'sleepWorkloads', result: 'sleep_refused' },
      ...{ namespace: 'kube-system', workload: 'dns', reason: expect.stringContaining('kube-system') },
    },
  ]);
  // With the workload that it was woken after.
  expect(await told(here, woken)).toMatchObject([
    { ...isDone, action: 'wakeWorkloads', workload: 'two' },
    { ...isDone, action: 'wakeWorkloads', workload: 'one' },
  ]);
});

it('the audit log has each workload of an interrupted bulk change once, also if it is repeated', async () => {
  const double = await doubleWith('one', 'two', 'three');
  const first = await cloud();
  const clusterId = await first.add(double.kubeconfig);
  const begin = ({ operations }: Cloud) =>
    operations.ask('begin', {
      request: { key: 'k', fingerprint: '', action: 'sleepWorkloads', ...asker, subject: NO_SUBJECT },
    });
  const { id: operation } = await begin(first);
  const sleep = ({ workloads }: Cloud, selector: string) =>
    workloads.ask('changeMany', { ...change, to: 'asleep', selector, clusterId, operation, asker });
  await sleep(first, 'app=one');
  await first.stop();
  // As if the cluster had taken a patch whose answer a kill prevented.
  const { annotations } = double.get('Deployment', 'web', 'one').metadata;
  double.change('Deployment', 'web', 'two', ({ metadata, spec }) => {
    metadata.annotations = annotations;
    spec.replicas = 0;
  });
  const next = await cloud({ folder: first.folder, vault: first.vault });
  await next.until('web/two', ({ replicas }) => replicas === 0);
  expect(await toldNames(next, operation)).toEqual(['one', 'two']);
  expect(await begin(next)).toMatchObject({ id: operation, run: true });
  expect((await sleep(next, 'app')).map(({ outcome }) => outcome)).toEqual(['changed', 'changed', 'changed']);
  expect(await toldNames(next, operation)).toEqual(['one', 'three', 'two']);
  expect(await told(next, operation)).toMatchObject(
    Array.from({ length: 3 }, () => ({ ...asker, type: 'operation.done', action: 'sleepWorkloads' })),
  );
});

it('the audit log has each change that was under way when its namespace was no longer listed, once', async () => {
  const double = await doubleWith(...names(4));
  const here = await cloud();
  const clusterId = await here.add(double.kubeconfig);
  const operation = newUlid(Date.now());
  const [answered, patched] = [
    deferred<void>(),
    () => double.requests.filter(({ method }) => method === 'PATCH'),
  ];
  double.fault(({ method }) => method === 'PATCH', { kind: 'held', until: answered.promise }, 4);
  const done = here.workloads.ask('changeMany', { ...change, to: 'asleep', clusterId, operation, asker });
  await eventually(() => patched().length === 4);
  await giveNamespaces(here, clusterId, ['elsewhere']);
  await eventually(() => here.find('web/w1000') === undefined);
  answered.resolve();
  expect(new Set((await done).map(({ outcome }) => outcome))).toEqual(new Set(['changed']));
  expect(await toldNames(here, operation)).toEqual(names(4));
});

it('a bulk change during which the server shuts down begins no more changes, and goes on when it is repeated', async () => {
  const double = await doubleWith(...names(30));
  const patched = () =>
    double.requests.flatMap(({ method, path }) => (method === 'PATCH' ? [path.split('?')[0]] : []));
  const first = await cloud();
  const clusterId = await first.add(double.kubeconfig);
  const operation = newUlid(Date.now());
  const sleepAll = (here: typeof first, of: string) =>
    here.workloads.ask('changeMany', { ...change, to: 'asleep', clusterId: of, operation });
  const released = deferred<void>();
  double.fault(({ method }) => method === 'PATCH', { kind: 'held', until: released.promise }, 4);
  const ended = sleepAll(first, clusterId);
  await eventually(() => patched().length === 4);
  await first.workloads.ask('endLongRequests', {});
  released.resolve();
  // The four under way are done.
  const message = 'the server ended before it had changed 26 of 30 workloads';
  await expect(ended).rejects.toMatchObject({ code: 'daemon_busy', message });
  expect(patched().length).toBe(4);
  await expect(sleepAll(first, clusterId)).rejects.toMatchObject({ code: 'daemon_busy' });
  const next = await cloud();
  const results = await sleepAll(next, await next.add(double.kubeconfig));
  expect(new Set(results.map(({ outcome }) => outcome))).toEqual(new Set(['changed']));
  expect(new Set(patched()).size).toBe(30);
  expect(patched().length).toBe(30);
});

it('a change that the cluster holds up delays no other, and each is in the audit log once', async () => {
  const [held = '', ...others] = names(40);
  const double = await doubleWith(held, ...others);
  const here = await cloud();
  const clusterId = await here.add(double.kubeconfig);
  const [operation, released] = [newUlid(Date.now()), deferred<void>()];
  const isHeld = ({ method, path }: { method: string; path: string }): boolean =>
    method === 'PATCH' && path.includes(held);
  double.fault(isHeld, { kind: 'held', until: released.promise });
  const done = here.workloads.ask('changeMany', { ...change, to: 'asleep', clusterId, operation, asker });
  await eventually(() => others.every((name) => here.find(`web/${name}`).replicas === 0));
  expect(here.find(`web/${held}`).replicas).toBe(3);
  released.resolve();
  expect((await done).map(({ name, outcome }) => [name, outcome])).toEqual(
    [held, ...others].map((name) => [name, 'changed']),
  );
  expect(await toldNames(here, operation)).toEqual([held, ...others]);
});

it('four workloads of a cluster are changed at once by all requests, then the one that has waited longest', async () => {
  const double = await doubleWith(...names(10));
  const here = await cloud();
  const clusterId = await here.add(double.kubeconfig);
  const held = new Map(names(10).map((name) => [name, deferred<void>()]));
  for (const [name, { promise: until }] of held)
    double.fault(({ method, path }) => method === 'PATCH' && path.includes(name), { kind: 'held', until });
  const begun = () =>
    double.requests.flatMap(({ method, path }) => (method === 'PATCH' ? (/w\d{4}/.exec(path) ?? []) : []));
  const sleep = (all: string[]) =>
    here.workloads.ask('changeMany', {
      ...change,
      ...{ to: 'asleep', clusterId, selector: `app in (${all.join()})` },
    });
  const done = [sleep(names(10).slice(0, 6)), sleep(names(10).slice(6))];
  const isUnderWay = (count: number) => eventually(() => begun().length === count);
  await isUnderWay(4);
  for (const [index, name] of ['w1002', 'w1000', 'w1005', 'w1003', 'w1001', 'w1007'].entries()) {
    held.get(name)?.resolve();
    await isUnderWay(5 + index);
    expect(begun().at(-1)).toBe(names(10)[4 + index]);
  }
  for (const { resolve } of held.values()) resolve();
  const outcomes = (await Promise.all(done)).flat().map(({ outcome }) => outcome);
  expect(outcomes).toEqual(names(10).map(() => 'changed'));
});

it('more than 1,000 workloads are refused before any is changed', async () => {
  const double = await doubleWith(...names(1_001));
  const here = await cloud();
  await here.add(double.kubeconfig);
  await expect(here.workloads.ask('changeMany', { ...change, to: 'asleep' })).rejects.toMatchObject({
    code: 'invalid_spec',
    message: 'this selects 1001 workloads, more than 1000 at once',
  });
  expect(double.requests.some(({ method }) => method === 'PATCH')).toBe(false);
});

it('selects without a copy of any workload, since a request looks at all of them in one turn', async () => {
  let copies = 0;
  const rows = Array.from(
    { length: 10 },
    () =>
      new Proxy(observe(undefined, 'one', observedWorkload('Deployment', 'a'), { self: 'here', now: 0 }), {
        ownKeys(row) {
          copies += 1;
          return Reflect.ownKeys(row);
        },
      }),
  );
  const seen = observedWorkload('Deployment', 'a');
  const owner = {
    rows: () => rows,
    get: () => rows[0],
    requests: new RequestOrder(),
    note: () => undefined,
    sleep: async () => seen,
    wake: async () => seen,
    isWaking: () => false,
    isSettled: () => true,
    rehearsal: () => async () => seen,
    onFailed: async () => undefined,
  };
  const select = (namespace: string) =>
    new BulkChanges(owner).run({ ...change, to: 'asleep', isDryRun: true, namespaces: [namespace] });
  expect([await select('other'), (await select('web')).length, copies]).toEqual([[], 10, 0]);
});
