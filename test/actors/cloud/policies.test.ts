// Policies and annotations over the wire-accurate double, with a clock that is turned.
// docs/reference.md "Policies".
import { describe, expect, it } from 'vitest';
import type { CloudStore } from '../../../src/adapters/storage/cloud_store.ts';
import { policyItem } from '../../../src/front/views/policy_json.ts';
import { NO_SUBJECT } from '../../../src/protocol/cloud_events.ts';
import { newUlid } from '../../../src/protocol/ulid.ts';
import { afterThisTest, type TestClock } from '../../kit/actors.ts';
import { type Cloud, cloud, clusterInput, doubleWith, eventually, openCloudStore } from '../../kit/cloud.ts';
import { type Double, type Json, kubeDouble, workload } from '../../kit/kube_double.ts';
import { advanceUntil, operationsOf, policyInput, settableClock } from '../../kit/policies.ts';

const NIGHTS = { selector: { namespaces: ['web'] }, windows: ['Mon-Fri 20:00-07:00'] };

const annotate = (double: Double, name: string, annotations: Record<string, string>): void =>
  double.change('Deployment', 'web', name, (object: Json) => {
    object.metadata.annotations = { ...object.metadata.annotations, ...annotations };
  });

/** Creates the Deployment web/hello, at `time` by the clock of the cluster. */
const createdAt = (double: Double, time: string): void => {
  const object = workload('web', 'hello', 1);
  object.metadata.creationTimestamp = time;
  double.put('Deployment', object);
};

/** 2030-01-07 is a Monday. */
async function ready(start: string, ...names: string[]) {
  const double = await doubleWith(...names);
  const clock = settableClock(start);
  // Only the tests sweep.
  const stores: CloudStore[] = [];
  const store = (one: CloudStore): CloudStore => {
    stores.push(one);
    return one;
  };
  const here = await cloud({ clock, sweepMs: 100_000_000_000, store });
  await here.add(double.kubeconfig);
  const put = (name: string, body: Parameters<typeof policyInput>[0]) =>
    here.policies.ask('put', { name, input: policyInput(body) });
  /** The ids of the workloads in the store. */
  const storedIds = async (): Promise<string[]> => {
    const ids: string[] = [];
    for (const one of stores)
      for (const { id } of await one.clusters())
        for await (const part of one.workloads(id)) ids.push(...part.map((row) => row.id));
    return ids;
  };
  return { double, clock, here, put, storedIds };
}

const isAt = (here: Cloud, name: string, replicas: number) => (): true | undefined =>
  here.find(name)?.replicas === replicas || undefined;

/** Lets time pass until `count` operations have ended, and resolves with them. */
const ended = (here: Cloud, clock: TestClock, count: number): Promise<string[]> =>
  advanceUntil(clock, 1_000, async () => {
    const ends = await operationsOf(here);
    return ends.length >= count ? ends : undefined;
  });

/** Nothing is due, which is looked at as the daemon does. */
async function expectNothingDue(here: Cloud): Promise<void> {
  expect((await here.workloads.ask('dueSwitches', {})).due).toEqual([]);
}

describe('a window', () => {
  it('puts to sleep at its start and wakes at its end, as operations of the policy', async () => {
    const { clock, here, put } = await ready('2030-01-07T19:00Z', 'hello');
    const report = await put('nights', NIGHTS);
    expect(report).toMatchObject({ selected: 1, decided: 1 });
    expect(here.find('web/hello')).toMatchObject({
      replicas: 3,
      policy: {
        schedule: 'policy:nights',
        next_switch: { at: '2030-01-07T20:00:00.000Z', to: 'asleep' },
      },
    });
    await clock.advance(3_600_000);
    await advanceUntil(clock, 1_000, isAt(here, 'web/hello', 0));
    expect(here.find('web/hello')).toMatchObject({
      sleep_reason: 'put to sleep by its schedule (policy:nights)',
    });
    await advanceUntil(clock, 1_000, () =>
      here.find('web/hello').policy.next_switch.at === '2030-01-08T07:00:00.000Z' ? true : undefined,
    );
    clock.set('2030-01-08T07:00:01Z');
    await advanceUntil(clock, 30_000, isAt(here, 'web/hello', 3));
    expect(here.find('web/hello').wake_reason).toBe('woken by its schedule (policy:nights)');
    expect(
      await advanceUntil(clock, 1_000, async () => {
        const ends = await operationsOf(here);
        return ends.length === 2 ? ends : undefined;
      }),
    ).toEqual(['policy:nights sleepWorkload hello ok', 'policy:nights wakeWorkload hello ok']);
  });

  it('wakes only what it has put to sleep, and leaves a workload awake that someone wakes meanwhile', async () => {
    const { clock, here, put } = await ready('2030-01-07T19:00Z', 'hello', 'other');
    await here.workloads.ask('sleep', { id: here.find('web/other').id, by: 'request', holdMs: null });
    await put('nights', NIGHTS);
    clock.set('2030-01-07T20:00:01Z');
    await advanceUntil(clock, 30_000, isAt(here, 'web/hello', 0));
    await ended(here, clock, 1);
    await here.workloads.ask('wake', { id: here.find('web/hello').id, by: 'request', waitMs: null });
    await clock.advance(3_600_000);
    await expectNothingDue(here);
    expect(here.find('web/hello').replicas).toBe(3);
    clock.set('2030-01-08T07:00:01Z');
    await clock.advance(60_000);
    await expectNothingDue(here);
    expect(here.find('web/other').replicas).toBe(0);
    clock.set('2030-01-08T20:00:01Z');
    await advanceUntil(clock, 30_000, isAt(here, 'web/hello', 0));
  });

  it.each([
    ['over a whole night', '2030-01-08T12:00Z', 3],
    ['into the next night', '2030-01-08T21:00Z', 0],
    ['over a year', '2031-01-06T23:00Z', 0],
  ])('is caught up with once after a clock or a machine has jumped %s', async (_what, to, replicas) => {
    const { clock, here, put } = await ready('2030-01-07T12:00Z', 'hello');
    await put('nights', NIGHTS);
    clock.set(to);
    await clock.advance(30_000);
    await advanceUntil(clock, 30_000, isAt(here, 'web/hello', replicas));
    await ended(here, clock, replicas === 0 ? 1 : 0);
    await clock.advance(60_000);
    await expectNothingDue(here);
    expect(await operationsOf(here)).toHaveLength(replicas === 0 ? 1 : 0);
  });

  it('acts only once when the clock is set back, and starts over when it was a year ahead', async () => {
    const { clock, here, put } = await ready('2030-01-07T20:10Z', 'hello');
    await put('nights', NIGHTS);
    await advanceUntil(clock, 1_000, isAt(here, 'web/hello', 0));
    await ended(here, clock, 1);
    await clock.advance(1_000);
    clock.set('2030-01-07T19:50Z');
    for (let minute = 0; minute < 25; minute += 1) {
      await clock.advance(60_000);
      await expectNothingDue(here);
    }
    expect(await operationsOf(here)).toHaveLength(1);
    clock.set('2029-01-08T12:00Z');
    await advanceUntil(clock, 30_000, isAt(here, 'web/hello', 3));
  });

  it('that is removed, or no longer applies, wakes what it has put to sleep', async () => {
    const { clock, here, put, double } = await ready('2030-01-07T21:00Z', 'hello', 'other');
    await put('nights', NIGHTS);
    await advanceUntil(clock, 1_000, isAt(here, 'web/hello', 0));
    await advanceUntil(clock, 1_000, isAt(here, 'web/other', 0));
    annotate(double, 'other', { 'berth/exclude': 'true' });
    await advanceUntil(clock, 1_000, isAt(here, 'web/other', 3));
    expect(here.find('web/other').policy).toMatchObject({ excluded_by: 'annotation:workload' });
    expect(here.find('web/hello').replicas).toBe(0);
    await here.policies.ask('remove', { name: 'nights' });
    await advanceUntil(clock, 1_000, isAt(here, 'web/hello', 3));
    expect(here.find('web/hello').policy).toBeNull();
  });

  it.each(['past its end', 'within it', 'while its policy was removed'])(
    'wakes what it has put to sleep in a namespace that was out of sight %s',
    async (when) => {
      const double = await doubleWith('hello');
      double.put('Deployment', workload('data', 'store', 1));
      for (const verb of ['list', 'watch', 'get', 'patch']) double.denied.add(`${verb} deployments`);
      for (const namespace of ['web', 'data']) double.allowedIn.add(namespace);
      const clock = settableClock('2030-01-07T19:00Z');
      const here = await cloud({ clock, sweepMs: 100_000_000_000 });
      const input = clusterInput({ kubeconfig: double.kubeconfig, namespaces: ['web', 'data'] });
      const { id } = await here.clusters.ask('register', { input });
      await here.clusters.ask('sync', { id });
      const windows = ['20:00-21:00', '22:00-23:00'];
      const evenings = policyInput({ selector: { namespaces: ['web'] }, windows });
      await here.policies.ask('put', { name: 'evenings', input: evenings });
      const switchedAt = async (time: string, replicas: number): Promise<void> => {
        clock.set(`2030-01-07T${time}:01Z`);
        await advanceUntil(clock, 30_000, isAt(here, 'web/hello', replicas));
      };
      await switchedAt('20:00', 0);
      await switchedAt('21:00', 3);
      await switchedAt('22:00', 0);
      await ended(here, clock, 3);

      double.allowedIn.delete('web');
      await here.clusters.ask('sync', { id });
      expect(here.find('web/hello')).toBeUndefined();
      if (when === 'past its end') clock.set('2030-01-07T23:00:01Z');
      if (when === 'while its policy was removed') await here.policies.ask('remove', { name: 'evenings' });
      await clock.advance(60_000);
      double.allowedIn.add('web');
      await here.clusters.ask('sync', { id });
      expect(here.find('web/hello').replicas).toBe(0);
      if (when === 'within it') {
        await clock.advance(60_000);
        await expectNothingDue(here);
        await switchedAt('23:00', 3);
      } else await advanceUntil(clock, 30_000, isAt(here, 'web/hello', 3));
      await ended(here, clock, 4);
      await clock.advance(60_000);
      await expectNothingDue(here);
    },
  );

  it('leaves a recreated workload awake that someone had woken in it, until the next switch', async () => {
    const { double, clock, here, put } = await ready('2030-01-07T19:00Z', 'hello', 'other');
    await put('nights', NIGHTS);
    clock.set('2030-01-07T20:00:01Z');
    await ended(here, clock, 2);
    const { id } = here.find('web/hello');
    await here.workloads.ask('wake', { id, by: 'request', waitMs: null });
    await here.until('web/hello', ({ replicas }) => replicas === 3);
    for (const name of ['hello', 'other']) double.remove('Deployment', 'web', name);
    await eventually(() => here.list().length === 0 || undefined);
    for (const name of ['hello', 'other']) double.put('Deployment', workload('web', name, 2), true);
    // What the window had put to sleep, it puts to sleep again.
    await advanceUntil(clock, 1_000, isAt(here, 'web/other', 0));
    await expectNothingDue(here);
    expect(here.find('web/hello')).toMatchObject({ id, replicas: 2 });
    // Replaced between two listings, without a deletion that is seen.
    double.put('Deployment', workload('web', 'hello', 1), true);
    await here.until('web/hello', ({ replicas }) => replicas === 1);
    await expectNothingDue(here);
    clock.set('2030-01-08T20:00:01Z');
    await advanceUntil(clock, 30_000, isAt(here, 'web/hello', 0));
  });

  it('is not remembered for a missing workload after the next switch', async () => {
    const { double, clock, here, put, storedIds } = await ready('2030-01-07T20:10Z', 'hello', 'other');
    await put('nights', NIGHTS);
    await ended(here, clock, 2);
    const { id } = here.find('web/hello');
    await here.workloads.ask('wake', { id, by: 'request', waitMs: null });
    await here.until('web/hello', ({ replicas }) => replicas === 3);
    double.remove('Deployment', 'web', 'hello');
    await eventually(() => here.list().length === 1 || undefined);
    expect(await storedIds()).toContain(id);
    clock.set('2030-01-08T07:00:01Z');
    await advanceUntil(clock, 30_000, async () => !(await storedIds()).includes(id) || undefined);
  });

  it.each([
    ['a new workload', '2030-01-07T22:00:00Z', '2030-01-07T22:00:05Z', false],
    ['one that was there before it began', '2030-01-07T19:59:00Z', '2030-01-07T20:00:05Z', true],
    ['one of a cluster whose clock is far ahead', '2030-01-08T03:00:00Z', '2030-01-07T22:00:05Z', true],
  ])('lets %s come up for a quarter of an hour, unless it is older', async (_, created, start, isDue) => {
    const { double, clock, here, put } = await ready(start);
    await put('nights', NIGHTS);
    createdAt(double, created);
    await here.until('web/hello', () => true);
    if (isDue) {
      // The sweeper may have made the switch already.
      await advanceUntil(clock, 1_000, isAt(here, 'web/hello', 0));
      expect(clock.now()).toBeLessThan(Date.parse(start) + 900_000);
      return;
    }
    // Nothing is known of a switch until the namespaces of the cluster are.
    const { due, nextAt } = await eventually(async () => {
      const answer = await here.workloads.ask('dueSwitches', {});
      return answer.nextAt !== null && answer;
    });
    expect([due, nextAt]).toEqual([[], Date.parse(created) + 900_000]);
    clock.set('2030-01-07T22:14:00Z');
    await clock.advance(30_000);
    await expectNothingDue(here);
    clock.set('2030-01-07T22:15:01Z');
    await advanceUntil(clock, 30_000, isAt(here, 'web/hello', 0));
  });

  it.each(['request', 'connection'] as const)(
    'leaves a workload awake that was created in it and woken by a %s, until the next one',
    async (by) => {
      const { clock, here, put, double } = await ready('2030-01-07T22:00:05Z');
      await put('nights', NIGHTS);
      createdAt(double, '2030-01-07T22:00:00Z');
      const { id } = await here.until('web/hello', () => true);
      await here.workloads.ask('sleep', { id, by: 'request', holdMs: null });
      await here.until('web/hello', ({ replicas }) => replicas === 0);
      await here.workloads.ask('wake', { id, by, waitMs: null });
      const { policy } = await here.until('web/hello', ({ replicas }) => replicas === 1);
      expect(policy.next_switch).toEqual({ at: '2030-01-08T07:00:00.000Z', to: 'awake' });
      clock.set('2030-01-07T22:15:01Z');
      await expectNothingDue(here);
      // Now it is as any other that was woken in the window.
      double.put('Deployment', workload('web', 'hello', 2), true);
      await here.until('web/hello', ({ replicas }) => replicas === 2);
      await expectNothingDue(here);
      clock.set('2030-01-08T20:00:01Z');
      await advanceUntil(clock, 30_000, isAt(here, 'web/hello', 0));
      expect(await ended(here, clock, 1)).toEqual(['policy:nights sleepWorkload hello ok']);
    },
  );

  it.each([
    ['of an earlier workload of the name', { by: 'request', uid: 'another' }],
    ['by a schedule', { by: 'schedule' }],
  ])('puts to sleep what was created in it in spite of a wake %s', async (_, wake) => {
    const { clock, here, put, double } = await ready('2030-01-07T22:00:05Z');
    await put('nights', NIGHTS);
    createdAt(double, '2030-01-07T22:00:00Z');
    double.change('Deployment', 'web', 'hello', ({ metadata }: Json) => {
      const { uid, generation } = metadata;
      const receipt = { at: clock.now(), from: 'here', uid, generation, ...wake };
      metadata.annotations = { ...metadata.annotations, 'berth/wake': JSON.stringify(receipt) };
    });
    await here.until('web/hello', (row) => row.wake_reason !== null);
    expect(here.find('web/hello').policy.next_switch.at).toBe('2030-01-07T22:15:00.000Z');
    clock.set('2030-01-07T22:15:01Z');
    await advanceUntil(clock, 30_000, isAt(here, 'web/hello', 0));
  });

  it('shows what comes next although its switch was never made', async () => {
    const { clock, here, put, double } = await ready('2030-01-07T19:59Z', 'hello');
    await put('nights', NIGHTS);
    const next = (): string => here.find('web/hello').policy.next_switch.at;
    expect(next()).toBe('2030-01-07T20:00:00.000Z');
    double.fault(({ path, method }) => path.endsWith('/hello') && method === 'GET', {
      kind: 'status',
      status: 500,
    });
    clock.set('2030-01-07T20:00:01Z');
    await clock.advance(30_000);
    expect(await ended(here, clock, 1)).toEqual(['policy:nights sleepWorkload hello cluster_unreachable']);
    await clock.advance(1_000);
    clock.set('2030-01-08T07:00:01Z');
    await advanceUntil(clock, 30_000, () => next() === '2030-01-08T20:00:00.000Z' || undefined);
    expect(here.find('web/hello').replicas).toBe(3);
  });

  it('does not wake what another Berth has put to sleep', async () => {
    const { clock, here, put, double } = await ready('2030-01-07T20:00:01Z', 'hello');
    await put('nights', NIGHTS);
    await advanceUntil(clock, 1_000, isAt(here, 'web/hello', 0));
    clock.set('2030-01-08T07:00Z');
    const other = await cloud({ clock, self: 'there', sweepMs: 100_000_000_000 });
    await other.add(double.kubeconfig);
    await other.policies.ask('put', { name: 'nights', input: policyInput(NIGHTS) });
    const looked = await eventually(async () => {
      const answer = await other.workloads.ask('dueSwitches', {});
      return answer.nextAt !== null && answer;
    });
    expect(looked.due).toEqual([]);
  });

  it('of another Berth that ends earlier leaves it asleep', async () => {
    const { clock, here, put, double } = await ready('2030-01-07T20:00:01Z', 'hello');
    await put('nights', NIGHTS);
    await advanceUntil(clock, 1_000, isAt(here, 'web/hello', 0));
    await ended(here, clock, 1);
    const other = await cloud({ clock, self: 'there', sweepMs: 100_000_000_000 });
    await other.add(double.kubeconfig);
    const windows = ['Mon-Fri 20:00-06:00'];
    await other.policies.ask('put', { name: 'nights', input: policyInput({ ...NIGHTS, windows }) });
    const looked = () => other.workloads.ask('dueSwitches', {});
    // Its own switch to asleep has been noted, as the next one is known.
    await eventually(async () => (await looked()).nextAt !== null);
    for (const time of ['06:00:01', '07:00:01']) {
      clock.set(`2030-01-08T${time}Z`);
      expect((await looked()).due).toEqual([]);
    }
    await advanceUntil(clock, 30_000, isAt(here, 'web/hello', 3));
  });
});

describe('annotations', () => {
  it('of the workload take precedence over those of its namespace, and these over policies', async () => {
    const { clock, here, put, double } = await ready('2030-01-07T12:00Z', 'near', 'middle');
    double.namespaceAnnotations.set('web', { 'berth/schedule': 'daily 13:00-14:00' });
    annotate(double, 'near', { 'berth/schedule': 'daily 15:00-16:00', 'berth/auto-sleep': '2h' });
    await put('nights', { ...NIGHTS, idle_timeout_minutes: 45 });
    await clock.advance(400_000);
    const middle = await advanceUntil(clock, 30_000, () => {
      const { policy } = here.find('web/middle');
      return policy.schedule === 'annotation:namespace' ? policy : undefined;
    });
    expect(middle).toMatchObject({ idle: 'policy:nights', idle_timeout_minutes: 45 });
    expect(middle.next_switch.at).toBe('2030-01-07T13:00:00.000Z');
    expect(here.find('web/near').policy).toMatchObject({
      schedule: 'annotation:workload',
      idle: 'annotation:workload',
      idle_timeout_minutes: 120,
      next_switch: { at: '2030-01-07T15:00:00.000Z', to: 'asleep' },
    });
    expect(await here.policies.ask('read', { name: 'nights' })).toMatchObject({ selected: 2, decided: 1 });
  });

  it('keep a workload awake until a time, and wake one that is asleep', async () => {
    const { clock, here, put, double } = await ready('2030-01-07T21:00Z', 'hello');
    await put('nights', NIGHTS);
    await advanceUntil(clock, 1_000, isAt(here, 'web/hello', 0));
    annotate(double, 'hello', { 'berth/awake-until': '2030-01-08T00:00:00+01:00' });
    await advanceUntil(clock, 1_000, isAt(here, 'web/hello', 3));
    expect(here.find('web/hello').policy).toMatchObject({
      awake_until: '2030-01-07T23:00:00.000Z',
      next_switch: { at: '2030-01-07T23:00:00.000Z', to: 'asleep' },
    });
    await ended(here, clock, 2);
    clock.set('2030-01-07T23:00:01Z');
    await advanceUntil(clock, 30_000, isAt(here, 'web/hello', 0));
    expect(await ended(here, clock, 3)).toHaveLength(3);
  });

  it.each([
    ['berth/schedule', '* * * * *'],
    ['berth/schedule', 'x'.repeat(1_000_000)],
    ['berth/schedule', 'Mon-Fri 20:00-07:00 Mars/Olympus'],
    ['berth/schedule', '\u0000\u001b[2J\u202e'],
    ['berth/auto-sleep', '-5m'],
    ['berth/auto-sleep', '99999d'],
    ['berth/awake-until', 'tomorrow'],
    ['berth/awake-until', '+999999-01-01T00:00:00Z'],
    ['berth/awake-until', '9999-12-31T23:59:59-23:59'],
    ['berth/exclude', 'yes'],
  ])('that are invalid, such as %s %.20j, are reported and change nothing', async (annotation, value) => {
    const { clock, here, put, double } = await ready('2030-01-07T21:00Z', 'hello');
    annotate(double, 'hello', { [annotation]: value });
    const { policy } = await here.until('web/hello', (row) => row.policy !== null);
    expect(policy).toMatchObject({ schedule: null, idle: null, excluded_by: null, awake_until: null });
    expect(policy.faults).toHaveLength(1);
    expect(policy.faults[0]).toMatch(new RegExp(`^${annotation} [^\\p{Cc}\\p{Cf}]{10,200}$`, 'u'));
    await put('nights', NIGHTS);
    await advanceUntil(clock, 1_000, isAt(here, 'web/hello', 0));
  });
});

it('auto-sleep by a policy is an operation of the policy, and the own setting of a workload takes precedence', async () => {
  const { clock, here, put } = await ready('2030-01-07T12:00Z', 'hello', 'own');
  await here.workloads.ask('autoSleep', { id: here.find('web/own').id, enabled: true, minutes: 600 });
  await put('idle', { selector: { labels: '!nothing' }, idle_timeout_minutes: 30 });
  await clock.advance(32 * 60_000);
  expect((await here.sweeper.ask('sweep', {})).slept).toEqual([here.find('web/hello').id]);
  expect(here.find('web/hello').sleep_reason).toBe('put to sleep by auto-sleep (policy:idle)');
  expect(await operationsOf(here)).toEqual(['policy:idle sleepWorkload hello ok']);
  expect(here.find('web/own')).toMatchObject({ replicas: 3, policy: null });
  const overruled = await put('mine', { selector: { labels: 'app=own' }, idle_timeout_minutes: 30 });
  expect(policyItem(overruled)).toMatchObject({
    ...{ selected: 1, decided: 0 },
    warning: expect.stringContaining("the workloads' own auto-sleep"),
  });
});

it('the policy with the narrower selector decides, of equal ones the first by name', async () => {
  const { here, put } = await ready('2030-01-07T12:00Z', 'hello');
  const clusterId = here.find('web/hello').cluster_id;
  await put('b', NIGHTS);
  await put('c', NIGHTS);
  const decider = (): string => here.find('web/hello').policy.schedule;
  expect(decider()).toBe('policy:b');
  await put('z', { ...NIGHTS, selector: { namespaces: ['web'], cluster_ids: [clusterId] } });
  expect(decider()).toBe('policy:z');
  expect(await here.policies.ask('read', { name: 'c' })).toMatchObject({ selected: 1, decided: 0 });
  const none = await put('none', { ...NIGHTS, selector: { namespaces: ['nowhere'] } });
  expect(none).toMatchObject({ selected: 0, decided: 0 });
});

it('a preview lists the next ten switches of each workload', async () => {
  const { here, put } = await ready('2030-03-29T12:00Z', 'hello');
  await put('nights', { ...NIGHTS, timezone: 'Europe/Berlin' });
  const { rows } = await here.policies.ask('preview', { name: 'nights' });
  expect(rows).toHaveLength(1);
  expect(rows[0]?.switches).toHaveLength(10);
  expect(rows[0]?.switches.slice(0, 4).map(({ at, to }) => `${new Date(at).toISOString()} ${to}`)).toEqual([
    '2030-03-29T19:00:00.000Z asleep',
    '2030-03-30T06:00:00.000Z awake',
    // The clocks go forward on Sunday, the 31st.
    '2030-03-31T22:00:00.000Z asleep',
    '2030-04-01T05:00:00.000Z awake',
  ]);
});

it.each([
  ['a quarter of an hour later', ['20:00-07:00'], {}, ['7T22:15 asleep', '8T07:00 awake', '8T20:00 asleep']],
  [
    'the start of the next one, if that comes first',
    ['20:00-22:10', '22:12-23:00'],
    {},
    ['7T22:12 asleep', '7T23:00 awake', '8T20:00 asleep'],
  ],
  [
    'that long after its creation, if it is held for a part of it',
    ['20:00-07:00'],
    { awake_until: '2030-01-07T22:05:00Z' },
    ['7T22:15 asleep', '8T07:00 awake', '8T20:00 asleep'],
  ],
])(
  'the next switch of a workload that is created within a window is %s',
  async (_, windows, more, switches) => {
    const { here, put, double } = await ready('2030-01-07T22:00:05Z');
    await put('nights', { ...NIGHTS, windows, ...more });
    createdAt(double, '2030-01-07T22:00:00Z');
    const { policy } = await here.until('web/hello', () => true);
    const { rows } = await here.policies.ask('preview', { name: 'nights' });
    const textOf = (at: string, to: string): string => `${at.slice(9, 16)} ${to}`;
    const previewed = rows[0]?.switches.map(({ at, to }) => textOf(new Date(at).toISOString(), to));
    expect(previewed?.slice(0, 3)).toEqual(switches);
    expect(previewed).toHaveLength(10);
    expect(textOf(policy.next_switch.at, policy.next_switch.to)).toBe(switches[0]);
  },
);

it('a switch that the cluster refuses is reported once, and others are made when the cluster responds again', async () => {
  const { clock, here, put, double } = await ready('2030-01-07T19:59Z', 'hello');
  await put('nights', { ...NIGHTS, selector: { labels: '!nothing' } });
  double.put('Deployment', workload('kube-system', 'dns', 2));
  await here.until('kube-system/dns', ({ policy }) => policy !== null);
  double.fault(({ path, method }) => path.endsWith('/hello') && method === 'GET', {
    kind: 'status',
    status: 500,
  });
  clock.set('2030-01-07T20:00:01Z');
  await advanceUntil(clock, 60_000, isAt(here, 'web/hello', 0));
  const ends = await ended(here, clock, 3);
  expect(ends.filter((line) => line.endsWith(' ok'))).toHaveLength(1);
  expect([...new Set(ends)].sort()).toEqual([
    'policy:nights sleepWorkload dns sleep_refused',
    'policy:nights sleepWorkload hello cluster_unreachable',
    'policy:nights sleepWorkload hello ok',
  ]);
  await clock.advance(60_000);
  await expectNothingDue(here);
});

it('a switch that the end of the daemon interrupted is made once, whether or not it had been done', async () => {
  const { clock, here, put, double } = await ready('2030-01-07T19:59Z', 'done', 'undone');
  await put('nights', NIGHTS);
  await here.stop();
  // What a daemon leaves that is killed in the middle: both asked for, one made, no end recorded.
  clock.set('2030-01-07T20:00:01Z');
  const { cloudStore, close } = openCloudStore(here.folder);
  const rows = [];
  for await (const part of cloudStore.workloads(here.find('web/done').cluster_id)) rows.push(...part);
  for (const { id, clusterId, seen, scaledAt } of rows) {
    const subject = { ...NO_SUBJECT, clusterId, workloadId: id, workload: seen.name };
    const request = { fingerprint: '', action: 'sleepWorkload', who: 'policy:nights', from: null, subject };
    const key = `switch ${id} ${seen.uid} ${scaledAt + 1} asleep`;
    const state = {
      askedAt: clock.now(),
      state: 'asked',
      settledAt: null,
      result: null,
      isTold: false,
    } as const;
    const operation = newUlid(clock.now());
    await cloudStore.saveOperation({ ...request, ...state, id: operation, key, fingerprint: key }, []);
    if (seen.name !== 'done') continue;
    const receipt = {
      replicas: 3,
      at: clock.now(),
      by: 'schedule',
      from: 'here',
      holdUntil: null,
      operation,
    };
    annotate(double, 'done', { 'berth/sleep': JSON.stringify(receipt) });
    double.change('Deployment', 'web', 'done', (object: Json) => {
      object.spec.replicas = 0;
    });
  }
  await close();
  const scalings = (): number => double.requests.filter(({ text }) => text.includes('"replace"')).length;
  const later = await cloud({ folder: here.folder, vault: here.vault, clock });
  await advanceUntil(clock, 1_000, isAt(later, 'web/undone', 0));
  await advanceUntil(clock, 1_000, isAt(later, 'web/done', 0));
  const ends = await ended(later, clock, 3);
  expect(ends.sort()).toEqual([
    'policy:nights sleepWorkload done ok',
    'policy:nights sleepWorkload undone interrupted',
    'policy:nights sleepWorkload undone ok',
  ]);
  await clock.advance(60_000);
  await expectNothingDue(later);
  expect(scalings()).toBe(1);
});

it('without policies and annotations, the clock is never checked', async () => {
  const double = await kubeDouble();
  afterThisTest(() => double.stop());
  double.put('Deployment', workload('web', 'hello', 3));
  const clock = settableClock('2030-01-07T12:00Z');
  const here = await cloud({ clock });
  await here.add(double.kubeconfig);
  await clock.advance(1_000);
  expect(await here.workloads.ask('dueSwitches', {})).toEqual({ due: [], nextAt: null });
});
