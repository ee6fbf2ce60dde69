// Workloads that are woken after others, over the wire-accurate double. docs/reference.md "Wake order".
import { describe, expect, it } from 'vitest';
import { ALL_WORKLOADS } from '../../../src/protocol/workload_selection.ts';
import { deferred } from '../../../src/runtime/deferred.ts';
import { CLOUD } from '../../../src/settings/cloud_limits.ts';
import type { TestClock } from '../../kit/actors.ts';
import { auditOf, type Cloud, type CloudOptions, cloud, doubleWith } from '../../kit/cloud.ts';
import { eventually } from '../../kit/eventually.ts';
import { type Double, type Json, type Seen, statusOf } from '../../kit/kube_double.ts';
import { advanceUntil, policyInput, settableClock } from '../../kit/policies.ts';

/** Sleeping workloads by name, each with its annotation; pods of all but `stuck` are Ready at once. */
async function asleep(
  names: Record<string, string | null>,
  stuck: readonly string[] = [],
  options: CloudOptions = {},
) {
  const double = await doubleWith(...Object.keys(names));
  const annotate = (name: string, after: string | null): void => {
    if (after === null) return;
    double.change('Deployment', 'web', name, (object: Json) => {
      object.metadata.annotations = { ...object.metadata.annotations, 'berth/after': after };
    });
  };
  for (const [name, after] of Object.entries(names)) annotate(name, after);
  double.onPatched = (kind, { metadata: { name }, spec: { replicas } }) =>
    double.change(kind, 'web', name, (object: Json) => {
      object.status = statusOf(replicas, stuck.includes(name) ? 0 : replicas);
    });
  const clock = settableClock('2030-01-07T12:00Z');
  const here = await cloud({ clock, sweepMs: 100_000_000_000, ...options });
  const clusterId = await here.add(double.kubeconfig);
  for (const name of Object.keys(names)) await sleep(here, name);
  for (const name of Object.keys(names)) await here.until(`web/${name}`, ({ state }) => state === 'asleep');
  double.requests.length = 0;
  return { double, here, clock, clusterId, annotate };
}

const wake = (here: Cloud, name: string, by: 'request' | 'connection' = 'request', subject?: string) =>
  here.workloads.ask(
    'wake',
    { id: here.find(`web/${name}`).id, by, waitMs: null, ...(subject && { subject }) },
    { deadlineMs: CLOUD.scaleTimeoutMs },
  );

const sleep = (here: Cloud, name: string, holdMs: number | null = null) =>
  here.workloads.ask('sleep', { id: here.find(`web/${name}`).id, by: 'request', holdMs });

/** Sleeps or wakes workloads by a bulk request. */
const changeMany = (here: Cloud, to: 'asleep' | 'awake', names: string[]) =>
  here.workloads.ask('changeMany', {
    ...{ ...ALL_WORKLOADS, selector: `app in (${names.join()})`, to, holdMs: null, isDryRun: false },
  });

/** A sleep that is in its cluster only after `land`. */
async function beginSleep({ here, double }: { here: Cloud; double: Double }, name: string, holdMs?: number) {
  const gate = deferred<void>();
  const isPatch = ({ method, path }: Seen) => method === 'PATCH' && path.endsWith(`/${name}`);
  const before = double.requests.filter(isPatch).length;
  double.fault(isPatch, { kind: 'held', until: gate.promise });
  const slept = sleep(here, name, holdMs ?? null);
  await eventually(() => double.requests.filter(isPatch).length > before);
  return {
    land: async () => {
      // What was asked before has begun.
      await here.workloads.ask('idle', {});
      gate.resolve();
      await slept;
    },
  };
}

/** Waits until a wake checks again and again whether a workload is ready. */
async function untilWaitedFor(clock: TestClock, { requests }: Double, name: string): Promise<void> {
  const { length } = requests;
  const reads = () =>
    requests.slice(length).filter(({ method, path }) => method === 'GET' && path.endsWith(`/${name}`));
  await advanceUntil(clock, 1_000, () => reads().length > 3 || undefined);
}

const makeReady = (double: Double, name: string): void =>
  double.change('Deployment', 'web', name, (object: Json) => {
    object.status = statusOf(object.spec.replicas);
  });

/** A wake that goes on; its outcome is its count, or the code of its error. */
function beginWake(here: Cloud, name: string, subject?: string): { outcome: unknown } {
  const begun: { outcome: unknown } = { outcome: undefined };
  void wake(here, name, 'request', subject).then(
    ({ replicas }) => Object.assign(begun, { outcome: replicas }),
    ({ code }: Json) => Object.assign(begun, { outcome: code }),
  );
  return begun;
}

/** The workloads that were woken, in their order. */
const woken = ({ requests }: Double): string[] =>
  requests.flatMap(({ method, path }) => (method === 'PATCH' ? [path.split('/').at(-1) ?? ''] : []));

const failures = async (here: Cloud): Promise<string[]> =>
  (await auditOf(here)).flatMap(({ type, workload, result, reason }: Json) =>
    type === 'workload.failed' ? [`${workload} ${result}: ${reason}`] : [],
  );

describe('a wake', () => {
  it.each(['request', 'connection'] as const)(
    'by %s first wakes the dependencies of the workload, and their dependencies before them',
    async (by) => {
      const { here, double } = await asleep({
        app: 'api, Deployment/cache',
        api: 'db',
        db: null,
        cache: null,
      });
      expect(await wake(here, 'app', by)).toEqual({ replicas: 3 });
      const order = woken(double);
      expect(order.toSorted()).toEqual(['api', 'app', 'cache', 'db']);
      expect(order.at(-1)).toBe('app');
      expect(order.indexOf('db')).toBeLessThan(order.indexOf('api'));
      expect(here.find('web/app').after).toEqual({ workloads: ['api', 'Deployment/cache'], faults: [] });
      expect(here.find('web/db').after).toBeNull();
    },
  );

  it('of many workloads wakes each of them once, in order', async () => {
    const { here, double, clusterId } = await asleep({ a1: 'db', a2: 'db', a3: 'a1', db: null });
    const selection = { clusterId, namespaces: null, states: null, selector: null };
    const results = await here.workloads.ask('changeMany', {
      ...{ ...selection, to: 'awake', holdMs: null, isDryRun: false },
    });
    expect(results.map(({ outcome }) => outcome)).toEqual(['changed', 'changed', 'changed', 'changed']);
    const order = woken(double);
    expect(order.toSorted()).toEqual(['a1', 'a2', 'a3', 'db']);
    expect([order[0], order.indexOf('a1') < order.indexOf('a3')]).toEqual(['db', true]);
  });

  it('of many workloads that waits for a dependency delays neither the rest of it nor another one', async () => {
    // More than one request begins at a time.
    const apps = Array.from({ length: CLOUD.bulkPlaces + 2 }, (_, index) => `app${10 + index}`);
    const rest = Array.from({ length: 8 }, (_, index) => `rest${index}`);
    const others = Array.from({ length: 8 }, (_, index) => `other${index}`);
    const names = { ...Object.fromEntries([...rest, ...others].map((name) => [name, null])), db: null };
    const { here, clock, double, clusterId } = await asleep(
      { ...Object.fromEntries(apps.map((name) => [name, 'db'])), ...names },
      ['db'],
    );
    const wakeAll = (all: string[]) => {
      const selection = { clusterId, namespaces: null, states: null, selector: `app in (${all.join()})` };
      const change = { ...selection, to: 'awake', holdMs: null, isDryRun: false } as const;
      return here.workloads.ask('changeMany', change, { deadlineMs: CLOUD.scaleTimeoutMs });
    };
    const begun = { isDone: false };
    const first = wakeAll([...apps, ...rest]).finally(() => Object.assign(begun, { isDone: true }));
    await eventually(() => rest.every((name) => woken(double).includes(name)));
    expect((await wakeAll(others)).map(({ outcome }) => outcome)).toEqual(others.map(() => 'changed'));
    expect(woken(double).toSorted()).toEqual([...others, ...rest, 'db'].toSorted());
    await advanceUntil(clock, 50_000, () => begun.isDone || undefined);
    expect((await first).map(({ name }) => name)).toEqual([...apps, ...rest]);
    expect(apps.every((name) => woken(double).includes(name))).toBe(true);
  });

  it('by a policy wakes in order what it has put to sleep', async () => {
    const { here, double, clock } = await asleep({ app: 'db', db: null });
    for (const name of ['app', 'db']) await wake(here, name);
    const nights = { selector: { namespaces: ['web'] }, windows: ['Mon-Fri 20:00-07:00'] };
    await here.policies.ask('put', { name: 'nights', input: policyInput(nights) });
    const areAt = (count: number) => (): true | undefined =>
      ['app', 'db'].every((name) => here.find(`web/${name}`).replicas === count) || undefined;
    clock.set('2030-01-07T20:00:01Z');
    await advanceUntil(clock, 30_000, areAt(0));
    double.requests.length = 0;
    clock.set('2030-01-08T07:00:01Z');
    await advanceUntil(clock, 30_000, areAt(3));
    expect(woken(double)).toEqual(['db', 'app']);
  });

  it('continues after a while without a dependency that does not become ready, and reports it once', async () => {
    const { here, clock, double } = await asleep({ app: 'db', other: 'db', db: null }, ['db']);
    const done: string[] = [];
    const { onPatched } = double;
    double.onPatched = (kind, object) => {
      onPatched?.(kind, object);
      clock.standStill(0.3);
    };
    void wake(here, 'app').then(() => done.push('app'));
    // Time stands still while the request is on its way.
    await eventually(() => woken(double).includes('db'));
    expect(woken(double)).toEqual(['db']);
    await here.until('web/db', ({ state }) => state === 'waking');
    await advanceUntil(clock, 50_000, () => (done.length > 0 ? true : undefined));
    expect(woken(double)).toEqual(['db', 'app']);
    // It is not waited for again at once.
    expect(await wake(here, 'other')).toEqual({ replicas: 3 });
    const told = await eventually(async () => {
      const found = await failures(here);
      return found.length > 0 && found;
    });
    expect(told).toEqual([
      expect.stringMatching(
        /^db ready_timeout: a wake has waited for it in vain: Deployment web\/db (has no Ready pod after|was not woken within) \d+ ms$/,
      ),
    ]);
  });

  it('wakes a dependency again that did not become ready a moment ago, without waiting for it', async () => {
    const { here, clock, double } = await asleep({ app: 'db', db: 'cache', cache: null }, ['db']);
    const first = beginWake(here, 'app');
    await eventually(() => woken(double).includes('db'));
    await advanceUntil(clock, 50_000, () => first.outcome || undefined);
    for (const name of ['app', 'db', 'cache']) await sleep(here, name);
    double.requests.length = 0;
    expect(await wake(here, 'app')).toEqual({ replicas: 3 });
    expect(woken(double)).toEqual(['cache', 'db', 'app']);
  });

  it('is not affected by the quota of whoever woke the workload a moment ago', async () => {
    const { here, double } = await asleep({ app: 'db', db: null, own: null }, [], { wakesPerHour: 1 });
    await wake(here, 'own', 'request', 'ci');
    await expect(wake(here, 'app', 'request', 'ci')).rejects.toMatchObject({ code: 'quota_exceeded' });
    expect(woken(double)).toEqual(['own']);
    await wake(here, 'app');
    expect(woken(double)).toEqual(['own', 'db', 'app']);
  });

  it('is not affected by the quota of whoever wakes the workload at the same time', async () => {
    const names = { app: 'db, gate', db: null, gate: null, own: null };
    const { here, clock, double } = await asleep(names, ['gate'], { wakesPerHour: 1 });
    for (const name of ['own', 'gate']) await wake(here, name, 'request', name === 'own' ? 'ci' : undefined);
    const limited = beginWake(here, 'app', 'ci');
    const unlimited = beginWake(here, 'app');
    await eventually(() => woken(double).includes('db'));
    await advanceUntil(clock, 50_000, () => (limited.outcome && unlimited.outcome) || undefined);
    expect(unlimited.outcome).toBe(3);
    expect(woken(double)).toEqual(['own', 'gate', 'db', 'app']);
  });

  it('is not delayed by a dependency that is unknown, invalid or the workload itself, nor by a cycle', async () => {
    const { here, annotate } = await asleep({ a: 'b', b: 'c, nowhere', c: 'a', own: 'own', bad: null });
    annotate('bad', '../../secrets');
    expect((await here.until('web/a', ({ after }) => after.faults.length > 0)).after.faults).toEqual([
      'it comes after itself: a, b, c, a',
    ]);
    expect(here.find('web/b').after.faults).toEqual([
      'there is no workload nowhere in its namespace',
      'it comes after itself: b, c, a, b',
    ]);
    expect(here.find('web/own').after.faults).toEqual(['it comes after itself: own, own']);
    const bad = await here.until('web/bad', ({ policy }) => policy !== null);
    expect(bad).toMatchObject({
      after: null,
      policy: { faults: [expect.stringMatching(/^berth\/after must/)] },
    });
    for (const name of ['a', 'own', 'bad']) expect(await wake(here, name)).toEqual({ replicas: 3 });
    expect(['b', 'c'].map((name) => here.find(`web/${name}`).replicas)).toEqual([3, 3]);
  });

  it('shows when a dependency begins to exist, and when it is deleted', async () => {
    const { here, double } = await asleep({ app: 'db' });
    const faults = ['there is no workload db in its namespace'];
    expect(here.find('web/app').after.faults).toEqual(faults);
    double.put('StatefulSet', {
      ...double.get('Deployment', 'web', 'app'),
      metadata: { name: 'db', namespace: 'web' },
    });
    await here.until('web/app', ({ after }) => after.faults.length === 0);
    double.remove('StatefulSet', 'web', 'db');
    await here.until('web/app', ({ after }) => after.faults.length === 1);
  });

  it('that waits is cancelled by a sleep at once', async () => {
    const { here, double } = await asleep({ app: 'db', db: null }, ['db']);
    const begun = beginWake(here, 'app');
    await here.until('web/db', ({ state }) => state === 'waking');
    expect(await sleep(here, 'app')).toMatchObject({ replicas: 0 });
    // Time stands still, and with it the wait for the dependency.
    await eventually(() => begun.outcome !== undefined);
    expect(begun.outcome).toBe('workload_conflict');
    expect(woken(double)).toEqual(['db']);
    await sleep(here, 'db');
  });

  it('that waits is cancelled by a sleep of all workloads, too', async () => {
    const { here, double, clusterId } = await asleep({ app: 'db', db: null }, ['db']);
    const begun = beginWake(here, 'app');
    await here.until('web/db', ({ state }) => state === 'waking');
    const change = { ...ALL_WORKLOADS, holdMs: null, isDryRun: false, to: 'asleep', clusterId } as const;
    const results = await here.workloads.ask('changeMany', change);
    expect(results.map(({ name, outcome }) => [name, outcome])).toEqual([
      ['app', 'changed'],
      ['db', 'changed'],
    ]);
    await eventually(() => begun.outcome !== undefined);
    expect(begun.outcome).toBe('workload_conflict');
    expect(double.get('Deployment', 'web', 'app').spec.replicas).toBe(0);
    const again = await here.workloads.ask('changeMany', change);
    expect(again.map(({ outcome }) => outcome)).toEqual(['unchanged', 'unchanged']);
  });

  it('that waits is not made when the server shuts down', async () => {
    const { here, double } = await asleep({ app: 'api', api: 'db', db: null }, ['db']);
    const begun = beginWake(here, 'app');
    await here.until('web/db', ({ state }) => state === 'waking');
    await here.workloads.ask('endLongRequests', {});
    await eventually(() => begun.outcome !== undefined);
    expect([begun.outcome, woken(double)]).toEqual(['daemon_busy', ['db']]);
  });

  it.each([
    ['is awake', 'db', ['cache', 'db']],
    ['waits for its own', 'cache', ['cache']],
  ])('no longer waits for a dependency that is put to sleep while it %s', async (_, stuck, begun) => {
    const { here, double } = await asleep({ app: 'db', db: 'cache', cache: null }, [stuck]);
    const app = beginWake(here, 'app');
    await here.until(`web/${stuck}`, ({ state }) => state === 'waking');
    await sleep(here, 'db');
    await eventually(() => app.outcome !== undefined);
    expect(app.outcome).toBe(3);
    expect(woken(double)).toEqual([...begun, ...(stuck === 'db' ? ['db'] : []), 'app']);
    expect(here.find('web/db').replicas).toBe(0);
    // Nothing is wrong with a workload that was put to sleep.
    expect(await failures(here)).toEqual([]);
    await sleep(here, 'cache');
  });

  it.each([
    ['one by one', (here: Cloud) => sleep(here, 'app').then(() => sleep(here, 'db'))],
    ['all at once', (here: Cloud) => changeMany(here, 'asleep', ['app', 'db'])],
  ])('waits for a dependency as ever after both were put to sleep %s during a wake', async (_, sleepBoth) => {
    const { here, clock, double } = await asleep({ app: 'db', db: null }, ['db']);
    const first = changeMany(here, 'awake', ['app', 'db']);
    await here.until('web/db', ({ state }) => state === 'waking');
    await untilWaitedFor(clock, double, 'db');
    await sleepBoth(here);
    expect((await first).map(({ code }) => code)).toEqual(['workload_conflict', null]);
    double.requests.length = 0;
    const second = beginWake(here, 'app');
    await eventually(() => woken(double).includes('db'));
    await untilWaitedFor(clock, double, 'db');
    expect(woken(double)).toEqual(['db']);
    makeReady(double, 'db');
    await advanceUntil(clock, 1_000, () => second.outcome || undefined);
    expect([second.outcome, woken(double)]).toEqual([3, ['db', 'app']]);
    expect(await failures(here)).toEqual([]);
  });

  it('waits for a dependency as ever after that was scaled to 0 outside of Berth during a wake', async () => {
    const { here, clock, double } = await asleep({ app: 'db', other: 'db', db: null }, ['db']);
    const app = beginWake(here, 'app');
    await here.until('web/db', ({ state }) => state === 'waking');
    await untilWaitedFor(clock, double, 'db');
    double.change('Deployment', 'web', 'db', (object: Json) => {
      Object.assign(object, { spec: { ...object.spec, replicas: 0 }, status: statusOf(0) });
    });
    await advanceUntil(clock, 1_000, () => app.outcome || undefined);
    double.requests.length = 0;
    const other = beginWake(here, 'other');
    await eventually(() => woken(double).includes('db'));
    await untilWaitedFor(clock, double, 'db');
    expect(woken(double)).toEqual(['db']);
    makeReady(double, 'db');
    await advanceUntil(clock, 1_000, () => other.outcome || undefined);
    expect(await failures(here)).toEqual([]);
  });

  it('does not join the wait of an earlier one for a dependency whose sleep was requested between', async () => {
    const all = await asleep({ app: 'db', other: 'db', db: null }, ['db']);
    const { here, clock, double } = all;
    const app = beginWake(here, 'app');
    await here.until('web/db', ({ state }) => state === 'waking');
    const { land } = await beginSleep(all, 'db');
    const other = beginWake(here, 'other');
    await land();
    await eventually(() => app.outcome !== undefined);
    await untilWaitedFor(clock, double, 'db');
    expect(woken(double).toSorted()).toEqual(['app', 'db', 'db', 'db']);
    makeReady(double, 'db');
    await advanceUntil(clock, 1_000, () => other.outcome || undefined);
    expect(woken(double).at(-1)).toBe('other');
  });

  it('of many waits for a dependency that an earlier wake of one of them does not wait for any more', async () => {
    const { clock, double, here } = await asleep({ app: 'db', db: null }, ['db']);
    const first = beginWake(here, 'app');
    await untilWaitedFor(clock, double, 'db');
    let results: unknown = null;
    const slept = sleep(here, 'db');
    const asked = changeMany(here, 'awake', ['app', 'db']).then((all) => {
      results = all;
    });
    await slept;
    await eventually(() => first.outcome !== undefined);
    await untilWaitedFor(clock, double, 'db');
    expect(results).toBeNull();
    makeReady(double, 'db');
    await advanceUntil(clock, 1_000, () => results ?? undefined);
    await asked;
  });

  it('of an awake workload waits for what another wake waits for', async () => {
    const stuck: string[] = [];
    const { clock, double, here } = await asleep({ one: 'db', two: 'db', db: null }, stuck);
    for (const name of ['one', 'two']) await wake(here, name);
    stuck.push('db');
    await sleep(here, 'db');
    await here.until('web/db', ({ state }) => state === 'asleep');
    const first = beginWake(here, 'one');
    await untilWaitedFor(clock, double, 'db');
    const second = beginWake(here, 'two');
    await here.workloads.ask('idle', {});
    expect([first.outcome, second.outcome]).toEqual([undefined, undefined]);
    makeReady(double, 'db');
    await advanceUntil(clock, 1_000, () => second.outcome !== undefined || undefined);
    expect([first.outcome, second.outcome]).toEqual([3, 3]);
  });

  it('wakes a dependency whose sleep is under way', async () => {
    const all = await asleep({ app: 'db', db: null });
    const { here, double } = all;
    await wake(here, 'db');
    await here.until('web/db', ({ state }) => state === 'awake');
    double.requests.length = 0;
    const { land } = await beginSleep(all, 'db');
    const app = beginWake(here, 'app');
    await land();
    await eventually(() => app.outcome !== undefined);
    expect([app.outcome, woken(double)]).toEqual([3, ['db', 'db', 'app']]);
    expect(double.get('Deployment', 'web', 'db').spec.replicas).toBe(3);
  });

  it('wakes the dependencies of a workload whose own sleep is under way', async () => {
    const all = await asleep({ app: 'db', db: null });
    const { here, double } = all;
    await wake(here, 'app');
    await sleep(here, 'db');
    double.requests.length = 0;
    const { land } = await beginSleep(all, 'app');
    const app = beginWake(here, 'app');
    await land();
    await eventually(() => app.outcome !== undefined);
    expect([app.outcome, woken(double).toSorted()]).toEqual([3, ['app', 'app', 'db']]);
    expect(woken(double).at(-1)).toBe('app');
  });

  it.each([
    ['alone', wake],
    ['in bulk', (here: Cloud, name: string) => changeMany(here, 'awake', [name])],
  ] as const)(
    'wakes what an awake workload needs and a sleep of many reached before it (%s)',
    async (_, ask) => {
      const all = await asleep({ app: 'db', db: null });
      const { here, double } = all;
      await wake(here, 'app');
      await here.until('web/db', ({ state }) => state === 'awake');
      double.requests.length = 0;
      const { land } = await beginSleep(all, 'db');
      const asked = ask(here, 'app');
      await land();
      await asked;
      expect(woken(double)).toEqual(['db', 'db']);
      expect(['app', 'db'].map((name) => double.get('Deployment', 'web', name).spec.replicas)).toEqual([
        3, 3,
      ]);
    },
  );

  it.each([
    ['awake', ['db']],
    ['asleep', ['db', 'top']],
  ])('wakes what is needed by an awake workload that an %s one needs', async (state, names) => {
    const { here, double } = await asleep({ top: 'mid', mid: 'db', db: null });
    await wake(here, 'top');
    await here.until('web/mid', (row) => row.state === 'awake');
    await sleep(here, 'db');
    if (state === 'asleep') await sleep(here, 'top');
    double.requests.length = 0;
    await wake(here, 'top');
    expect(woken(double)).toEqual(names);
  });

  it('looks once through each of many awake workloads that all need each other', async () => {
    const all = Array.from({ length: 12 }, (_, index) => `all${index}`);
    const names = Object.fromEntries(all.map((name) => [name, [...all, 'db'].join()]));
    const { here, double } = await asleep({ ...names, db: null });
    await wake(here, 'all0');
    await here.until('web/all11', ({ state }) => state === 'awake');
    await sleep(here, 'db');
    double.requests.length = 0;
    expect(await wake(here, 'all0')).toEqual({ replicas: 3 });
    expect(woken(double)).toEqual(['db']);
  });

  it('by a connection leaves a workload asleep whose sleep with a hold is under way', async () => {
    const all = await asleep({ app: 'db', db: null });
    const { here, double } = all;
    await wake(here, 'db');
    await here.until('web/db', ({ state }) => state === 'awake');
    const { land } = await beginSleep(all, 'db', 60_000);
    const refused = wake(here, 'db', 'connection').catch(({ code }: Json) => code);
    const woke = wake(here, 'app', 'connection');
    await land();
    expect([await refused, await woke]).toEqual(['wake_refused', { replicas: 3 }]);
    expect(double.get('Deployment', 'web', 'db').spec.replicas).toBe(0);
  });

  it('by a request wakes a dependency under a hold also while a connection wakes the workload', async () => {
    const { here, double, clock } = await asleep({ front: 'web', web: 'db', db: null }, ['web']);
    await wake(here, 'db');
    await sleep(here, 'db', 300_000);
    await here.until('web/db', ({ state }) => state === 'asleep');
    double.requests.length = 0;
    const connected = wake(here, 'front', 'connection');
    await here.until('web/web', ({ state }) => state === 'waking');
    expect(woken(double)).toEqual(['web']);
    const asked = beginWake(here, 'front');
    await eventually(() => woken(double).includes('db'));
    makeReady(double, 'web');
    await advanceUntil(clock, 1_000, () => asked.outcome || undefined);
    expect([asked.outcome, await connected]).toEqual([3, { replicas: 3 }]);
    expect(woken(double).filter((name) => name !== 'front')).toEqual(['web', 'db']);
    expect(double.get('Deployment', 'web', 'db').spec.replicas).toBe(3);
  });
});

/** Workloads that are woken one after the next; the last one sleeps, and those between are not ready. */
async function unreadyChain(names: string[], front: 'awake' | 'asleep') {
  const chain = names.map((name, index): [string, string | null] => [name, names[index + 1] ?? null]);
  const [first = '', last = ''] = [names[0], names.at(-1)];
  const between = names.slice(1, -1);
  /** Add to these what is not to become ready. */
  const stuck: string[] = [];
  const all = await asleep(Object.fromEntries(chain), stuck);
  const { here, double } = all;
  await wake(here, first);
  for (const name of names) await here.until(`web/${name}`, ({ state }) => state === 'awake');
  await sleep(here, last);
  if (front === 'asleep') await sleep(here, first);
  for (const name of between) makeUnready(double, name);
  for (const name of between) await here.until(`web/${name}`, (row) => row.ready_replicas === 0);
  double.requests.length = 0;
  return { ...all, stuck };
}

const makeUnready = (double: Double, name: string): void =>
  double.change('Deployment', 'web', name, (object: Json) => {
    object.status = statusOf(object.spec.replicas, 0);
  });

describe('what an awake dependency needs that is not ready', () => {
  const wakeMany = (here: Cloud, name: string) =>
    changeMany(here, 'awake', [name]).then(([result]) => ({ replicas: result?.replicas }));
  const connect = (here: Cloud, name: string) => wake(here, name, 'connection');

  it.each([
    ['a request', 'awake', ['front', 'web', 'db'], wake],
    ['a request', 'asleep', ['front', 'web', 'db'], wake],
    ['a request', 'awake', ['front', 'web', 'api', 'queue', 'db'], wake],
    ['a bulk request', 'awake', ['front', 'web', 'db'], wakeMany],
    ['a bulk request', 'asleep', ['front', 'web', 'api', 'db'], wakeMany],
    ['a connection', 'asleep', ['front', 'web', 'api', 'db'], connect],
  ] as const)(
    'is woken by %s for an %s workload of %j, and the wait goes on',
    async (_, state, names, ask) => {
      const { here, double, clock } = await unreadyChain([...names], state);
      const begun: { replicas?: unknown } = {};
      void ask(here, 'front').then((result) => Object.assign(begun, result));
      await eventually(() => woken(double).includes('db'));
      await untilWaitedFor(clock, double, 'web');
      expect([woken(double), begun]).toEqual([['db'], {}]);
      for (const name of names.slice(1, -1)) makeReady(double, name);
      await advanceUntil(clock, 1_000, () => 'replicas' in begun || undefined);
      expect(begun.replicas).toBe(3);
      expect(woken(double)).toEqual(state === 'asleep' ? ['db', 'front'] : ['db']);
      expect(await failures(here)).toEqual([]);
    },
  );

  it('is woken again after a wake has waited for that dependency in vain', async () => {
    const { here, double, clock } = await unreadyChain(['front', 'web', 'db'], 'asleep');
    const first = beginWake(here, 'front');
    await advanceUntil(clock, 50_000, () => first.outcome || undefined);
    const told = await eventually(async () => {
      const found = await failures(here);
      return found.length > 0 && found;
    });
    expect(told).toEqual([expect.stringMatching(/^web ready_timeout: .* has no Ready pod after \d+ ms$/)]);
    for (const name of ['db', 'front']) await sleep(here, name);
    double.requests.length = 0;
    // The dependency itself is not waited for again at once.
    expect(await wake(here, 'front')).toEqual({ replicas: 3 });
    expect(woken(double)).toEqual(['db', 'front']);
  });

  it('is woken, and waited for, when an earlier wake already waits for that dependency', async () => {
    const { here, double, clock, stuck } = await unreadyChain(['front', 'web', 'db'], 'asleep');
    await wake(here, 'db');
    await here.until('web/db', ({ state }) => state === 'awake');
    const first = beginWake(here, 'front');
    await untilWaitedFor(clock, double, 'web');
    await sleep(here, 'db');
    stuck.push('db');
    double.requests.length = 0;
    const second = beginWake(here, 'front');
    await eventually(() => woken(double).includes('db'));
    await here.until('web/db', ({ state }) => state === 'waking');
    makeReady(double, 'web');
    await advanceUntil(clock, 1_000, () => first.outcome || undefined);
    await untilWaitedFor(clock, double, 'db');
    expect([first.outcome, second.outcome]).toEqual([3, undefined]);
    makeReady(double, 'db');
    await advanceUntil(clock, 1_000, () => second.outcome || undefined);
    expect([second.outcome, await failures(here)]).toEqual([3, []]);
  });

  it('is woken once, and counts once for the quota, on several ways to it', async () => {
    const names = { front: 'web, api', web: 'db, api', api: 'db, web', db: null, other: null };
    const { here, double, clock } = await asleep(names, [], { wakesPerHour: 2 });
    for (const name of ['web', 'api']) await wake(here, name);
    for (const name of ['web', 'api']) await here.until(`web/${name}`, ({ state }) => state === 'awake');
    await sleep(here, 'db');
    for (const name of ['web', 'api']) makeUnready(double, name);
    for (const name of ['web', 'api']) await here.until(`web/${name}`, (row) => row.ready_replicas === 0);
    double.requests.length = 0;
    const front = beginWake(here, 'front', 'ci');
    await eventually(() => woken(double).includes('db'));
    for (const name of ['web', 'api']) makeReady(double, name);
    await advanceUntil(clock, 1_000, () => front.outcome || undefined);
    expect([front.outcome, woken(double)]).toEqual([3, ['db', 'front']]);
    await expect(wake(here, 'other', 'request', 'ci')).rejects.toMatchObject({ code: 'quota_exceeded' });
  });

  it('is no longer waited for once that dependency is put to sleep', async () => {
    const { here, double, stuck } = await unreadyChain(['front', 'web', 'db'], 'asleep');
    stuck.push('db');
    const front = beginWake(here, 'front');
    await here.until('web/db', ({ state }) => state === 'waking');
    await sleep(here, 'web');
    // Time stands still, and with it the wait for what it needs.
    await eventually(() => front.outcome !== undefined);
    expect([front.outcome, woken(double)]).toEqual([3, ['db', 'web', 'front']]);
    await sleep(here, 'db');
  });

  it('stays asleep when a connection needs an awake dependency that is ready', async () => {
    const { here, double } = await unreadyChain(['front', 'web', 'db'], 'asleep');
    makeReady(double, 'web');
    await here.until('web/web', (row) => row.ready_replicas > 0);
    expect(await connect(here, 'front')).toEqual({ replicas: 3 });
    expect(woken(double)).toEqual(['front']);
  });
});

describe('auto-sleep leaves awake', () => {
  const MINUTE = 60_000;

  /** `front` needs `web`, and `web` needs `db`, which has been idle for its whole timeout. */
  async function idleDb(front: 'awake' | 'asleep') {
    /** Add to these what is not to become ready. */
    const stuck: string[] = [];
    const all = await asleep({ front: 'web', web: 'db', db: null }, stuck);
    const { here, clock } = all;
    for (const name of front === 'awake' ? ['front'] : ['web']) await wake(here, name);
    for (const name of ['web', 'db']) await here.until(`web/${name}`, ({ state }) => state === 'awake');
    const { id } = here.find('web/db');
    await here.workloads.ask('autoSleep', { id, enabled: true, minutes: 1 });
    await clock.advance(MINUTE);
    const idle = async (): Promise<string[]> => (await here.workloads.ask('idle', {})).ids;
    expect(await idle()).toEqual([id]);
    return { ...all, stuck, id, idle };
  }

  it.each([
    ['a request for what needs it', 'awake', (here: Cloud) => wake(here, 'front')],
    ['a request for itself', 'awake', (here: Cloud) => wake(here, 'db')],
    ['a bulk request for what needs it', 'awake', (here: Cloud) => changeMany(here, 'awake', ['front'])],
    [
      'a connection to what needs it and sleeps',
      'asleep',
      (here: Cloud) => wake(here, 'front', 'connection'),
    ],
  ] as const)('a workload for its idle timeout after %s', async (_, front, ask) => {
    const { here, clock, id, idle } = await idleDb(front);
    await ask(here);
    await clock.advance(MINUTE - 1);
    expect(await idle()).toEqual([]);
    await clock.advance(1);
    expect(await idle()).toEqual([id]);
    // It was not connected to.
    expect(here.find('web/db').last_activity_at).toBeNull();
  });

  it('what a wake under way needs, and after it for its idle timeout', async () => {
    const { here, double, clock, id, idle } = await idleDb('asleep');
    const gate = deferred<void>();
    const isPatch = ({ method, path }: Seen) => method === 'PATCH' && path.endsWith('/front');
    double.requests.length = 0;
    double.fault(isPatch, { kind: 'held', until: gate.promise });
    const front = beginWake(here, 'front');
    await eventually(() => double.requests.some(isPatch));
    await clock.advance(MINUTE);
    expect(await idle()).toEqual([]);
    gate.resolve();
    await eventually(() => front.outcome !== undefined);
    expect([front.outcome, await idle()]).toEqual([3, []]);
    await clock.advance(MINUTE);
    expect(await idle()).toEqual([id]);
  });

  it('a workload whose wake began after the sweep, and its wake goes on', async () => {
    const { here, double, clock, stuck } = await idleDb('awake');
    const { id } = here.find('web/front');
    await here.workloads.ask('autoSleep', { id, enabled: true, minutes: 1 });
    stuck.push('web');
    await sleep(here, 'web');
    await here.until('web/web', ({ state }) => state === 'asleep');
    await clock.advance(MINUTE);
    const front = beginWake(here, 'front');
    await untilWaitedFor(clock, double, 'web');
    const swept = await here.workloads.ask('sleep', { id, by: 'idle', holdMs: null });
    await untilWaitedFor(clock, double, 'web');
    expect([swept.slept, front.outcome]).toEqual([false, undefined]);
    makeReady(double, 'web');
    await advanceUntil(clock, 1_000, () => front.outcome || undefined);
    expect(front.outcome).toBe(3);
  });
});
