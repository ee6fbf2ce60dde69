import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { CloudHistory } from '../../../src/adapters/storage/cloud_history.ts';
import { NO_SUBJECT } from '../../../src/protocol/cloud_events.ts';
import {
  CUT_OFF,
  type OperationFailure,
  type OperationRequest,
  type OperationResult,
  resultCodeOf,
  type StoredOperation,
} from '../../../src/protocol/cloud_operations.ts';
import { CLOUD_EVENTS, CLOUD_OPERATIONS } from '../../../src/settings/cloud_limits.ts';
import { realTime, tempDir, virtualClock } from '../../kit/actors.ts';
import {
  auditOf,
  type Cloud,
  type CloudOptions,
  cloud,
  doubleWith,
  eventually,
  openCloudStore,
} from '../../kit/cloud.ts';
import type { Json } from '../../kit/kube_double.ts';
import { policyInput } from '../../kit/policies.ts';
import { fillDisk, smallDisk } from '../../kit/small_disk.ts';

const request = (more: Partial<OperationRequest> = {}): OperationRequest => ({
  key: null,
  fingerprint: 'one',
  action: 'sleepWorkload',
  who: 'token',
  from: '127.0.0.1',
  subject: NO_SUBJECT,
  ...more,
});
const DONE: OperationResult = { answer: '{"replicas":0}', failure: null, reason: null };
const failed = (code: 'workload_conflict' | 'cluster_unreachable'): OperationResult => ({
  answer: null,
  failure: { code, message: 'because' },
  reason: null,
});
const begin = ({ operations }: Cloud, more: Partial<OperationRequest> = {}) =>
  operations.ask('begin', { request: request(more) });
const settle = ({ operations }: Cloud, id: string, result = DONE) =>
  operations.ask('settle', { id, subject: NO_SUBJECT, result });
const ends = async (here: Cloud): Promise<Json[]> =>
  (await auditOf(here)).filter(({ type }: Json) => type.startsWith('operation.'));

it('an operation is done once for a key, and answered the same, also after a restart', async () => {
  const here = await cloud();
  const first = await begin(here, { key: 'k' });
  expect(first).toMatchObject({ run: true, result: null });
  // One that comes meanwhile waits for it.
  const second = begin(here, { key: 'k' });
  await settle(here, first.id);
  const answered = { id: first.id, run: false, result: DONE };
  expect(await second).toEqual(answered);
  await expect(begin(here, { key: 'k', fingerprint: 'other' })).rejects.toMatchObject({ code: 'key_reused' });
  await here.stop();
  const next = await cloud({ folder: here.folder, vault: here.vault });
  expect(await begin(next, { key: 'k' })).toEqual(answered);
  expect(await ends(next)).toMatchObject([
    { type: 'operation.done', operation_id: first.id, who: 'token', from: '127.0.0.1', result: 'ok' },
  ]);
});

it('a request without a key is another operation, whose response is not kept', async () => {
  const here = await cloud();
  const [one, other] = [await begin(here), await begin(here)];
  expect(one.id).not.toBe(other.id);
  await settle(here, one.id);
  const { operation } = await here.operations.ask('read', { id: one.id });
  expect(operation).toMatchObject({ state: 'done', result: { answer: null } });
  expect(await here.operations.ask('read', { id: 'nobody' })).toEqual({ operation: null });
});

it('an operation that was withdrawn has no event, also after a restart', async () => {
  const here = await cloud();
  const { id } = await begin(here);
  const result: OperationResult = { answer: null, failure: null, reason: 'it was no longer wanted' };
  await here.operations.ask('settle', { id, subject: NO_SUBJECT, result, isWithdrawn: true });
  const { id: other } = await begin(here);
  await settle(here, other);
  await here.stop();
  const next = await cloud({ folder: here.folder, vault: here.vault });
  expect((await next.operations.ask('read', { id })).operation).toMatchObject({ state: 'done', result });
  const { id: last } = await begin(next);
  await settle(next, last);
  expect((await ends(next)).map(({ operation_id }) => operation_id)).toEqual([other, last]);
});

it('an operation is retried after a temporary error, and not after another', async () => {
  const here = await cloud();
  const { id } = await begin(here, { key: 'passes' });
  await settle(here, id, failed('cluster_unreachable'));
  expect(await begin(here, { key: 'passes' })).toEqual({ id, run: true, result: null });
  await settle(here, id);
  const stays = await begin(here, { key: 'stays' });
  await settle(here, stays.id, failed('workload_conflict'));
  expect(await begin(here, { key: 'stays' })).toMatchObject({
    run: false,
    result: { failure: { message: 'because' } },
  });
  expect((await ends(here)).map(({ result }) => result)).toEqual([
    'cluster_unreachable',
    'ok',
    'workload_conflict',
  ]);
});

it('a request that waits for an operation gets its temporary error, and makes no further attempt', async () => {
  const here = await cloud();
  const { id } = await begin(here, { key: 'shared' });
  const others = [begin(here, { key: 'shared' }), begin(here, { key: 'shared' })];
  await settle(here, id, failed('cluster_unreachable'));
  const answer = { id, run: false, result: { failure: { code: 'cluster_unreachable' } } };
  expect(await Promise.all(others)).toMatchObject([answer, answer]);
  expect((await ends(here)).map(({ result }) => result)).toEqual(['cluster_unreachable']);
});

it('an operation is forgotten when it is too old', async () => {
  const { cloudStore: store } = openCloudStore(tempDir());
  const old = {
    ...request({ key: 'old' }),
    state: 'done',
    result: DONE,
    isTold: true,
    settledAt: 1,
  } as const;
  const askedAt = realTime.now() - CLOUD_OPERATIONS.keptMs - 1;
  await store.saveOperation({ id: '01AAAAAAAAAAAAAAAAAAAAAAAA', ...old, askedAt }, []);
  const next = await cloud({ shared: store });
  expect(await begin(next, { key: 'old' })).toMatchObject({ run: true });
  await eventually(async () => !(await store.operations()).some(({ id }) => id.startsWith('01AAAA')));
});

it('the end of an operation that a kill kept from the journal is journaled once', async () => {
  const folder = tempDir();
  const { cloudStore: store } = openCloudStore(folder);
  const row = {
    ...request(),
    state: 'done',
    result: DONE,
    isTold: false,
    settledAt: 2,
    askedAt: realTime.now(),
  } as const;
  await store.saveOperation({ id: '01AAAAAAAAAAAAAAAAAAAAAAAB', ...row }, []);
  const first = await cloud({ shared: store, folder });
  await eventually(async () => (await ends(first)).length === 1);
  await first.stop();
  // As if the kill had come before it was marked.
  await store.saveOperation({ id: '01AAAAAAAAAAAAAAAAAAAAAAAB', ...row }, []);
  const second = await cloud({ shared: store, folder });
  await eventually(async () => (await store.operations()).every(({ isTold }) => isTold));
  expect(await ends(second)).toMatchObject([{ operation_id: '01AAAAAAAAAAAAAAAAAAAAAAAB', result: 'ok' }]);
});

it('the ends of operations on a full disk are journaled once, when there is room', async ({ skip }) => {
  const disk = smallDisk('256k');
  if (disk === undefined) return skip('no right to mount a small file system');
  const clock = virtualClock();
  const here = await cloud({ clock, shared: openCloudStore(tempDir()).cloudStore, folder: disk });
  const filler = join(disk, 'filler');
  fillDisk(filler);
  const ids: string[] = [];
  for (let count = 0; count < 12; count += 1) {
    const { id } = await begin(here);
    await settle(here, id);
    ids.push(id);
  }
  rmSync(filler);
  await clock.advance(CLOUD_EVENTS.retryMs);
  await eventually(async () => (await ends(here)).length >= ids.length);
  // One more, with which earlier ones would be written again.
  const { id } = await begin(here);
  await settle(here, id);
  await eventually(async () => (await ends(here)).some((end) => end.operation_id === id));
  expect((await ends(here)).map((end) => end.operation_id).sort()).toEqual([...ids, id].sort());
});

/** A cloud in virtual time whose journal crashes at each event while `isBroken`. */
async function withJournal(isBroken: boolean, options: CloudOptions = {}) {
  // Of today, as the files of the journal are: older ones are removed.
  const clock = virtualClock(Date.now());
  const journal = { isBroken };
  const history = (real: CloudHistory): CloudHistory =>
    Object.assign(Object.create(real), {
      async write(lines: readonly string[], now: number) {
        if (journal.isBroken) throw new Error('the journal is broken');
        await real.write(lines, now);
      },
    });
  const here = await cloud({ ...options, clock, history });
  /** Waits for `check`. An actor that has crashed starts again after a short time. */
  const passing = (check: () => boolean | Promise<boolean>) =>
    eventually(async () => {
      await clock.advance(5);
      return check();
    });
  /** Waits until the journal has crashed, at least once more. */
  const broken = () => passing(() => here.world.crashes.splice(0).length > 0);
  return {
    here,
    clock,
    broken,
    /** Ends an operation that the journal refuses. */
    async settleBroken(id: string, result?: OperationResult) {
      journal.isBroken = true;
      let isSettled = false;
      const settled = settle(here, id, result).then(() => {
        isSettled = true;
      });
      await passing(() => isSettled);
      await settled;
    },
    /** The ends in the journal once it has been mended and tried again. */
    async mended(): Promise<Json[]> {
      await broken();
      journal.isBroken = false;
      await clock.advance(CLOUD_EVENTS.retryMs);
      await passing(async () => (await ends(here)).length > 0);
      return ends(here);
    },
  };
}
const resultsOf = (told: readonly Json[]) => told.map(({ operation_id, result }) => [operation_id, result]);

it('the ends that a broken journal refused are journaled soon, once and in their order', async () => {
  const { here, settleBroken, mended } = await withJournal(false);
  const ids = await Promise.all([1, 2, 3].map(async () => (await begin(here)).id));
  for (const id of ids) await settleBroken(id);
  const { operation } = await here.operations.ask('read', { id: ids[0] ?? '' });
  const told = await mended();
  expect(resultsOf(told)).toEqual(ids.map((id) => [id, 'ok']));
  expect(Date.parse(told[0].at)).toBe(operation?.settledAt);
});

it('each end of an operation that is retried is journaled as it was, also by a journal that was broken', async () => {
  const { here, clock, settleBroken, mended } = await withJournal(false);
  const { id } = await begin(here, { key: 'k' });
  await settle(here, id, failed('cluster_unreachable'));
  await begin(here, { key: 'k' });
  await clock.advance(1);
  // Like the end before it in everything but its time.
  await settleBroken(id, failed('cluster_unreachable'));
  await begin(here, { key: 'k' });
  await mended();

  await settle(here, id);
  expect(resultsOf(await ends(here))).toEqual([
    [id, 'cluster_unreachable'],
    [id, 'cluster_unreachable'],
    [id, 'ok'],
  ]);
});

it('an interrupted operation is journaled as such, also by a journal that was broken', async () => {
  const { cloudStore: store } = openCloudStore(tempDir());
  const folder = tempDir();
  const id = '01AAAAAAAAAAAAAAAAAAAAAAAC';
  const asked = { state: 'asked', askedAt: realTime.now(), settledAt: null, result: null } as const;
  await store.saveOperation({ id, ...request({ action: 'removeCluster' }), ...asked, isTold: false }, []);
  const first = await withJournal(true, { shared: store, folder });
  await first.broken();
  await first.here.stop();
  const second = await withJournal(true, { shared: store, folder });
  const reason = `${CUT_OFF}; it may have been done`;
  expect(await second.mended()).toMatchObject([
    { type: 'operation.interrupted', operation_id: id, result: 'interrupted', reason },
  ]);
  const { operation } = await second.here.operations.ask('read', { id });
  expect(operation).toMatchObject({ state: 'failed', result: { answer: null, failure: null, reason } });
  expect(operation && resultCodeOf(operation)).toBe('interrupted');
});

it('no further operation begins while too many ends wait for the journal', async () => {
  const { cloudStore: store } = openCloudStore(tempDir());
  const ended = { state: 'done', askedAt: realTime.now(), result: DONE, isTold: false } as const;
  const rows = Array.from({ length: CLOUD_EVENTS.maxWaiting }, (_, index): StoredOperation => {
    const id = `01${String(index).padStart(24, '0')}`;
    return { id, ...request(), ...ended, settledAt: index };
  });
  await Promise.all(rows.map((row) => store.saveOperation(row, [])));
  const { here, mended } = await withJournal(true, { shared: store });
  await expect(begin(here)).rejects.toMatchObject({ code: 'storage_full' });
  expect((await mended()).map((end) => end.operation_id)).toEqual(rows.map(({ id }) => id));
  await eventually(async () => (await store.operations()).every(({ isTold }) => isTold));
  await begin(here);
});

/** A cloud whose daemon ended in the middle of a sleep with the key `k`, and the id of the operation. */
async function cutOff(
  wasDone: boolean,
): Promise<{ next: Cloud; id: string; workloadId: string; replicas: () => number }> {
  const double = await doubleWith('hello');
  const here = await cloud();
  const clusterId = await here.add(double.kubeconfig);
  const workloadId = here.find('web/hello').id;
  const subject = { ...NO_SUBJECT, clusterId, workloadId };
  const { id } = await begin(here, { key: 'k', subject });
  if (wasDone)
    await here.workloads.ask('sleep', { id: workloadId, by: 'request', holdMs: null, operation: id });
  await here.stop();
  const next = await cloud({ folder: here.folder, vault: here.vault });
  const replicas = (): number => double.get('Deployment', 'web', 'hello')?.spec?.replicas;
  return { next, id, workloadId, replicas };
}

it('an operation that was interrupted after its change is answered, journaled once, and not done again', async () => {
  const { next, id, workloadId, replicas } = await cutOff(true);
  // A later operation on the same workload waits until it is known what became of the first.
  const later = await begin(next, { action: 'wakeWorkload', subject: { ...NO_SUBJECT, workloadId } });
  await next.workloads.ask('wake', { id: workloadId, by: 'request', waitMs: null, operation: later.id });
  const again = await begin(next, { key: 'k' });
  expect(again).toMatchObject({ id, run: false, result: { answer: '{"replicas":0}' } });
  expect(replicas()).toBe(3);
  expect(await ends(next)).toMatchObject([
    { type: 'operation.done', operation_id: id, workload_id: workloadId },
  ]);
});

it('an operation that was interrupted before its change fails, and a retry does it under the same id', async () => {
  const { next, id, workloadId, replicas } = await cutOff(false);
  const again = await begin(next, { key: 'k' });
  expect(again).toEqual({ id, run: true, result: null });
  await next.workloads.ask('sleep', { id: workloadId, by: 'request', holdMs: null, operation: id });
  await settle(next, id);
  expect(replicas()).toBe(0);
  const told = await ends(next);
  expect(told.map(({ type }) => type)).toEqual(['operation.interrupted', 'operation.done']);
  expect(told[0].reason).toContain('was not done');
});

const BY = { who: 'token', from: '127.0.0.1', operationId: null };

/** By the action: creates what it removes, and returns how to name and remove that. */
const REMOVALS: Readonly<Record<string, (here: Cloud) => Promise<Removal>>> = {
  async removePolicy({ policies }) {
    await policies.ask('put', {
      name: 'night',
      input: policyInput({ selector: { namespaces: ['web'] }, idle_timeout_minutes: 5 }),
    });
    return { target: 'night', remove: ({ policies: owner }) => owner.ask('remove', { name: 'night' }) };
  },
  async revokeToken({ principals }) {
    await principals.ask('createToken', { name: 'ci', expiresAt: null, by: BY });
    return {
      target: 'ci',
      remove: ({ principals: owner }) => owner.ask('revokeToken', { name: 'ci', by: BY }),
    };
  },
  async removeGrant({ principals }) {
    const to = { kind: 'user', name: 'ada' } as const;
    const input = { to, role: 'waker', clusterId: null, namespace: null, labels: null } as const;
    const { id } = await principals.ask('createGrant', { input, by: BY });
    return { target: id, remove: ({ principals: owner }) => owner.ask('removeGrant', { id, by: BY }) };
  },
  async removeCluster(here) {
    const id = await here.add((await doubleWith('hello')).kubeconfig);
    return { target: id, remove: ({ clusters }) => clusters.ask('remove', { id }) };
  },
};
interface Removal {
  target: string;
  remove(here: Cloud): Promise<object>;
}

const failureOf = async (work: Promise<object>): Promise<OperationFailure> =>
  work.then(
    () => expect.fail('it did not fail'),
    ({ code, message }) => ({ code, message }),
  );

describe.each(Object.entries(REMOVALS))('%s', (action, create) => {
  const open = async () => {
    const here = await cloud();
    const { target, remove } = await create(here);
    const asked = () => begin(here, { key: 'k', action, target });
    return { here, target, remove, asked, id: (await asked()).id };
  };
  const reopened = ({ folder, vault }: Cloud) => cloud({ folder, vault });

  it('that was interrupted after its change is answered and journaled as done', async () => {
    const { here, target, remove, id } = await open();
    const answer = await remove(here);
    await here.stop();
    const next = await reopened(here);
    const again = await begin(next, { key: 'k', action, target });
    expect(again).toMatchObject({ id, run: false, result: { answer: JSON.stringify(answer) } });
    await eventually(async () => (await ends(next)).length > 0);
    const told = await ends(next);
    expect(told).toMatchObject([{ type: 'operation.done', operation_id: id, action }]);
    expect(told[0].reason).toContain(` ${target}; `);
  });

  it('that was interrupted before its change is carried out by a retry', async () => {
    const { here, target, remove, id } = await open();
    await here.stop();
    const next = await reopened(here);
    const again = await begin(next, { key: 'k', action, target });
    expect(again).toEqual({ id, run: true, result: null });
    const answer = JSON.stringify(await remove(next));
    await settle(next, id, { ...DONE, answer });
    const told = await ends(next);
    expect(told.map(({ type }) => type)).toEqual(['operation.interrupted', 'operation.done']);
    expect(told[0].reason).toContain('was not done');
  });

  it('that failed after its change is done by a retry that finds nothing', async () => {
    const { here, remove, asked, id } = await open();
    const answer = await remove(here);
    await settle(here, id, failed('cluster_unreachable'));
    expect(await asked()).toEqual({ id, run: true, result: null });
    const missing = await failureOf(remove(here));
    const { result } = await settle(here, id, { answer: null, failure: missing, reason: null });
    expect(result).toMatchObject({ answer: JSON.stringify(answer), failure: null });
    expect(await asked()).toMatchObject({ run: false, result });
    expect((await ends(here)).map(({ result: code }) => code)).toEqual(['cluster_unreachable', 'ok']);
  });

  it('of what another one has removed stays a failure', async () => {
    const { here, target, remove, id } = await open();
    await here.stop();
    const next = await reopened(here);
    // The first attempt was not carried out, so the retry comes too late.
    await eventually(async () => (await ends(next)).length === 1);
    await remove(next);
    await begin(next, { key: 'k', action, target });
    const missing = await failureOf(remove(next));
    const late = { answer: null, failure: missing, reason: null };
    expect(await settle(next, id, late)).toEqual({ result: late });
    // So does a first attempt that found nothing.
    const first = await begin(next, { action, target });
    expect(await settle(next, first.id, late)).toEqual({ result: late });
  });
});

it('an operation leaves its id on the workload, so that a repeated step changes nothing', async () => {
  const double = await doubleWith('hello');
  const here = await cloud();
  const clusterId = await here.add(double.kubeconfig);
  const { id } = here.find('web/hello');
  const operation = '01KAS00000000000000000000A';
  const sleep = () => here.workloads.ask('sleep', { id, by: 'request', holdMs: null, operation });
  expect(await sleep()).toEqual({ replicas: 0, slept: true });
  // Something else undoes it, which leaves the receipt behind.
  double.change('Deployment', 'web', 'hello', (object: Json) => {
    object.spec.replicas = 2;
  });
  expect(await sleep()).toEqual({ replicas: 0, slept: false });
  expect(double.get('Deployment', 'web', 'hello')?.spec?.replicas).toBe(2);
  const change = {
    to: 'asleep',
    holdMs: null,
    isDryRun: false,
    clusterId,
    namespaces: null,
    states: null,
  } as const;
  const again = await here.workloads.ask('changeMany', { ...change, selector: null, operation });
  expect(again).toMatchObject([{ outcome: 'changed', replicas: 0 }]);
});
