// The rows of all workloads without a cluster: looks are given by hand.
import { describe, expect, it } from 'vitest';
import { WorkloadTable } from '../../../src/actors/cloud/workload_table.ts';
import type { ObservedWorkload, WorkloadKind } from '../../../src/protocol/cloud.ts';
import { CLOUD } from '../../../src/settings/limits.ts';
import { tempDir, virtualClock } from '../../kit/actors.ts';
import { openCloudStore } from '../../kit/cloud.ts';

const look = (kind: WorkloadKind, name: string): ObservedWorkload => ({
  ...{ kind, name, namespace: 'web', uid: `uid-${name}`, version: '1', replicas: 1, pods: 1, ready: 1 },
  ...{ observed: true, selector: `app=${name}`, receipt: null, scaledBy: null, keeper: null },
});

describe('the table of workloads', () => {
  it('takes no more new ones of a watch than a listing may have, of each kind of each cluster', () => {
    const { cloudStore } = openCloudStore(tempDir());
    const table = new WorkloadTable(
      // Nothing of this need be on disk.
      { ...cloudStore, saveWorkloads: () => Promise.resolve() },
      { tell: () => undefined },
      {
        clock: virtualClock(),
        onRowChange: () => undefined,
        onDefect: (error) => expect.fail(String(error)),
      },
    );
    const all = Array.from({ length: CLOUD.maxWorkloadsPerKind }, (_, index) =>
      look('Deployment', `w${index}`),
    );
    table.replace('one', ['Deployment'], all, 0);
    table.observe('one', look('Deployment', 'more'));
    expect(table.ids()).toHaveLength(CLOUD.maxWorkloadsPerKind);
    table.observe('one', look('StatefulSet', 'more'));
    table.observe('two', look('Deployment', 'more'));
    expect(table.ids()).toHaveLength(CLOUD.maxWorkloadsPerKind + 2);
    // One that is known is still seen, and one that goes makes room.
    table.observe('one', { ...look('Deployment', 'w0'), version: '2', replicas: 7 });
    expect(table.rows()[0]?.seen.replicas).toBe(7);
    table.markDeleted('one', look('Deployment', 'w0'));
    table.observe('one', look('Deployment', 'more'));
    table.observe('one', look('Deployment', 'yet-more'));
    expect(table.ids()).toHaveLength(CLOUD.maxWorkloadsPerKind + 2);
    table.forgetCluster('one');
    table.observe('one', look('Deployment', 'more'));
    expect(table.ids()).toHaveLength(2);
  });
});
