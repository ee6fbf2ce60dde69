// docs/reference.md "Shared database", by the built program, real processes and a real Postgres.
import { spawnSync } from 'node:child_process';
import { createHmac, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { DatabaseConnection } from '../../src/adapters/postgres/connection.ts';
import { dialRelay } from '../../src/adapters/relay/dial_relay.ts';
import type { RelayConnection } from '../../src/adapters/relay/relay_connection.ts';
import { RELAY_PATH } from '../../src/adapters/relay/relay_path.ts';
import { newTicket } from '../../src/adapters/relay/ticket.ts';
import { createClient } from '../../src/client/create_client.ts';
import { nodeTransport } from '../../src/client/node_transport.ts';
import { deferred } from '../../src/runtime/deferred.ts';
import { readDatabaseUrl } from '../../src/settings/database_url.ts';
import { afterThisTest, realTime } from '../kit/actors.ts';
import { BIN } from '../kit/built_program.ts';
import { type Daemon, eventually, newFolder, startDaemon, stopDaemon } from '../kit/daemon.ts';
import { freePort } from '../kit/free_ports.ts';
import { send } from '../kit/http_request.ts';
import { type Double, kubeDouble, workload } from '../kit/kube_double.ts';
import { must } from '../kit/must.ts';
import { hasPostgres, NO_POSTGRES, type PostgresServer, startPostgres } from '../kit/postgres.ts';
import { tcpWay } from '../kit/tcp_way.ts';

let postgres: PostgresServer | undefined;
let double: Double;
const doubles: Double[] = [];
beforeAll(async () => {
  if (hasPostgres) postgres = await startPostgres();
}, 60_000);
beforeEach(async () => {
  double = await kubeDouble();
  doubles.push(double);
});
afterAll(async () => {
  await postgres?.remove();
  for (const one of doubles) await one.stop();
});

const it = test.skipIf(!hasPostgres);

/** A key file, which all Berths of a database have. */
function newKey(): string {
  const path = join(newFolder(), 'cloud.key');
  writeFileSync(path, randomBytes(32), { mode: 0o600 });
  return path;
}

interface Team {
  url: string;
  key: string;
}

const newTeam = async (): Promise<Team> => ({ url: await must(postgres).createDatabase(), key: newKey() });

const startServer = ({ url, key }: Team, relayPort = -1): Promise<Daemon> =>
  startDaemon({
    config: `[cloud]\ntoken = "cloud"\nport = 0\nrelay_port = ${relayPort}\nkey_file = "${key}"\n`,
    env: { BERTH_DATABASE_URL: url },
    command: ['cloud', 'serve'],
  });

const ask = (server: Daemon, method: string, path: string, body?: unknown) =>
  server.request(method, path, body, { Authorization: 'Bearer cloud' });
/** What `server` says itself, also where another one has the clusters. */
const askAlone = (server: Daemon, path: string) =>
  server.request('GET', path, undefined, { Authorization: 'Bearer cloud', 'Berth-Passed-On': '1' });

/** A change as clients make it: again, with its key, while nobody is sure to have the clusters. */
const change = (server: Daemon, path: string, key: string) =>
  eventually(async () => {
    const headers = { Authorization: 'Bearer cloud', 'Idempotency-Key': key };
    const answer = await server.request('POST', path, undefined, headers);
    return answer.status !== 503 && answer;
  });

/** Registers the cluster of the double with one workload, and returns the workload's id. */
async function addWorkload(server: Daemon, name: string): Promise<string> {
  double.put('Deployment', workload('web', name, 3));
  const { body, status } = await ask(server, 'POST', '/k8s/clusters', {
    name,
    kubeconfig: double.kubeconfig,
  });
  expect(status).toBe(201);
  expect((await ask(server, 'POST', `/k8s/clusters/${body.id}/sync`)).status).toBe(200);
  return (await workloads(server)).find((row) => row.name === name && row.cluster_id === body.id).id;
}

const workloads = async (server: Daemon): Promise<any[]> => (await ask(server, 'GET', '/k8s/workloads')).body;

/** The requested changes of the workloads in a namespace in the audit log, in the order of their names. */
async function auditOfMany(server: Daemon, namespace: string): Promise<any[]> {
  const { body } = await ask(
    server,
    'GET',
    `/k8s/events/history?namespace=${namespace}&types=operation.done,operation.failed&limit=1000`,
  );
  return body
    .map(({ workload, action, who, from, result }: any) => ({ workload, action, who, from, result }))
    .sort((one: any, other: any) => (one.workload < other.workload ? -1 : 1));
}

/** What it has if each of `names` was put to sleep once by a bulk request. */
const auditOfAll = (names: readonly string[]) =>
  [...names].sort().map((name) => ({ workload: name, action: 'sleepWorkloads', ...ASKER, result: 'ok' }));
const ASKER = { who: 'token', from: '127.0.0.1' };

/** How many changes a bulk has under way in one cluster. */
const HELD_PATCHES = 4;

/** `count` workloads in `namespace`, and a request that puts them to sleep. Its first patches are held. */
function heldBulk(namespace: string, count: number) {
  const names = Array.from({ length: count }, (_, index) => `${namespace}${index}`);
  for (const name of names) double.put('Deployment', workload(namespace, name, 2));
  const isPatch = ({ method }: { method: string }): boolean => method === 'PATCH';
  const before = double.requests.filter(isPatch).length;
  const released = deferred<void>();
  double.fault(isPatch, { kind: 'held', until: released.promise }, HELD_PATCHES);
  const headers = { Authorization: 'Bearer cloud', 'Idempotency-Key': namespace };
  return {
    names,
    /** The patches so far. */
    patched: () => double.requests.filter(isPatch).length - before,
    release: () => released.resolve(),
    sleepMany: (server: Daemon) =>
      server.request('POST', '/k8s/workloads/sleep', { namespaces: [namespace] }, headers),
  };
}

/** Resolves when `server` answers for the clusters, with the milliseconds that it took. */
async function untilHeld(server: Daemon): Promise<number> {
  const begun = performance.now();
  await eventually(async () => (await askAlone(server, '/k8s/clusters')).status === 200);
  return performance.now() - begun;
}

/** The ids of the cloud events that a client at `server` gets, which resumes an interrupted stream. */
function followedIds({ port }: Daemon): number[] {
  const ids: number[] = [];
  const ended = new AbortController();
  const { cloud } = createClient(nodeTransport, { url: `http://127.0.0.1:${port}`, cloudToken: 'cloud' });
  const follow = async (): Promise<void> => {
    for await (const event of cloud.events({ after: 0, signal: ended.signal }))
      if (event.type !== 'stream.reset') ids.push(event.id);
  };
  const following = follow();
  afterThisTest(async () => {
    ended.abort();
    await Promise.allSettled([following]);
  });
  return ids;
}

const untilLost = (server: Daemon) =>
  eventually(() => server.stderr().includes('this replica has lost the lease of the shared database'));

interface Losable {
  url: string;
  /** The first server's way to the database. */
  way: {
    interrupt(): void;
    restore(): void;
    /** How many connections were made since it was interrupted. */
    attempts(): number;
  };
}

/** A database, and the way of the first server to it. */
async function newLosable(): Promise<Losable & { team: Team; first: Team }> {
  const team = await newTeam();
  let isUp = true;
  let attempts = 0;
  const nothing = freePort();
  const way = await tcpWay(
    () => {
      attempts += 1;
      return isUp ? must(postgres).port : nothing;
    },
    (chunk) => chunk,
  );
  afterThisTest(() => way.close());
  return {
    url: team.url,
    team,
    first: { ...team, url: team.url.replace(/:\d+\//, `:${way.port}/`) },
    way: {
      interrupt: () => {
        isUp = false;
        attempts = 0;
        way.cut();
      },
      attempts: () => attempts,
      restore: () => {
        isUp = true;
      },
    },
  };
}

/** `first` stands still until it has lost the lease, to `second` if that exists. */
async function suspend({ url }: Losable, first: Daemon, second: Daemon | undefined): Promise<void> {
  first.signal('SIGSTOP');
  const isOver = 'SELECT 1 FROM berth.lease WHERE expires_at < clock_timestamp()';
  if (second) await untilHeld(second);
  else await eventually(async () => (await must(postgres).run(url, isOver)).length === 1);
  first.signal('SIGCONT');
  await untilLost(first);
}

/** `first` cannot reach the database until it has lost the lease, to `second` if that exists. */
async function interrupt({ way }: Losable, first: Daemon, second: Daemon | undefined): Promise<void> {
  way.interrupt();
  await untilLost(first);
  if (second) await untilHeld(second);
  way.restore();
}

/** Whether somebody has a connection to a port of 127.0.0.1. */
function isConnectedTo(port: number): boolean {
  const remote = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const established = '01';
  return readFileSync('/proc/net/tcp', 'utf8').includes(` ${remote} ${established} `);
}

describe(`two servers on one database${NO_POSTGRES}`, () => {
  it('run the cloud part in one of them, and the other reports that it stands by', async () => {
    const team = await newTeam();
    const first = await startServer(team);
    expect((await ask(first, 'GET', '/readyz')).status).toBe(200);
    const second = await startServer(team);
    expect(await askAlone(second, '/k8s/workloads')).toMatchObject({
      status: 503,
      headers: { 'retry-after': '1' },
      body: { code: 'standing_by', message: expect.stringContaining(`(pid ${first.pid}) has the clusters`) },
    });
    expect((await second.request('GET', '/readyz')).status, 'it passes requests on').toBe(200);
    expect((await second.request('GET', '/livez')).status).toBe(200);
  });

  it('answer alike: the standby forwards requests, and passes events back', async () => {
    const team = await newTeam();
    const first = await startServer(team);
    const second = await startServer(team);
    const id = await addWorkload(second, 'passed');
    expect((await workloads(first)).map((row) => row.id)).toEqual([id]);
    expect(await workloads(second)).toEqual(await workloads(first));
    const events = http.get({
      ...{ port: second.port, path: '/k8s/events', agent: false },
      headers: { Authorization: 'Bearer cloud' },
    });
    const [stream] = (await once(events, 'response')) as [http.IncomingMessage];
    let told = '';
    stream.setEncoding('utf8').on('data', (text: string) => {
      told += text;
    });
    const key = { Authorization: 'Bearer cloud', 'Idempotency-Key': 'once' };
    const sleep = (server: Daemon) => server.request('POST', `/k8s/workloads/${id}/sleep`, undefined, key);
    const asked = await Promise.all([sleep(first), sleep(second)]);
    expect(asked.map(({ status }) => status)).toEqual([200, 200]);
    expect(double.requests.filter(({ method }) => method === 'PATCH')).toHaveLength(1);
    await eventually(() => told.includes('event: operation.done'));
    const wrong = await send(second.port, 'GET', '/k8s/clusters', { headers: { Authorization: 'Bearer x' } });
    expect(wrong.status).toBe(401);
    const ended = new Promise((resolve) => stream.on('close', resolve));
    // It is cut, not ended.
    stream.on('error', () => undefined);
    const before = (await ask(first, 'GET', '/k8s/events/history')).body;
    first.signal('SIGKILL');
    await ended;
    await eventually(async () => (await ask(second, 'GET', '/k8s/clusters')).status === 200);
    const after = (await ask(second, 'GET', '/k8s/events/history')).body;
    expect(after.slice(-before.length), 'one audit log for all').toEqual(before);
    expect(
      after.map((row: { id: number }) => row.id),
      'numbers go on',
    ).toEqual(after.map((_: unknown, index: number) => after.length - index));
  });

  it("prove to Berth's clients that they know the token, whichever of them is asked", async () => {
    const team = await newTeam();
    const first = await startServer(team);
    await addWorkload(first, 'proven');
    const second = await startServer(team);
    const [ofFirst, ofSecond] = [first, second].map(({ port }) => {
      const url = `http://127.0.0.1:${port}`;
      const { cloud } = createClient(nodeTransport, { url, cloudToken: 'cloud' });
      return async () => (await cloud.workloads()).map(({ name }) => name);
    });
    expect(await ofFirst?.()).toEqual(['proven']);
    expect(await ofSecond?.()).toEqual(['proven']);
    const nonce = 'n'.repeat(22);
    const other = `127.0.0.1:${first.port + 1}`;
    const proof = async ({ port }: Daemon, more: Record<string, string> = {}) =>
      (await send(port, 'GET', `/k8s/proof?nonce=${nonce}`, { headers: { Host: other, ...more } })).body.code;
    expect(await proof(second)).toBe('forbidden_host');
    // What someone may claim who does not know the token.
    for (const given of ['', 'x', createHmac('sha256', 'other').update(nonce).digest('base64url')])
      for (const server of [first, second])
        expect(await proof(server, { 'Berth-Passed-On': '1', 'Berth-Host-Signature': given })).toBe(
          'forbidden_host',
        );
    first.signal('SIGKILL');
    await untilHeld(second);
    expect(await ofSecond?.(), 'a new lease holder has another life').toEqual(['proven']);
  });

  it('hand over at SIGTERM, with all rows', async () => {
    const team = await newTeam();
    const first = await startServer(team);
    const second = await startServer(team);
    const id = await addWorkload(first, 'handed');
    expect((await ask(first, 'POST', `/k8s/workloads/${id}/sleep`)).status).toBe(200);
    const before = await workloads(first);
    first.signal('SIGTERM');
    await untilHeld(second);
    expect(await first.exited).toEqual({ code: 0, signal: null });
    const isSame = async (): Promise<boolean> =>
      JSON.stringify(await workloads(second)) === JSON.stringify(before);
    await eventually(isSame);
    expect((await change(second, `/k8s/workloads/${id}/wake`, 'wake')).body).toMatchObject({ replicas: 3 });
    expect(second.stderr()).toContain('this Berth has the clusters now');
  });

  it('hand over at kill -9, and the killed one stands by after its restart', async () => {
    const team = await newTeam();
    const first = await startServer(team);
    const second = await startServer(team);
    const id = await addWorkload(first, 'killed');
    first.signal('SIGKILL');
    await untilHeld(second);
    expect((await workloads(second)).map((row) => row.id)).toEqual([id]);
    const third = await startServer(team);
    expect((await askAlone(third, '/k8s/workloads')).body).toMatchObject({ code: 'standing_by' });
  });

  it('accept tokens and grants that were created at either, also after a takeover', async () => {
    const team = await newTeam();
    const first = await startServer(team);
    const second = await startServer(team);
    const id = await addWorkload(first, 'granted');
    const made = await ask(second, 'POST', '/k8s/tokens', { name: 'ci' });
    expect(made.status, 'through the one that stands by').toBe(201);
    const as = { Authorization: `Bearer ${made.body.token}` };
    const may = async (server: Daemon): Promise<number[]> => {
      const read = await server.request('GET', `/k8s/workloads/${id}`, undefined, as);
      return [
        read.status,
        (await server.request('POST', `/k8s/workloads/${id}/sleep`, undefined, as)).status,
      ];
    };
    for (const server of [first, second]) expect(await may(server), 'without a grant').toEqual([404, 404]);
    const wanted = { token: 'ci', role: 'viewer', namespace: 'web' };
    const grant = await ask(second, 'POST', '/k8s/grants', wanted);
    expect(grant.status).toBe(201);
    for (const server of [first, second]) expect(await may(server)).toEqual([200, 403]);
    first.signal('SIGKILL');
    await untilHeld(second);
    const third = await startServer(team);
    for (const server of [second, third]) expect(await may(server)).toEqual([200, 403]);
    expect((await ask(third, 'DELETE', `/k8s/grants/${grant.body.id}`)).status).toBe(200);
    for (const server of [second, third]) expect(await may(server)).toEqual([404, 404]);
    expect((await ask(third, 'DELETE', '/k8s/tokens/ci')).status).toBe(200);
    second.signal('SIGKILL');
    await untilHeld(third);
    expect(await may(third), 'revoked for the next one too').toEqual([401, 401]);
  });

  it('answer each with its own metrics, also to an API token', async () => {
    const team = await newTeam();
    const first = await startServer(team);
    const second = await startServer(team);
    const { token } = (await ask(second, 'POST', '/k8s/tokens', { name: 'prometheus' })).body;
    const read = async (server: Daemon, given: string) => {
      const headers = { Authorization: `Bearer ${given}` };
      const { status, text } = await server.request('GET', '/metrics', undefined, headers);
      return status === 200 ? /^berth_start_time_seconds .*$/m.exec(text)?.[0] : status;
    };
    for (const server of [first, second]) expect(await read(server, token), 'without a grant').toBe(403);
    await ask(second, 'POST', '/k8s/grants', { token: 'prometheus', role: 'viewer' });
    const own = [await read(first, 'cloud'), await read(second, 'cloud')];
    expect(new Set(own).size).toBe(2);
    expect([await read(first, token), await read(second, token)]).toEqual(own);
    first.signal('SIGKILL');
    await untilHeld(second);
    expect(await read(second, token)).toBe(own[1]);
    const third = await startServer(team);
    await ask(third, 'DELETE', '/k8s/tokens/prometheus');
    for (const server of [second, third]) expect(await read(server, token)).toBe(401);
  });

  it('refuse changes of a suspended lease holder when it continues: it has lost the lease, and stands by', async () => {
    const team = await newTeam();
    const first = await startServer(team);
    const second = await startServer(team);
    const id = await addWorkload(first, 'stopped');
    // The change is decided, and stopped right before it is sent.
    double.fault(({ method, path }) => method === 'GET' && path.endsWith('/stopped'), {
      kind: 'late',
      ms: 300,
    });
    const late = ask(first, 'POST', `/k8s/workloads/${id}/sleep`).catch((error: Error) => error);
    const isRead = (): boolean =>
      double.requests.some(({ method, path }) => method === 'GET' && path.endsWith('/stopped'));
    await eventually(isRead);
    first.signal('SIGSTOP');
    await untilHeld(second);
    const scalings = () => double.requests.filter(({ text }) => text.includes('"replace"')).length;
    const sent = scalings();
    first.signal('SIGCONT');
    await eventually(async () => (await askAlone(first, '/k8s/clusters')).body.code === 'standing_by');
    await late;
    expect(scalings()).toBe(sent);
    expect(double.get('Deployment', 'web', 'stopped').spec.replicas).toBe(3);
    await eventually(() =>
      /^berth: this replica has lost the lease of the shared database, and stands by: .+\n/m.test(
        first.stderr(),
      ),
    );
    expect(first.stderr()).not.toContain('crashed');
  });

  it('no longer answer for the lease holder once its connection to the database is dead and another has it', async () => {
    const team = await newTeam();
    let isDead = false;
    const way = await tcpWay(
      () => must(postgres).port,
      (chunk) => (isDead ? null : chunk),
    );
    afterThisTest(() => way.close());
    const first = await startServer({ ...team, url: team.url.replace(/:\d+\//, `:${way.port}/`) });
    await addWorkload(first, 'stale');
    const second = await startServer(team);
    const events = http.get({
      ...{ port: first.port, path: '/k8s/events', agent: false },
      headers: { Authorization: 'Bearer cloud' },
    });
    const [stream] = (await once(events, 'response')) as [http.IncomingMessage];
    const ended = once(stream.resume(), 'close');
    isDead = true;
    await untilHeld(second);
    expect((await askAlone(first, '/k8s/workloads')).body.code).toBe('standing_by');
    await ended;
  });

  it('end a connection that the standby passes on to a lease holder that stands still', async () => {
    const team = await newTeam();
    const [holding, passing] = [freePort(), freePort()];
    const first = await startServer(team, holding);
    const second = await startServer(team, passing);
    const closed = new Set<RelayConnection>();
    const dial = async (): Promise<RelayConnection> => {
      const url = `ws://127.0.0.1:${passing}${RELAY_PATH}`;
      const { ticket } = newTicket('cloud', Date.now(), null);
      const made = await dialRelay(url, ticket, realTime, () => closed.add(made));
      afterThisTest(() => made.close('the test ends'));
      return made;
    };
    // Until it knows the lease holder, the standby carries connections itself.
    const passed = await eventually(async () => {
      const made = await dial().catch(() => undefined);
      return isConnectedTo(holding) && made;
    });
    first.signal('SIGSTOP');
    afterThisTest(() => first.signal('SIGCONT'));
    await eventually(() => closed.has(passed));
    await untilHeld(second);
    expect((await dial()).mux.isOpen).toBe(true);
  });

  it.each([
    ['was suspended', suspend],
    ['could not reach the database', interrupt],
  ])('end the connections to the relay of a lease holder that %s', async (_, lose) => {
    const losable = await newLosable();
    const [holding, standing] = [freePort(), freePort()];
    const first = await startServer(losable.first, holding);
    const second = await startServer(losable.team, standing);
    const ended = deferred<void>();
    const made = await eventually(async () => {
      const { ticket } = newTicket('cloud', Date.now(), null);
      const url = `ws://127.0.0.1:${holding}${RELAY_PATH}`;
      return dialRelay(url, ticket, realTime, () => ended.resolve()).catch(() => undefined);
    });
    afterThisTest(() => made.close('the test ends'));
    await lose(losable, first, second);
    await ended.promise;
  });

  it('hand over at SIGTERM without waiting for a pod that a client waits for', async () => {
    const team = await newTeam();
    const first = await startServer(team);
    const second = await startServer(team);
    const id = await addWorkload(first, 'slow');
    expect((await ask(first, 'POST', `/k8s/workloads/${id}/sleep`)).status).toBe(200);
    const waiting = ask(first, 'POST', `/k8s/workloads/${id}/wake?wait=true`);
    await eventually(() => double.get('Deployment', 'web', 'slow').spec.replicas === 3);
    first.signal('SIGTERM');
    // Without that, the response would be that of a server that waited for its requests in vain.
    expect(await waiting).toMatchObject({
      status: 503,
      body: { message: 'the server ended before Deployment web/slow had a Ready pod' },
    });
    await untilHeld(second);
    expect((await first.exited).code).toBe(0);
  });

  it('hand over at SIGTERM in the middle of a bulk request, which the next one finishes', async () => {
    const team = await newTeam();
    const first = await startServer(team);
    const second = await startServer(team);
    const { names, patched, release, sleepMany } = heldBulk('many', 40);
    await addWorkload(first, 'other');
    const cut = sleepMany(first);
    await eventually(() => patched() === HELD_PATCHES);
    first.signal('SIGTERM');
    // Once it accepts no connection, the request has been told to end.
    const isAccepting = () =>
      ask(first, 'GET', '/k8s/clusters').then(
        () => true,
        () => false,
      );
    await eventually(async () => !(await isAccepting()));
    release();
    // Without that, the response would be that of a server that waited for its requests in vain. The thread that
    // makes the changes may hear of the end when it has begun another one.
    const { status, body } = await cut;
    const [, left] =
      /^the server ended before it had changed (\d+) of 40 workloads$/.exec(body.message) ?? [];
    expect([status, Number(left)]).toEqual([503, 40 - patched()]);
    expect(patched()).toBeLessThan(40);
    expect((await first.exited).code).toBe(0);
    expect(first.stderr()).not.toContain('late at the end');
    const done = await eventually(async () => {
      const answer = await sleepMany(second);
      return answer.status !== 503 && answer;
    });
    expect(done.body.results.map(({ outcome }: { outcome: string }) => outcome)).toEqual(
      names.map(() => 'changed'),
    );
    expect(patched()).toBe(40);
    expect(await auditOfMany(second, 'many')).toEqual(auditOfAll(names));
  });

  it('have each workload of a bulk request in the audit log once, if one is killed in the middle of it', async () => {
    const team = await newTeam();
    const first = await startServer(team);
    const second = await startServer(team);
    const { names, patched, release, sleepMany } = heldBulk('cut', 20);
    await addWorkload(first, 'another');
    const cut = expect(sleepMany(first)).rejects.toThrow();
    await eventually(() => patched() === HELD_PATCHES);
    first.signal('SIGKILL');
    await cut;
    // The cluster does what it has been asked for, and nobody is there to record it.
    release();
    await untilHeld(second);
    await eventually(async () => (await auditOfMany(second, 'cut')).length === HELD_PATCHES);
    const slept = names.filter((name) => double.get('Deployment', 'cut', name).spec.replicas === 0);
    expect(slept).toHaveLength(HELD_PATCHES);
    expect((await sleepMany(second)).body.results).toHaveLength(20);
    expect(await auditOfMany(second, 'cut')).toEqual(auditOfAll(names));
  });

  it('pass a bulk request on while the standby cannot reach the database, as long as the lease may last', async () => {
    const { team, first: cutOff, way } = await newLosable();
    const first = await startServer(team);
    const standby = await startServer(cutOff);
    await eventually(async () => (await ask(standby, 'GET', '/k8s/clusters')).status === 200);
    const { patched, release, sleepMany } = heldBulk('passed', 6);
    await addWorkload(first, 'beside');
    const passed = sleepMany(standby);
    await eventually(() => patched() === HELD_PATCHES);
    way.interrupt();
    await eventually(() => way.attempts() >= 2);
    expect((await ask(standby, 'GET', '/k8s/clusters')).status).toBe(200);
    release();
    const { status, body } = await passed;
    expect([status, new Set(body.results.map((one: any) => one.outcome))]).toEqual([
      200,
      new Set(['changed']),
    ]);
    // Later another one may have it.
    await eventually(
      async () => (await ask(standby, 'GET', '/k8s/clusters')).body.code === 'database_unusable',
    );
    way.restore();
    await eventually(async () => (await ask(standby, 'GET', '/k8s/clusters')).status === 200);
  });

  it('do not take over a database that a newer Berth has migrated', async () => {
    const team = await newTeam();
    const first = await startServer(team);
    const second = await startServer(team);
    await must(postgres).run(team.url, 'UPDATE berth.meta SET format = 1000, least = 1000');
    first.signal('SIGKILL');
    const refusal = { status: 503, body: { code: 'database_unusable' } };
    const answer = await eventually(async () => {
      const { status, body } = await askAlone(second, '/k8s/clusters');
      return body.code === 'database_unusable' && { status, body };
    });
    expect(answer).toMatchObject(refusal);
    expect(answer.body.message).toContain('its schema has format 1000, of a newer Berth');
    const held = 'SELECT count(*) FROM pg_locks WHERE locktype = $$advisory$$';
    await eventually(async () => (await must(postgres).run(team.url, held))[0].count === '0');
  });

  it('continue after the database has refused changes for a while', async () => {
    const team = await newTeam();
    const servers = [await startServer(team), await startServer(team)] as const;
    const id = await addWorkload(servers[0], 'refused');
    await must(postgres).run(team.url, 'ALTER TABLE berth.outbox RENAME TO elsewhere');
    let replicas = 3;
    await eventually(async () => {
      replicas += 1;
      double.change('Deployment', 'web', 'refused', (object) => {
        object.spec.replicas = replicas;
      });
      return /has failed too often, so this replica starts again/.test(servers[0].stderr());
    });
    await must(postgres).run(team.url, 'ALTER TABLE berth.elsewhere RENAME TO outbox');
    for (const server of servers)
      expect((await change(server, `/k8s/workloads/${id}/sleep`, 'night')).status).toBe(200);
    expect(double.get('Deployment', 'web', 'refused').spec.replicas).toBe(0);
  });

  it('answer with what the cluster has carried out when the disk of the database fills up meanwhile', async () => {
    const team = await newTeam();
    const servers = [await startServer(team), await startServer(team)] as const;
    const id = await addWorkload(servers[0], 'full');
    const run = (text: string) => must(postgres).run(team.url, text);
    const error = "RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'";
    await run(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${error}; END $$`);
    const fill = (table: string) =>
      run(`CREATE TRIGGER is_full BEFORE INSERT OR UPDATE ON berth.${table}
        FOR EACH ROW EXECUTE FUNCTION refuse()`);
    const end = async (operation: unknown) =>
      (await ask(servers[1], 'GET', `/k8s/operations/${operation}`)).body;
    const send = (path: string) =>
      servers[1].request('POST', `/k8s/workloads/${id}/${path}`, undefined, {
        Authorization: 'Bearer cloud',
        'Idempotency-Key': path,
      });
    await fill('workloads');
    const slept = await send('sleep');
    expect(slept).toMatchObject({ status: 200, body: { replicas: 0 } });
    expect(await end(slept.headers['berth-operation'])).toMatchObject({ state: 'done', result: 'ok' });
    await run('DROP TRIGGER is_full ON berth.workloads');
    const isPatch = ({ method }: { method: string }): boolean => method === 'PATCH';
    const released = deferred<void>();
    double.fault(isPatch, { kind: 'held', until: released.promise }, 1);
    const patches = () => double.requests.filter(isPatch).length;
    const before = patches();
    const waking = send('wake');
    await eventually(() => patches() > before);
    await fill('operations');
    released.resolve();
    const woken = await waking;
    const operation = woken.headers['berth-operation'];
    expect(woken).toMatchObject({ status: 503, body: { code: 'storage_full' } });
    expect(woken.body.hint).toContain(`/k8s/operations/${operation}`);
    expect(await end(operation)).toMatchObject({ state: 'done', result: 'ok' });
    // Nothing new is begun, and the hint names the disk that is full.
    expect(await ask(servers[1], 'POST', `/k8s/workloads/${id}/sleep`)).toMatchObject({
      status: 503,
      body: { code: 'storage_full', hint: expect.stringContaining("the database's disk") },
    });
    await run('DROP TRIGGER is_full ON berth.operations');
    // The next lease holder has nothing but the database.
    servers[0].signal('SIGKILL');
    await untilHeld(servers[1]);
    await eventually(async () => (await end(operation)).result === 'ok');
    expect(double.get('Deployment', 'web', 'full').spec.replicas).toBe(3);
  });

  it('refuse a late change once the next lease holder has reported that it was not made', async () => {
    const team = await newTeam();
    const first = await startServer(team);
    const second = await startServer(team);
    const id = await addWorkload(first, 'late');
    const patches = () => double.requests.filter(({ method }) => method === 'PATCH').length;
    const arrival = deferred<void>();
    double.fault(({ method }) => method === 'PATCH', { kind: 'held', until: arrival.promise });
    const sleep = (server: Daemon) => change(server, `/k8s/workloads/${id}/sleep`, 'night');
    const cut = sleep(first).catch((error: Error) => error);
    await eventually(() => patches() === 1);
    first.signal('SIGKILL');
    await cut;
    await untilHeld(second);
    // It is awake, so this changes nothing; it comes after what was cut off.
    const woken = await change(second, `/k8s/workloads/${id}/wake`, 'wake');
    expect(woken.body).toMatchObject({ replicas: 3 });
    const { body: events } = await ask(second, 'GET', '/k8s/events/history?types=operation.interrupted');
    expect(events).toMatchObject([{ reason: expect.stringContaining('it was not done') }]);
    arrival.resolve();
    expect((await change(second, `/k8s/clusters/${events[0].cluster_id}/sync`, 'sync')).status).toBe(200);
    expect(double.get('Deployment', 'web', 'late').spec.replicas).toBe(3);
    expect((await sleep(second)).body).toMatchObject({ replicas: 0 });
    expect(double.get('Deployment', 'web', 'late').spec.replicas).toBe(0);
  });

  it('continue after the database was killed, with one lease holder', async () => {
    const team = await newTeam();
    const servers = [await startServer(team), await startServer(team)] as const;
    const id = await addWorkload(servers[0], 'crashed');
    await must(postgres).kill();
    await must(postgres).start();
    expect((await change(servers[0], `/k8s/workloads/${id}/sleep`, 'sleep')).status).toBe(200);
    await eventually(
      async () => (await ask(servers[1], 'GET', `/k8s/workloads/${id}`)).body.state === 'sleeping',
    );
  });

  it.each([
    ['was suspended', 2, suspend],
    ['was suspended and is the lease holder again', 1, suspend],
    ['could not reach the database', 2, interrupt],
    ['could not reach the database and is the lease holder again', 1, interrupt],
  ])('send their clients every event after the lease holder %s', async (_, count, lose) => {
    const losable = await newLosable();
    const first = await startServer(losable.first);
    const second = count === 2 ? await startServer(losable.team) : undefined;
    const servers = second ? [first, second] : [first];
    const id = await addWorkload(first, 'followed');
    const followed = servers.map(followedIds);
    const untilFollowed = async (): Promise<number> => {
      const newest = await eventually(async () => {
        const { status, body } = await ask(first, 'GET', '/k8s/events/history?limit=1');
        return status === 200 && body[0].id;
      });
      const all = Array.from({ length: newest }, (_, index) => index + 1);
      await eventually(
        () => followed.every((ids) => isDeepStrictEqual(ids.slice(0, newest), all)),
        () => ({ newest, followed }),
      );
      return newest;
    };
    const before = await untilFollowed();
    await lose(losable, first, second);
    expect((await change(first, `/k8s/workloads/${id}/sleep`, 'night')).status).toBe(200);
    expect(await untilFollowed()).toBeGreaterThan(before);
  });

  it('require the same key', async () => {
    const team = await newTeam();
    const [first, second] = await Promise.all([startServer(team), startServer({ ...team, key: newKey() })]);
    const codes = async (): Promise<unknown[]> =>
      Promise.all([first, second].map(async (one) => (await askAlone(one, '/k8s/clusters')).body.code));
    // Whoever is first seals the store; the other's key does not open it.
    await eventually(async () => (await codes()).includes(undefined));
    const holder = (await codes()).indexOf(undefined) === 0 ? first : second;
    const other = await startServer({ ...team, key: newKey() });
    expect((await ask(other, 'GET', '/k8s/clusters')).body).toMatchObject({
      code: 'key_unusable',
      message: expect.stringContaining('sealed'),
    });
    expect((await ask(holder, 'GET', '/k8s/clusters')).status).toBe(200);
  });
});

const migrate = (url: string): { code: number | null; out: string; said: string } => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [BIN, 'cloud', 'migrate'], {
    encoding: 'utf8',
    env: { ...process.env, BERTH_DATABASE_URL: url, XDG_CONFIG_HOME: newFolder() },
  });
  return { code: status, out: stdout, said: stderr };
};

describe(`an empty database${NO_POSTGRES}`, () => {
  it('gets its schema once from two servers that find it empty at the same time', async () => {
    const team = await newTeam();
    const blocker = new DatabaseConnection(readDatabaseUrl(team.url), {
      purpose: 'test',
      deadlineMs: 20_000,
    });
    afterThisTest(async () => blocker.close());
    await blocker.query("SELECT pg_advisory_lock(hashtextextended('berth.migrate', 0))");
    const starting = Promise.all([startServer(team), startServer(team)]);
    const waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
    await eventually(async () => (await blocker.query(waiting)).length === 2);
    blocker.close();
    const servers = await starting;
    const codes = async (): Promise<unknown[]> =>
      Promise.all(servers.map(async (one) => (await askAlone(one, '/k8s/clusters')).body.code ?? 'held'));
    await eventually(async () => isDeepStrictEqual((await codes()).toSorted(), ['held', 'standing_by']));
    expect(servers.map((server) => server.stderr()).join('')).not.toContain('already exists');
  });
});

describe(`an unsuitable database${NO_POSTGRES}`, () => {
  it('is refused with the reason by the command and by the server, which uses it once it is suitable', async () => {
    const team = await newTeam();
    expect(migrate(team.url)).toMatchObject({ code: 0, out: 'the schema has format 1 now\n' });
    expect(migrate(team.url)).toMatchObject({ code: 0, out: 'the schema has format 1 already\n' });
    const { url } = await newTeam();
    migrate(url);
    const damage = async (statement: string): Promise<string> => {
      await must(postgres).run(url, statement);
      const { code, said } = migrate(url);
      expect(code).toBe(1);
      return said;
    };
    expect(await damage('DROP TABLE berth.tokens; DROP FUNCTION berth.write_1')).toMatch(
      /: its schema "berth" is damaged: tokens, write_1 are missing; restore the database from a backup\n/,
    );
    expect(await damage('DELETE FROM berth.meta')).toContain('is damaged: meta is empty');
    expect(await damage('DROP TABLE berth.meta')).toContain('is damaged: meta is missing');
    await must(postgres).run(team.url, 'UPDATE berth.meta SET format = 9, least = 9');
    const reason = 'its schema has format 9, of a newer Berth: this one knows formats up to 1';
    const refused = migrate(team.url);
    expect([refused.code, refused.said]).toEqual([1, expect.stringContaining(reason)]);
    const server = await startServer(team);
    expect(await ask(server, 'GET', '/k8s/clusters')).toMatchObject({
      status: 503,
      body: { code: 'database_unusable', message: expect.stringContaining(reason) },
    });
    await must(postgres).run(team.url, 'UPDATE berth.meta SET format = 1, least = 1');
    await untilHeld(server);
    expect(
      server
        .stderr()
        .split('\n')
        .filter((line) => line.includes(reason)),
    ).toHaveLength(1);
  });

  it.each([
    ['unreachable', (url: string) => url.replace(/:\d+\//, ':1/'), /connect ECONNREFUSED/],
    ['missing', (url: string) => `${url}_x`, /database ".*_x" does not exist/],
    ['of another user', (url: string) => url.replace('postgres@', 'nobody@'), /role "nobody" does not exist/],
    ['read-only', (url: string) => url, /it is read-only/],
    ['of another encoding', (url: string) => `${url}_latin1`, /its encoding is LATIN1; UTF8 is needed/],
  ])('is reported when it is %s, without its password', async (kind, change, reason) => {
    const url = await must(postgres).createDatabase();
    if (kind === 'read-only')
      await must(postgres).run(
        url,
        `ALTER DATABASE ${url.split('/').at(-1)} SET default_transaction_read_only = on`,
      );
    if (kind === 'of another encoding')
      await must(postgres).run(
        url,
        `CREATE DATABASE ${url.split('/').at(-1)}_latin1 ENCODING LATIN1 LOCALE 'C' TEMPLATE template0`,
      );
    const { code, said } = migrate(change(url).replace('@', ':geheim@'));
    expect([code, said]).toEqual([1, expect.stringMatching(reason)]);
    expect(said).not.toContain('geheim');
  });

  it('is refused as a setting when it is not a valid URL', () => {
    for (const url of [
      'mysql://a:geheim@b/c',
      'postgresql://u:geheim@h/d?sslmode=require',
      'postgresql://h',
    ]) {
      const { code, said } = migrate(url);
      expect([code, said]).toEqual([2, expect.stringContaining('cloud.database_url must be')]);
      expect(said).not.toContain('geheim');
    }
  });
});

describe(`berth cloud move${NO_POSTGRES}`, () => {
  it('copies the clusters of a state directory into the database, also repeatedly', async () => {
    const team = await newTeam();
    const config = `[cloud]\ntoken = "cloud"\nport = 0\nrelay_port = -1\nkey_file = "${team.key}"\n`;
    const alone = await startDaemon({ config, command: ['cloud', 'serve'] });
    const id = await addWorkload(alone, 'moved');
    expect((await ask(alone, 'POST', `/k8s/workloads/${id}/sleep`)).status).toBe(200);
    const move = (...more: string[]) =>
      spawnSync(
        process.execPath,
        [BIN, 'cloud', 'move', '--state-dir', alone.stateDir, '--config', alone.configFile, ...more],
        { encoding: 'utf8', env: { ...process.env, BERTH_DATABASE_URL: team.url } },
      );
    expect(move()).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/`berth cloud serve` runs .*\nStop it first: `kill \d+`/),
    });
    alone.signal('SIGTERM');
    await alone.exited;
    const said = '1 clusters, 1 workloads, 0 policies, 0 tokens are in the database\n';
    for (let times = 0; times < 2; times += 1) expect(move()).toMatchObject({ status: 0, stdout: said });
    const shared = await startServer(team);
    expect((await workloads(shared)).map((row) => [row.id, row.state])).toEqual([[id, 'sleeping']]);
    expect((await ask(shared, 'POST', `/k8s/workloads/${id}/wake`)).body).toMatchObject({ replicas: 3 });
    // Not while somebody has its clusters.
    expect(move()).toMatchObject({
      status: 1,
      stderr: expect.stringContaining(`(pid ${shared.pid}) has the clusters: stop it first`),
    });
    // What is older here must not come back, such as a token that was revoked there.
    await stopDaemon(shared);
    // However often it is tried.
    for (let times = 0; times < 2; times += 1)
      expect(move()).toMatchObject({
        status: 1,
        stderr: expect.stringMatching(/\(pid \d+\) has used the database: .*\n`--replace` copies/),
      });
    expect(move('--replace')).toMatchObject({ status: 0, stdout: said });
  });

  it('given again, removes from the database what the state directory no longer has', async () => {
    const team = await newTeam();
    const config = `[cloud]\ntoken = "cloud"\nport = 0\nrelay_port = -1\nkey_file = "${team.key}"\n`;
    const before = await startDaemon({ config, command: ['cloud', 'serve'] });
    const { stateDir, configFile } = before;
    const id = await addWorkload(before, 'moved');
    const { token } = (await ask(before, 'POST', '/k8s/tokens', { name: 'ci' })).body;
    const grant = { token: 'ci', role: 'admin' };
    expect((await ask(before, 'POST', '/k8s/grants', grant)).status).toBe(201);
    await stopDaemon(before);
    const move = (...more: string[]) =>
      spawnSync(
        process.execPath,
        [BIN, 'cloud', 'move', '--state-dir', stateDir, '--config', configFile, ...more],
        { encoding: 'utf8', env: { ...process.env, BERTH_DATABASE_URL: team.url } },
      );
    expect(move()).toMatchObject({ status: 0 });
    const after = await startDaemon({ config, command: ['cloud', 'serve'], stateDir });
    expect((await ask(after, 'DELETE', '/k8s/tokens/ci')).status).toBe(200);
    await stopDaemon(after);
    expect(move()).toMatchObject({
      status: 1,
      stderr: expect.stringContaining(
        'the database has what the state directory does not have: token ci, grant ',
      ),
    });
    expect(move('--replace')).toMatchObject({ status: 0 });
    const shared = await startServer(team);
    expect((await workloads(shared)).map((row) => row.id)).toEqual([id]);
    const request = { authorization: `Bearer ${token}` };
    expect((await shared.request('GET', '/k8s/workloads', undefined, request)).status).toBe(401);
    expect((await ask(shared, 'GET', '/k8s/grants')).body).toEqual([]);
  });
});
