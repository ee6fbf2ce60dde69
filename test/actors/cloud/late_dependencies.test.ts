// Wakes whose dependencies are in a list that may be late, over the double. docs/reference.md "Wake order".
import { describe, expect, it } from 'vitest';
import { ALL_WORKLOADS } from '../../../src/protocol/workload_selection.ts';
import { deferred } from '../../../src/runtime/deferred.ts';
import { CLOUD } from '../../../src/settings/cloud_limits.ts';
import { auditOf, type Cloud, type CloudOptions, cloud, doubleWith, eventually } from '../../kit/cloud.ts';
import { type Double, type Json, type Seen, statusOf, workload } from '../../kit/kube_double.ts';
import { advanceUntil, settableClock } from '../../kit/policies.ts';

const kindOf = (name: string) => (name === 'set' ? 'StatefulSet' : 'Deployment');

/** Scales a workload as another client. Its pods are Ready at once. */
const scale = (double: Double, name: string, replicas: number): void =>
  double.change(kindOf(name), 'web', name, (object: Json) => {
    object.spec.replicas = replicas;
    object.status = statusOf(replicas);
  });

/**
 * Awake workloads by name, each with its annotation; `set` is a StatefulSet. The account may not watch them, or
 * (`only`) those of one kind. Pods of all but `stuck` are Ready at once.
 */
async function unwatched(
  names: Record<string, string | null>,
  { stuck = [], only, ...options }: { stuck?: string[]; only?: string } & CloudOptions = {},
) {
  const double = await doubleWith();
  for (const plural of only ? [only] : ['deployments', 'statefulsets']) double.denied.add(`watch ${plural}`);
  for (const [name, after] of Object.entries(names)) {
    const object = workload('web', name, 3);
    if (after !== null) object.metadata.annotations['berth/after'] = after;
    double.put(kindOf(name), object);
  }
  double.onPatched = (kind, { metadata: { name }, spec: { replicas } }) =>
    double.change(kind, 'web', name, (object: Json) => {
      object.status = statusOf(replicas, stuck.includes(name) ? 0 : replicas);
    });
  const clock = settableClock('2030-01-07T12:00Z');
  const here = await cloud({ clock, sweepMs: 100_000_000_000, ...options });
  await here.add(double.kubeconfig);
  const isLate = (name: string) => here.find(`web/${name}`).stale_since !== null;
  await eventually(() => Object.keys(names).every((name) => isLate(name) || (only && name !== 'set')));
  const until = (begun: { outcome: unknown }) => advanceUntil(clock, 1_000, () => begun.outcome || undefined);
  return { double, here, clock, until };
}

const wake = (here: Cloud, name: string, more: Json = {}): Promise<{ replicas: number }> =>
  here.workloads.ask(
    'wake',
    { id: here.find(`web/${name}`).id, by: 'request', waitMs: null, ...more },
    { deadlineMs: CLOUD.scaleTimeoutMs },
  );

const wakeMany = (here: Cloud, name: string): Promise<{ replicas: number }> => {
  const change = { ...ALL_WORKLOADS, selector: `app=${name}`, to: 'awake', holdMs: null, isDryRun: false };
  return here.workloads
    .ask('changeMany', change as never, { deadlineMs: CLOUD.scaleTimeoutMs })
    .then(([{ replicas }]: Json) => ({ replicas }));
};

const sleep = (here: Cloud, name: string) =>
  here.workloads.ask('sleep', { id: here.find(`web/${name}`).id, by: 'request', holdMs: null });

/** A wake that goes on; its outcome is its count, or the code of its error. */
function begin(asked: Promise<{ replicas: number }>): { outcome: unknown } {
  const begun: { outcome: unknown } = { outcome: undefined };
  void asked.then(
    ({ replicas }) => Object.assign(begun, { outcome: replicas }),
    ({ code }: Json) => Object.assign(begun, { outcome: code }),
  );
  return begun;
}

/** The workloads that were changed by requests, in their order. */
const changed = ({ requests }: Double): string[] =>
  requests.flatMap(({ method, path }) => (method === 'PATCH' ? [path.split('/').at(-1) ?? ''] : []));

const isRead =
  (name: string) =>
  ({ method, path }: Seen): boolean =>
    method === 'GET' && path.endsWith(`s/${name}`);

/** The next read of a workload is answered after `release`; `begun` resolves when it has come. */
function holdRead(double: Double, name: string) {
  const { promise: until, resolve: release } = deferred<void>();
  double.fault(isRead(name), { kind: 'held', until });
  const begun = () => eventually(() => double.requests.some(isRead(name)) || undefined);
  return { begun, release };
}

describe.each([
  ['a wake', wake],
  ['a bulk wake', wakeMany],
] as const)('%s', (_, ask) => {
  it.each([
    ['a dependency', { app: 'db', db: null }],
    ['what an awake dependency needs', { app: 'mid', mid: 'db', db: null }],
  ])('wakes %s that only the cluster knows to be asleep, and waits for it', async (_what, names) => {
    const { clock, double, here, until } = await unwatched(names, { stuck: ['db'] });
    await sleep(here, 'app');
    scale(double, 'db', 0);
    expect(here.find('web/db').replicas).toBe(3);
    double.requests.length = 0;
    const begun = begin(ask(here, 'app'));
    const reads = () => double.requests.filter(isRead('db')).length;
    await advanceUntil(clock, 1_000, () => reads() > 4 || undefined);
    expect([changed(double), begun.outcome]).toEqual([['db'], undefined]);
    scale(double, 'db', 1);
    expect(await until(begun)).toBe(3);
    expect(changed(double)).toEqual(['db', 'app']);
  });

  it('of an awake workload wakes a dependency that only the cluster knows to be asleep', async () => {
    // The workload itself is watched.
    const { double, here, until } = await unwatched({ app: 'set', set: null }, { only: 'statefulsets' });
    scale(double, 'set', 0);
    double.requests.length = 0;
    expect(await until(begin(ask(here, 'app')))).toBe(3);
    expect(changed(double)).toEqual(['set']);
    expect(double.get('StatefulSet', 'web', 'set').spec.replicas).toBe(3);
  });
});

it('a bulk wake reads no more workloads at once than it changes', async () => {
  const apps = Array.from({ length: CLOUD.bulkPlaces }, (_, index) => `app${10 + index}`);
  const names = apps.map((name): [string, string | null][] => [
    [name, `db-${name}`],
    [`db-${name}`, null],
  ]);
  const { double, here } = await unwatched(Object.fromEntries(names.flat()));
  const { promise: until, resolve: release } = deferred<void>();
  const reads = () => double.requests.filter(({ method, path }) => method === 'GET' && /app\d+$/.test(path));
  double.requests.length = 0;
  double.fault((seen) => reads().includes(seen), { kind: 'held', until }, 2 * apps.length);
  const change = { ...ALL_WORKLOADS, selector: `app in (${apps.join()})`, holdMs: null, isDryRun: false };
  const woken = here.workloads.ask('changeMany', { ...change, to: 'awake' }, { deadlineMs: 60_000 });
  await eventually(() => reads().length >= CLOUD.bulkLanes || undefined);
  expect(reads()).toHaveLength(CLOUD.bulkLanes);
  release();
  expect((await woken).map(({ outcome }) => outcome)).toEqual(apps.map(() => 'unchanged'));
});

describe('a wake', () => {
  it('by a connection first wakes the dependencies of what only the cluster knows to be asleep', async () => {
    const { double, here, until } = await unwatched({ app: 'db', db: null });
    for (const name of ['app', 'db']) scale(double, name, 0);
    double.requests.length = 0;
    expect(await until(begin(wake(here, 'app', { by: 'connection' })))).toBe(3);
    expect(changed(double)).toEqual(['db', 'app']);
  });

  it('by a connection wakes no dependency of what is awake', async () => {
    const { double, here, until } = await unwatched({ app: 'db', db: null });
    scale(double, 'db', 0);
    double.requests.length = 0;
    expect(await until(begin(wake(here, 'app', { by: 'connection' })))).toBe(3);
    expect(changed(double)).toEqual([]);
  });

  it('takes no wake of a dependency from the quota that only the list has asleep', async () => {
    const { double, here, until } = await unwatched({ app: 'db', db: null }, { wakesPerHour: 1 });
    for (const name of ['app', 'db']) await sleep(here, name);
    scale(double, 'db', 3);
    double.requests.length = 0;
    expect(await until(begin(wake(here, 'app', { subject: 'ci' })))).toBe(3);
    expect(changed(double)).toEqual(['app']);
  });

  it('is cancelled by a sleep while its dependencies are read, and wakes none', async () => {
    const { double, here } = await unwatched({ app: 'db', db: null });
    await sleep(here, 'app');
    scale(double, 'db', 0);
    double.requests.length = 0;
    const { begun, release } = holdRead(double, 'db');
    const woken = begin(wake(here, 'app'));
    await begun();
    expect(await sleep(here, 'app')).toMatchObject({ replicas: 0 });
    await eventually(() => woken.outcome);
    expect(woken.outcome).toBe('workload_conflict');
    release();
    await eventually(() => here.find('web/db').replicas === 0 || undefined);
    expect(await wake(here, 'db')).toEqual({ replicas: 3 });
    expect(changed(double)).toEqual(['db']);
  });

  it('does not wake a dependency whose sleep is requested while it is read', async () => {
    const { double, here, until } = await unwatched({ app: 'db', db: null });
    await sleep(here, 'app');
    double.requests.length = 0;
    const { begun, release } = holdRead(double, 'db');
    const woken = begin(wake(here, 'app'));
    await begun();
    await sleep(here, 'db');
    release();
    expect(await until(woken)).toBe(3);
    expect(changed(double)).toEqual(['db', 'app']);
    expect(double.get('Deployment', 'web', 'db').spec.replicas).toBe(0);
  });

  it('takes a dependency that cannot be read for what it was', async () => {
    const { double, here, until } = await unwatched({ app: 'db', db: null });
    await sleep(here, 'app');
    scale(double, 'db', 0);
    double.requests.length = 0;
    double.fault(isRead('db'), { kind: 'status', status: 500 }, 10);
    expect(await until(begin(wake(here, 'app')))).toBe(3);
    expect(changed(double)).toEqual(['app']);
    expect((await auditOf(here)).filter(({ type }: Json) => type === 'workload.failed')).toEqual([]);
  });
});
