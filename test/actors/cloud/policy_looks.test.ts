// When policies look at what is due: docs/reference.md "Policies".
import { describe, expect, it } from 'vitest';
import { policiesActor } from '../../../src/actors/cloud/policies.ts';
import type { WorkloadsProtocol } from '../../../src/protocol/cloud.ts';
import { NO_SUBJECT } from '../../../src/protocol/cloud_events.ts';
import type { CloudOperationsProtocol } from '../../../src/protocol/cloud_operations.ts';
import { fail } from '../../../src/protocol/errors.ts';
import type { DueSwitch } from '../../../src/protocol/policies.ts';
import { POLICY } from '../../../src/settings/cloud_limits.ts';
import { type Stand, type TestClock, world } from '../../kit/actors.ts';
import { cloud, doubleWith, eventually } from '../../kit/cloud.ts';
import { operationsOf, policyInput, settableClock } from '../../kit/policies.ts';

const SUBJECT = {
  ...NO_SUBJECT,
  ...{ cluster: 'one', kind: 'Deployment' as const, namespace: 'web' },
};

/** A switch of the workload `id`, which is the only one of the cluster `clusterId`. */
const due = (clusterId: string, id: string): DueSwitch => ({
  ...{ id, clusterId, key: `switch ${id}`, who: 'policy:nights', to: 'asleep' },
  subject: { ...SUBJECT, clusterId, workload: id, workloadId: id },
});

/** More looks than any test expects: from then on none is answered, so that time goes on. */
const TOO_MANY = 50;

/** Policies with a stand-in for the workloads, of which `state.due` are due. */
async function started(): Promise<{
  workloads: Stand<WorkloadsProtocol>;
  state: { due: DueSwitch[] };
  looks(): number;
  pass(ms: number): Promise<void>;
  change(): void;
}> {
  const here = world();
  const state = { due: [] as DueSwitch[] };
  const looks = (): number => workloads.of('dueSwitches').length;
  const workloads: Stand<WorkloadsProtocol> = await here.stand<WorkloadsProtocol>('workloads', {
    dueSwitches: () => {
      if (looks() > TOO_MANY) throw fail('daemon_busy', 'too many looks');
      return { due: state.due, nextAt: null };
    },
  });
  await here.stand<CloudOperationsProtocol>('operations', {
    begin: () => ({ id: 'operation', run: true, result: null }),
  });
  const policies = await here.start('policies', policiesActor, {
    store: { policies: async () => [], savePolicy: async () => {}, removePolicy: async () => {} },
  });
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= 50) await here.clock.advance(Math.min(50, left));
  };
  await pass(POLICY.settleMs);
  return { workloads, state, looks, pass, change: () => policies.tell('changed', {}) };
}

/** Lets time pass, but hardly any: the double does not answer in it, and nobody's time is up. */
const little = <T>(clock: TestClock, check: () => T | undefined | Promise<T | undefined>): Promise<T> =>
  eventually(async () => {
    await clock.advance(POLICY.settleMs / 10);
    return check();
  });

describe('the switches of a cluster', () => {
  it('do not delay those of another cluster while the cluster is slow', async () => {
    const [slow, quick] = [await doubleWith('first'), await doubleWith('second')];
    const clock = settableClock('2030-01-07T20:10Z');
    const here = await cloud({ clock, sweepMs: 100_000_000_000 });
    await here.add(slow.kubeconfig, 'slow');
    await here.add(quick.kubeconfig, 'quick');
    slow.fault(({ method }) => method === 'PATCH', { kind: 'stall' });
    const asked = (): true | undefined => slow.requests.some(({ method }) => method === 'PATCH') || undefined;
    const put = (labels: string) =>
      here.policies.ask('put', {
        name: labels.replace('app=', ''),
        input: policyInput({ selector: { labels }, windows: ['20:00-07:00'] }),
      });
    await put('app=first');
    await little(clock, asked);
    await put('app=second');
    const ends = await little(clock, async () => {
      const found = await operationsOf(here);
      return found.length > 0 ? found : undefined;
    });
    expect(ends).toEqual(['policy:second sleepWorkload second ok']);
    expect(here.find('web/first').replicas).toBe(3);
    await slow.stop();
  });

  it('that have failed and are no longer due are not retried forever', async () => {
    const { workloads, state, looks, pass, change } = await started();
    workloads.answer({
      sleep: () => {
        throw fail('cluster_unreachable', 'no answer');
      },
    });
    state.due = [due('one', 'hello')];
    change();
    await pass(2 * POLICY.settleMs);
    expect(workloads.of('sleep')).toHaveLength(1);
    // Its policy was removed.
    state.due = [];
    await pass(2 * POLICY.retry.initialDelayMs);
    const before = looks();
    await pass(2 * POLICY.retry.initialDelayMs);
    expect(looks()).toBe(before);
  });
});

it('due policies are checked however long changes continue', async () => {
  const { looks, pass, change } = await started();
  const before = looks();
  for (let count = 0; count < 20; count += 1) {
    change();
    await pass(POLICY.settleMs / 2);
  }
  expect(looks()).toBeGreaterThan(before + 4);
});
