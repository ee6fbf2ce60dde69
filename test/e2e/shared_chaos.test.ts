// docs/reference.md "Shared database", all at once: clients put workloads to sleep and wake them by any of
// three servers, and others follow the events, while servers are killed, ended, stopped and cut off, the database is
// killed, restarted and replaced by its standby, and the cluster is down. Afterwards the cluster, the audit log and the answers must tell the same.
// BERTH_CHAOS_FAULTS is their number, BERTH_CHAOS_SEED repeats the choices; the moments are the machine's.
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Daemon, eventually, newFolder, startDaemon } from '../kit/daemon.ts';
import { type Answer, send } from '../kit/http_request.ts';
import { type Double, kubeDouble, workload } from '../kit/kube_double.ts';
import { must } from '../kit/must.ts';
import { hasPostgres, NO_POSTGRES, type PostgresServer, startPostgres } from '../kit/postgres.ts';
import { random } from '../kit/random.ts';
import { type TcpWay, tcpWay } from '../kit/tcp_way.ts';

const FAULTS = Number(process.env['BERTH_CHAOS_FAULTS'] ?? 4);
const SEED = Number(process.env['BERTH_CHAOS_SEED'] ?? Date.now() % 1_000_000);
const below = random(SEED);
const anyOf = <T>(of: readonly T[]): T => must(of[below(of.length)]);

const SERVERS = 3;
const CLIENTS = 4;
const FOLLOWERS = 2;
const REPLICAS = 3;
/** A client asks another server after so long. */
const PATIENCE_MS = 2_000;
const RETRY_MS = 50;
const TOKEN = { Authorization: 'Bearer cloud' };

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** The last one is in use; the others were replaced. */
const databases: PostgresServer[] = [];
const database = (): PostgresServer => must(databases.at(-1));
let double: Double;
beforeAll(async () => {
  if (hasPostgres) databases.push(await startPostgres());
  double = await kubeDouble();
}, 60_000);
afterAll(async () => {
  await Promise.all(databases.map((server) => server.remove()));
  await double.stop();
});

const atPort = (url: string, port: number): string => url.replace(/:\d+\//, `:${port}/`);

/** One of the servers, through all its lives, with its way to the database. */
class Replica {
  private readonly stateDir = join(newFolder(), 'state');
  private readonly url: string;
  private readonly key: string;
  private readonly way: TcpWay;
  private readonly hole: { isOpen: boolean };
  private life: Daemon | null = null;
  /** What its lives have said. */
  said = '';

  private constructor(url: string, key: string, way: TcpWay, hole: { isOpen: boolean }) {
    this.url = url;
    this.key = key;
    this.way = way;
    this.hole = hole;
  }

  static async start(url: string, key: string): Promise<Replica> {
    const hole = { isOpen: true };
    const way = await tcpWay(
      () => database().port,
      (chunk) => (hole.isOpen ? chunk : null),
    );
    const replica = new Replica(atPort(url, way.port), key, way, hole);
    await replica.begin();
    return replica;
  }

  get daemon(): Daemon {
    return must(this.life);
  }

  async begin(): Promise<void> {
    this.life = await startDaemon({
      stateDir: this.stateDir,
      config: `[cloud]\ntoken = "cloud"\nport = 0\nrelay_port = -1\nkey_file = "${this.key}"\n`,
      env: { BERTH_DATABASE_URL: this.url },
      command: ['cloud', 'serve'],
    });
  }

  async end(signal: NodeJS.Signals): Promise<number | null> {
    const { daemon } = this;
    daemon.signal(signal);
    const { code } = await daemon.exited;
    this.said += daemon.stderr();
    return code;
  }

  /** Whether it has the clusters itself, as far as it says so in time. */
  async holds(): Promise<boolean> {
    const headers = { ...TOKEN, 'Berth-Passed-On': '1' };
    return (await inTime(send(this.daemon.port, 'GET', '/k8s/clusters', { headers })))?.status === 200;
  }

  cut(): void {
    this.way.cut();
  }

  /** While `during` runs, nothing passes between it and the database, and nobody is told. */
  async cutOff(during: () => Promise<void>): Promise<void> {
    this.hole.isOpen = false;
    await during();
    this.hole.isOpen = true;
    this.way.cut();
  }

  close(): void {
    this.way.close();
  }
}

/** The answer; null: there was none, or not in time. */
const inTime = (asked: Promise<Answer>): Promise<Answer | null> =>
  Promise.race([asked.catch(() => null), pause(PATIENCE_MS).then(() => null)]);

interface Run {
  replicas: Replica[];
  isOver: boolean;
  /** Changes that were answered, by workload. */
  done: Map<string, number>;
  /** Answers that no client expects. */
  wrong: string[];
}

/** Asks any server until one gives an answer for good. */
async function insist(run: Run, path: string, key: string): Promise<Answer> {
  for (;;) {
    const { port } = anyOf(run.replicas).daemon;
    const headers = { ...TOKEN, 'Idempotency-Key': key };
    const answer = await inTime(send(port, 'POST', path, { headers }));
    if (answer && answer.status < 500) return answer;
    await pause(RETRY_MS);
  }
}

/** Puts its workload to sleep and wakes it in turn. */
async function changeWorkload(run: Run, name: string, id: string): Promise<void> {
  for (let count = 0; !run.isOver; count += 1) {
    const [action, replicas] = count % 2 === 0 ? (['sleep', 0] as const) : (['wake', REPLICAS] as const);
    const { status, text, body } = await insist(run, `/k8s/workloads/${id}/${action}`, `${name}-${count}`);
    if (status !== 200 || body.replicas !== replicas) run.wrong.push(`${action} ${count}: ${status} ${text}`);
    run.done.set(name, count + 1);
  }
}

/** Follows the stream of any server, from the last event on, until that server or its patience ends. */
function followOnce(run: Run, seen: number[]): Promise<void> {
  return new Promise((resolve) => {
    const last = seen.at(-1);
    const request = http.get({
      ...{ host: '127.0.0.1', port: anyOf(run.replicas).daemon.port, agent: false },
      path: last === undefined ? '/k8s/events?after=0' : '/k8s/events',
      headers: { ...TOKEN, ...(last !== undefined && { 'Last-Event-ID': String(last) }) },
    });
    const timer = setTimeout(() => request.destroy(), PATIENCE_MS / 2 + below(PATIENCE_MS));
    request.on('error', () => undefined).on('close', resolve);
    request.on('response', (answer) => {
      let rest = '';
      answer.on('error', () => undefined).on('close', () => clearTimeout(timer));
      answer.setEncoding('utf8').on('data', (text: string) => {
        const frames = (rest + text).split('\n\n');
        rest = frames.pop() ?? '';
        for (const frame of frames) {
          if (frame.includes('event: stream.reset')) run.wrong.push(`a stream lacks events after ${last}`);
          const id = /^id: (\d+)$/m.exec(frame)?.[1];
          if (id !== undefined) seen.push(Number(id));
        }
      });
    });
  });
}

/** Resolves when each client has got an answer to something that it has asked for since. */
async function progress({ done }: Run): Promise<void> {
  const before = new Map(done);
  // The one under way may have been answered before.
  await eventually(() => [...before].every(([name, count]) => (done.get(name) ?? 0) >= count + 2));
}

/** The standby has what was answered, and takes the place of the database. */
async function failOver(): Promise<void> {
  const primary = database();
  databases.push(await primary.startStandby());
  await primary.kill();
  await database().promote();
}

/** Resolves when a server says that what it shows of the cluster may be out of date. */
const outdated = (run: Run): Promise<boolean> =>
  eventually(async () => {
    const { port } = anyOf(run.replicas).daemon;
    const answer = await inTime(send(port, 'GET', '/k8s/workloads', { headers: TOKEN }));
    return answer?.status === 200 && answer.body[0].stale_since !== null;
  });

const KINDS = ['kill', 'stop', 'database', 'hole', 'cluster', 'end', 'restart', 'cut', 'failover'] as const;

async function inflict(run: Run, kind: (typeof KINDS)[number]): Promise<void> {
  const { replicas } = run;
  const held = await Promise.all(replicas.map((replica) => replica.holds()));
  // Mostly the one that has the clusters.
  const target = (below(3) > 0 && replicas[held.indexOf(true)]) || anyOf(replicas);
  // An answer of the cluster is lost on its way.
  double.fault(({ method }) => method === 'PATCH', { kind: 'lost' });
  switch (kind) {
    case 'kill':
    case 'end': {
      const code = await target.end(kind === 'kill' ? 'SIGKILL' : 'SIGTERM');
      if (kind === 'end' && code !== 0) run.wrong.push(`a server ended with ${code}`);
      return target.begin();
    }
    case 'stop':
      target.daemon.signal('SIGSTOP');
      await progress(run);
      target.daemon.signal('SIGCONT');
      return;
    case 'hole':
      return target.cutOff(() => progress(run));
    case 'database':
      await database().kill();
      return database().start();
    case 'restart':
      return database().restart();
    case 'failover':
      return failOver();
    case 'cluster':
      await double.stop();
      await outdated(run);
      return double.start();
    case 'cut':
      return target.cut();
  }
}

/** Every count that the workloads were scaled to, in order. */
function recordScalings(): Map<string, number[]> {
  const scalings = new Map<string, number[]>();
  double.onPatched = (_kind, { metadata: { name }, spec: { replicas } }) => {
    const counts = scalings.get(name) ?? [];
    if ((counts.at(-1) ?? REPLICAS) !== replicas) scalings.set(name, [...counts, replicas]);
  };
  return scalings;
}

const alternating = (length: number): number[] =>
  Array.from({ length }, (_, index) => (index % 2 === 0 ? 0 : REPLICAS));

async function register(run: Run): Promise<[name: string, id: string][]> {
  for (let index = 0; index < CLIENTS; index += 1)
    double.put('Deployment', workload('web', `w${index}`, REPLICAS));
  const { daemon } = must(run.replicas[0]);
  const body = { name: 'chaos', kubeconfig: double.kubeconfig };
  const { id } = (await daemon.request('POST', '/k8s/clusters', body, TOKEN)).body;
  await daemon.request('POST', `/k8s/clusters/${id}/sync`, undefined, TOKEN);
  const rows = (await daemon.request('GET', '/k8s/workloads', undefined, TOKEN)).body;
  return rows.map((row: { name: string; id: string }) => [row.name, row.id]);
}

/** Every server shows the workloads as they are in the cluster. */
async function viewsAgree({ replicas }: Run): Promise<boolean> {
  const shown = await Promise.all(
    replicas.map(({ daemon }) => inTime(send(daemon.port, 'GET', '/k8s/workloads', { headers: TOKEN }))),
  );
  return shown.every(
    (answer) =>
      answer?.status === 200 &&
      answer.body.length === CLIENTS &&
      answer.body.every(
        (row: { name: string; replicas: number }) =>
          row.replicas === double.get('Deployment', 'web', row.name).spec.replicas,
      ),
  );
}

test.skipIf(!hasPostgres)(
  `servers on one database survive whatever happens to them, with nothing lost or done twice (seed ${SEED})${NO_POSTGRES}`,
  async () => {
    const url = await database().createDatabase();
    const key = join(newFolder(), 'cloud.key');
    writeFileSync(key, randomBytes(32), { mode: 0o600 });
    const run: Run = { replicas: [], isOver: false, done: new Map(), wrong: [] };
    for (let count = 0; count < SERVERS; count += 1) run.replicas.push(await Replica.start(url, key));
    const rows = await register(run);
    const scalings = recordScalings();
    for (const [name] of rows) run.done.set(name, 0);
    const clients = rows.map(([name, id]) => changeWorkload(run, name, id));
    let isFollowed = true;
    const follow = async (seen: number[]): Promise<number[]> => {
      while (isFollowed) await followOnce(run, seen);
      return seen;
    };
    const seen = Array.from({ length: FOLLOWERS }, (): number[] => []);
    const followers = seen.map(follow);

    const first = below(KINDS.length);
    for (let count = 0; count < FAULTS; count += 1) {
      await inflict(run, must(KINDS[(first + count) % KINDS.length]));
      await progress(run);
    }
    run.isOver = true;
    await Promise.all(clients);
    await eventually(() => viewsAgree(run));

    const ask = (text: string) => database().run(atPort(url, database().port), text);
    const journal = async () =>
      (await ask('SELECT id::int, line FROM berth.events ORDER BY id')).map(({ id, line }) => ({
        ...JSON.parse(line),
        id,
      }));
    const isSettled =
      "SELECT (SELECT count(*) FROM berth.outbox) + (SELECT count(*) FROM berth.operations WHERE record::json->>'state' = 'asked') = 0 AS settled";
    await eventually(async () => (await ask(isSettled))[0].settled);
    const events = await journal();
    await eventually(() => seen.every((ids) => (ids.at(-1) ?? 0) >= must(events.at(-1)).id));
    isFollowed = false;

    expect(run.wrong).toEqual([]);
    for (const [name, count] of run.done) {
      expect(scalings.get(name), `${name} in the cluster`).toEqual(alternating(count));
      const ends = events.filter((event) => event.workload === name && event.type === 'operation.done');
      expect(ends, `${name} in the audit log`).toHaveLength(count);
      expect(new Set(ends.map((event) => event.operation_id)).size).toBe(count);
    }
    const ids = (await journal()).map(({ id }) => id);
    for (const followed of await Promise.all(followers))
      expect(followed).toEqual(ids.slice(0, followed.length));
    for (const replica of run.replicas) {
      expect(await replica.end('SIGTERM')).toBe(0);
      expect(replica.said).not.toMatch(/TypeError|ReferenceError|AssertionError|defect/);
      replica.close();
    }
  },
  Math.max(60_000, FAULTS * 20_000),
);
