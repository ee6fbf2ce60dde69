// Many policies over many workloads, which share one thread with everything else of the cloud part:
// docs/reference.md "Policies".
import { describe, expect, it } from 'vitest';
import { WorkloadPolicies } from '../../../src/actors/cloud/workload_policies.ts';
import { observe } from '../../../src/actors/cloud/workload_record.ts';
import type { StoredWorkload } from '../../../src/protocol/cloud.ts';
import type { StoredPolicy } from '../../../src/protocol/policies.ts';
import { POLICY } from '../../../src/settings/cloud_limits.ts';
import { type TestClock, virtualClock } from '../../kit/actors.ts';
import { policyInput } from '../../kit/policies.ts';

const WORKLOADS = 500;

/** Workloads that count how often a selector looks at one of them. */
function countedWorkloads(): { rows: StoredWorkload[]; looks(): number } {
  let looks = 0;
  const rows = Array.from({ length: WORKLOADS }, (_, index) => {
    const seen = {
      ...{
        kind: 'Deployment' as const,
        name: `w${index}`,
        namespace: 'web',
        uid: `uid-${index}`,
        version: '1',
      },
      ...{ replicas: 1, pods: 1, ready: 1, observed: true, selector: '', scaledBy: null, keeper: null },
      ...{
        createdAt: null,
        generation: 1,
        replicaSet: null,
        receipt: null,
        wakeReceipt: null,
        activity: null,
        sleep: null,
      },
      requests: { cpu: 0, memory: 0 },
      get labels(): string {
        looks += 1;
        return '\napp=web\n';
      },
    };
    const row = observe(undefined, 'one', { ...seen, labels: '' }, { self: 'here', now: 0 });
    return { ...row, seen };
  });
  // Making them has copied each once.
  looks = 0;
  return { rows, looks: () => looks };
}

const policies: StoredPolicy[] = Array.from({ length: POLICY.maxPolicies }, (_, index) => ({
  ...policyInput({ selector: { labels: `app!=x${index}` }, windows: ['20:00-07:00'] }),
  name: `policy-${String(index).padStart(3, '0')}`,
  updatedAt: 0,
}));

function governed(clock: TestClock) {
  const { rows, looks } = countedWorkloads();
  const known = new Map(rows.map((row) => [row.id, row]));
  const shownAgain: string[] = [];
  const walks = { count: 0 };
  const table = {
    rows: () => {
      walks.count += 1;
      return rows;
    },
    rowsOf: (clusterId: string) => rows.filter((row) => row.clusterId === clusterId),
    get: (id: string) => known.get(id),
    update: () => undefined,
    shown: () => null,
    forgetSwitches: () => undefined,
    showAgain: (ids: readonly string[]) => shownAgain.push(...ids),
  };
  const governor = new WorkloadPolicies({
    ...{ clock, table, self: 'here' },
    onScheduleChange: () => undefined,
    orders: { keepsAwake: () => false },
  });
  return { governor, rows, looks, shownAgain, walks };
}

describe('the largest possible number of policies', () => {
  it('is applied without comparing each policy with each workload', () => {
    const { governor, rows, looks, shownAgain } = governed(virtualClock());
    governor.setPolicies(policies, true);
    expect(shownAgain).toHaveLength(WORKLOADS);
    governor.setPolicies(policies, true);
    expect(shownAgain).toHaveLength(WORKLOADS);
    expect(looks()).toBe(0);
    governor.setPolicies(policies.slice(1), true);
    expect(shownAgain).toHaveLength(2 * WORKLOADS);
    for (const row of rows) expect(governor.decisionOf(row).schedule?.who).toBe('policy:policy-001');
    const once = looks();
    for (const row of rows) governor.decisionOf(row);
    expect([once, looks()]).toEqual([2 * WORKLOADS, 2 * WORKLOADS]);
  });

  it.each(['due', 'reports', 'preview'] as const)('lets other work run during %s', async (work) => {
    let ms = 0;
    // Each look at the clock finds that a millisecond has passed.
    const { governor } = governed({ ...virtualClock(), monotonic: () => ms++ });
    governor.setNamespaces('one', []);
    governor.onListed('one');
    governor.setPolicies(policies, true);
    let turns = 0;
    const count = (): void => {
      turns += 1;
      next = setImmediate(count);
    };
    let next = setImmediate(count);
    await governor[work]('policy-000');
    clearImmediate(next);
    expect(turns).toBeGreaterThan(WORKLOADS / 20);
  });

  it('does not visit all workloads for the namespaces of one cluster', () => {
    const { governor, rows, shownAgain, walks } = governed(virtualClock());
    const sleep = { isExcluded: true };
    governor.setNamespaces('another', [{ name: 'web', sleep }]);
    governor.setNamespaces('one', [{ name: 'web', sleep }]);
    expect([shownAgain.length, walks.count]).toEqual([rows.length, 0]);
  });

  it('does not visit the workloads of clusters about which not enough is known', async () => {
    const { governor, walks, looks } = governed(virtualClock());
    governor.setPolicies(policies, true);
    governor.setNamespaces('another', []);
    governor.onListed('another');
    governor.onListed('one');
    const before = [walks.count, looks()];
    await governor.due();
    expect([walks.count, looks()]).toEqual(before);
  });

  it('is reported with what each policy selects and decides', async () => {
    const { governor } = governed(virtualClock());
    governor.setPolicies(policies, true);
    const reports = await governor.reports();
    expect(reports.map(({ selected }) => selected)).toEqual(policies.map(() => WORKLOADS));
    expect(reports.map(({ decided }) => decided)).toEqual(
      policies.map((_, index) => (index === 0 ? WORKLOADS : 0)),
    );
  });
});
