// Several Berths at one workload: they see each other's use of it on the object, and who has done what.
import { expect, it } from 'vitest';
import type { TestClock } from '../../kit/actors.ts';
import { virtualClock } from '../../kit/actors.ts';
import { type Cloud, cloud, doubleWith, eventually } from '../../kit/cloud.ts';
import type { Double, Json } from '../../kit/kube_double.ts';

const MINUTE = 60_000;

interface Two {
  double: Double;
  clock: TestClock;
  /** Has auto-sleep on. */
  keeper: Cloud;
  /** Is connected through tethers. */
  user: Cloud;
  id: string;
  userId: string;
}

async function two(minutes = 10): Promise<Two> {
  const double = await doubleWith('hello');
  const clock = virtualClock();
  const options = { clock, sweepMs: 10_000 * MINUTE };
  const keeper = await cloud({ ...options, self: 'keeper' });
  const user = await cloud({ ...options, self: 'user' });
  for (const here of [keeper, user]) await here.add(double.kubeconfig);
  await eventually(() => double.watches.length === 4);
  const { id } = keeper.find('web/hello');
  await keeper.workloads.ask('autoSleep', { id, enabled: true, minutes });
  await eventually(() => activityOf(double) !== null);
  return { double, clock, keeper, user, id, userId: user.find('web/hello').id };
}

const hello = (double: Double): Json => double.get('Deployment', 'web', 'hello');
const activityOf = (double: Double): Json =>
  JSON.parse(hello(double).metadata.annotations['berth/activity'] ?? 'null');
const use = ({ user, userId: id, clock }: Two): void =>
  user.workloads.tell('activity', { id, at: clock.now() });
const writes = ({ requests }: Double): number => requests.filter(({ method }) => method === 'PATCH').length;

it('a workload with connections through another Berth is not put to sleep', async () => {
  const all = await two();
  const { double, clock, keeper, id } = all;
  await clock.advance(9 * MINUTE);
  use(all);
  await eventually(() => activityOf(double).from === 'user');
  expect(activityOf(double)).toMatchObject({ minutes: 10 });
  await clock.advance(9 * MINUTE);
  // Once its watch has told the keeper of that use.
  await eventually(async () => (await keeper.workloads.ask('idle', {})).ids.length === 0);
  await clock.advance(MINUTE);
  expect(await keeper.workloads.ask('idle', {})).toEqual({ ids: [id] });
  // It is read again before the sleep: a use that the watch has not told of counts.
  for (const watch of double.watches) watch.stall();
  use(all);
  await eventually(() => activityOf(double).at === clock.now());
  expect(await keeper.workloads.ask('sleep', { id, by: 'idle', holdMs: null })).toMatchObject({
    slept: false,
  });
});

it('use is written at most once in a third of the timeout, and only while some Berth puts it to sleep', async () => {
  const all = await two();
  const { double, clock, keeper, user, id } = all;
  const before = writes(double);
  for (let second = 0; second < 60; second += 1) {
    use(all);
    await clock.advance(1_000);
  }
  await eventually(() => activityOf(double).from === 'user');
  expect(writes(double)).toBe(before + 1);
  await clock.advance(3 * MINUTE);
  await eventually(() => {
    // It may not have heard yet that its first write is done.
    use(all);
    return writes(double) === before + 2;
  });
  await keeper.workloads.ask('autoSleep', { id, enabled: false, minutes: null });
  await eventually(() => activityOf(double) === null);
  // The user hears of it before the next use.
  double.change('Deployment', 'web', 'hello', (object) => {
    object.metadata.labels.mark = 'on';
    object.spec.replicas = 4;
  });
  await user.until('web/hello', (row) => row.replicas === 4);
  const after = writes(double);
  await clock.advance(10 * MINUTE);
  use(all);
  await user.workloads.ask('idle', {});
  expect(writes(double)).toBe(after);
});

it('a rollout counts as use', async () => {
  const { double, clock, keeper, id } = await two();
  await clock.advance(9 * MINUTE);
  double.change('Deployment', 'web', 'hello', (object) => {
    object.spec.template.spec.containers[0].image = 'busybox:2';
  });
  double.put('Deployment', { ...hello(double), metadata: { ...hello(double).metadata, name: 'after' } });
  await keeper.until('web/after', () => true);
  await clock.advance(9 * MINUTE);
  expect(await keeper.workloads.ask('idle', {})).toEqual({ ids: [] });
  await clock.advance(MINUTE);
  expect(await keeper.workloads.ask('idle', {})).toEqual({ ids: [id] });
});

it('the rows say which Berth has put it to sleep, and who has woken it', async () => {
  const { double, clock, keeper, user, id, userId } = await two();
  await clock.advance(10 * MINUTE);
  await keeper.sweeper.ask('sweep', {});
  expect(keeper.find('web/hello')).toMatchObject({ sleep_reason: 'put to sleep by auto-sleep' });
  await user.until('web/hello', (row) => row.replicas === 0);
  expect(user.find('web/hello').sleep_reason).toBe('put to sleep by auto-sleep of the Berth keeper');
  await user.workloads.ask('wake', { id: userId, by: 'connection', waitMs: null });
  expect(user.find('web/hello')).toMatchObject({
    sleep_reason: null,
    wake_reason: 'woken by a connection through a tether',
  });
  await keeper.until('web/hello', (row) => row.replicas === 3);
  expect(keeper.find('web/hello').wake_reason).toBe(
    'woken by a connection through a tether of the Berth user',
  );
  await keeper.workloads.ask('sleep', { id, by: 'request', holdMs: null });
  expect(keeper.find('web/hello')).toMatchObject({ wake_reason: null });
  await keeper.workloads.ask('wake', { id, by: 'request', waitMs: null });
  expect(keeper.find('web/hello').wake_reason).toBe('woken by request');
  expect(JSON.parse(hello(double).metadata.annotations['berth/wake'])).toMatchObject({ from: 'keeper' });
});

it('a sleep with `hold` is not undone by connections for that time, through whichever Berth they come', async () => {
  const { double, clock, keeper, user, id, userId } = await two();
  await keeper.workloads.ask('sleep', { id, by: 'request', holdMs: 5_000 });
  await user.until('web/hello', (row) => row.replicas === 0);
  const connect = (here: Cloud, of: string) =>
    here.workloads.ask('wake', { id: of, by: 'connection', waitMs: null });
  for (const [here, of] of [
    [keeper, id],
    [user, userId],
  ] as const)
    await expect(connect(here, of)).rejects.toMatchObject({
      code: 'wake_refused',
      message: 'Deployment web/hello was put to sleep on request, with a hold: connections do not wake it',
      detail: { hint: 'Wake it by request, or connect again in 5 s.' },
    });
  await clock.advance(5_000);
  expect(await connect(user, userId)).toEqual({ replicas: 3 });
  await keeper.until('web/hello', (row) => row.replicas === 3);
  await keeper.workloads.ask('sleep', { id, by: 'request', holdMs: 5_000 });
  // A request is not held up.
  expect(await keeper.workloads.ask('wake', { id, by: 'request', waitMs: null })).toEqual({ replicas: 3 });
  expect(hello(double).spec.replicas).toBe(3);
});
