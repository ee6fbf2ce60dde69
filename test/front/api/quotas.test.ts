// The quotas of API tokens, asked through the real front, actors and store over the double.
// docs/reference.md "Quotas".
import { expect, it } from 'vitest';
import { CloudViews } from '../../../src/front/views/cloud_views.ts';
import { afterThisTest, virtualClock } from '../../kit/actors.ts';
import { type CloudOptions, cloud } from '../../kit/cloud.ts';
import { type Json, kubeDouble, workload } from '../../kit/kube_double.ts';
import { cloudFront, startFront } from '../kit.ts';

const HOUR_MS = 3_600_000;

async function api(options: CloudOptions) {
  const double = await kubeDouble();
  afterThisTest(() => double.stop());
  for (const name of ['a', 'b', 'c', 'd']) double.put('Deployment', workload('web', name, 2));
  const views = new CloudViews();
  const clock = virtualClock();
  const front = await startFront({ cloud: cloudFront({ token: 'secret', views }), clock });
  const here = await cloud({ world: front, views, events: front.events, ...options });
  await here.add(double.kubeconfig, 'one');
  const call = (method: string, path: string, token: string, body?: unknown) =>
    front.request(method, path, { body, headers: { Authorization: `Bearer ${token}` } });
  const token = async (name: string): Promise<string> => {
    const { body } = await call('POST', '/k8s/tokens', 'secret', { name });
    await call('POST', '/k8s/grants', 'secret', { token: name, role: 'operator' });
    return body.token;
  };
  const sleepAll = () => call('POST', '/k8s/workloads/sleep', 'secret', { namespaces: ['web'] });
  const wake = async (name: string, by: string) =>
    call('POST', `/k8s/workloads/${here.find(`web/${name}`).id}/wake`, by);
  return { double, clock, here, call, token, sleepAll, wake };
}

it('a wake that the cluster refuses does not count', async () => {
  const { token, sleepAll, wake, double } = await api({ wakesPerHour: 1 });
  const ci = await token('ci');
  await sleepAll();
  double.denied.add('patch deployments');
  for (let attempt = 0; attempt < 3; attempt += 1)
    expect((await wake('a', ci)).body).toMatchObject({ code: 'cluster_denied' });
  double.denied.clear();
  expect((await wake('a', ci)).status).toBe(200);
  expect((await wake('b', ci)).body).toMatchObject({ code: 'quota_exceeded' });
});

it('a token wakes a limited number of workloads within an hour, unlike the cloud token', async () => {
  const { clock, call, token, sleepAll, wake, double } = await api({ wakesPerHour: 2 });
  const [ci, other] = [await token('ci'), await token('other')];
  await sleepAll();
  expect((await wake('a', ci)).status).toBe(200);
  // What is awake already costs nothing.
  expect((await wake('a', ci)).status).toBe(200);
  expect((await wake('b', ci)).status).toBe(200);
  const refused = await wake('c', ci);
  expect(refused.status).toBe(429);
  expect(refused.body).toMatchObject({ code: 'quota_exceeded', hint: expect.stringContaining('60 min') });
  expect(double.get('Deployment', 'web', 'c').spec.replicas).toBe(0);
  expect((await wake('c', other)).status).toBe(200);
  expect((await wake('d', 'secret')).status).toBe(200);
  await sleepAll();
  await clock.advance(HOUR_MS);
  const many = await call('POST', '/k8s/workloads/wake', ci, { namespaces: ['web'] });
  const outcomes = many.body.results.map(({ outcome, code }: Json) => code ?? outcome).sort();
  expect(outcomes).toEqual(['changed', 'changed', 'quota_exceeded', 'quota_exceeded']);
});
