// docs/reference.md "Cloud" through the real daemon, on a real cluster where there is one.
import { execFile, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BIN } from '../kit/built_program.ts';
import { type Daemon, eventually, newFolder, startDaemon, stopDaemon } from '../kit/daemon.ts';
import { freePort, ownPorts } from '../kit/free_ports.ts';
import type { Answer } from '../kit/http_request.ts';
import { clusterFile, describeReal } from '../kit/kube_real.ts';
import { endThread, INSPECTABLE } from './inspector.ts';

const kubeconfig = process.env['BERTH_TEST_KUBECONFIG'] ?? '';
const run = async (program: string, ...args: string[]): Promise<string> =>
  (await promisify(execFile)(program, args)).stdout;
const KUBECTL = clusterFile('bin/kubectl') ?? 'kubectl';
const kubectl = (...args: string[]): string =>
  execFileSync(KUBECTL, ['--kubeconfig', kubeconfig, ...args]).toString();
const ports = `tether_ports = [${ownPorts(20).join(', ')}]\n`;
const config = `[cloud]\ntoken = "cloud"\n${ports}`;

const ask = (
  daemon: Daemon,
  method: string,
  path: string,
  body?: unknown,
  token = 'cloud',
): Promise<Answer> => daemon.request(method, path, body, { Authorization: `Bearer ${token}` });

describe('the cloud API', () => {
  it('has a token of its own, made at the first start', async () => {
    const daemon = await startDaemon({ config: '[auth]\ntoken = "local"\n' });
    const file = join(daemon.stateDir, 'cloud-token');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const token = readFileSync(file, 'utf8').trim();
    expect((await ask(daemon, 'GET', '/k8s/clusters', undefined, token)).body).toEqual([]);
    const refused = await ask(daemon, 'GET', '/k8s/clusters', undefined, 'local');
    expect([refused.status, refused.body.code, refused.headers['www-authenticate']]).toEqual([
      401,
      'unauthorized',
      'Bearer',
    ]);
    expect((await ask(daemon, 'GET', '/v1/services', undefined, token)).status).toBe(401);
    expect((await daemon.request('GET', '/k8s/nothing')).status).toBe(401);
  });

  it('refuses a kubeconfig with more than address and credentials', async () => {
    const daemon = await startDaemon({ config });
    const marker = join(newFolder(), 'ran');
    const evil = `apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: a, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, args: ["${marker}"]}}}]
`;
    const answer = await ask(daemon, 'POST', '/k8s/clusters', { name: 'evil', kubeconfig: evil });
    expect([answer.status, answer.body.code]).toEqual([400, 'invalid_spec']);
    expect(JSON.stringify(answer.body)).toContain('exec');
    expect(existsSync(marker)).toBe(false);
    expect((await ask(daemon, 'GET', '/k8s/clusters')).body).toEqual([]);
  });

  it('keeps clusters across a restart, sealed, and refuses a wrong key without touching them', async () => {
    const one = await startDaemon({ config });
    const token = randomBytes(12).toString('hex');
    const document = `apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: a, user: {token: "${token}"}}]
`;
    const added = await ask(one, 'POST', '/k8s/clusters', {
      name: 'c',
      provider: 'kind',
      kubeconfig: document,
    });
    expect([added.status, Object.keys(added.body)]).toEqual([201, ['id', 'name']]);
    const twice = await ask(one, 'POST', '/k8s/clusters', { name: 'c', kubeconfig: document });
    expect([twice.status, twice.body.code]).toEqual([409, 'name_in_use']);
    const unreachable = await ask(one, 'POST', `/k8s/clusters/${added.body.id}/sync`);
    expect([unreachable.status, unreachable.body.code]).toEqual([502, 'cluster_unreachable']);
    await stopDaemon(one);
    expect(readFileSync(join(one.stateDir, 'store.mdb')).includes(token)).toBe(false);
    const key = join(one.stateDir, 'cloud.key');
    const right = readFileSync(key);
    writeFileSync(key, randomBytes(32));
    const two = await startDaemon({ stateDir: one.stateDir, config });
    const refused = await ask(two, 'GET', '/k8s/clusters');
    expect(refused.status).toBe(500);
    expect(refused.body.hint).toContain('key file');
    expect((await two.request('GET', '/v1/services')).status).toBe(200);
    await stopDaemon(two);
    writeFileSync(key, right);
    const three = await startDaemon({ stateDir: one.stateDir, config });
    expect((await ask(three, 'GET', '/k8s/clusters')).body).toEqual([
      {
        id: added.body.id,
        name: 'c',
        provider: 'kind',
        in_cluster: false,
        created_at: expect.stringMatching(/Z$/),
      },
    ]);
  });

  it('may have a listener of its own', async () => {
    const port = freePort();
    const daemon = await startDaemon({
      config: `[cloud]\ntoken = "cloud"\nbind = "127.0.0.1"\nport = ${port}\n`,
    });
    const statusAt = (at: number): Promise<number | undefined> =>
      new Promise((resolve, reject) => {
        const headers = { Authorization: 'Bearer cloud' };
        http
          .get({ host: '127.0.0.1', port: at, path: '/k8s/clusters', headers, agent: false }, (response) => {
            response.resume();
            resolve(response.statusCode);
          })
          .on('error', reject);
      });
    expect(await statusAt(daemon.port)).toBe(404);
    expect(await statusAt(port)).toBe(200);
  });
});

describeReal('on a real cluster', () => {
  const namespace = `berth-e2e-${process.pid}`;
  const manifest = `apiVersion: v1
kind: Namespace
metadata: {name: ${namespace}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: ${namespace}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: web
        image: busybox:1.35
        command: [sh, -c, "mkdir -p /www; hostname > /www/index.html; exec httpd -f -p 8080 -h /www"]
        readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}
`;
  beforeAll(() => {
    execFileSync(KUBECTL, ['--kubeconfig', kubeconfig, 'apply', '-f', '-'], { input: manifest });
    kubectl('-n', namespace, 'rollout', 'status', 'deployment/web', '--timeout=60s');
  }, 90_000);
  afterAll(() => void kubectl('delete', 'namespace', namespace, '--wait=false'));

  it('puts a workload to sleep, wakes it by curl through its tether, and keeps the tether across daemons', async () => {
    const one = await startDaemon({ config });
    const added = await ask(one, 'POST', '/k8s/clusters', {
      name: 'real',
      kubeconfig: Buffer.from(readFileSync(kubeconfig)).toString('base64'),
    });
    const synced = await ask(one, 'POST', `/k8s/clusters/${added.body.id}/sync`);
    expect(synced.body.synced).toBeGreaterThan(0);
    const find = async (daemon: Daemon) => {
      const { body } = await ask(daemon, 'GET', `/k8s/workloads?cluster_id=${added.body.id}`);
      return body.find((row: { namespace: string }) => row.namespace === namespace);
    };
    const web = await find(one);
    expect(web).toMatchObject({
      name: 'web',
      kind: 'Deployment',
      replicas: 2,
      desired_replicas: null,
      auto_sleep_enabled: false,
    });
    expect(web).toMatchObject({ idle_timeout_minutes: 30, last_activity_at: null });
    const settings = await ask(one, 'PATCH', `/k8s/workloads/${web.id}/auto-sleep`, {
      idle_timeout_minutes: 7,
    });
    expect(settings.body).toEqual({ auto_sleep_enabled: false, idle_timeout_minutes: 7 });
    expect((await ask(one, 'GET', `/k8s/workloads/${web.id}/auto-sleep`)).body).toEqual(settings.body);

    const tether = await ask(one, 'POST', `/k8s/workloads/${web.id}/tether`, {
      container_port: 8080,
      label: 'page',
    });
    expect([tether.status, Object.keys(tether.body)]).toEqual([201, ['tether_id', 'local_port']]);
    const active = await ask(one, 'POST', `/k8s/tethers/${tether.body.tether_id}/activate`);
    expect(active.body).toEqual({ ...tether.body, state: 'active' });
    const curl = (): string =>
      execFileSync('curl', [
        '-s',
        '--max-time',
        '25',
        `http://127.0.0.1:${tether.body.local_port}/`,
      ]).toString();
    expect(curl()).toMatch(/^web-/);
    await eventually(async () => (await find(one)).last_activity_at);

    expect((await ask(one, 'POST', `/k8s/workloads/${web.id}/sleep`)).body).toEqual({ replicas: 0 });
    expect((await ask(one, 'POST', `/k8s/workloads/${web.id}/sleep`)).body).toEqual({ replicas: 0 });
    await eventually(async () => (await find(one)).state === 'asleep');
    expect((await find(one)).desired_replicas).toBe(2);
    expect(kubectl('-n', namespace, 'get', 'deployment', 'web', '-o', 'jsonpath={.spec.replicas}')).toBe('0');

    one.signal('SIGKILL');
    await one.exited;
    const two = await startDaemon({ stateDir: one.stateDir, config });
    await eventually(async () => (await ask(two, 'GET', '/k8s/tethers')).body[0]?.state === 'active');
    // The workload sleeps: the connection is held, wakes it, and is answered.
    expect(curl()).toMatch(/^web-/);
    expect(kubectl('-n', namespace, 'get', 'deployment', 'web', '-o', 'jsonpath={.spec.replicas}')).toBe('2');
    expect((await ask(two, 'POST', `/k8s/workloads/${web.id}/wake`)).body).toEqual({ replicas: 2 });
    expect((await ask(two, 'POST', `/k8s/tethers/${tether.body.tether_id}/deactivate`)).body).toEqual({
      ok: true,
    });
    expect(() => curl()).toThrow();
    const removed = await ask(two, 'DELETE', `/k8s/clusters/${added.body.id}`);
    expect(removed.body).toEqual({ removed: true, id: added.body.id });
    expect((await ask(two, 'GET', '/k8s/workloads')).body).toEqual([]);
    expect((await ask(two, 'GET', '/k8s/tethers')).body).toEqual([]);
  }, 90_000);

  it('keeps tethers when the threads that run and store them end', async () => {
    const daemon = await startDaemon({ config, env: INSPECTABLE });
    const added = await ask(daemon, 'POST', '/k8s/clusters', {
      name: 'real',
      kubeconfig: readFileSync(kubeconfig, 'utf8'),
    });
    await ask(daemon, 'POST', `/k8s/clusters/${added.body.id}/sync`);
    const { body: rows } = await ask(daemon, 'GET', `/k8s/workloads?cluster_id=${added.body.id}`);
    const { id } = rows.find((row: { namespace: string }) => row.namespace === namespace);
    const ports: number[] = [];
    // Enough to be certain that every thread has one.
    for (let index = 0; index < 8; index += 1) {
      const made = await ask(daemon, 'POST', `/k8s/workloads/${id}/tether`, { container_port: 8080 });
      const active = await ask(daemon, 'POST', `/k8s/tethers/${made.body.tether_id}/activate`);
      ports.push(active.body.local_port);
    }
    const tethers = async () => (await ask(daemon, 'GET', '/k8s/tethers')).body;
    const clients = ports.map((port) => connect(port, '127.0.0.1'));
    const ended = clients.map((socket) => {
      socket.on('error', () => undefined);
      return once(socket, 'close');
    });
    const isCarried = async () =>
      (await tethers()).every((row: { connections: number }) => row.connections === 1);
    await eventually(isCarried);
    // The actor that stores the records restarts; the connections are not affected.
    await endThread(daemon, 'cloud');
    await eventually(isCarried);
    expect(clients.map(({ destroyed }) => destroyed)).toEqual(clients.map(() => false));
    for (const thread of ['tethers-0', 'tethers-1']) await endThread(daemon, thread);
    await Promise.all(ended);
    const isBack = (row: { state: string; connections: number }) =>
      row.state === 'active' && row.connections === 0;
    await eventually(async () => (await tethers()).every(isBack));
    expect((await tethers()).map((row: { local_port: number }) => row.local_port)).toEqual(ports);
    for (const port of ports)
      expect(
        execFileSync('curl', ['-s', '--max-time', '25', `http://127.0.0.1:${port}/`]).toString(),
      ).toMatch(/^web-/);
  }, 90_000);

  it('offers tethers to another Berth, which wake workloads and outlive a restart of either', async () => {
    const port = freePort();
    const relay = `[cloud]\ntoken = "there"\nbind = "127.0.0.1"\nport = ${port}\nrelay_port = 0\n`;
    const there = await startDaemon({ config: relay });
    const url = `http://127.0.0.1:${port}`;
    const near = { config: `${config}remote = "${url}"\n`, env: { BERTH_REMOTE_TOKEN: 'there' } };
    const here = await startDaemon(near);
    const added = await ask(here, 'POST', '/k8s/clusters', {
      name: 'real',
      kubeconfig: readFileSync(kubeconfig, 'utf8'),
    });
    await ask(here, 'POST', `/k8s/clusters/${added.body.id}/sync`);
    const { body: rows } = await ask(here, 'GET', `/k8s/workloads?namespace=${namespace}`);
    const made = await ask(here, 'POST', `/k8s/workloads/${rows[0].id}/tether`, { container_port: 8080 });
    const active = await ask(here, 'POST', `/k8s/tethers/${made.body.tether_id}/activate`);
    const curl = (at: number): Promise<string> =>
      run('curl', '-s', '--max-time', '25', `http://127.0.0.1:${at}/`);
    const local = active.body.local_port;
    expect(await curl(local)).toMatch(/^web-/);
    await ask(here, 'POST', `/k8s/workloads/${rows[0].id}/sleep`);
    await eventually(async () => {
      const { body } = await ask(here, 'GET', `/k8s/workloads/${rows[0].id}`);
      return body.state === 'asleep';
    });
    expect(await curl(local), 'held until its pods are ready').toMatch(/^web-/);

    here.signal('SIGKILL');
    await here.exited;
    const next = await startDaemon({ ...near, stateDir: here.stateDir });
    await eventually(async () => (await ask(next, 'GET', '/k8s/tethers')).body[0]?.state === 'active');
    expect(await curl(local)).toMatch(/^web-/);
    there.signal('SIGKILL');
    await there.exited;
    const { body: clusters } = await ask(next, 'GET', '/k8s/clusters');
    expect(clusters.code).toBe('remote_unreachable');
    await startDaemon({ config: relay, stateDir: there.stateDir });
    await eventually(async () => /^web-/.test(await curl(local).catch(() => '')));

    const file = join(newFolder(), 'config.toml');
    writeFileSync(file, `[cloud]\n${ports}`);
    const env = {
      ...process.env,
      BERTH_CONFIG: file,
      BERTH_STATE_DIR: newFolder(),
      BERTH_REMOTE_TOKEN: 'there',
    };
    const args = [BIN, 'k8s', 'tether', `${namespace}/web`, '8080', '--remote', url];
    const foreground = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
    let said = '';
    foreground.stdout.on('data', (text) => {
      said += text;
    });
    const at = Number(await eventually(() => /^localhost:(\d+)$/m.exec(said)?.[1]));
    expect(await curl(at)).toMatch(/^web-/);
    foreground.kill('SIGINT');
    await once(foreground, 'exit');
    await expect(curl(at)).rejects.toThrow();
  }, 120_000);

  it('allows a token with rights in one namespace to tether over the relay, until it is revoked', async () => {
    const port = freePort();
    const relay = `[cloud]\ntoken = "there"\nbind = "127.0.0.1"\nport = ${port}\nrelay_port = 0\n`;
    await startDaemon({ config: relay });
    const url = `http://127.0.0.1:${port}`;
    const admin = async (method: string, path: string, body?: unknown) => {
      const headers = { authorization: 'Bearer there', 'content-type': 'application/json' };
      const sent = body === undefined ? {} : { body: JSON.stringify(body) };
      return (await fetch(url + path, { method, headers, ...sent })).json();
    };
    const { id } = await admin('POST', '/k8s/clusters', {
      name: 'real',
      kubeconfig: readFileSync(kubeconfig, 'utf8'),
    });
    await admin('POST', `/k8s/clusters/${id}/sync`);
    const { token } = await admin('POST', '/k8s/tokens', { name: 'laptop' });
    await admin('POST', '/k8s/grants', { token: 'laptop', role: 'waker', cluster_id: id, namespace });
    const others = await admin('GET', '/k8s/workloads?namespace=kube-system');
    const here = await startDaemon({
      config: `${config}remote = "${url}"\n`,
      env: { BERTH_REMOTE_TOKEN: token },
    });
    const { body: rows } = await ask(here, 'GET', '/k8s/workloads');
    expect(new Set(rows.map((row: { namespace: string }) => row.namespace))).toEqual(new Set([namespace]));
    const made = await ask(here, 'POST', `/k8s/workloads/${rows[0].id}/tether`, { container_port: 8080 });
    const active = await ask(here, 'POST', `/k8s/tethers/${made.body.tether_id}/activate`);
    const curl = (): Promise<string> =>
      run('curl', '-s', '--max-time', '25', `http://127.0.0.1:${active.body.local_port}/`);
    expect(await curl()).toMatch(/^web-/);
    const audit = await admin('GET', '/k8s/events/history?types=tether.opened');
    expect(audit[0]).toMatchObject({ who: 'token:laptop', from: '127.0.0.1', workload_id: rows[0].id });
    const slept = await ask(here, 'POST', `/k8s/workloads/${rows[0].id}/sleep`);
    expect([slept.status, slept.body.code]).toEqual([403, 'forbidden']);
    expect(slept.body.message).toContain('token:laptop needs the role sleeper');
    for (const other of others.slice(0, 1)) {
      const hidden = await ask(here, 'POST', `/k8s/workloads/${other.id}/tether`, { container_port: 53 });
      expect([hidden.status, hidden.body.code]).toEqual([404, 'unknown_workload']);
    }
    const client = connect(active.body.local_port, '127.0.0.1');
    const gone = new Promise((resolve) => client.once('close', resolve));
    client.on('error', () => undefined);
    client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await once(client, 'data');
    expect(await admin('DELETE', '/k8s/tokens/laptop')).toEqual({ removed: true, name: 'laptop' });
    await gone;
    await expect(curl()).rejects.toThrow();
    expect((await ask(here, 'GET', '/k8s/workloads')).body.code).toBe('remote_denied');
  }, 90_000);
});
