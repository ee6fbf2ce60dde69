// Wakes by an account without the right to watch, on the real cluster. docs/reference.md "Wake order".
import { expect, it } from 'vitest';
import { CLOUD } from '../../../src/settings/cloud_limits.ts';
import { type Cloud, cloud, eventually } from '../../kit/cloud.ts';
import { kubeconfigFor, serviceAccount } from '../../kit/kube_accounts.ts';
import { describeReal, sandbox, sleeper } from '../../kit/kube_real.ts';

describeReal('an account that may not watch', () => {
  const box = sandbox();
  const find = (here: Cloud, name: string) => here.find(`${box.namespace}/${name}`);

  /** Two Berths with the same account; app depends on db, and only db is awake. */
  async function twoBerths(): Promise<{ here: Cloud; other: Cloud }> {
    const annotations = { 'berth/after': 'db' };
    await box.create('Deployment', sleeper('db', 1));
    await box.create('Deployment', sleeper('app', 0, { metadata: { annotations } }));
    const isUp = async () => (await box.get('Deployment', 'db')).status.readyReplicas === 1 || undefined;
    await eventually(isUp);
    const { token } = await serviceAccount(box.namespace, 'lister', [
      { apiGroups: ['apps'], resources: ['*'], verbs: ['get', 'list', 'patch'] },
      { apiGroups: [''], resources: ['pods', 'events'], verbs: ['get', 'list'] },
    ]);
    const berth = async (self: string): Promise<Cloud> => {
      const made = await cloud({ self });
      await made.add(kubeconfigFor(token, box.namespace));
      await made.until(`${box.namespace}/db`, ({ stale_since }) => stale_since !== null);
      return made;
    };
    return { here: await berth('here'), other: await berth('other') };
  }

  it.each(['kubectl scale', 'a sleep by another Berth'])('has a dependency woken after %s', async (what) => {
    const { here, other } = await twoBerths();
    if (what === 'kubectl scale') await box.scale('Deployment', 'db', 0);
    else await other.workloads.ask('sleep', { id: find(other, 'db').id, by: 'request', holdMs: null });
    const woken = await here.workloads.ask(
      'wake',
      { id: find(here, 'app').id, by: 'request', waitMs: null },
      { deadlineMs: CLOUD.scaleTimeoutMs },
    );
    expect(woken).toEqual({ replicas: 1 });
    const db = await box.get('Deployment', 'db');
    expect([db.spec.replicas, db.status.readyReplicas]).toEqual([1, 1]);
    await here.stop();
    await other.stop();
  });
});
