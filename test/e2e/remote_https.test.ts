// A Berth on another machine, over https as users have it: docs/reference.md "Login", "Remote tethers". Built
// programs, and a double of a cluster.
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { berth, folder } from '../cli/berth_process.ts';
import { afterThisTest } from '../kit/actors.ts';
import { doubleWith } from '../kit/cloud.ts';
import { type Daemon, eventually, startDaemon } from '../kit/daemon.ts';
import { ownPorts } from '../kit/free_ports.ts';
import { statusOf } from '../kit/kube_double.ts';
import { type Team, team } from './login_team.ts';

const ports = (): string => `tether_ports = [${ownPorts(4).join(', ')}]\n`;

/**
 * A team with the workload web/api, whose pods send back what they get. Its user may put
 * it to sleep and wake it.
 */
async function withWorkload(): Promise<Team> {
  const here = await team({ relayPort: 0 });
  const cluster = await doubleWith('api');
  cluster.echoFromPods();
  cluster.onPatched = (kind, object) =>
    cluster.change(kind, 'web', 'api', (row) => {
      row.status = statusOf(object.spec.replicas);
    });
  const kubeconfig = join(folder(), 'kubeconfig');
  writeFileSync(kubeconfig, cluster.kubeconfig, { mode: 0o600 });
  for (const words of [
    ['k8s', 'add', 'dev', '--kubeconfig', kubeconfig],
    ['k8s', 'sync', 'dev'],
    ['k8s', 'grants', 'add', 'user:anna', 'operator'],
  ])
    expect(await here.admin(...words)).toMatchObject({ code: 0, stderr: '' });
  expect(await here.run('login', here.url)).toMatchObject({ code: 0 });
  return here;
}

/** What a new connection to a tether gets back; rejects when it is reset. */
async function echoed(port: number, text = 'hello'): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  afterThisTest(() => void socket.destroy());
  socket.write(text);
  const [answer] = await once(socket, 'data');
  socket.destroy();
  return String(answer);
}

/** Requests with the daemon's own cloud token. */
const ask = (daemon: Daemon, method: string, path: string, body?: unknown) =>
  daemon.request(method, path, body, { Authorization: 'Bearer own' });

/** The user's daemon, which shows what the team has. */
const near = ({ url, state, env }: Team): Promise<Daemon> =>
  startDaemon({
    stateDir: state,
    config: `[cloud]\ntoken = "own"\nremote = "${url}"\n${ports()}`,
    env,
  });

/** Opens a tether to web/api; returns its port. */
async function openTether(daemon: Daemon): Promise<number> {
  const { body: rows } = await ask(daemon, 'GET', '/k8s/workloads');
  const made = await ask(daemon, 'POST', `/k8s/workloads/${rows[0].id}/tether`, { container_port: 80 });
  const { body } = await ask(daemon, 'POST', `/k8s/tethers/${made.body.tether_id}/activate`);
  return body.local_port;
}

it('workloads are put to sleep and woken by command, with a login and with the cloud token', async () => {
  const { run, admin } = await withWorkload();
  for (const call of [run, admin])
    for (const action of ['sleep', 'wake'])
      expect(await call('k8s', action, 'web/api')).toMatchObject({ code: 0, stderr: '' });
});

it('a command in the foreground tethers a workload', async () => {
  const { url, env } = await withWorkload();
  const config = join(folder(), 'config.toml');
  writeFileSync(config, `[cloud]\n${ports()}`);
  let end = (): void => undefined;
  let said = '';
  const ran = berth(['k8s', 'tether', '--remote', url, 'web/api', '80'], {
    env: { ...env, BERTH_CONFIG: config },
    onStart: (kill) => {
      end = () => kill('SIGINT');
    },
    onStdout: (text) => {
      said = text;
    },
  });
  const port = Number(await eventually(() => /^localhost:(\d+)$/m.exec(said)?.[1]));
  expect(await echoed(port)).toBe('hello');
  end();
  expect(await ran).toMatchObject({ code: 130 });
});

it('a daemon with cloud.remote changes workloads and tethers them', async () => {
  const daemon = await near(await withWorkload());
  expect(await echoed(await openTether(daemon))).toBe('hello');
  const { body: rows } = await ask(daemon, 'GET', '/k8s/workloads');
  expect(await ask(daemon, 'POST', `/k8s/workloads/${rows[0].id}/sleep`)).toMatchObject({ status: 200 });
});

it('tethers end with the login, and have the rights of the next one', async () => {
  const here = await withWorkload();
  const { url, issuer, run, admin } = here;
  const daemon = await near(here);
  const port = await openTether(daemon);
  const lastError = async () => (await ask(daemon, 'GET', '/k8s/tethers')).body[0].last_error;
  const open = connect(port, '127.0.0.1');
  const ended = new Promise((resolve) => open.on('error', resolve));
  open.write('hello');
  await once(open, 'data');
  await run('logout');
  await expect(echoed(port)).rejects.toThrow('ECONNRESET');
  expect(await ended).toMatchObject({ code: 'ECONNRESET' });
  await eventually(async () => /login at/.test(await lastError()));
  issuer.subject = 'bob';
  expect(await run('login', url)).toMatchObject({ code: 0 });
  await expect(echoed(port)).rejects.toThrow('ECONNRESET');
  await eventually(async () => /^user:bob needs the role waker/.test(await lastError()));
  expect(await admin('k8s', 'grants', 'add', 'user:bob', 'waker')).toMatchObject({ code: 0 });
  expect(await echoed(port)).toBe('hello');
});
