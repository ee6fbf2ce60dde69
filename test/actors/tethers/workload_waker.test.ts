// docs/reference.md "Connections of a tether": for whom a workload is woken.
import { expect, it } from 'vitest';
import { PodWatch } from '../../../src/actors/tethers/pod_watch.ts';
import { WorkloadWaker } from '../../../src/actors/tethers/workload_waker.ts';
import type { TetherTarget, WorkloadsProtocol } from '../../../src/protocol/cloud.ts';
import { afterThisTest, realTime, world } from '../../kit/actors.ts';
import { kubeDouble } from '../../kit/kube_double.ts';
import { RULE } from './tether_kit.ts';

/** A waker of a workload that is asleep, and the wakes that it has asked for. */
async function asleep({ wake }: { wake: boolean }) {
  const double = await kubeDouble();
  afterThisTest(() => double.stop());
  const target: TetherTarget = {
    clusterId: 'C1',
    access: double.access,
    workload: { id: 'W1', kind: 'Deployment', namespace: 'n', name: 'web', selector: 'app=web' },
    state: 'asleep',
    replicas: 0,
  };
  const onDefect = (error: unknown): void => {
    throw error;
  };
  const choice = { pod: null, allowNotReady: false };
  const pods = new PodWatch({ clock: realTime, rule: RULE, choice, onChange: () => undefined, onDefect });
  afterThisTest(() => pods.stop());
  const space = world();
  const workloads = await space.stand<WorkloadsProtocol>('workloads', {
    tetherTarget: () => target,
    wake: () => ({ replicas: 1 }),
  });
  const waker = new WorkloadWaker({
    workloads: space.ref('workloads'),
    workloadId: 'W1',
    wake,
    subject: 'token:ci',
    pods,
  });
  return { waker, wakes: () => workloads.of('wake') };
}

const waiters = (areStillThere: boolean) => ({ areGone: false, areStillThere: async () => areStillThere });

it('a workload is woken for a client that waits, and not for a port scan', async () => {
  const { waker, wakes } = await asleep({ wake: true });
  expect(await waker.ensureAwake(waiters(false))).toBeNull();
  expect(wakes()).toEqual([]);
  expect(await waker.ensureAwake(waiters(true))).toBeNull();
  expect(wakes()).toEqual([{ id: 'W1', by: 'connection', waitMs: null, subject: 'token:ci' }]);
});

it('a tether that may not wake its workload never does, and reports it', async () => {
  const { waker, wakes } = await asleep({ wake: false });
  expect(await waker.ensureAwake(waiters(true))).toMatchObject({ reason: expect.stringContaining('asleep') });
  expect(wakes()).toEqual([]);
});
