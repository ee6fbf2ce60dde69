// The pages of workloads in the dashboard, and how lists group and search them.
import { describe, expect, it } from 'vitest';
import type { Workload } from '../../src/client/records.ts';
import { WorkloadPages } from '../../src/dashboard/state/workload_pages.ts';
import { foundWorkloads, workloadGroupsOf } from '../../src/presentation/workload_groups.ts';

const workload = (id: string, more: Partial<Workload> = {}): Workload => ({
  ...{ id, name: id, namespace: 'shop', kind: 'Deployment', cluster_id: 'c1', state: 'awake' },
  ...{ replicas: 1, ready_replicas: 1, desired_replicas: null, last_activity_at: null },
  ...{ auto_sleep_enabled: false, idle_timeout_minutes: 30, sleep_reason: null, wake_reason: null },
  ...{ stale_since: null, policy: null, after: null, managed_by: [] },
  ...more,
});

/** A daemon with `ids`, `limit` on a page, that notes where the pages it sent began. */
function server(ids: readonly string[], limit: number) {
  const sent: (string | null)[] = [];
  const pages = new WorkloadPages(async (from) => {
    sent.push(from);
    const at = from === null ? 0 : Number(from);
    const page = ids.slice(at, at + limit).map((id) => workload(id));
    return { page, next: at + limit < ids.length ? String(at + limit) : null };
  });
  return { pages, sent };
}

const IDS = ['a', 'b', 'c', 'd', 'e', 'f'];
const statesOf = (pages: WorkloadPages) => pages.rows.value.map(({ state }) => state).join(' ');

describe('the pages of workloads', () => {
  it('are all read at first, then those in sight and one in turn', async () => {
    const { pages, sent } = server(IDS, 2);
    await pages.refresh(new Set());
    expect([sent.splice(0), pages.isWhole.value]).toEqual([[null, '2', '4'], true]);
    await pages.refresh(new Set(['e', 'f']));
    expect(sent.splice(0)).toEqual(['4', '2']);
    await pages.refresh(new Set());
    expect(sent.splice(0)).toEqual(['4']);
  });

  it('are all read again after an interruption, and the rows stay meanwhile', async () => {
    const { pages, sent } = server(IDS, 2);
    await pages.refresh(new Set());
    sent.length = 0;
    pages.distrust();
    const shown: number[] = [];
    pages.rows.subscribe((rows) => shown.push(rows.length));
    await pages.refresh(new Set());
    expect(sent.splice(0)).toEqual([null, '2', '4']);
    expect(new Set(shown)).toEqual(new Set([6]));
    await pages.refresh(new Set());
    expect(sent).toHaveLength(1);
  });

  it('are all read again after a failure', async () => {
    let fails = true;
    const sent: (string | null)[] = [];
    const pages = new WorkloadPages(async (from) => {
      sent.push(from);
      if (from !== null && fails) throw new Error('gone');
      return { page: [workload(from ?? 'a')], next: from === null ? 'b' : null };
    });
    await expect(pages.refresh(new Set())).rejects.toThrow('gone');
    fails = false;
    await pages.refresh(new Set());
    expect(sent).toEqual([null, 'b', null, 'b']);
    expect(pages.rows.value.map(({ id }) => id)).toEqual(['a', 'b']);
  });

  it('are forgotten, and all read for the next token', async () => {
    const { pages, sent } = server(IDS, 2);
    await pages.refresh(new Set());
    sent.length = 0;
    pages.forget();
    expect([pages.rows.value, pages.isWhole.value]).toEqual([[], false]);
    await pages.refresh(new Set());
    expect([sent, pages.rows.value.length]).toEqual([[null, '2', '4'], 6]);
  });

  it('show the states that events tell, without a read, and change nothing else', async () => {
    const { pages, sent } = server(IDS, 2);
    await pages.refresh(new Set());
    sent.length = 0;
    const before = pages.rows.value;
    pages.setStates(new Map([['a', 'awake']]));
    expect(pages.rows.value).toBe(before);
    pages.setStates(
      new Map([
        ['c', 'asleep'],
        ['unknown', 'asleep'],
      ] as const),
    );
    expect([statesOf(pages), sent]).toEqual(['awake awake asleep awake awake awake', []]);
    expect(pages.rows.value[0]).toBe(before[0]);
  });

  it('prefer what was told during a read to its answer, and a later answer to that', async () => {
    let answer = (): void => {};
    const pages = new WorkloadPages(
      () =>
        new Promise((resolve) => {
          answer = () => resolve({ page: [workload('a'), workload('b')], next: null });
        }),
    );
    const first = pages.refresh(new Set());
    pages.setStates(new Map([['a', 'asleep']]));
    answer();
    await first;
    expect(statesOf(pages)).toBe('asleep awake');
    const second = pages.refresh(new Set());
    answer();
    await second;
    expect(statesOf(pages)).toBe('awake awake');
  });
});

describe('a list of workloads', () => {
  const clusters = new Map([
    ['c1', 'dev'],
    ['c2', 'prod'],
  ]);
  const all = [
    workload('cart'),
    workload('web', { state: 'asleep' }),
    workload('mail', { namespace: 'tools' }),
    workload('store', { cluster_id: 'c2', kind: 'StatefulSet' }),
  ];

  it('has a group for each namespace of each cluster', () => {
    const groups = workloadGroupsOf(all, clusters);
    const seen = groups.map(({ cluster, namespace, workloads }) => [cluster, namespace, workloads.length]);
    expect(seen).toEqual([
      ['dev', 'shop', 2],
      ['dev', 'tools', 1],
      ['prod', 'shop', 1],
    ]);
    expect(new Set(groups.map(({ key }) => key)).size).toBe(3);
  });

  it('is searched by name, namespace, cluster, state and kind', () => {
    const found = (...words: string[]) => foundWorkloads(all, words, clusters).map(({ name }) => name);
    expect(found('car')).toEqual(['cart']);
    expect(found('shop', 'dev')).toEqual(['cart', 'web']);
    expect(found('asleep')).toEqual(['web']);
    expect(found('statefulset')).toEqual(['store']);
    expect(found('tools', 'web')).toEqual([]);
    expect(foundWorkloads(all, [], clusters)).toBe(all);
  });
});
