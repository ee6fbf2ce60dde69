// `berth k8s tokens` and `berth k8s grants`: what they ask for, and how they show what there is.
import { expect, it } from 'vitest';
import { CLUSTERS, cloud, ID } from '../k8s_answers.ts';

const TOKEN = {
  ...{ id: ID('K'), name: 'ci', created_at: '2026-11-20T10:00:00.000Z', created_by: 'token' },
  ...{ expires_at: null, last_used_at: null },
};
const grant = (namespace: string | null) => ({
  ...{
    id: ID('G'),
    token: 'ci',
    user: null,
    group: null,
    role: 'waker',
    cluster_id: ID('A'),
    cluster: 'dev',
    namespace,
  },
  ...{ selector: null, created_at: '2026-11-20T10:00:00.000Z', created_by: 'token' },
});
const ANSWERS: Record<string, [status: number, body: unknown]> = {
  'GET /k8s/clusters': [200, CLUSTERS],
  'GET /k8s/tokens': [200, [TOKEN]],
  'POST /k8s/tokens': [201, { ...TOKEN, token: 'brt_secret' }],
  'DELETE /k8s/tokens/ci': [200, { removed: true, name: 'ci' }],
  'GET /k8s/grants': [200, [grant('shop'), grant(null)]],
  'POST /k8s/grants': [201, grant('shop')],
  [`DELETE /k8s/grants/${ID('G')}`]: [200, { removed: true, id: ID('G') }],
};

it('berth k8s tokens creates a token with a role, and prints only the token', async () => {
  const { run, asked } = await cloud(ANSWERS);
  const made = await run('k8s tokens create ci --role waker --cluster dev -n shop,web --expires 1h');
  expect(made).toMatchObject({ code: 0, stdout: 'brt_secret\n', stderr: '' });
  const sent = asked.filter(({ method }) => method === 'POST').map(({ body }) => JSON.parse(body));
  const common = { token: 'ci', role: 'waker', cluster_id: ID('A'), selector: null };
  expect(sent).toEqual([
    { name: 'ci', expires_at: expect.stringMatching(/^\d{4}-.*Z$/) },
    { ...common, namespace: 'shop' },
    { ...common, namespace: 'web' },
  ]);
  const bare = await run('k8s tokens create ci');
  expect(bare).toMatchObject({ code: 0, stdout: 'brt_secret\n' });
  expect(bare.stderr).toContain('may do nothing yet');
});

it('berth k8s lists and revokes tokens, and adds, lists and removes grants', async () => {
  const { run, asked } = await cloud(ANSWERS);
  const table = async (command: string) =>
    (await run(command)).stdout
      .trimEnd()
      .split('\n')
      .map((row) => row.split(/ {2,}/));
  expect(await table('k8s tokens ls')).toEqual([
    ['NAME', 'MADE BY', 'MADE', 'EXPIRES', 'LAST USED'],
    ['ci', 'token', expect.stringMatching(/^2026-11-2/), '-', '-'],
  ]);
  expect((await run('k8s tokens revoke ci')).stdout).toBe('ci is revoked\n');
  expect(await table('k8s grants ls')).toEqual([
    ['ID', 'FOR', 'ROLE', 'CLUSTER', 'NAMESPACE', 'SELECTOR'],
    [ID('G'), 'ci', 'waker', 'dev', 'shop', '-'],
    [ID('G'), 'ci', 'waker', 'dev', 'all', '-'],
  ]);
  expect((await run('k8s grants add ci waker --cluster dev -n shop')).stdout).toContain('ci is waker');
  await run('k8s grants add user:anna@example.com viewer');
  await run('k8s grants add group:ops operator');
  const sent = asked.filter(({ method }) => method === 'POST').map(({ body }) => JSON.parse(body));
  expect(sent.slice(-2)).toMatchObject([
    { user: 'anna@example.com', role: 'viewer' },
    { group: 'ops', role: 'operator' },
  ]);
  expect((await run(`k8s grants rm ${ID('G')}`)).code).toBe(0);
});

it('berth k8s tokens creates no token with an invalid role or an unknown cluster', async () => {
  const { run, asked } = await cloud(ANSWERS);
  expect((await run('k8s tokens create ci --role king')).stderr).toContain('none of viewer');
  expect((await run('k8s tokens create ci --role viewer --cluster nowhere')).code).not.toBe(0);
  expect((await run('k8s grants add ci')).code).not.toBe(0);
  expect(asked.filter(({ method }) => method === 'POST')).toEqual([]);
});

it('berth k8s tokens leaves no token without the grants that were asked for', async () => {
  const error = { code: 'invalid_spec', message: 'namespace must be the name of a namespace', hint: '' };
  const { run, asked } = await cloud({ ...ANSWERS, 'POST /k8s/grants': [400, error] });
  const failed = await run('k8s tokens create ci --role waker -n shop,shop,BAD_');
  expect(failed).toMatchObject({ stdout: '', stderr: expect.stringContaining('must be the name') });
  expect(failed.code).not.toBe(0);
  expect(asked.slice(-3).map(({ method, path }) => `${method} ${path}`)).toEqual([
    'POST /k8s/tokens',
    'POST /k8s/grants',
    'DELETE /k8s/tokens/ci',
  ]);
});

it('berth k8s grants adds one grant for a namespace that is named twice', async () => {
  const { run, asked } = await cloud(ANSWERS);
  expect((await run('k8s grants add ci waker -n shop,shop')).code).toBe(0);
  expect(asked.filter(({ method }) => method === 'POST')).toHaveLength(1);
});
