// The rows of all workloads without a cluster: observations are given by hand.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { loadedWorkload } from '../../../src/actors/cloud/stored_workload.ts';
import { observe } from '../../../src/actors/cloud/workload_record.ts';
import { WorkloadTable, type WorkloadTableOwner } from '../../../src/actors/cloud/workload_table.ts';
import type { CloudStore } from '../../../src/adapters/storage/cloud_store.ts';
import type { ObservedWorkload } from '../../../src/protocol/cloud.ts';
import { tempDir, virtualClock } from '../../kit/actors.ts';
import { openCloudStore } from '../../kit/cloud.ts';
import { observedWorkload } from '../../kit/observed_workload.ts';

/** In place of CLOUD.maxWorkloadsPerKind, whose rows take seconds to make. */
const MAX = 1_000;

function tableWith(
  save: CloudStore['save'],
  tell: (type: string) => void = () => undefined,
  max?: number,
): WorkloadTable {
  const { cloudStore } = openCloudStore(tempDir());
  const clock = virtualClock();
  const owner: WorkloadTableOwner = {
    clock,
    steady: clock,
    self: 'here',
    onRowChange: () => undefined,
    audit: { changeEvents: () => [] },
    rulesOf: () => ({ policy: null, after: null }),
    onDefect: (error) => expect.fail(String(error)),
  };
  return new WorkloadTable({ ...cloudStore, save }, { tell }, owner, max);
}

describe('the table of workloads', () => {
  it('accepts from a watch as many new rows as a listing may have, for each kind of each cluster', () => {
    // None of this needs a disk.
    const table = tableWith(() => Promise.resolve(), undefined, MAX);
    const all = Array.from({ length: MAX }, (_, index) => observedWorkload('Deployment', `w${index}`));
    table.replace('one', { kind: 'Deployment', namespace: null }, all, 0);
    table.observe('one', observedWorkload('Deployment', 'more'));
    expect(table.ids()).toHaveLength(MAX);
    table.observe('one', observedWorkload('StatefulSet', 'more'));
    table.observe('two', observedWorkload('Deployment', 'more'));
    expect(table.ids()).toHaveLength(MAX + 2);
    // A known workload is still updated, and a removed one makes room.
    table.observe('one', { ...observedWorkload('Deployment', 'w0'), version: '2', replicas: 7 });
    expect(table.rows()[0]?.seen.replicas).toBe(7);
    table.markDeleted('one', observedWorkload('Deployment', 'w0'));
    table.observe('one', observedWorkload('Deployment', 'more'));
    table.observe('one', observedWorkload('Deployment', 'yet-more'));
    expect(table.ids()).toHaveLength(MAX + 2);
    table.forgetCluster('one');
    table.observe('one', observedWorkload('Deployment', 'more'));
    expect(table.ids()).toHaveLength(2);
  });

  it('saves and shows what was known, however often a cluster changes it meanwhile', async () => {
    let commits = 0;
    const tables: WorkloadTable[] = [];
    const table = tableWith(async () => {
      commits += 1;
      await nextTurn();
      // Another change is there whenever a commit ends.
      const version = String(commits + 1);
      if (commits < 100) tables[0]?.observe('one', { ...observedWorkload('Deployment', 'w'), version });
    });
    tables.push(table);
    table.observe('one', observedWorkload('Deployment', 'w'));
    await table.flush();
    expect(commits).toBeLessThan(10);
  });

  it('at its end saves what has changed and shows none of it, as others may wait for the clusters', async () => {
    const saved: string[] = [];
    let told = 0;
    const table = tableWith(
      async ({ records, views }) => {
        saved.push(...records.map(({ record }) => record?.seen.name ?? ''));
        told += views.length;
      },
      () => (told += 1),
    );
    table.observe('one', observedWorkload('Deployment', 'w0'));
    await table.flush();
    const shown = told;
    expect(shown).toBeGreaterThan(0);
    table.observe('one', observedWorkload('Deployment', 'w1'));
    table.setStaleSince('one', { kind: 'Deployment', namespace: null }, 5);
    await table.close();
    expect(saved).toEqual(['w0', 'w1']);
    expect(told).toBe(shown);
  });
});

describe('a stored record', () => {
  const NOW = 1_000;
  const record = observe(undefined, 'one', observedWorkload('Deployment', 'web'), { self: 'here', now: NOW });

  it('is loaded as it is', () => {
    expect(loadedWorkload(structuredClone(record), NOW)).toEqual(record);
  });

  it.each(['lastActivityAt', 'scaledAt', 'maxReplicas', 'isReceiptSpent', 'span', 'switched'] as const)(
    'of a version without %s gets it',
    (field) => {
      const { [field]: _, ...earlier } = record;
      expect(loadedWorkload(earlier, NOW)).toEqual(record);
    },
  );

  it.each(['generation', 'labels', 'replicaSet', 'wakeReceipt', 'activity', 'sleep', 'requests'] as const)(
    'of a version that did not look at %s gets a default for it',
    (field) => {
      const { [field]: _, ...seen } = record.seen;
      const loaded = loadedWorkload({ ...record, seen: seen as ObservedWorkload }, NOW);
      expect(loaded.seen[field]).toBeDefined();
    },
  );

  it('of a version whose receipts lack their origin gets null for it', () => {
    const receipt = { replicas: 2, at: 5, by: 'request' } as ObservedWorkload['receipt'];
    const loaded = loadedWorkload({ ...record, seen: { ...record.seen, receipt } }, NOW);
    expect(loaded.seen.receipt).toMatchObject({ replicas: 2, from: null, holdUntil: null });
  });

  it('with times ahead of the clock counts them as now', () => {
    const ahead = { ...record, usedAt: NOW + 5, scaledAt: NOW + 5 };
    expect(loadedWorkload(ahead, NOW)).toMatchObject({ usedAt: NOW, scaledAt: NOW });
  });
});
