// docs/reference.md "Lists of workloads".
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CloudViews } from '../../../src/front/views/cloud_views.ts';
import {
  arrayParts,
  readPageToken,
  workloadPage,
  workloadSlices,
} from '../../../src/front/views/workload_pages.ts';
import type { WorkloadRow, WorkloadSelection } from '../../../src/protocol/cloud.ts';
import { labelText } from '../../../src/protocol/labels.ts';
import { ALL_WORKLOADS } from '../../../src/protocol/workload_selection.ts';

const row = (id: string, clusterId: string, index: number): WorkloadRow => ({
  ...{ id, clusterId, kind: 'Deployment', namespace: `n${index % 3}`, name: id },
  ...{ labels: labelText({ app: id, tier: index % 2 ? 'odd' : 'even' }), replicas: 1, ready: 1 },
  ...{ desiredReplicas: null, autoSleep: false, idleMinutes: 30, lastActivityAt: null },
  ...{
    state: index % 5 ? 'awake' : 'asleep',
    sleepReason: null,
    wakeReason: null,
    staleSince: null,
    policy: null,
    after: null,
    managers: [],
  },
});

/** `count` workloads in two clusters, in no order. */
function views(count: number): { views: CloudViews; rows: WorkloadRow[] } {
  const made = new CloudViews();
  const rows = Array.from({ length: count }, (_, index) =>
    row(`w${String((index * 7919) % count).padStart(6, '0')}`, index % 4 ? 'one' : 'two', index),
  );
  made.setWorkloads(rows);
  return { views: made, rows };
}

const idsOf = (json: string): string[] => JSON.parse(json).map(({ id }: { id: string }) => id);

async function pagesOf(made: CloudViews, filter: WorkloadSelection, limit: number): Promise<string[][]> {
  const pages: string[][] = [];
  let token: string | null = null;
  do {
    const { json, next } = await workloadPage(
      made,
      filter,
      limit,
      token === null ? null : readPageToken(token),
      null,
    );
    pages.push(idsOf(json));
    token = next;
  } while (token !== null);
  return pages;
}

describe('pages of workloads', () => {
  it('contain every workload once, in the order of the whole list, whatever their size', async () => {
    const { views: made } = views(200);
    const whole = idsOf(made.workloads(null).toString());
    for (const limit of [1, 3, 100, 199, 200, 201]) {
      const pages = await pagesOf(made, ALL_WORKLOADS, limit);
      expect(pages.flat()).toEqual(whole);
      expect(pages.slice(0, -1).every(({ length }) => length === limit)).toBe(true);
      expect(pages.at(-1)?.length).toBeGreaterThan(0);
    }
  });

  it('contain what passes every filter', async () => {
    const { views: made, rows } = views(300);
    const filter = {
      clusterId: 'one',
      namespaces: ['n0', 'n2'],
      states: ['asleep'] as const,
      selector: 'tier=odd,app!=w000001',
    };
    const expected = rows
      .filter(
        ({ clusterId, namespace, state }) => clusterId === 'one' && namespace !== 'n1' && state === 'asleep',
      )
      .filter(({ labels, id }) => labels.includes('tier=odd') && id !== 'w000001')
      .map(({ id }) => id);
    expect(expected.length).toBeGreaterThan(3);
    expect((await pagesOf(made, filter, 2)).flat().sort()).toEqual(expected.sort());
  });

  it('continue at their place when workloads are added and removed meanwhile', async () => {
    const { views: made } = views(50);
    const first = await workloadPage(made, ALL_WORKLOADS, 10, null, null);
    const seen = idsOf(first.json);
    const after = readPageToken(first.next ?? '');
    // The last one of the page is what the token names.
    made.removeWorkloads(seen.slice(-3));
    const [last] = seen.slice(-1);
    const rest = idsOf((await workloadPage(made, ALL_WORKLOADS, 1_000, after, null)).json);
    expect(rest).toHaveLength(40);
    expect(rest).not.toContain(last);
    expect(new Set([...seen, ...rest]).size).toBe(50);
  });

  it('do not exist for an empty list', async () => {
    expect(await workloadPage(new CloudViews(), ALL_WORKLOADS, 10, null, null)).toEqual({
      json: '[]',
      next: null,
    });
    const { views: made } = views(10);
    const nowhere = { ...ALL_WORKLOADS, namespaces: ['nowhere'] };
    expect(await workloadPage(made, nowhere, 10, null, null)).toEqual({ json: '[]', next: null });
  });

  it('refuse any invalid token with invalid_spec', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.json().map((text) => Buffer.from(text).toString('base64url')),
        ),
        (token) => {
          try {
            expect(readPageToken(token).every((part) => typeof part === 'string')).toBe(true);
          } catch (error) {
            expect(error).toMatchObject({ code: 'invalid_spec' });
          }
        },
      ),
    );
  });
});

describe('a long list that is sent in parts', () => {
  it.each([0, 1, 1_023, 1_024, 5_000])('of %d workloads is the whole list', (count) => {
    const { views: made } = views(count);
    const parts = [...arrayParts(workloadSlices(made, ALL_WORKLOADS), null)];
    expect(JSON.parse(parts.join(''))).toEqual(JSON.parse(made.workloads(null).toString()));
    expect(parts.length).toBeGreaterThan(count / 1_024);
  });
});
