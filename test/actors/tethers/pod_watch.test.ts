// The pods that a tether follows, on a server with faults; the test drives the clock.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { PodWatch } from '../../../src/actors/tethers/pod_watch.ts';
import { openKubeCluster } from '../../../src/adapters/kube/kube_cluster.ts';
import type { TetherTarget } from '../../../src/protocol/cloud.ts';
import { TETHER } from '../../../src/settings/cloud_limits.ts';
import { afterThisTest, realTime, type TestClock, virtualClock } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import { type Double, type Fault, type Json, kubeDouble, type Seen } from '../../kit/kube_double.ts';
import { client, type Field, field, lastError, RULE } from './tether_kit.ts';

let double: Double;
let clock: TestClock;
let pods: PodWatch;
let choice: { pod: string | null; allowNotReady: boolean };
let changes: number;
/** The number of usable pods after each change. */
let usableCounts: number[];
let route: TetherTarget;

beforeEach(async () => {
  // The longest pauses between attempts.
  vi.spyOn(Math, 'random').mockReturnValue(0.999);
  double = await kubeDouble();
  afterThisTest(() => double.stop());
  clock = virtualClock();
  changes = 0;
  usableCounts = [];
  choice = { pod: null, allowNotReady: false };
  pods = new PodWatch({
    clock,
    rule: RULE,
    choice,
    onChange: () => {
      changes += 1;
      usableCounts.push(pods.usable.length);
    },
    onDefect: (error) => {
      throw error;
    },
  });
  afterThisTest(() => pods.stop());
  route = {
    clusterId: 'C1',
    access: double.access,
    workload: { id: 'W1', kind: 'Deployment', namespace: 'n', name: 'web', selector: 'app=web' },
    state: 'awake',
    replicas: 1,
  };
});
afterEach(() => vi.restoreAllMocks());

const pod = (name = 'web-6b-1', more: Json = {}): Json => ({
  metadata: {
    name,
    namespace: 'n',
    uid: `u-${name}`,
    resourceVersion: '1',
    labels: { 'pod-template-hash': '6b' },
    ownerReferences: [{ kind: 'ReplicaSet', name: 'web-6b', controller: true }],
  },
  status: { conditions: [{ type: 'Ready', status: 'True' }], ...more },
});
const isList = ({ path, query }: Seen): boolean => path.endsWith('/pods') && !query.has('watch');
const isWatch = ({ query }: Seen): boolean => query.has('watch');

const ALWAYS = Number.POSITIVE_INFINITY;
const answering = (body: string): Fault => ({ kind: 'raw', status: 200, headers: {}, body });
const list = (...items: Json[]): Fault =>
  answering(JSON.stringify({ metadata: { resourceVersion: '1' }, items }));

/** From now on the server lists these, and its watches stay silent. */
function listing(...items: Json[]): void {
  double.fault(isList, list(...items), ALWAYS);
  double.fault(isWatch, { kind: 'stall' }, ALWAYS);
}
const isForward = ({ path }: Seen): boolean => path.endsWith('/portforward');

/** Lets that many attempts fail, each at once after the pause before it. */
async function failing(attempts: number): Promise<void> {
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const before = changes;
    if (attempt > 0) await clock.advance(1_000 * 2 ** attempt);
    await eventually(() => changes > before || undefined);
  }
}

it('pods are listed at once when a client needs them, however long the pause after an outage is', async () => {
  await double.stop();
  pods.start(route);
  await failing(3);
  await double.start();
  listing(pod());
  await clock.advance(TETHER.minRelistIntervalMs);
  expect(pods.usable).toEqual([]);
  expect(pods.trouble?.reason).toContain('cannot be reached');
  pods.start(route);
  await eventually(() => pods.usable.length > 0 || undefined);
  expect(pods.trouble).toBeNull();
});

it('pods are listed at most once a second, and never during another attempt', async () => {
  double.fault(isList, { kind: 'status', status: 403 });
  double.fault(isList, { kind: 'stall' });
  listing(pod());
  const asked = (): number => double.requests.filter(isList).length;
  pods.start(route);
  await eventually(() => pods.trouble ?? undefined);
  pods.start(route);
  expect(pods.trouble).not.toBeNull();
  await clock.advance(TETHER.minRelistIntervalMs);
  pods.start(route);
  // A past denial is no reason to release a client before the next answer.
  expect(pods.trouble).toBeNull();
  await eventually(() => asked() === 2 || undefined);
  await clock.advance(TETHER.minRelistIntervalMs);
  pods.start(route);
  await clock.advance(TETHER.minRelistIntervalMs);
  pods.start(route);
  // Its requests have arrived once a later request is answered.
  const other = openKubeCluster(double.access, RULE, realTime);
  await other.version();
  await other.close();
  expect(asked()).toBe(2);
});

it('pods are each tried by a client whose attempt with an earlier pod has failed', async () => {
  const [former, latter] = [pod('web-6b-1'), pod('web-6b-2')];
  double.fault(isList, list(former));
  double.fault(isList, list());
  double.fault(isList, list(latter), ALWAYS);
  double.fault(isWatch, { kind: 'stall' });
  // Each attempt fails at once, with a longer pause after it: longer than an attempt may take, shorter than a
  // client waits.
  double.fault(isWatch, answering(''), 4);
  double.fault(isWatch, answering(`${JSON.stringify({ type: 'ADDED', object: latter })}\n`));
  double.fault(isWatch, { kind: 'stall' }, ALWAYS);
  double.fault(
    isForward,
    { kind: 'status', status: 404, reason: 'NotFound', message: 'no such pod' },
    ALWAYS,
  );
  const forwards = (name: string): number =>
    double.requests.filter((request) => isForward(request) && request.path.includes(name)).length;
  const { port } = await field({ sandbox: { namespace: 'n' }, name: 'web', access: double.access, clock });
  const { ended } = client(port, 'name\n');
  await eventually(() => forwards('web-6b-1') > 0);
  // A listing old enough to be doubted.
  await clock.advance(TETHER.minRelistIntervalMs);
  const served = eventually(async () => {
    await clock.advance(25);
    return forwards('web-6b-2') > 1 && 'tried again';
  });
  expect(await Promise.race([ended, served])).toBe('tried again');
});

it('pods get no more connections once their workload has released them', async () => {
  const released = pod();
  released.metadata.ownerReferences = [];
  double.fault(isList, list(pod(), pod('web-6b-2')), ALWAYS);
  const events = [{ type: 'MODIFIED', object: released }];
  double.fault(isWatch, answering(events.map((event) => `${JSON.stringify(event)}\n`).join('')));
  double.fault(isWatch, { kind: 'stall' }, ALWAYS);
  pods.start(route);
  // The second state may follow the first at once.
  await eventually(
    () => usableCounts.at(-1) === 1,
    () => usableCounts,
  );
  expect(usableCounts).toContain(2);
  expect(pods.usable.map(({ name }) => name)).toEqual(['web-6b-2']);
  expect(pods.isUsable('u-web-6b-1')).toBe(false);
});

it.each([
  [false, ['running', 'pending'], []],
  [true, ['running', 'pending'], ['running']],
  [true, ['running', 'ready'], ['ready']],
])('pods get connections if that is allowed while not Ready (%j), of %j to %j', async (allow, all, used) => {
  choice.allowNotReady = allow;
  const waiting = [{ type: 'Ready', status: 'False' }];
  const statuses: Record<string, Json> = {
    running: { phase: 'Running', conditions: waiting },
    pending: { phase: 'Pending', conditions: waiting },
  };
  listing(...all.map((name) => pod(name, statuses[name])));
  pods.start(route);
  await eventually(() => changes > 0 && !pods.isEmpty);
  expect(pods.usable.map(({ name }) => name)).toEqual(used);
  expect(pods.isUsable('u-running')).toBe(allow);
  expect(pods.isUsable('u-pending')).toBe(false);
});

it('pods are gone once they are deleted, and not when they have only lost their labels', async () => {
  const [labelled, deleted] = [pod(), pod('web-6b-2')];
  double.fault(isList, list(labelled, deleted), ALWAYS);
  const ending = { ...deleted, metadata: { ...deleted.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
  const events = [labelled, ending].map((object) => `${JSON.stringify({ type: 'DELETED', object })}\n`);
  double.fault(isWatch, answering(events.join('')));
  double.fault(isWatch, { kind: 'stall' }, ALWAYS);
  pods.start(route);
  await eventually(() => pods.isGone('u-web-6b-2'));
  expect(usableCounts).toContain(2);
  expect(pods.isGone('u-web-6b-1')).toBe(false);
  expect(pods.usable).toEqual([]);
});

it('pods other than the one that is named get no connections, and do not count as its trouble', async () => {
  choice.pod = 'web-6b-2';
  const unscheduled = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: 'no node' };
  listing(pod(), pod('web-6b-2'), pod('web-6b-3', { phase: 'Pending', conditions: [unscheduled] }));
  pods.start(route);
  await eventually(() => pods.usable.length > 0);
  expect(pods.usable.map(({ name }) => name)).toEqual(['web-6b-2']);
  expect([pods.trouble, pods.absence]).toEqual([null, 'the pod web-6b-2 did not become ready']);
});

it('pods count as new for a while after they became ready, by the clock of the cluster or by when that was seen', async () => {
  const since = (name: string, ageMs: number): Json => {
    const at = new Date(clock.now() - ageMs).toISOString();
    return pod(name, { conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: at }] });
  };
  const waiting = pod('web-6b-4', { conditions: [{ type: 'Ready', status: 'False' }] });
  const ahead = since('web-6b-3', -3_600_000);
  double.fault(isList, list(since('web-6b-1', 5_000), since('web-6b-2', 25_000), ahead, waiting), ALWAYS);
  double.fault(isWatch, answering(`${JSON.stringify({ type: 'MODIFIED', object: pod('web-6b-4') })}\n`));
  double.fault(isWatch, { kind: 'stall' }, ALWAYS);
  pods.start(route);
  const fresh = (): string[] => pods.usable.filter(({ uid }) => pods.isFresh(uid)).map(({ name }) => name);
  await eventually(() => pods.usable.length === 4);
  expect(fresh()).toEqual(['web-6b-1', 'web-6b-3', 'web-6b-4']);
  await clock.advance(TETHER.freshPodMs - 5_000);
  expect(fresh()).toEqual(['web-6b-3', 'web-6b-4']);
  await clock.advance(5_000);
  expect(fresh()).toEqual([]);
});

it('pods that are about to be ended get no more connections, unless they remain', async () => {
  listing(pod(), pod('web-6b-2'));
  pods.start(route);
  await eventually(() => pods.usable.length === 2);
  const before = changes;
  pods.condemn(true);
  expect([pods.usable, pods.isUsable('u-web-6b-1'), pods.isEmpty]).toEqual([[], false, true]);
  expect(changes).toBe(before + 1);
  // The sleep was refused.
  pods.condemn(false);
  expect([pods.usable.length, pods.isUsable('u-web-6b-1'), pods.isEmpty]).toEqual([2, true, false]);
  pods.condemn(true);
  await clock.advance(TETHER.condemnedMs - 1);
  expect(pods.usable).toEqual([]);
  await clock.advance(1);
  expect(pods.usable).toHaveLength(2);
});

it('pods get no connection that arrives during a sleep: it waits, and wakes the workload', async () => {
  listing(pod());
  double.fault(isForward, { kind: 'stall' }, ALWAYS);
  const forwards = (): number => double.requests.filter(isForward).length;
  const tether = await field({ sandbox: { namespace: 'n' }, name: 'web', access: double.access, clock });
  client(tether.port, 'name\n');
  await eventually(() => forwards() > 0);
  const before = forwards();
  await tether.ref.ask('workloadSleeping', { isSleeping: true });
  client(tether.port, 'name\n');
  await eventually(async () => {
    await clock.advance(TETHER.probeDelayMs);
    return tether.workloads.of('wake').length > 0;
  });
  expect(forwards()).toBe(before);
});

/** Lets the only client of a tether wait until it is reset, and resolves with the reason. */
async function reasonOfReset(tether: Field): Promise<string> {
  const { ended } = client(tether.port, 'name\n');
  await eventually(() => double.requests.some(isWatch));
  let isOver = false;
  void ended.then(() => {
    isOver = true;
  });
  await eventually(async () => {
    if (!isOver) await clock.advance(500);
    return isOver;
  });
  expect(await ended).toBe('ECONNRESET');
  expect(clock.monotonic()).toBeGreaterThanOrEqual(TETHER.podWaitTimeoutMs);
  await clock.advance(TETHER.tickIntervalMs);
  return lastError(tether);
}

it('pods without room on any node are awaited until the time limit, and then reported as the reason', async () => {
  const condition = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: 'no node' };
  listing(pod('web-6b-1', { phase: 'Pending', conditions: [condition] }));
  const tether = await field({ sandbox: { namespace: 'n' }, name: 'web', access: double.access, clock });
  expect(await reasonOfReset(tether)).toBe('pod web-6b-1: Unschedulable: no node');
});

it('pods that never appear are reported with what the events of the cluster say about them', async () => {
  listing();
  const message = 'pods "web-0" is forbidden: exceeded quota';
  double.events.push({
    metadata: { name: 'e', namespace: 'n' },
    involvedObject: { kind: 'StatefulSet', name: 'web' },
    ...{ type: 'Warning', reason: 'FailedCreate', message, lastTimestamp: '2030-01-01T00:00:00Z' },
  });
  const tether = await field({ sandbox: { namespace: 'n' }, name: 'web', access: double.access, clock });
  Object.assign(tether.route.workload, { kind: 'StatefulSet' });
  expect(await reasonOfReset(tether)).toBe(`StatefulSet web: FailedCreate: ${message}`);
});
