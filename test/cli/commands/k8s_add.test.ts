// `berth k8s add`, `renew`, `rm` and `rights`: what reaches the daemon of the user's own kubeconfig.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parseKubeconfig } from '../../../src/adapters/kube/kubeconfig.ts';
import { berth, cleanEnv, folder } from '../berth_process.ts';
import { ANSWERS, cloud, DETAIL, ID } from '../k8s_answers.ts';

/** A kubeconfig that the daemon would take; `more` replaces parts of it. */
const kubeconfig = (more: object = {}): string =>
  JSON.stringify({
    'current-context': 'dev',
    contexts: [{ name: 'dev', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster: { server: 'https://10.0.0.1:6443' } }],
    users: [{ name: 'u', user: { token: 'geheim-123' } }],
    ...more,
  });

it('berth k8s add registers a context from a file or stdin, and syncs it', async () => {
  const { run, asked } = await cloud({ ...ANSWERS, 'GET /k8s/clusters': [200, []] });
  const file = join(folder(), 'kubeconfig');
  writeFileSync(file, kubeconfig());
  expect((await run(`k8s add dev --provider kind --kubeconfig ${file}`)).stdout).toBe(
    'dev is registered, with 3 workloads; `berth k8s workloads` lists them\n',
  );
  await run('k8s add --kubeconfig -', kubeconfig());
  expect((await run('k8s add dev --in-cluster --namespaces shop,data')).stderr).toBe(
    'warning: there are no workloads in data: check the names, and `berth k8s rights dev`\n',
  );
  const bodies = asked.flatMap(({ method, path, body }) =>
    method === 'POST' && path === '/k8s/clusters' ? [JSON.parse(body)] : [],
  );
  expect(bodies.map(({ kubeconfig: _, ...body }) => body)).toEqual([
    { name: 'dev', provider: 'kind', renew_token: false },
    { name: 'dev', renew_token: false },
    { name: 'dev', namespaces: ['shop', 'data'], in_cluster: true },
  ]);
  // A scheme is the same in capitals, as for kubectl.
  await run('k8s add other --kubeconfig -', kubeconfig().replace('https:', 'HTTPS:'));
  const { kubeconfig: shouted } = JSON.parse(
    asked.findLast(({ method, path }) => method === 'POST' && path === '/k8s/clusters')?.body ?? '',
  );
  expect(parseKubeconfig(shouted, Date.now()).server).toBe('https://10.0.0.1:6443');
  expect(parseKubeconfig(bodies[0].kubeconfig, Date.now())).toMatchObject({
    server: 'https://10.0.0.1:6443',
    credential: { kind: 'token', token: 'geheim-123' },
  });
  const nowhere = await run('k8s add dev --kubeconfig /nowhere');
  expect(nowhere).toMatchObject({ code: 2, stdout: '' });
  expect(nowhere.stderr).toContain('berth: /nowhere cannot be read: ENOENT');
});

it('berth k8s add does not request a login that it could not use', async () => {
  const { run, asked } = await cloud();
  const taken = await run('k8s add dev --kubeconfig -', kubeconfig());
  expect(taken).toMatchObject({ code: 2, stdout: '' });
  expect(taken.stderr).toContain('there is a cluster dev already\n`berth k8s renew dev`');
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: '/nowhere' };
  const login = kubeconfig({ users: [{ name: 'u', user: { exec } }] });
  const unasked = await run('k8s add other --kubeconfig -', login);
  expect(unasked).toMatchObject({ code: 2, stdout: '' });
  expect(unasked.stderr).toContain('kind: ServiceAccount');
  expect(unasked.stderr).toContain('nobody can be asked here\nPass --yes.');
  const failed = await run('k8s add other --yes --kubeconfig -', login);
  expect(failed).toMatchObject({ code: 1, stdout: '' });
  expect(failed.stderr).toContain('the login command /nowhere is not there');
  expect(asked.filter(({ method }) => method !== 'GET')).toEqual([]);
  const dry = await run('k8s add other --dry-run --json --kubeconfig -', login);
  expect(JSON.parse(dry.stdout)).toMatchObject({ name: 'other', context: 'dev', login: 'exec' });
  const dryTaken = await run('k8s add dev --dry-run --kubeconfig -', login);
  expect(dryTaken).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringContaining('there is a cluster dev'),
  });
  const printed = await run('k8s add --print --namespaces web');
  expect(printed.stdout).toContain('kind: Role\n');
  expect(printed.stdout).not.toContain('kind: Cluster');
});

it('berth k8s add makes another account for each server, so that removing one harms no other', async () => {
  const env = (more: Record<string, string> = {}) => cleanEnv(folder(), more);
  const nameFor = async (more?: Record<string, string>): Promise<string> => {
    const { stdout } = await berth(['k8s', 'add', '--print', '--namespaces', 'web'], { env: env(more) });
    return /^kind: ServiceAccount\nmetadata:\n {2}name: (\S+)$/m.exec(stdout)?.[1] ?? stdout;
  };
  const own = await nameFor();
  expect(own).toMatch(/^berth-/);
  const names = ['https://berth.example.com', 'https://other.example.com'].map((url) =>
    nameFor({ BERTH_CLOUD_URL: url }),
  );
  for (const name of await Promise.all(names)) expect(name).toMatch(new RegExp(`^${own}-[0-9a-f]{6}$`));
  expect(new Set(await Promise.all(names)).size).toBe(2);
});

it('berth k8s syncs and removes clusters', async () => {
  const { run } = await cloud();
  expect(await run('k8s sync')).toMatchObject({
    code: 0,
    stdout: '✓ dev has 3 workloads\n',
    stderr: 'warning: the account of dev may not patch deployments.apps, patch statefulsets.apps\n',
  });
  expect((await run('k8s rm dev')).stdout).toBe('✓ dev is removed\n');
  const unknown = await run('k8s rm prod no');
  expect([unknown.code, unknown.stderr]).toEqual([
    1,
    expect.stringContaining('✗ prod: there is no cluster prod\n    Known clusters: dev.\n'),
  ]);
});

it('berth k8s renew gives a cluster new credentials', async () => {
  const { run, asked } = await cloud();
  const renewed = await run('k8s renew dev --kubeconfig -', kubeconfig());
  expect(renewed).toMatchObject({
    code: 0,
    stdout: 'dev has new credentials, of the context dev\n',
    stderr: '',
  });
  expect(asked.at(-1)).toMatchObject({ method: 'PATCH', path: `/k8s/clusters/${ID('A')}` });
  expect(JSON.parse(asked.at(-1)?.body ?? '')).toMatchObject({ renew_token: false });
  expect((await run('k8s renew prod --kubeconfig -', 'x')).stderr).toContain('there is no cluster prod');
});

/** The kubeconfig with `dev`, and with `other`, the current context, which leads to another cluster. */
const withOther = (more: object = {}): string =>
  kubeconfig({
    'current-context': 'other',
    contexts: ['dev', 'other'].map((name) => ({ name, context: { cluster: name, user: 'u' } })),
    clusters: [
      { name: 'dev', cluster: { server: 'https://10.0.0.1:6443/' } },
      { name: 'other', cluster: { server: 'https://10.0.0.2:6443' } },
    ],
    ...more,
  });

it('berth k8s renew takes the context that leads to the cluster', async () => {
  const { run, asked } = await cloud();
  expect((await run('k8s renew dev --kubeconfig -', withOther())).stdout).toBe(
    'dev has new credentials, of the context dev\n',
  );
  const { kubeconfig: sent } = JSON.parse(asked.at(-1)?.body ?? '');
  expect(parseKubeconfig(sent, Date.now()).server).toBe('https://10.0.0.1:6443');
});

it('berth k8s renew refuses a context of another cluster before it logs in, unless the cluster moved', async () => {
  const { run, asked } = await cloud();
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: '/nowhere' };
  const login = withOther({ users: [{ name: 'u', user: { exec } }] });
  const refused = await run('k8s renew dev --context other --yes --kubeconfig -', login);
  expect(refused).toMatchObject({ code: 1, stdout: '' });
  expect(refused.stderr).toBe(
    'berth: the context other leads to https://10.0.0.2:6443, and dev is at https://10.0.0.1:6443\n' +
      'Name a context of dev with --context. If dev has moved to the other address, pass --moved.\n',
  );
  const elsewhere = { server: 'https://10.0.0.3:6443' };
  const nowhere = withOther({ clusters: ['dev', 'other'].map((name) => ({ name, cluster: elsewhere })) });
  expect((await run('k8s renew dev --kubeconfig -', nowhere)).stderr).toContain(
    'the context other leads to https://10.0.0.3:6443, and dev is at',
  );
  expect(asked.filter(({ method }) => method !== 'GET')).toEqual([]);
  expect((await run('k8s renew dev --moved --kubeconfig -', withOther())).stdout).toBe(
    'dev has new credentials, of the context other\n',
  );
});

it("berth k8s renew refuses the cluster of Berth's own pod", async () => {
  const path = `GET /k8s/clusters/${ID('A')}`;
  const { run, asked } = await cloud({
    ...ANSWERS,
    [path]: [200, { ...DETAIL, in_cluster: true, server: null }],
  });
  const refused = await run('k8s renew dev --kubeconfig -', kubeconfig());
  expect(refused).toMatchObject({ code: 2, stdout: '' });
  expect(refused.stderr).toContain("dev is the cluster of Berth's own pod");
  expect(asked.filter(({ method }) => method !== 'GET')).toEqual([]);
});

it('berth k8s rights shows rights, and exits with 1 if one is missing', async () => {
  const right = { namespace: null, verb: 'list', resource: 'pods', allowed: true, optional: false };
  const rights = [
    { ...right, without: 'tethers find no pod' },
    { ...right, namespace: 'web', verb: 'patch', allowed: false, without: 'no sleep' },
  ];
  const path = `GET /k8s/clusters/${ID('A')}/rights`;
  const { run } = await cloud({ ...ANSWERS, [path]: [200, { rights }] });
  const shown = await run('k8s rights dev');
  expect([shown.code, shown.stdout.split('\n').map((line) => line.split(/ {2,}/))]).toEqual([
    1,
    [
      ['RIGHT', 'NAMESPACE', 'ALLOWED', 'WITHOUT IT'],
      ['list pods', '(all)', 'yes', 'tethers find no pod'],
      ['patch pods', 'web', 'no', 'no sleep'],
      [''],
    ],
  ]);
  expect(JSON.parse((await run('k8s rights --missing --json')).stdout)).toEqual([
    { cluster: 'dev', ...rights[1] },
  ]);
});
