// A cloud API with answers of the tests' own, which are those of the API's document.
import { checkAnswer } from '../kit/api_document.ts';
import { type Asked, serve } from '../kit/recording_server.ts';
import { berth, cleanEnv, folder, type Ran } from './berth_process.ts';

export const ID = (letter: string): string => letter.repeat(26);
export const CLUSTERS = [
  { id: ID('A'), name: 'dev', provider: 'kind', in_cluster: false, created_at: '2026-11-20T10:00:00.000Z' },
];
const workload = (letter: string, name: string, namespace: string, kind = 'Deployment') => ({
  id: ID(letter),
  name,
  namespace,
  kind,
  replicas: 2,
  desired_replicas: null,
  auto_sleep_enabled: letter === 'B',
  idle_timeout_minutes: 30,
  last_activity_at: null,
  cluster_id: ID('A'),
  ready_replicas: 1,
  state: 'awake',
  sleep_reason: null,
  wake_reason: null,
  stale_since: null,
  policy: null,
  after: null,
  managed_by: [],
});
export const WORKLOADS = [
  workload('B', 'web', 'shop'),
  workload('C', 'web', 'blog'),
  workload('D', 'db', 'shop', 'StatefulSet'),
];
export const TETHER = {
  tether_id: ID('T'),
  workload_id: ID('B'),
  workload: { kind: 'Deployment', namespace: 'shop', name: 'web' },
  container_port: 8080,
  label: 'shop',
  local_port: 20001,
  state: 'active',
  connections: 0,
  bytes_in: 0,
  bytes_out: 0,
  last_error: null,
  previous_port: null,
  wake: true,
  pod: null,
  allow_not_ready: false,
  half_closed_timeout: 60_000,
};

const bulkResult = (letter: string, name: string, outcome: string, code: string | null = null) => ({
  ...{ id: ID(letter), cluster_id: ID('A'), namespace: 'shop', name, kind: 'Deployment', outcome },
  ...{ replicas: code === null ? 0 : null, code, message: code && 'it is protected' },
});

const NOT_THERE = { code: 'not_found', message: 'no', hint: 'no' };
export const DETAIL = {
  ...CLUSTERS[0],
  version: 'v1.31.0',
  reachable: true,
  reason: null,
  last_sync_at: '2026-11-20T10:00:00.000Z',
  authenticated: true,
  authenticated_since: '2026-11-20T10:00:00.000Z',
  credentials_expire_at: null,
  token_renewal: null,
  server: 'https://10.0.0.1:6443',
  namespaces: [],
  scope: null,
  capabilities: {
    sync: true,
    watch: true,
    sleep: false,
    tether: true,
    denied: ['patch deployments.apps', 'patch statefulsets.apps'],
  },
};
export const ANSWERS: Record<string, [status: number, body: unknown]> = {
  'GET /k8s/clusters': [200, CLUSTERS],
  [`GET /k8s/clusters/${ID('A')}`]: [200, DETAIL],
  'POST /k8s/clusters': [201, { id: ID('A'), name: 'dev' }],
  [`DELETE /k8s/clusters/${ID('A')}`]: [200, { removed: true, id: ID('A') }],
  [`POST /k8s/clusters/${ID('A')}/sync`]: [200, { synced: 3 }],
  'GET /k8s/workloads': [200, WORKLOADS],
  [`GET /k8s/workloads?cluster_id=${ID('A')}`]: [200, WORKLOADS],
  [`GET /k8s/workloads?cluster_id=${ID('A')}&namespace=shop&state=awake&selector=app%3Dweb`]: [
    200,
    WORKLOADS.filter(({ namespace }) => namespace === 'shop'),
  ],
  [`POST /k8s/workloads/${ID('B')}/sleep`]: [200, { replicas: 0 }],
  [`POST /k8s/workloads/${ID('D')}/sleep`]: [
    409,
    { code: 'sleep_refused', message: 'db would lose its volumes', hint: 'Leave it.' },
  ],
  [`POST /k8s/workloads/${ID('B')}/wake?wait=true&timeout=60000`]: [200, { replicas: 2 }],
  [`POST /k8s/workloads/${ID('B')}/wake`]: [200, { replicas: 2 }],
  [`GET /k8s/workloads/${ID('B')}/auto-sleep`]: [200, { auto_sleep_enabled: true, idle_timeout_minutes: 30 }],
  [`PATCH /k8s/workloads/${ID('B')}/auto-sleep`]: [
    200,
    { auto_sleep_enabled: true, idle_timeout_minutes: 45 },
  ],
  'POST /k8s/workloads/sleep': [
    200,
    {
      dry_run: false,
      results: [bulkResult('B', 'web', 'changed'), bulkResult('D', 'db', 'failed', 'sleep_refused')],
    },
  ],
  [`PATCH /k8s/clusters/${ID('A')}`]: [200, { id: ID('A'), name: 'dev' }],
  [`POST /k8s/workloads/${ID('B')}/tether`]: [201, { tether_id: ID('T'), local_port: 20000 }],
  [`POST /k8s/workloads/${ID('D')}/tether`]: [201, { tether_id: ID('T'), local_port: 20000 }],
  'GET /k8s/tethers': [200, [TETHER]],
  [`POST /k8s/tethers/${ID('T')}/activate`]: [
    200,
    { tether_id: ID('T'), local_port: 20001, state: 'active' },
  ],
  [`POST /k8s/tethers/${ID('T')}/deactivate`]: [200, { ok: true }],
  [`DELETE /k8s/tethers/${ID('T')}`]: [200, { removed: true, id: ID('T') }],
};

export async function cloud(
  answers = ANSWERS,
): Promise<{ run: (line: string, input?: string) => Promise<Ran>; asked: Asked[] }> {
  const fake = await serve(
    ({ method, path }, response) => {
      const [status, body] = answers[`${method} ${path}`] ?? [404, NOT_THERE];
      checkAnswer(method, path, status, body);
      response.writeHead(status, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify(body));
    },
    { cloud: 'cloudy' },
  );
  const env = cleanEnv(folder(), { BERTH_URL: fake.url, BERTH_CLOUD_TOKEN: 'cloudy' });
  return {
    asked: fake.asked,
    run: (line, input) => berth(line.split(' '), { env, ...(input === undefined ? {} : { input }) }),
  };
}
