// The accounts that `berth k8s add`, `renew` and `rm` make and remove in clusters.
import { chmodSync, cpSync, lstatSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import pty from 'node-pty';
import { expect, it } from 'vitest';
import { afterThisTest } from '../../kit/actors.ts';
import { BIN } from '../../kit/built_program.ts';
import { newFolder } from '../../kit/daemon.ts';
import { eventually } from '../../kit/eventually.ts';
import { type Json, kubeDouble } from '../../kit/kube_double.ts';
import { api, create, describeReal, kubeconfig, sandbox } from '../../kit/kube_real.ts';
import { berth, cleanEnv, daemonOf, folder } from '../berth_process.ts';

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
  const saw = (): string => shown;
  /** Resolves once it has shown `text`. */
  const shows = (text: string) => eventually(() => shown.includes(text) || undefined, saw);
  return {
    /** Its exit code. */
    get ended(): Promise<number> {
      return eventually(() => /\[exit (\d+)\]/.exec(shown)?.[1], saw).then(Number);
    },
    shows,
    async answer(question: string, text: string) {
      await shows(question);
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
  const [name] = /berth-\S+/.exec(kept.stderr) ?? [];
  expect(kept.stderr).toBe(
    `Its ServiceAccount berth/${name} stays in the cluster prod. To remove it:\n` +
      `  kubectl delete --ignore-not-found clusterrole/${name} clusterrolebinding/${name}\n` +
      `  kubectl delete role,rolebinding -A --field-selector metadata.name=${name}.berth\n` +
      `  kubectl delete --ignore-not-found -n berth serviceaccount/${name} role/${name} rolebinding/${name} ` +
      `role/${name}-token rolebinding/${name}-token\n`,
  );
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

/** A daemon, and `berth k8s` with this kubeconfig, which throws what it says if it fails. */
async function berthAt(kubeconfig: string, stateDir = newFolder()) {
  const daemon = await daemonOf({ config: '[cloud]\ntoken = "cloudy"\n', stateDir });
  const file = join(folder(), 'config');
  writeFileSync(file, kubeconfig);
  const env = cleanEnv(folder(), {
    ...{ BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile, KUBECONFIG: file, TERM: 'xterm' },
  });
  const run = async (line: string) => {
    const ended = await berth(['k8s', ...line.split(' ')], { env });
    if (ended.code !== 0) throw new Error(`berth k8s ${line}: ${ended.stderr}`);
    return ended;
  };
  return { daemon, env, run };
}

/** A daemon and an empty cluster, to which the kubeconfig of the commands leads. */
async function accounts() {
  const double = await kubeDouble();
  afterThisTest(() => double.stop());
  const { daemon, env, run } = await berthAt(double.kubeconfig);
  return {
    double,
    run,
    terminal: (line: string) => inTerminal(['k8s', ...line.split(' ')], env),
    /** The objects of accounts in the cluster, by kind and namespace. */
    places: () =>
      [...double.manifests.values()]
        .map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''}`)
        .sort(),
    async change(body: object) {
      const headers = { authorization: 'Bearer cloudy' };
      const [{ id }] = (await daemon.request('GET', '/k8s/clusters', undefined, headers)).body;
      await daemon.request('PATCH', `/k8s/clusters/${id}`, body, headers);
    },
    /** As `kubectl apply` of what `add --print --namespaces` prints: other Roles stay. */
    narrow(namespaces: string) {
      for (const object of double.manifests.values())
        if (object.kind === 'ServiceAccount') object.metadata.annotations['berth/namespaces'] = namespaces;
    },
  };
}

const IN_WEB_AND_DATA = [
  ...['Role data', 'Role web', 'Role web', 'RoleBinding data', 'RoleBinding web', 'RoleBinding web'],
  'ServiceAccount web',
];

it('berth k8s rm --account removes all that the account was given, whatever namespaces count now', async () => {
  const { run, places, change } = await accounts();
  await run('add prod --service-account --yes --namespaces web,data');
  expect(places()).toEqual(IN_WEB_AND_DATA);
  await change({ namespaces: ['other'] });
  expect((await run('rm prod --account --yes')).stdout).toBe('✓ prod is removed\n');
  expect(places()).toEqual([]);

  await run('add prod --service-account --yes --namespaces web,data');
  // The account stays in its namespace, so that it is the same one.
  const renewed = await run('renew prod --yes --namespaces data,web,more');
  expect(renewed.stderr).not.toContain('stays');
  expect(places()).toEqual([...IN_WEB_AND_DATA, 'Role more', 'RoleBinding more'].sort());
  await run('renew prod --yes --namespaces web');
  await run('rm prod --account --yes');
  expect(places()).toEqual([]);

  await run('add prod --service-account --yes --namespaces web,data');
  // It cannot be the same one any more.
  const moved = await run('renew prod --yes --namespaces data');
  expect(moved.stderr).toMatch(
    /^Its earlier ServiceAccount web\/berth-\S+ stays in the cluster prod\. To remove it:$/m,
  );
  await run('rm prod --account --yes');
  expect(places()).toEqual(IN_WEB_AND_DATA);

  await run('add prod --service-account --yes');
  await change({ namespaces: ['web'] });
  await run('rm prod --account --yes');
  expect(places().filter((place) => place.startsWith('Cluster'))).toEqual([]);
});

it('berth k8s add does not end while it waits before a call to a busy cluster', async () => {
  const { double, run, places } = await accounts();
  const busy = { kind: 'status', status: 429, headers: { 'retry-after': '1' } } as const;
  double.fault(({ path }) => path.includes('/serviceaccounts/'), busy);
  const added = await run('add prod --service-account --yes --namespaces web,data');
  expect(added.stdout).toContain('prod is registered');
  expect(places()).toEqual(IN_WEB_AND_DATA);
});

it('berth k8s rm --account also removes rights of which the account says nothing any more', async () => {
  const { double, run, places, narrow } = await accounts();
  await run('add prod --service-account --yes --namespaces web,data');
  narrow('web');
  await run('rm prod --account --yes');
  expect(places()).toEqual([]);

  await run('add prod --service-account --yes');
  narrow('berth,web');
  await run('rm prod --account --yes');
  expect(places()).toEqual([]);

  // Whoever may not list them relies on what it says.
  double.denied.add('list rolebindings');
  await run('add prod --service-account --yes --namespaces web,data,more');
  narrow('web,data');
  await run('rm prod --account --yes');
  expect(places()).toEqual(['Role more', 'RoleBinding more']);
});

it('berth k8s renew has done its work although the earlier account cannot be removed, and says how to do it', async () => {
  const { double, terminal, run, places } = await accounts();
  await run('add prod --service-account --yes --namespaces web,data');
  double.fault(({ method }) => method === 'DELETE', { kind: 'status', status: 403 });
  const renewed = terminal('renew prod --moved --namespaces data');
  await renewed.answer('Create this in the cluster', 'y');
  await renewed.answer('Remove its earlier ServiceAccount web/berth-', 'y');
  await renewed.answer('Remove them?', 'y');
  expect(await renewed.ended).toBe(0);
  await renewed.shows('the earlier account is not removed: ');
  await renewed.shows('stays in the cluster prod. To remove it:');
  await renewed.shows('kubectl delete --ignore-not-found -n web ');
  expect(places()).toEqual(expect.arrayContaining(IN_WEB_AND_DATA));
});

it('a refusal to remove the objects of an account ends a removal, and no renewal', async () => {
  const { double, terminal, run, places } = await accounts();
  await run('add prod --service-account --yes --namespaces web,data');
  const removed = terminal('rm prod');
  await removed.answer('Remove its ServiceAccount web/berth-', 'y');
  await removed.answer('Remove them?', 'n');
  expect(await removed.ended).toBe(1);
  await removed.shows('nothing is changed');
  expect((await run('clusters')).stdout).toContain('prod');

  for (const { metadata } of double.manifests.values())
    for (const key in metadata.annotations) if (key.includes('used-by')) delete metadata.annotations[key];
  const earlier = terminal('rm prod');
  await earlier.answer('Remove its ServiceAccount web/berth-', 'y');
  await earlier.answer('The account does not say which Berths use it', 'n');
  expect(await earlier.ended).toBe(1);

  const renewed = terminal('renew prod --namespaces data');
  await renewed.answer('Create this in the cluster', 'y');
  await renewed.answer('Remove its earlier ServiceAccount web/berth-', 'y');
  await renewed.answer('Remove them?', 'n');
  expect(await renewed.ended).toBe(0);
  await renewed.shows('stays in the cluster prod. To remove it:');
  expect(places()).toEqual(expect.arrayContaining(IN_WEB_AND_DATA));
});

/** Two Berths of one user and host in the cluster of `kubeconfig`, with an account in `namespace`. */
async function keepsSharedAccount(kubeconfig: string, namespace: string) {
  const [one, other] = [await berthAt(kubeconfig), await berthAt(kubeconfig)];
  const add = `add prod --service-account --yes --namespaces ${namespace}`;
  expect((await one.run(add)).stderr).not.toContain('Another Berth');
  expect((await other.run(add)).stderr).toMatch(
    /^Another Berth uses the ServiceAccount \S+, too: \S+\/\S{8}\.$/m,
  );
  // Made again, the account still says so.
  expect((await one.run('renew prod --yes')).stderr).toContain('Another Berth uses the ServiceAccount');

  const kept = await other.run('rm prod --account --yes');
  expect(kept.stdout).toBe('✓ prod is removed\n');
  expect(kept.stderr).toMatch(
    /^Its ServiceAccount \S+ stays in the cluster prod: another Berth uses it, too \(\S+\/\S{8}\)\. If/,
  );
  expect(kept.stderr).toMatch(/^ {2}kubectl delete --ignore-not-found -n \S+ serviceaccount\//m);
  expect((await one.run('sync prod')).stdout).toContain('prod');
  expect((await one.run('rights prod')).code).toBe(0);
  // The other one does not use it any more.
  expect((await one.run('rm prod --account --yes')).stderr).not.toContain('stays');
}

it('berth k8s rm --account keeps an account that another Berth of this user and host uses', async () => {
  const double = await kubeDouble();
  afterThisTest(() => double.stop());
  await keepsSharedAccount(double.kubeconfig, 'web');
  expect([...double.manifests]).toEqual([]);
});

it('berth k8s rm --account on a copy of a state directory keeps the account of the original', async () => {
  const double = await kubeDouble();
  afterThisTest(() => double.stop());
  const { daemon, run } = await berthAt(double.kubeconfig);
  await run('add prod --service-account --yes --namespaces web');
  daemon.signal('SIGTERM');
  await daemon.exited;
  const stateDir = join(newFolder(), 'copy');
  // The process host outlives the daemon for a moment, and a socket cannot be copied.
  cpSync(daemon.stateDir, stateDir, { recursive: true, filter: (file) => !lstatSync(file).isSocket() });
  const copy = await berthAt(double.kubeconfig, stateDir);
  expect((await copy.run('renew prod --yes --namespaces web')).stderr).toContain('Another Berth uses');
  expect((await copy.run('rm prod --account --yes')).stderr).toContain('another Berth uses it, too');
  expect([...double.manifests.values()].map(({ kind }) => kind)).toContain('ServiceAccount');
});

describeReal('on a real cluster', () => {
  const box = sandbox();

  it('two Berths of one user and host share an account until the last one removes it', async () => {
    await keepsSharedAccount(kubeconfig(), box.namespace);
    const { body } = await api('GET', `/api/v1/namespaces/${box.namespace}/serviceaccounts`);
    expect(body.items.map(({ metadata }: Json) => metadata.name)).toEqual(['default']);
  });

  it('a namespace that is being deleted makes no account, and another one is proposed', async () => {
    const { run } = await berthAt(kubeconfig());
    const path = `/api/v1/namespaces/${box.namespace}/configmaps`;
    // Its finalizer keeps the namespace from being gone.
    await create(path, { metadata: { name: 'held', finalizers: ['berth.test/held'] } });
    afterThisTest(async () => {
      const free = { metadata: { finalizers: null } };
      await api('PATCH', `${path}/held`, free, 'application/merge-patch+json');
    });
    await api('DELETE', `/api/v1/namespaces/${box.namespace}`);
    const refused = run(`add prod --service-account --yes --namespaces ${box.namespace}`);
    await expect(refused).rejects.toThrow(/being terminated.*\n.*name another one first in --namespaces/);
  });
});
