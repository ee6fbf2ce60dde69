// `berth k8s savings`: what it asks for, and how it shows the answer.
import { expect, it } from 'vitest';
import { CLUSTERS, cloud, ID } from '../k8s_answers.ts';

const ROW = {
  ...{ month: '2026-11', cluster_id: ID('A'), cluster: 'dev', namespace: 'shop', pod_seconds: 5_400 },
  ...{ cpu_request_core_seconds: 720_000, memory_request_byte_seconds: 1_800 * 2 ** 30 },
};
const QUERY = `?cluster_id=${ID('A')}&namespace=shop%2Cweb&from=2026-10&to=2026-11`;
const ANSWERS: Record<string, [status: number, body: unknown]> = {
  'GET /k8s/clusters': [200, CLUSTERS],
  'GET /k8s/savings': [200, [ROW]],
  [`GET /k8s/savings${QUERY}`]: [200, []],
};

it('berth k8s savings shows hours, or the response as JSON or CSV', async () => {
  const { run } = await cloud(ANSWERS);
  const lines = (await run('k8s savings')).stdout.trimEnd().split('\n');
  expect(lines.map((line) => line.split(/ {2,}/))).toEqual([
    ['MONTH', 'CLUSTER', 'NAMESPACE', 'POD HOURS', 'CPU HOURS', 'GIB HOURS'],
    ['2026-11', 'dev', 'shop', '1.5', '200', '0.5'],
  ]);
  expect(JSON.parse((await run('k8s savings --json')).stdout)).toEqual([ROW]);
  const csv = (await run('k8s savings --csv')).stdout.split('\r\n');
  expect(csv[0]).toMatch(/^month,cluster_id,cluster,namespace,pod_seconds,/);
  expect(csv[1]).toBe(`2026-11,${ID('A')},dev,shop,5400,720000,${1_800 * 2 ** 30}`);
});

it('berth k8s savings requests the selected rows, and refuses an invalid month', async () => {
  const { run, asked } = await cloud(ANSWERS);
  const given = await run('k8s savings --cluster dev -n shop,web --from 2026-10 --to 2026-11');
  expect(given).toMatchObject({ code: 0, stdout: '' });
  expect(asked.at(-1)?.path).toBe(`/k8s/savings${QUERY}`);
  const count = asked.length;
  expect(await run('k8s savings --from 2026-13')).toMatchObject({ code: 2, stdout: '' });
  expect(asked).toHaveLength(count);
});
