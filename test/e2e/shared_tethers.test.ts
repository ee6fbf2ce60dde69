// The tethers of daemons on one database, docs/reference.md "Shared database", by the built program and a real
// Postgres: whoever has lost the lease no longer knows who may use them.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { dialRelay } from '../../src/adapters/relay/dial_relay.ts';
import type { RelayConnection } from '../../src/adapters/relay/relay_connection.ts';
import { RELAY_PATH } from '../../src/adapters/relay/relay_path.ts';
import { newTicket } from '../../src/adapters/relay/ticket.ts';
import { deferred } from '../../src/runtime/deferred.ts';
import { afterThisTest, realTime } from '../kit/actors.ts';
import { type Daemon, eventually, newFolder, startDaemon } from '../kit/daemon.ts';
import { freePort, ownPorts } from '../kit/free_ports.ts';
import { send } from '../kit/http_request.ts';
import { kubeDouble, workload } from '../kit/kube_double.ts';
import { must } from '../kit/must.ts';
import { hasPostgres, NO_POSTGRES, type PostgresServer, startPostgres } from '../kit/postgres.ts';

let postgres: PostgresServer | undefined;
beforeAll(async () => {
  if (hasPostgres) postgres = await startPostgres();
}, 60_000);
afterAll(() => postgres?.remove());

const it = test.skipIf(!hasPostgres);

interface Team {
  url: string;
  key: string;
}

async function newTeam(): Promise<Team> {
  const key = join(newFolder(), 'cloud.key');
  writeFileSync(key, randomBytes(32), { mode: 0o600 });
  return { url: await must(postgres).createDatabase(), key };
}

interface Member extends Pick<Daemon, 'signal'> {
  cloudPort: number;
  relayPort: number;
}

/** A daemon with tether ports of its own. */
async function start({ url, key }: Team): Promise<Member> {
  const [cloudPort, relayPort] = [freePort(), freePort()];
  const listeners = `bind = "127.0.0.1"\nport = ${cloudPort}\nrelay_port = ${relayPort}\n`;
  const tethers = `tether_ports = [${ownPorts(4).join(', ')}]\n`;
  const { signal } = await startDaemon({
    config: `[cloud]\ntoken = "cloud"\nkey_file = "${key}"\n${listeners}${tethers}`,
    env: { BERTH_DATABASE_URL: url },
  });
  return { signal, cloudPort, relayPort };
}

const ask = ({ cloudPort }: Member, method: string, path: string, body?: unknown, token = 'cloud') =>
  send(cloudPort, method, path, { body, headers: { Authorization: `Bearer ${token}` } });

const hasClusters = async (daemon: Member): Promise<boolean> =>
  (await ask(daemon, 'GET', '/k8s/clusters')).status === 200;

/** The id of a new workload, whose pods send back what they get. */
async function addWorkload(daemon: Member): Promise<string> {
  const double = await kubeDouble();
  afterThisTest(() => double.stop());
  double.echoFromPods();
  double.put('Deployment', workload('web', 'api', 1));
  const { kubeconfig } = double;
  const added = await ask(daemon, 'POST', '/k8s/clusters', { name: 'c', kubeconfig });
  expect(added.status).toBe(201);
  expect((await ask(daemon, 'POST', `/k8s/clusters/${added.body.id}/sync`)).status).toBe(200);
  return (await ask(daemon, 'GET', '/k8s/workloads')).body[0].id;
}

/** Opens a tether to a workload with `token`; returns its port. */
async function openTether(daemon: Member, id: string, token?: string): Promise<number> {
  const made = await ask(daemon, 'POST', `/k8s/workloads/${id}/tether`, { container_port: 80 }, token);
  expect(made.status).toBe(201);
  const path = `/k8s/tethers/${made.body.tether_id}/activate`;
  const { status, body } = await ask(daemon, 'POST', path, undefined, token);
  expect(status).toBe(200);
  return body.local_port;
}

/** Connects, and has an answer of a pod. `ended` resolves when the connection has ended. */
async function connected(port: number): Promise<{ ended: Promise<unknown> }> {
  const socket = connect(port, '127.0.0.1');
  afterThisTest(() => void socket.destroy());
  socket.write('hello');
  expect(String((await once(socket, 'data'))[0])).toBe('hello');
  const ended = new Promise((resolve) => socket.on('error', () => undefined).on('close', resolve));
  return { ended };
}

/** Whether nothing listens on a port. */
const isClosed = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.on('connect', () => resolve(false)).on('error', () => resolve(true));
    socket.on('connect', () => socket.destroy());
  });

const listening = async (daemon: Member): Promise<number[]> => {
  const { body } = await ask(daemon, 'GET', '/k8s/tethers');
  return body.flatMap(({ state, local_port: port }: any) => (state === 'active' ? [port] : []));
};

describe(`tethers with a shared database${NO_POSTGRES}`, () => {
  it('end at a daemon that was suspended past its lease, and are opened by the next one if they are valid', async () => {
    const team = await newTeam();
    const first = await start(team);
    await eventually(() => hasClusters(first));
    const id = await addWorkload(first);
    const { token } = (await ask(first, 'POST', '/k8s/tokens', { name: 'ci' })).body;
    await ask(first, 'POST', '/k8s/grants', { token: 'ci', role: 'waker' });
    const revoked = await openTether(first, id, token);
    const kept = await openTether(first, id);
    const { ended } = await connected(revoked);
    const second = await start(team);
    afterThisTest(() => first.signal('SIGCONT'));
    first.signal('SIGSTOP');
    await eventually(() => hasClusters(second));
    expect((await ask(second, 'DELETE', '/k8s/tokens/ci')).status).toBe(200);
    const [next = 0] = await eventually(async () => {
      const ports = await listening(second);
      return ports.length === 1 && ports;
    });
    await connected(next);
    first.signal('SIGCONT');
    await ended;
    await eventually(async () => (await isClosed(revoked)) && (await isClosed(kept)));
    second.signal('SIGTERM');
    await eventually(() => hasClusters(first));
    const again = await listening(first);
    expect(again).toHaveLength(1);
    await connected(must(again[0]));
  });

  it('end while the database is away, with the connections of the relay, and are there again with it', async () => {
    const daemon = await start(await newTeam());
    await eventually(() => hasClusters(daemon));
    const port = await openTether(daemon, await addWorkload(daemon));
    const { ended } = await connected(port);
    const relayEnded = deferred<void>();
    const dial = async (onClosed: () => void): Promise<RelayConnection> => {
      const url = `ws://127.0.0.1:${daemon.relayPort}${RELAY_PATH}`;
      const { ticket } = newTicket('cloud', Date.now(), null);
      const made = await dialRelay(url, ticket, realTime, onClosed);
      afterThisTest(() => made.close('the test ends'));
      return made;
    };
    await dial(relayEnded.resolve);
    await must(postgres).kill();
    await Promise.all([ended, relayEnded.promise]);
    await eventually(() => isClosed(port));
    await expect(dial(() => undefined)).rejects.toMatchObject({ message: expect.stringContaining('503') });
    await must(postgres).start();
    await eventually(() => hasClusters(daemon));
    expect(await listening(daemon)).toEqual([port]);
    await connected(port);
    await eventually(() => dial(() => undefined).catch(() => undefined));
  });
});
