// What workloads save while they sleep, over the wire-accurate double, with a clock that is turned.
// docs/reference.md "Savings".
import { describe, expect, it } from 'vitest';
import { countSleep, SavingsTotals, savingsOf, savingsUntil } from '../../../src/actors/cloud/savings.ts';
import { loadedWorkload } from '../../../src/actors/cloud/stored_workload.ts';
import { observe } from '../../../src/actors/cloud/workload_record.ts';
import type { CloudStore } from '../../../src/adapters/storage/cloud_store.ts';
import type { ObservedWorkload, StoredWorkload } from '../../../src/protocol/cloud.ts';
import { ALL_SAVINGS, type StoredSavings, savingsCsv } from '../../../src/protocol/savings.ts';
import { type Cloud, cloud, doubleWith, eventually, giveNamespaces } from '../../kit/cloud.ts';
import { type Double, type Json, workload } from '../../kit/kube_double.ts';
import { observedWorkload } from '../../kit/observed_workload.ts';
import { settableClock } from '../../kit/policies.ts';

const START = Date.parse('2030-01-07T12:00Z');
const HOUR = 3_600_000;

/** A Deployment of three pods, each with half a core and 1 GiB. */
function put(double: Double, name: string, namespace = 'web'): void {
  const object = workload(namespace, name, 3);
  object.spec.template.spec.containers[0].resources = { requests: { cpu: '500m', memory: '1Gi' } };
  double.put('Deployment', object);
}

async function ready(options: Parameters<typeof cloud>[0] = {}) {
  const double = await doubleWith();
  put(double, 'hello');
  const clock = settableClock('2030-01-07T12:00Z');
  const here = await cloud({ clock, sweepMs: 100_000_000_000, ...options });
  await here.add(double.kubeconfig);
  return { double, clock, here };
}

const idOf = (here: Cloud, name = 'web/hello'): string => here.find(name).id;
const sleep = (here: Cloud, name?: string) =>
  here.workloads.ask('sleep', { id: idOf(here, name), by: 'request', holdMs: null });
const wake = (here: Cloud, name?: string) =>
  here.workloads.ask('wake', { id: idOf(here, name), by: 'request', waitMs: null });

/** web/hello and web/other, asleep. */
async function bothAsleep() {
  const { double, clock, here } = await ready();
  put(double, 'other');
  await here.until('web/other', () => true);
  await sleep(here);
  await sleep(here, 'web/other');
  return { double, clock, here };
}

const savings = (here: Cloud): Promise<StoredSavings[]> => here.workloads.ask('savings', ALL_SAVINGS);

/** Pod-seconds by month and namespace, to the second. */
async function podSeconds(here: Cloud): Promise<Record<string, number>> {
  const rows = await savings(here);
  return Object.fromEntries(
    rows.map((row) => [`${row.month} ${row.namespace}`, Math.round(row.podSeconds)] as const),
  );
}

describe('a sleep', () => {
  it('is counted with the requests of its pods, while it lasts and afterwards', async () => {
    const { clock, here } = await ready();
    expect(await savings(here)).toEqual([]);
    await sleep(here);
    clock.set('2030-01-07T12:00Z');
    await clock.advance(10_000);
    const [row] = await savings(here);
    expect(row).toMatchObject({ namespace: 'web', month: '2030-01', podSeconds: 30, cpuSeconds: 15 });
    expect(row?.memorySeconds).toBe(30 * 2 ** 30);
    await clock.advance(10_000);
    await wake(here);
    expect(await podSeconds(here)).toEqual({ '2030-01 web': 60 });
    await clock.advance(10_000);
    expect(await podSeconds(here)).toEqual({ '2030-01 web': 60 });
    await sleep(here);
    await clock.advance(5_000);
    expect(await podSeconds(here)).toEqual({ '2030-01 web': 75 });
  });

  it('counts until the workload is deleted, or recreated with its old receipt', async () => {
    const { clock, here, double } = await bothAsleep();
    await clock.advance(10_000);
    double.remove('Deployment', 'web', 'other');
    await eventually(() => here.find('web/other') === undefined);
    expect(await podSeconds(here)).toEqual({ '2030-01 web': 60 });
    double.put('Deployment', double.get('Deployment', 'web', 'hello'), true);
    await clock.advance(10_000);
    await eventually(async () => (await podSeconds(here))['2030-01 web'] === 90);
  });

  it('counts until its namespace is no longer listed, and on from there if it is listed again', async () => {
    const { clock, here, double } = await bothAsleep();
    await clock.advance(10_000);
    const { cluster_id: clusterId } = here.find('web/hello');
    await giveNamespaces(here, clusterId, ['elsewhere']);
    await eventually(() => here.find('web/hello') === undefined);
    expect(await podSeconds(here)).toEqual({ '2030-01 web': 60 });
    double.remove('Deployment', 'web', 'other');
    await clock.advance(10_000);
    expect(await podSeconds(here)).toEqual({ '2030-01 web': 60 });
    await giveNamespaces(here, clusterId, ['web']);
    await here.until('web/hello', () => true);
    await clock.advance(10_000);
    expect(await podSeconds(here)).toEqual({ '2030-01 web': 120 });
  });

  it.each([
    ['a year ahead', '2031-01-07T12:00Z'],
    ['back to 1970', '1970-01-01T00:00Z'],
  ])('is not changed by a clock that is set %s', async (_what, to) => {
    const { clock, here } = await ready();
    await sleep(here);
    await clock.advance(10_000);
    clock.set(to);
    await clock.advance(10_000);
    expect(await podSeconds(here)).toEqual({ '2030-01 web': 60 });
    await wake(here);
    await sleep(here);
    await clock.advance(10_000);
    expect(await podSeconds(here)).toEqual({ '2030-01 web': 90 });
  });

  it('continues while Berth is off, and then ends at the time recorded by the wake', async () => {
    const { clock, here, double } = await bothAsleep();
    await here.stop();
    const from = clock.now();
    clock.set(new Date(from + HOUR).toISOString());
    double.change('Deployment', 'web', 'other', (object: Json) => {
      object.spec.replicas = 3;
      const receipt = { at: from + HOUR / 2, by: 'request', from: 'elsewhere' };
      object.metadata.annotations = { 'berth/wake': JSON.stringify(receipt) };
    });
    const later = await cloud({ folder: here.folder, vault: here.vault, clock });
    await later.until('web/other', ({ replicas }) => replicas === 3);
    expect(await podSeconds(later)).toEqual({ '2030-01 web': 3 * 3_600 + 3 * 1_800 });
  });

  it('is counted once, whichever commit the end of the daemon interrupted', async () => {
    let isKilled = false;
    const store = (embedded: CloudStore): CloudStore => ({
      ...embedded,
      save: (batch) => (isKilled ? Promise.resolve() : embedded.save(batch)),
    });
    const { clock, here } = await ready({ store });
    await sleep(here);
    await clock.advance(10_000);
    // Nothing reaches the disk any more.
    isKilled = true;
    await wake(here);
    expect(await podSeconds(here)).toEqual({ '2030-01 web': 30 });
    await here.stop();
    await clock.advance(HOUR);
    const later = await cloud({ folder: here.folder, vault: here.vault, clock });
    await later.until('web/hello', ({ replicas }) => replicas === 3);
    expect(await podSeconds(later)).toEqual({ '2030-01 web': 30 });
    await later.stop();
    const last = await cloud({ folder: here.folder, vault: here.vault, clock });
    expect(await podSeconds(last)).toEqual({ '2030-01 web': 30 });
  });

  it('by another Berth counts from its receipt, but at most a year back for a forged one', async () => {
    const double = await doubleWith();
    const receiptOf = (at: number) => ({ replicas: 3, at, by: 'request', from: 'elsewhere' });
    for (const [name, at] of [
      ['theirs', START - HOUR],
      ['forged', 0],
    ] as const) {
      put(double, name, name);
      double.change('Deployment', name, name, (object: Json) => {
        object.spec.replicas = 0;
        object.metadata.annotations = { 'berth/sleep': JSON.stringify(receiptOf(at)) };
      });
    }
    const here = await cloud({ clock: settableClock('2030-01-07T12:00Z') });
    await here.add(double.kubeconfig);
    const all = await savings(here);
    const theirs = all.filter(({ namespace }) => namespace === 'theirs');
    expect(theirs.map((row) => Math.round(row.podSeconds / 60))).toEqual([180]);
    const forged = all.filter(({ namespace }) => namespace === 'forged');
    expect(forged.reduce((sum, row) => sum + row.podSeconds, 0) / 86_400).toBeCloseTo(3 * 366, 0);
    expect(forged[0]?.month).toBe('2029-01');
  });
});

describe('a count', () => {
  const seen: ObservedWorkload = {
    ...observedWorkload('Deployment', 'a'),
    ...{ replicas: 3, pods: 3, ready: 3, requests: { cpu: 1, memory: 1 } },
  };
  const row = (more: Partial<ObservedWorkload>, before?: StoredWorkload): StoredWorkload =>
    observe(before, 'c', { ...seen, ...more }, { self: 'here', now: START });
  const asleep = (at: number, before?: StoredWorkload): StoredWorkload =>
    row({ replicas: 0, receipt: { replicas: 3, at, by: 'idle', from: 'here', holdUntil: null } }, before);

  it('of a sleep with an unseen end stops when the workload was last seen', () => {
    const before = { ...asleep(START), span: { since: START, pods: 3, cpu: 1, memory: 1 } };
    const sight = { seenAt: START + HOUR, now: START + 5 * HOUR, countedTo: 0 };
    for (const after of [row({}, before), undefined])
      expect(countSleep(before, after, sight)).toMatchObject({ span: null, ended: { until: START + HOUR } });
    // Woken and put to sleep again meanwhile.
    const again = countSleep(before, asleep(START + 4 * HOUR, before), sight);
    expect(again).toMatchObject({ span: { since: START + 4 * HOUR }, ended: { until: START + HOUR } });
  });

  it('of a recreated workload begins where its namespace has been counted to', () => {
    const sight = { seenAt: Number.NEGATIVE_INFINITY, now: START + 5 * HOUR, countedTo: START + HOUR };
    expect(countSleep(undefined, asleep(START), sight).span?.since).toBe(START + HOUR);
  });

  it('is divided among months, and never negative', () => {
    const span = { since: Date.parse('2030-01-31T23:59:50Z'), pods: 2, cpu: 0, memory: 0 };
    const place = { clusterId: 'c', namespace: 'web', span };
    const until = Date.parse('2030-03-01T00:00:10Z');
    expect(savingsOf({ ...place, until }).map(({ month, podSeconds: s }) => [month, s])).toEqual([
      ['2030-01', 20],
      ['2030-02', 2 * 28 * 86_400],
      ['2030-03', 20],
    ]);
    expect(savingsOf({ ...place, until: span.since - HOUR })).toEqual([]);
    const totals = new SavingsTotals(savingsOf({ ...place, until }));
    const of = (selection: object) =>
      savingsUntil(totals, [], until, { ...ALL_SAVINGS, ...selection }).map(({ month }) => month);
    expect(of({ from: '2030-02' })).toEqual(['2030-02', '2030-03']);
    expect(of({ to: '2030-01' })).toEqual(['2030-01']);
    expect([of({ namespaces: ['data'] }), of({ clusterId: 'd' })]).toEqual([[], []]);
  });

  it('of a record of an earlier version begins with its receipt', () => {
    const { span: _, ...earlier } = asleep(START - HOUR);
    expect(loadedWorkload(earlier, START).span).toBeNull();
    const sight = { seenAt: Number.NEGATIVE_INFINITY, now: START, countedTo: 0 };
    expect(countSleep(undefined, loadedWorkload(earlier, START), sight).span?.since).toBe(START - HOUR);
  });
});

it('a name in CSV is not a formula', () => {
  const item = { month: '2030-01', cluster_id: 'a', namespace: 'web', pod_seconds: 1 };
  const amounts = { cpu_request_core_seconds: 0, memory_request_byte_seconds: 2 };
  const line = (cluster: string): string | undefined =>
    savingsCsv([{ ...item, ...amounts, cluster }]).split('\r\n')[1];
  expect(line('dev')).toBe('2030-01,a,dev,web,1,0,2');
  expect(line('=HYPERLINK("x")')).toBe('2030-01,a," =HYPERLINK(""x"")",web,1,0,2');
  expect(line('a,b')).toBe('2030-01,a,"a,b",web,1,0,2');
});
