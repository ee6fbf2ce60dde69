// Savings as clients see them: the real front, actors and store over the double.
import { expect, it } from 'vitest';
import { CloudViews } from '../../../src/front/views/cloud_views.ts';
import { cloud, doubleWith } from '../../kit/cloud.ts';
import type { Json } from '../../kit/kube_double.ts';
import { cloudFront, startFront } from '../kit.ts';

it('savings are returned as JSON or CSV, for the selected rows', async () => {
  const double = await doubleWith('hello');
  double.change('Deployment', 'web', 'hello', (object: Json) => {
    object.spec.replicas = 0;
    const receipt = { replicas: 3, at: Date.now() - 3_600_000, by: 'idle', from: 'elsewhere' };
    object.metadata.annotations = { 'berth/sleep': JSON.stringify(receipt) };
    object.spec.template.spec.containers[0].resources = { requests: { cpu: '2' } };
  });
  const views = new CloudViews();
  const front = await startFront({ cloud: cloudFront({ token: 'secret', views }) });
  const here = await cloud({ world: front, views, events: front.events });
  const id = await here.add(double.kubeconfig, 'dev, =1');
  const get = (query: string, accept = 'application/json') =>
    front.request('GET', `/k8s/savings${query}`, {
      headers: { Authorization: 'Bearer secret', Accept: accept },
    });

  const { body } = await get(`?cluster_id=${id}&namespace=web`);
  // The hour may have begun in the month before.
  const sum = (name: string): number => body.reduce((total: number, row: Json) => total + row[name], 0);
  expect(sum('pod_seconds')).toBeGreaterThanOrEqual(3 * 3_600 - 1);
  expect(sum('pod_seconds')).toBeLessThan(3 * 3_600 + 600);
  expect(sum('cpu_request_core_seconds') / sum('pod_seconds')).toBeCloseTo(2, 2);
  expect(Object.keys(body[0])).toEqual([
    ...['month', 'cluster_id', 'cluster', 'namespace', 'pod_seconds'],
    ...['cpu_request_core_seconds', 'memory_request_byte_seconds'],
  ]);
  expect(body[0]).toMatchObject({ cluster_id: id, cluster: 'dev, =1', namespace: 'web' });
  expect(body[0].month).toMatch(/^\d{4}-\d\d$/);

  for (const answer of [await get('?format=csv'), await get('', 'text/csv')]) {
    expect(answer.headers['content-type']).toBe('text/csv; charset=utf-8; header=present');
    const [titles, row] = answer.text.split('\r\n');
    expect(titles).toMatch(/^month,cluster_id,/);
    expect(row).toContain(`,${id},"dev, =1",web,`);
  }
  expect((await get('?format=json', 'text/csv')).body).toHaveLength(body.length);
  for (const query of ['?namespace=data', '?from=2999-01', '?to=1999-12'])
    expect(await get(query)).toMatchObject({ status: 200, body: [] });
  for (const query of ['?from=2026-13', '?to=now', '?format=xml', '?month=2026-01'])
    expect(await get(query)).toMatchObject({ status: 400, body: { code: 'invalid_spec' } });
  expect(await get('?cluster_id=nope')).toMatchObject({ status: 404, body: { code: 'unknown_cluster' } });
  expect((await front.request('GET', '/k8s/savings')).status).toBe(401);
  const metrics = await front.request('GET', '/k8s/metrics', { headers: { Authorization: 'Bearer secret' } });
  expect(metrics.text).toContain(`berth_saved_pod_seconds_total{cluster="${id}",namespace="web"} `);
});
