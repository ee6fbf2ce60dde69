// A wake through an awake dependency that is not ready, on the real cluster. docs/reference.md "Wake order".
import { expect, it } from 'vitest';
import { CLOUD } from '../../../src/settings/cloud_limits.ts';
import { cloud, eventually } from '../../kit/cloud.ts';
import type { Json } from '../../kit/kube_double.ts';
import { api, describeReal, kubeconfig, sandbox, sleeper } from '../../kit/kube_real.ts';

/** The condition that pods of web need to be Ready. */
const GATE = 'berth.test/has-db';

describeReal('a chain whose middle is ready only with its end', () => {
  const box = sandbox();
  const after = (name: string) => ({ metadata: { annotations: { 'berth/after': name } } });
  const countsOf = async (name: string): Promise<[replicas: number, ready: number]> => {
    const { spec, status } = await box.get('Deployment', name);
    return [spec.replicas, status.readyReplicas ?? 0];
  };

  async function openGate(): Promise<void> {
    const pods = `/api/v1/namespaces/${box.namespace}/pods`;
    const { body } = await api('GET', `${pods}?labelSelector=app%3Dweb`);
    for (const { metadata } of body.items) {
      const conditions = [{ type: GATE, status: 'True' }];
      const strategic = 'application/strategic-merge-patch+json';
      await api('PATCH', `${pods}/${metadata.name}/status`, { status: { conditions } }, strategic);
    }
  }

  it('is woken from its end', async () => {
    const web: Json = sleeper('web', 1, after('db'));
    web.spec.template.spec.readinessGates = [{ conditionType: GATE }];
    await box.create('Deployment', web);
    await box.create('Deployment', sleeper('db', 0));
    await box.create('Deployment', sleeper('front', 0, after('web')));
    await eventually(async () => (await box.get('Deployment', 'web')).status.replicas === 1 || undefined);
    const here = await cloud();
    await here.add(kubeconfig());
    const { id } = await here.until(`${box.namespace}/front`, (row) => row.state === 'asleep');
    const woken = here.workloads.ask(
      'wake',
      { id, by: 'request', waitMs: null },
      { deadlineMs: CLOUD.scaleTimeoutMs },
    );
    await eventually(async () => (await countsOf('db')).join() === '1,1' || undefined);
    expect([await countsOf('front'), await countsOf('web')]).toEqual([
      [0, 0],
      [1, 0],
    ]);
    await openGate();
    expect(await woken).toEqual({ replicas: 1 });
    expect(await countsOf('web')).toEqual([1, 1]);
    await here.stop();
  });
});
