// docs/reference.md "Metrics".
import { expect, it } from 'vitest';
import { CLOUD_METRICS, type WorkloadCounts } from '../../../src/front/metrics/cloud_metrics.ts';
import { DAEMON_METRICS } from '../../../src/front/metrics/daemon_metrics.ts';
import { metricsText } from '../../../src/front/metrics/open_metrics.ts';
import { StartTimes } from '../../../src/front/metrics/start_times.ts';
import type { ServiceState } from '../../../src/protocol/service.ts';
import { METRICS } from '../../../src/settings/limits.ts';
import { startWithServices } from '../kit.ts';

const workload = (name: string, namespace = 'shop'): WorkloadCounts => ({
  ...{ cluster_id: 'c1', namespace, name, kind: 'Deployment' },
  ...{ replicas: 2, ready_replicas: 1, desired_replicas: null, asleep_seconds: null },
});

it('the metrics escape labels, and name families by the format', () => {
  const metric = {
    name: 'berth_things',
    type: 'counter' as const,
    help: 'Things.',
    samples: () => [{ labels: { name: 'a"b\\c\nd' }, value: 3 }],
  };
  const line = 'berth_things_total{name="a\\"b\\\\c\\nd"} 3';
  expect(metricsText([metric], null, true)).toBe(
    `# HELP berth_things Things.\n# TYPE berth_things counter\n${line}\n# EOF\n`,
  );
  expect(metricsText([metric], null, false)).toBe(
    `# HELP berth_things_total Things.\n# TYPE berth_things_total counter\n${line}\n`,
  );
});

it('the metrics contain each metric once', () => {
  const names = [...DAEMON_METRICS, ...CLOUD_METRICS].map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
});

it('the metrics count starts by their duration', () => {
  const times = new StartTimes();
  const state = (run: string, status: ServiceState['status'] = 'running'): ServiceState => ({
    ...{ name: 'web', status, restarts: 0, end: null, isDoorOpen: false },
    process: { run, pid: 1, startedAt: 1_000, port: 80, revision: 1, rssMB: 1, innerPort: null },
  });
  // It runs already when the daemon comes up, and its actor tells so again.
  times.observe(false, state('r1'), 9_000);
  times.observe(true, state('r1'), 9_500);
  expect(times.of('web')).toBeNull();
  times.observe(true, state('r2', 'starting'), 1_100);
  times.observe(true, state('r2'), 1_300);
  times.observe(true, state('r2'), 5_000);
  times.observe(true, state('r3'), 91_000);
  expect(times.of('web')).toEqual({ buckets: [0, 0, 1, 1, 1, 1, 1, 1, 1], count: 2, sum: 90.3 });
  times.forget('web');
  expect(times.of('web')).toBeNull();
});

it('the metrics sum workloads per namespace if there are too many', () => {
  const few = metricsText(
    CLOUD_METRICS,
    { workloads: [workload('a'), workload('b')], wakes: [], tethers: [], savings: [] },
    true,
  );
  expect(few).toContain(
    'berth_workload_replicas{cluster="c1",namespace="shop",workload="a",kind="Deployment"} 2',
  );
  const workloads = Array.from({ length: METRICS.maxWorkloads }, (_, index) => workload(`w${index}`));
  const many = metricsText(
    CLOUD_METRICS,
    { workloads: [...workloads, workload('x', 'y')], wakes: [], tethers: [], savings: [] },
    true,
  );
  const line = (namespace: string, value: number): string =>
    `berth_workload_replicas{cluster="c1",namespace="${namespace}",workload="",kind=""} ${value}`;
  expect(many).toContain(line('shop', 2 * METRICS.maxWorkloads));
  expect(many).toContain(line('y', 2));
  expect(many.split('\n').filter((text) => text.startsWith('berth_workload_replicas{'))).toHaveLength(2);
});

it('the metrics sum savings of all months, per cluster if there are too many namespaces', () => {
  const saved = (namespace: string, month: string) => ({
    ...{ clusterId: 'c1', namespace, month, until: 1, podSeconds: 2, cpuSeconds: 0.5, memorySeconds: 1 },
  });
  const text = (savings: ReturnType<typeof saved>[]): string =>
    metricsText(CLOUD_METRICS, { workloads: [], wakes: [], tethers: [], savings }, true);
  const few = text([saved('a', '2030-01'), saved('a', '2030-02'), saved('b', '2030-02')]);
  expect(few).toContain('berth_saved_pod_seconds_total{cluster="c1",namespace="a"} 4\n');
  expect(few).toContain('berth_saved_cpu_request_core_seconds_total{cluster="c1",namespace="b"} 0.5\n');
  const many = text(Array.from({ length: METRICS.maxWorkloads + 1 }, (_, at) => saved(`n${at}`, '2030-01')));
  const total = 2 * (METRICS.maxWorkloads + 1);
  expect(many).toContain(`berth_saved_pod_seconds_total{cluster="c1",namespace=""} ${total}\n`);
  expect(many.split('\n').filter((line) => line.startsWith('berth_saved_pod_seconds_total'))).toHaveLength(1);
});

it('the metrics count responses by operation and status', async () => {
  const front = await startWithServices({});
  await front.request('GET', '/v1/services');
  await front.request('GET', '/v1/services/none');
  await front.request('GET', '/nowhere');
  const { status, headers, text } = await front.request('GET', '/metrics');
  expect(status).toBe(200);
  expect(headers['content-type']).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8');
  expect(text).toContain('berth_http_requests_total{operation="listServices",code="200"} 1');
  expect(text).toContain('berth_http_requests_total{operation="getService",code="404"} 1');
  expect(text).toContain('berth_http_requests_total{operation="",code="404"} 1');
  expect(text.endsWith('# EOF\n')).toBe(true);
  const plain = await front.request('GET', '/metrics', { headers: { accept: 'text/plain' } });
  expect(plain.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
  expect(plain.text).not.toContain('# EOF');
});

it('the metrics require the token', async () => {
  const front = await startWithServices({ token: 'a-token-of-some-length' });
  for (const path of ['/metrics', '/v1/system'])
    expect((await front.request('GET', path, { headers: { authorization: '' } })).status).toBe(401);
});
