// `berth k8s add`, `renew`, `rm` and `rights`: what reaches the daemon of the user's own kubeconfig.
import { chmodSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import pty from 'node-pty';
import { expect, it } from 'vitest';
import { parseKubeconfig } from '../../../src/adapters/kube/kubeconfig.ts';
import { afterThisTest } from '../../kit/actors.ts';
import { BIN } from '../../kit/built_program.ts';
import { eventually } from '../../kit/eventually.ts';
import { kubeDouble } from '../../kit/kube_double.ts';
import { berth, cleanEnv, daemonOf, folder } from '../berth_process.ts';
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

/**
 * `berth` in a terminal: what it shows, and how to answer what it asks. The shell around it keeps the terminal
 * open, because node-pty may lose what a process prints right before it ends.
 */
function inTerminal(args: string[], env: Record<string, string>) {
  const script = '"$@"; echo "[exit $?]"; read end';
  const terminal = pty.spawn('/bin/sh', ['-c', script, 'sh', process.execPath, BIN, ...args], {
    ...{ cwd: folder(), env, encoding: null, cols: 200, rows: 50 },
  });
  afterThisTest(() => void process.kill(terminal.pid, 'SIGKILL'));
  let shown = '';
  terminal.onData((bytes) => {
    shown += bytes.toString();
  });
  return {
    /** Its exit code. */
    get ended(): Promise<number> {
      return eventually(() => /\[exit (\d+)\]/.exec(shown)?.[1]).then(Number);
    },
    /** Resolves once it has shown `text`. */
    shows: (text: string) => eventually(() => shown.includes(text) || undefined),
    async answer(question: string, text: string) {
      await eventually(() => shown.includes(question) || undefined);
      shown = '';
      writeSync(terminal.fd, `${text}\r`);
    },
  };
}

it('berth k8s add asks on a terminal: for the account, in the login command, and before its removal', async () => {
  const double = await kubeDouble();
  afterThisTest(() => double.stop());
  const daemon = await daemonOf({ config: '[cloud]\ntoken = "cloudy"\n' });
  const home = folder();
  const env = cleanEnv(home, {
    ...{ BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile, TERM: 'xterm' },
    KUBECONFIG: join(home, 'config'),
  });
  const config = JSON.parse(double.kubeconfig);
  const { token } = config.users[0].user;
  const credential = {
    apiVersion: 'client.authentication.k8s.io/v1',
    kind: 'ExecCredential',
    status: { token },
  };
  const login = join(home, 'login');
  writeFileSync(
    login,
    `#!/bin/sh\nprintf 'Your code: ' >&2\nread code\n[ "$code" = 42 ] || exit 1\necho '${JSON.stringify(credential)}'\n`,
  );
  chmodSync(login, 0o755);
  config.users[0].user = {
    exec: { apiVersion: credential.apiVersion, command: './login', interactiveMode: 'Always' },
  };
  writeFileSync(env['KUBECONFIG'] ?? '', JSON.stringify(config));
  const question = 'Create this in the cluster at https://127.0.0.1';

  const refused = inTerminal(['k8s', 'add', 'prod'], env);
  await refused.answer(question, 'n');
  expect(await refused.ended).toBe(1);
  const wrong = inTerminal(['k8s', 'add', 'prod'], env);
  await wrong.answer(question, 'y');
  await wrong.answer('Your code: ', '41');
  expect(await wrong.ended).toBe(1);
  await wrong.shows('ended with exit code 1');
  expect(double.requests).toEqual([]);

  const added = inTerminal(['k8s', 'add', 'prod'], env);
  await added.answer(question, 'y');
  await added.answer('Your code: ', '42');
  expect(await added.ended).toBe(0);
  await added.shows('prod is registered, with 0 workloads');
  expect([...double.manifests.values()].map(({ kind }) => kind)).toEqual([
    ...['Namespace', 'ServiceAccount', 'ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding'],
  ]);

  // Without a terminal it says that the account stays, and with one it asks.
  const kept = await berth(['k8s', 'rm', 'prod'], { env });
  expect(kept.stderr).toMatch(/^Its ServiceAccount berth\/berth-.* stays in the cluster prod\.\n$/);
  const again = inTerminal(['k8s', 'add', 'prod', '--yes'], env);
  await again.answer('Your code: ', '42');
  expect(await again.ended).toBe(0);
  // An account that another cluster here uses stays as well.
  const headers = { authorization: 'Bearer cloudy' };
  const request = (method: string, path: string, body?: object) =>
    daemon.request(method, path, body, headers);
  const [prod] = (await request('GET', '/k8s/clusters')).body;
  const { token_renewal: renewal } = (await request('GET', `/k8s/clusters/${prod.id}`)).body;
  config.users[0].user = { token: double.accountToken(Date.now(), 600, renewal.service_account) };
  const twin = { name: 'twin', kubeconfig: JSON.stringify(config), renew_token: true };
  expect(await request('POST', '/k8s/clusters', twin)).toMatchObject({ status: 201 });
  const shared = await berth(['k8s', 'rm', 'twin', '--account'], { env });
  expect(shared.stderr).toMatch(/^Its ServiceAccount \S+ stays in the cluster twin: prod uses it, too\.\n$/);
  expect(double.manifests.size).toBe(6);
  // The current context leads to another cluster by now.
  const [context] = config.contexts;
  config.contexts.push({ name: 'other', context: { ...context.context, cluster: 'other' } });
  config.clusters.push({ name: 'other', cluster: { server: 'https://127.0.0.1:1' } });
  config['current-context'] = 'other';
  config.users[0].user = {
    exec: { apiVersion: credential.apiVersion, command: './login', interactiveMode: 'Always' },
  };
  writeFileSync(env['KUBECONFIG'] ?? '', JSON.stringify(config));
  const removed = inTerminal(['k8s', 'rm', 'prod'], env);
  await removed.answer('Remove its ServiceAccount berth/berth-', 'y');
  await removed.answer('Your code: ', '42');
  await removed.answer('Remove them?', 'y');
  expect(await removed.ended).toBe(0);
  await removed.shows('prod is removed');
  expect([...double.manifests]).toEqual([]);
});

it('berth k8s rm --account removes all that the account was given, whatever namespaces count now', async () => {
  const double = await kubeDouble();
  afterThisTest(() => double.stop());
  const daemon = await daemonOf({ config: '[cloud]\ntoken = "cloudy"\n' });
  const file = join(folder(), 'config');
  writeFileSync(file, double.kubeconfig);
  const env = cleanEnv(folder(), {
    ...{ BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile, KUBECONFIG: file },
  });
  const run = (line: string) => berth(['k8s', ...line.split(' ')], { env });
  const places = () =>
    [...double.manifests.values()].map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''}`).sort();
  const change = async (body: object) => {
    const headers = { authorization: 'Bearer cloudy' };
    const [{ id }] = (await daemon.request('GET', '/k8s/clusters', undefined, headers)).body;
    await daemon.request('PATCH', `/k8s/clusters/${id}`, body, headers);
  };
  const inWebAndData = [
    ...['Role data', 'Role web', 'Role web', 'RoleBinding data', 'RoleBinding web', 'RoleBinding web'],
    'ServiceAccount web',
  ];

  expect(await run('add prod --service-account --yes --namespaces web,data')).toMatchObject({ code: 0 });
  expect(places()).toEqual(inWebAndData);
  await change({ namespaces: ['other'] });
  expect((await run('rm prod --account --yes')).stdout).toBe('✓ prod is removed\n');
  expect(places()).toEqual([]);

  await run('add prod --service-account --yes --namespaces web,data');
  // The account stays in its namespace, so that it is the same one.
  const renewed = await run('renew prod --yes --namespaces data,web,more');
  expect(renewed).toMatchObject({ code: 0, stderr: expect.not.stringContaining('stays') });
  expect(places()).toEqual([...inWebAndData, 'Role more', 'RoleBinding more'].sort());
  await run('renew prod --yes --namespaces web');
  await run('rm prod --account --yes');
  expect(places()).toEqual([]);

  await run('add prod --service-account --yes --namespaces web,data');
  // It cannot be the same one any more.
  const moved = await run('renew prod --yes --namespaces data');
  expect(moved.stderr).toMatch(/^Its earlier ServiceAccount web\/berth-\S+ stays in the cluster prod\.$/m);
  await run('rm prod --account --yes');
  expect(places()).toEqual(inWebAndData);

  await run('add prod --service-account --yes');
  await change({ namespaces: ['web'] });
  await run('rm prod --account --yes');
  expect(places().filter((place) => place.startsWith('Cluster'))).toEqual([]);
});
