// Sleeps and wakes that someone asks for while a window still has to make its switches, over the double.
// docs/reference.md "Policies".
import { describe, expect, it } from 'vitest';
import { ALL_WORKLOADS } from '../../../src/protocol/workload_selection.ts';
import { deferred } from '../../../src/runtime/deferred.ts';
import { CLOUD, POLICY } from '../../../src/settings/cloud_limits.ts';
import type { TestClock } from '../../kit/actors.ts';
import { type Cloud, cloud, doubleWith, eventually } from '../../kit/cloud.ts';
import { type Double, type Json, type Seen, statusOf, workload } from '../../kit/kube_double.ts';
import { advanceUntil, operationsOf, policyInput, settableClock } from '../../kit/policies.ts';

const NIGHTS = policyInput({ selector: { namespaces: ['web'] }, windows: ['Mon-Fri 20:00-07:00'] });
/** When the first window begins. */
const NIGHT = Date.parse('2030-01-07T20:00Z');
/** More than are switched at once. */
const MANY = Array.from({ length: POLICY.lanes + 2 }, (_, index) => `w${index}`);

/** 2030-01-07 is a Monday. `after`: a workload and what it depends on. */
async function nights(
  start: string,
  names: readonly string[],
  after?: readonly [string, string],
  isWatched = true,
) {
  const double = await doubleWith(...names);
  if (!isWatched) double.denied.add('watch deployments');
  if (after)
    double.change('Deployment', 'web', after[0], (object: Json) => {
      object.metadata.annotations = { ...object.metadata.annotations, 'berth/after': after[1] };
    });
  const clock = settableClock(start);
  const here = await cloud({ clock, sweepMs: 100_000_000_000 });
  await here.add(double.kubeconfig);
  await here.policies.ask('put', { name: 'nights', input: NIGHTS });
  return { double, clock, here };
}

/** Whether they have so many replicas in the cluster. The list may be late. */
const areAt = (double: Double, names: readonly string[], count: number) => (): true | undefined =>
  names.every((name) => double.get('Deployment', 'web', name).spec.replicas === count) || undefined;

const sleep = (here: Cloud, name: string) =>
  here.workloads.ask('sleep', { id: here.find(`web/${name}`).id, by: 'request', holdMs: null });

const wake = (here: Cloud, name: string, by: 'request' | 'connection' = 'request') =>
  here.workloads.ask(
    'wake',
    { id: here.find(`web/${name}`).id, by, waitMs: null },
    { deadlineMs: CLOUD.scaleTimeoutMs },
  );

/** The outcome of a bulk request for one workload. */
async function changeMany(here: Cloud, to: 'asleep' | 'awake', name: string): Promise<unknown> {
  const change = { ...ALL_WORKLOADS, selector: `app=${name}`, to, holdMs: null, isDryRun: false };
  const results = await here.workloads.ask('changeMany', change);
  return results.map(({ outcome }) => outcome).join();
}

const isOf = (method: string, name: string) => (seen: Seen) =>
  seen.method === method && seen.path.endsWith(`/${name}`);

/** Sets the clock to `time`, whose first switches are under way until `land`; the others wait. */
async function beginSwitches(double: Double, clock: ReturnType<typeof settableClock>, time: string) {
  const gate = deferred<void>();
  const isPatch = ({ method }: Seen): boolean => method === 'PATCH';
  const { length } = double.requests;
  double.fault(isPatch, { kind: 'held', until: gate.promise }, POLICY.lanes);
  clock.set(time);
  const patches = (): Seen[] => double.requests.slice(length).filter(isPatch);
  await advanceUntil(clock, POLICY.lookMs, () => patches().length === POLICY.lanes || undefined);
  const underWay = patches().map(({ path }) => path.split('/').at(-1) ?? '');
  const waiting = MANY.filter((name) => !underWay.includes(name));
  return { underWay, waiting, land: () => gate.resolve() };
}

/** Sets the clock to `time`, whose switch of a workload fails and is to be tried again. */
async function failSwitch(
  { double, clock, here }: { double: Double; clock: ReturnType<typeof settableClock>; here: Cloud },
  time: string,
  name: string,
): Promise<void> {
  const before = (await operationsOf(here)).length;
  double.fault(isOf('GET', name), { kind: 'status', status: 500 });
  clock.set(time);
  const isFailed = (line: string): boolean => line.endsWith(` ${name} cluster_unreachable`);
  await advanceUntil(clock, POLICY.lookMs, async () =>
    (await operationsOf(here)).slice(before).some(isFailed) ? true : undefined,
  );
}

/** Lets enough time pass for what is due or to be tried again; nothing is left. */
async function expectNothingDue(here: Cloud, clock: TestClock): Promise<void> {
  await advanceUntil(clock, 4 * POLICY.retry.initialDelayMs, async () => {
    const { due, nextAt } = await here.workloads.ask('dueSwitches', {});
    return (due.length === 0 && nextAt !== null) || undefined;
  });
}

describe('a wake within a window', () => {
  it('of workloads that it has yet to put to sleep leaves them awake until the next one', async () => {
    const { double, clock, here } = await nights('2030-01-07T19:00Z', MANY);
    const { underWay, waiting, land } = await beginSwitches(double, clock, '2030-01-07T20:00:01Z');
    const [woken = '', ...slept] = underWay;
    const [one = '', other = ''] = waiting;
    expect(await wake(here, one)).toEqual({ replicas: 3 });
    expect(await changeMany(here, 'awake', other)).toBe('unchanged');
    const again = wake(here, woken);
    // It has begun.
    await here.workloads.ask('idle', {});
    land();
    expect(await again).toEqual({ replicas: 3 });
    await advanceUntil(clock, 1_000, areAt(double, slept, 0));
    await expectNothingDue(here, clock);
    expect(areAt(double, [woken, one, other], 3)()).toBe(true);
    expect(here.find(`web/${one}`).policy.next_switch).toEqual({
      at: '2030-01-08T07:00:00.000Z',
      to: 'awake',
    });
    expect((await operationsOf(here)).sort()).toEqual(
      underWay.toSorted().map((name) => `policy:nights sleepWorkload ${name} ok`),
    );
    await here.stop();
    const later = await cloud({ folder: here.folder, vault: here.vault, clock, sweepMs: 100_000_000_000 });
    await expectNothingDue(later, clock);
    expect(areAt(double, [woken, one, other], 3)()).toBe(true);
    clock.set('2030-01-08T20:00:01Z');
    await advanceUntil(clock, POLICY.lookMs, areAt(double, MANY, 0));
  });

  it.each(['a request', 'a bulk request'])('by %s is the last word, before a retry too', async (what) => {
    const at = await nights('2030-01-07T19:00Z', ['hello']);
    const { double, clock, here } = at;
    await failSwitch(at, '2030-01-07T20:00:01Z', 'hello');
    if (what === 'a request') expect(await wake(here, 'hello')).toEqual({ replicas: 3 });
    else expect(await changeMany(here, 'awake', 'hello')).toBe('unchanged');
    await expectNothingDue(here, clock);
    expect(areAt(double, ['hello'], 3)()).toBe(true);
    expect(await operationsOf(here)).toHaveLength(1);
  });

  it.each(['request', 'connection'] as const)(
    'by a %s leaves awake what the workload depends on',
    async (by) => {
      const at = await nights('2030-01-07T19:00Z', ['app', 'db'], ['app', 'db']);
      const { double, clock, here } = at;
      await sleep(here, 'app');
      await here.until('web/app', ({ replicas }) => replicas === 0);
      await failSwitch(at, '2030-01-07T20:00:01Z', 'db');
      expect(await wake(here, 'app', by)).toEqual({ replicas: 3 });
      await expectNothingDue(here, clock);
      expect(areAt(double, ['app', 'db'], 3)()).toBe(true);
    },
  );

  it.each([
    ['leaves awake a workload that only the cluster knows to be asleep, and', 'asleep', 3],
    ['does not leave awake one that is not asleep, nor', 'awake', 0],
  ])('by a connection %s what it depends on', async (_, state, left) => {
    const at = await nights('2030-01-07T19:00Z', ['app', 'db'], ['app', 'db'], false);
    const { double, clock, here } = at;
    double.fault(isOf('GET', 'db'), { kind: 'status', status: 500 });
    await failSwitch(at, '2030-01-07T20:00:01Z', 'app');
    await eventually(async () => (await operationsOf(here)).length === 2 || undefined);
    if (state === 'asleep')
      double.change('Deployment', 'web', 'app', (object: Json) => {
        object.spec.replicas = 0;
      });
    double.onPatched = (kind, { metadata: { name }, spec: { replicas } }) =>
      double.change(kind, 'web', name, (object: Json) => {
        object.status = statusOf(replicas);
      });
    const woken: number[] = [];
    void wake(here, 'app', 'connection').then(({ replicas }) => woken.push(replicas));
    await advanceUntil(clock, 1_000, () => woken.length > 0 || undefined);
    expect(woken).toEqual([3]);
    await expectNothingDue(here, clock);
    expect(areAt(double, ['app', 'db'], left)()).toBe(true);
  });

  it('of a new workload that is still awake leaves it awake', async () => {
    const { double, clock, here } = await nights('2030-01-07T22:00:05Z', []);
    const object = workload('web', 'hello', 3);
    object.metadata.creationTimestamp = '2030-01-07T22:00:00Z';
    double.put('Deployment', object);
    await here.until('web/hello', () => true);
    await wake(here, 'hello');
    clock.set('2030-01-07T22:15:01Z');
    await expectNothingDue(here, clock);
    expect(areAt(double, ['hello'], 3)()).toBe(true);
    expect(await operationsOf(here)).toEqual([]);
  });

  it('by a connection to a workload that is awake is none', async () => {
    const at = await nights('2030-01-07T19:00Z', ['hello']);
    const { double, clock, here } = at;
    await failSwitch(at, '2030-01-07T20:00:01Z', 'hello');
    expect(await wake(here, 'hello', 'connection')).toEqual({ replicas: 3 });
    await advanceUntil(clock, 1_000, areAt(double, ['hello'], 0));
  });
});

describe('a window that begins during a wake', () => {
  /** `app` waits for `db`, which is woken but not Ready until `makeReady`. */
  async function waiting(by: 'request' | 'connection') {
    const at = await nights('2030-01-07T19:59:45Z', ['app', 'db', 'other'], ['app', 'db']);
    const { double, clock, here } = at;
    const setReady = (name: string, isReady: boolean): void =>
      double.change('Deployment', 'web', name, (object: Json) => {
        object.status = statusOf(object.spec.replicas, isReady ? object.spec.replicas : 0);
      });
    double.onPatched = (_, { metadata: { name } }) => setReady(name, name !== 'db');
    for (const name of ['app', 'db']) await sleep(here, name);
    for (const name of ['app', 'db']) await here.until(`web/${name}`, ({ state }) => state === 'asleep');
    const woken = wake(here, 'app', by);
    await here.until('web/db', ({ state }) => state === 'waking');
    const makeReady = async (): Promise<void> => {
      expect(areAt(double, ['app'], 0)()).toBe(true);
      setReady('db', true);
      await advanceUntil(clock, 0, areAt(double, ['app'], 3));
      expect(await woken).toEqual({ replicas: 3 });
    };
    return { ...at, makeReady };
  }

  it.each(['request', 'connection'] as const)(
    'by a %s leaves the dependency awake that it waits for',
    async (by) => {
      const { double, clock, here, makeReady } = await waiting(by);
      await advanceUntil(clock, 0, () => clock.now() >= NIGHT || undefined);
      await advanceUntil(clock, 0, areAt(double, ['other'], 0));
      await makeReady();
      await expectNothingDue(here, clock);
      expect(areAt(double, ['app', 'db'], 3)()).toBe(true);
      expect(await operationsOf(here)).toEqual(['policy:nights sleepWorkload other ok']);
    },
  );

  it('leaves all awake that it wakes, although its switches come after it', async () => {
    const { double, clock, here, makeReady } = await waiting('request');
    // The looks that the changes so far have caused are over.
    await clock.advance(1_000);
    await here.policies.ask('list', {});
    // As after a suspension, which timers do not notice.
    clock.set('2030-01-07T20:00:01Z');
    await makeReady();
    expect(areAt(double, ['other'], 3)()).toBe(true);
    await advanceUntil(clock, POLICY.lookMs, areAt(double, ['other'], 0));
    await expectNothingDue(here, clock);
    expect(areAt(double, ['app', 'db'], 3)()).toBe(true);
  });
});

describe('a requested sleep after the end of a window', () => {
  it('of workloads that it has yet to wake leaves them asleep', async () => {
    const { double, clock, here } = await nights('2030-01-07T20:00:01Z', MANY);
    await advanceUntil(clock, 1_000, areAt(double, MANY, 0));
    await expectNothingDue(here, clock);
    const { underWay, waiting, land } = await beginSwitches(double, clock, '2030-01-08T07:00:01Z');
    const [one = '', other = ''] = waiting;
    expect(await sleep(here, one)).toMatchObject({ replicas: 0 });
    expect(await changeMany(here, 'asleep', other)).toBe('unchanged');
    land();
    await advanceUntil(clock, 1_000, areAt(double, underWay, 3));
    await expectNothingDue(here, clock);
    expect(areAt(double, waiting, 0)()).toBe(true);
  });

  it('is the last word before a retry, until the end of the next window', async () => {
    const at = await nights('2030-01-07T20:00:01Z', ['hello']);
    const { double, clock, here } = at;
    await advanceUntil(clock, 1_000, areAt(double, ['hello'], 0));
    await expectNothingDue(here, clock);
    await failSwitch(at, '2030-01-08T07:00:01Z', 'hello');
    await sleep(here, 'hello');
    await expectNothingDue(here, clock);
    expect(areAt(double, ['hello'], 0)()).toBe(true);
    clock.set('2030-01-08T20:00:01Z');
    await expectNothingDue(here, clock);
    clock.set('2030-01-09T07:00:01Z');
    await advanceUntil(clock, POLICY.lookMs, areAt(double, ['hello'], 3));
  });
});
