// The cloud's commands: names instead of ids, and their output. The responses are those of the API's
// document.
import { expect, it } from 'vitest';
import { afterThisTest } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import { kubeDouble } from '../../kit/kube_double.ts';
import { bearerOf } from '../../kit/server_proof.ts';
import { berth, cleanEnv, daemonOf, folder } from '../berth_process.ts';
import { ANSWERS, CLUSTERS, cloud, ID, TETHER, WORKLOADS } from '../k8s_answers.ts';

it('berth k8s lists clusters and workloads', async () => {
  const { run, asked } = await cloud();
  expect((await run('k8s clusters')).stdout).toMatch(
    /\ndev +active +kind +2026-11-20T10:00:00.000Z +A+ +-\n$/,
  );
  const { stdout } = await run('k8s workloads --cluster dev -n shop -l app=web --state awake');
  const rows = stdout
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => line.split(/ {2,}/));
  expect(rows).toEqual([
    ['shop', 'web', 'Deployment', 'awake', '1/2', 'after 30 min', '-'],
    ['shop', 'db', 'StatefulSet', 'awake', '1/2', 'off', '-'],
  ]);
  expect(asked.every(({ headers }) => headers.authorization === `Bearer ${bearerOf('cloudy')}`)).toBe(true);
});

it('berth k8s workloads says whether there are no workloads or none is selected', async () => {
  const { run } = await cloud({
    ...ANSWERS,
    'GET /k8s/workloads': [200, []],
    'GET /k8s/workloads?namespace=zzz': [200, []],
    'GET /k8s/workloads?state=asleep': [200, []],
    'GET /k8s/workloads?selector=app%3Dzzz': [200, []],
  });
  expect((await run('k8s workloads')).stderr).toContain('There are no workloads. `berth k8s sync` discovers');
  for (const selection of ['-n zzz', '--state asleep', '-l app=zzz'])
    expect((await run(`k8s workloads ${selection}`)).stderr, selection).toBe('No workload is selected.\n');
});

it('berth k8s reports why a cluster is unreachable', async () => {
  const reason = '10.0.0.1:6443 cannot be reached: no answer in 10000 ms';
  const path = `GET /k8s/clusters/${ID('A')}`;
  const [status, detail] = ANSWERS[path] ?? [];
  const { run } = await cloud({
    ...ANSWERS,
    [path]: [Number(status), { ...Object(detail), reachable: false, reason }],
  });
  expect((await run('k8s clusters')).stdout).toMatch(/\ndev +unreachable .* 10\.0\.0\.1:6443 cannot be/);
});

it('berth k8s names the cluster of each workload if there are several', async () => {
  const prod = { ...CLUSTERS[0], id: ID('P'), name: 'prod' };
  const both = [WORKLOADS[0], { ...WORKLOADS[0], id: ID('E'), cluster_id: ID('P') }];
  const { run } = await cloud({
    ...ANSWERS,
    'GET /k8s/clusters': [200, [...CLUSTERS, prod]],
    'GET /k8s/workloads': [200, both],
  });
  const { stdout } = await run('k8s workloads');
  expect(stdout.split('\n').map((line) => line.split(/ {2,}/).slice(0, 3))).toEqual([
    ['CLUSTER', 'NAMESPACE', 'NAME'],
    ['dev', 'shop', 'web'],
    ['prod', 'shop', 'web'],
    [''],
  ]);
  const slept = await run('k8s sleep shop/web');
  expect(slept.stderr).toContain(
    `shop/deployment/web in dev (${ID('B')})\nshop/deployment/web in prod (${ID('E')})`,
  );
  expect((await run('k8s workloads --cluster dev')).stdout).toMatch(/^NAMESPACE/);
  const wide = await cloud();
  expect((await wide.run('k8s workloads -o wide')).stdout).toMatch(/^CLUSTER .*\ndev /);
});

it('berth k8s says of workloads of a cluster that is away that they are shown as they were', async () => {
  const [web, ...others] = WORKLOADS;
  const away = { ...web, stale_since: new Date(Date.now() - 300_500).toISOString() };
  const { run } = await cloud({ ...ANSWERS, 'GET /k8s/workloads': [200, [away, ...others]] });
  expect((await run('k8s workloads')).stderr).toBe('Workloads of dev are shown as they were 5m 0s ago.\n');
});

it('berth doctor reports a cluster that refuses its account', async () => {
  const double = await kubeDouble();
  afterThisTest(() => double.stop());
  const daemon = await daemonOf({ config: '[cloud]\ntoken = "cloudy"\n' });
  const env = cleanEnv(folder(), { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile });
  const findings = async (): Promise<string[]> => {
    const { stdout } = await berth(['doctor', '--json'], { env });
    const all: { state: string; about: string; fix?: string }[] = JSON.parse(stdout);
    return all
      .filter(({ about }) => about.includes('cluster'))
      .map(({ state, about, fix = '' }) => `${state}: ${about}. ${fix}`);
  };
  expect(await findings()).toEqual([]);
  await berth(['k8s', 'add', 'dev', '--kubeconfig', '-'], { env, input: double.kubeconfig });
  await berth(['k8s', 'sync', 'dev'], { env });
  expect(await findings()).toEqual(['ok: all clusters accept their accounts (1). ']);
  double.fault(() => true, { kind: 'status', status: 401, reason: 'Unauthorized' }, Number.POSITIVE_INFINITY);
  expect((await berth(['k8s', 'sync', 'dev'], { env })).code).toBe(1);
  expect(await eventually(async () => (await findings()).find((about) => about.startsWith('wrong')))).toMatch(
    /^wrong: the cluster dev refuses its account since .*berth k8s renew dev$/,
  );
});

it('berth k8s finds workloads by name, namespace and kind, and requires more when several match', async () => {
  const { run } = await cloud();
  for (const name of ['shop/web', 'shop/deployment/web', 'shop/deploy/web', ID('B')]) {
    expect((await run(`k8s sleep ${name}`)).stdout).toBe(`✓ ${name} is going to sleep (had 2 replicas)\n`);
  }
  const several = await run('k8s sleep web');
  expect(several.code).toBe(1);
  expect(several.stderr).toContain('web matches several workloads:');
  expect(several.stderr).toContain(`shop/deployment/web in dev (${ID('B')})`);
  expect(several.stderr).toContain(`blog/deployment/web in dev (${ID('C')})`);
  expect((await run('k8s sleep nothing')).stderr).toContain('there is no workload nothing');
  const refused = await run('k8s sleep sts/db --json');
  expect(JSON.parse(refused.stdout)).toEqual([]);
  expect(JSON.parse(refused.stderr)).toMatchObject({ name: 'sts/db', code: 'sleep_refused' });
});

it('berth k8s wakes workloads, and configures auto-sleep', async () => {
  const { run, asked } = await cloud();
  expect((await run('k8s wake shop/web --timeout 1m')).stdout).toBe('✓ shop/web is awake with 2 replicas\n');
  expect((await run('k8s wake shop/web --no-wait')).stdout).toBe('✓ shop/web is waking with 2 replicas\n');
  expect((await run('k8s auto-sleep shop/web')).stdout).toBe('web sleeps after 30 idle minutes\n');
  expect((await run('k8s auto-sleep shop/web on --after 45m')).stdout).toBe(
    'web sleeps after 45 idle minutes\n',
  );
  expect(JSON.parse(asked.at(-1)?.body ?? '')).toEqual({
    auto_sleep_enabled: true,
    idle_timeout_minutes: 45,
  });
  expect(await run('k8s auto-sleep shop/web on --after 90s')).toMatchObject({ code: 2, stdout: '' });
  expect(await run('k8s auto-sleep shop/web maybe')).toMatchObject({ code: 2, stdout: '' });
});

it('berth k8s opens a tether and prints only its address, and closes it by its port', async () => {
  const { run, asked } = await cloud();
  const opened = await run('k8s tether shop/web 8080 --label shop --no-wake');
  expect(opened.stdout).toBe('localhost:20001\n');
  expect(opened.stderr).toContain('`berth k8s untether 20001` closes it');
  expect(JSON.parse(asked.find(({ path }) => path.endsWith('/tether'))?.body ?? '')).toEqual({
    container_port: 8080,
    wake: false,
    label: 'shop',
  });
  await run('k8s tether shop/db 5432 --pod db-0 --allow-not-ready --half-closed-timeout 5m');
  expect(JSON.parse(asked.findLast(({ path }) => path.endsWith('/tether'))?.body ?? '')).toEqual({
    container_port: 5432,
    wake: true,
    pod: 'db-0',
    allow_not_ready: true,
    half_closed_timeout: 300_000,
  });
  expect(await run('k8s tether shop/web http')).toMatchObject({ code: 2, stdout: '' });
  expect((await run('k8s tethers')).stdout).toMatch(
    /\nlocalhost:20001 +active +shop\/deployment\/web +8080 +shop +0 +-\n$/,
  );
  expect(JSON.parse((await run('k8s tethers --json')).stdout)).toEqual([TETHER]);
  for (const name of ['20001', 'shop', 'shop/web', 'deploy/web', ID('T')]) {
    expect((await run(`k8s untether ${name}`)).stdout).toBe(`✓ ${name} is closed\n`);
  }
  expect((await run('k8s untether blog/web')).stderr).toContain('there is no tether blog/web');
});

it('berth k8s names the workload of a tether also when it is not listed, and when the tether is of an earlier version', async () => {
  const unlisted = await cloud({ ...ANSWERS, 'GET /k8s/workloads': [200, []] });
  const old = await cloud({ ...ANSWERS, 'GET /k8s/tethers': [200, [{ ...TETHER, workload: null }]] });
  for (const { run } of [unlisted, old]) {
    expect((await run('k8s tethers')).stdout).toContain(' shop/deployment/web ');
    expect((await run('k8s untether shop/web')).stdout).toBe('✓ shop/web is closed\n');
  }
});

it('berth k8s finds the token that the daemon has generated', async () => {
  const daemon = await daemonOf();
  const env = cleanEnv(folder(), { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile });
  const { stdout } = await berth(['cloud', 'token'], { env });
  expect(stdout).toMatch(/^\S{20,}\n$/);
  const answer = await daemon.request('GET', '/k8s/clusters', undefined, {
    Authorization: `Bearer ${stdout.trim()}`,
  });
  expect([answer.status, answer.body]).toEqual([200, []]);
  const listed = await berth(['k8s', 'clusters'], { env });
  expect(listed).toMatchObject({
    code: 0,
    stdout: '',
    stderr: 'There are no clusters. `berth k8s add` registers one.\n',
  });
  const none = await berth(['cloud', 'token'], { env: cleanEnv(folder()) });
  expect(none).toMatchObject({ code: 1, stdout: '' });
  expect(none.stderr).toContain('there is no cloud token yet');
});

it('berth k8s puts many workloads to sleep by namespace and labels, with a line for each', async () => {
  const { run, asked } = await cloud();
  const ran = await run('k8s sleep -n shop,blog -l app --cluster dev --hold 1m');
  expect(ran.stdout).toBe('✓ deployment/shop/web is going to sleep\n');
  expect(ran.stderr).toContain('✗ deployment/shop/db: it is protected');
  expect(ran.code).not.toBe(0);
  expect(JSON.parse(asked.at(-1)?.body ?? '')).toEqual({
    ...{ cluster_id: ID('A'), namespaces: ['shop', 'blog'], selector: 'app', dry_run: false, hold: 60_000 },
  });
  const count = asked.length;
  expect((await run('k8s sleep')).stderr).toContain('name the workloads, or select them by --namespace');
  expect((await run('k8s sleep web -l app')).stderr).toContain('are for many workloads, in place of names');
  expect(asked).toHaveLength(count);
});
