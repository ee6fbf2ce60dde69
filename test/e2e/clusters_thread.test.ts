// The threads with the connections to clusters, in the real daemon: what ends with one comes back by itself.
import { expect, it } from 'vitest';
import { afterThisTest } from '../kit/actors.ts';
import { type Daemon, eventually, startDaemon } from '../kit/daemon.ts';
import { kubeDouble, workload } from '../kit/kube_double.ts';
import { endThread, INSPECTABLE } from './inspector.ts';

const headers = { authorization: 'Bearer cloud' };

async function threadsOf(daemon: Daemon): Promise<string[]> {
  const { threads } = (await daemon.request('GET', '/v1/system')).body;
  return threads.map(({ name }: { name: string }) => name);
}

it('a thread that ends is replaced, and its clusters are watched and changed as before', async () => {
  const double = await kubeDouble();
  afterThisTest(() => double.stop());
  double.put('Deployment', workload('shop', 'hello', 3));
  const daemon = await startDaemon({
    config: '[cloud]\ntoken = "cloud"\nallow_addresses = "any"\n',
    env: INSPECTABLE,
  });
  const ask = async (method: string, path: string, body?: unknown) =>
    (await daemon.request(method, path, body, headers)).body;
  expect(await threadsOf(daemon)).not.toContain('clusters-0');
  const { id } = await ask('POST', '/k8s/clusters', { name: 'dev', kubeconfig: double.kubeconfig });
  await ask('POST', `/k8s/clusters/${id}/sync`);
  await eventually(() => double.watches.length === 2);
  const [row] = await ask('GET', '/k8s/workloads');

  const used = (await threadsOf(daemon)).filter((name) => name.startsWith('clusters-'));
  expect(used).toHaveLength(1);
  for (const name of used) await endThread(daemon, name);
  double.change('Deployment', 'shop', 'hello', (object) => {
    object.spec.replicas = 5;
  });
  await eventually(async () => {
    const now = await ask('GET', `/k8s/workloads/${row.id}`);
    return now.replicas === 5 && now.stale_since === null;
  });
  expect(await ask('POST', `/k8s/workloads/${row.id}/sleep`)).toMatchObject({ replicas: 0 });
  expect(double.get('Deployment', 'shop', 'hello').spec.replicas).toBe(0);
  await eventually(() => double.watches.length === 2);
  expect(await ask('GET', `/k8s/clusters/${id}`)).toMatchObject({ reachable: true });
});
