// Several servers share one Postgres database. The benchmark measures how soon another server takes over the
// clusters, also with 100,000 rows, and how soon each of five servers reports a change in a cluster. Postgres
// is Debian's, runs on the same machine, and syncs every commit to disk as in production.
import http from 'node:http';
import pg from 'pg';
import { createClusterDialer } from '../src/adapters/cluster_dialer.ts';
import { createKubeCluster, workloadsResource } from '../src/adapters/kube/kube_cluster.ts';
import { createKubeHttp } from '../src/adapters/kube/kube_http.ts';
import { parseKubeconfig } from '../src/adapters/kube/kubeconfig.ts';
import { systemClock } from '../src/runtime/clock.ts';
import { startPostgres } from '../test/kit/postgres.ts';
import {
  type CloudServer,
  holderOf,
  newTeam,
  type ServerTeam,
  startServer,
  tokenHeaders,
} from './kit/cloud_server.ts';
import { withFolder } from './kit/daemon.ts';
import { ForkedChild } from './kit/forked_child.ts';
import { type Benchmark, cost, type Row } from './kit/harness.ts';
import {
  type ChangeTimes,
  type ChangingClusters,
  machineMs,
  withChangingClusters,
} from './shared_doubles.ts';

const ROLE = 'shared-lock';
const CLUSTERS = 10;
const WORKLOADS = 10_000;
const ROWS = CLUSTERS * WORKLOADS;
const SERVERS = 5;
const RATE = 2_000;
const CHANGES = 8_000;
const WARM_UP = 2_000;
const FAILOVER_TURNS = 5;
const ROWS_TURNS = 3;
const CHANGE_TURNS = 3;

/** Holds an advisory lock of Postgres until SIGTERM: the simplest possible lease in a database. */
async function holdLock(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  process.on('SIGTERM', async () => {
    await client.query('SELECT pg_advisory_unlock(1)');
    process.exit();
  });
  await client.query('SELECT pg_advisory_lock(1)');
  process.send?.('held');
}

/** Milliseconds from a signal to the process that holds the lock until another process holds it. */
async function lockPasses(url: string, signal: NodeJS.Signals): Promise<number> {
  const first = new ForkedChild(import.meta.url, [ROLE, url]);
  await first.next();
  const second = new ForkedChild(import.meta.url, [ROLE, url]);
  const held = second.next();
  const isWaiting = 'SELECT count(*) AS waiting FROM pg_locks WHERE NOT granted';
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  for (let waiting = '0'; waiting === '0'; ) waiting = (await client.query(isWaiting)).rows[0].waiting;
  await client.end();
  const began = performance.now();
  first.signal(signal);
  await held;
  const took = performance.now() - began;
  second.signal('SIGKILL');
  return took;
}

/**
 * Milliseconds from a signal to the server that holds the clusters until another server holds them. A new
 * server replaces the one that ended.
 */
async function passOn(team: ServerTeam, servers: CloudServer[], signal: NodeJS.Signals): Promise<number> {
  const holder = await holderOf(servers);
  const others = servers.filter((server) => server !== holder);
  const began = performance.now();
  holder.signal(signal);
  await holderOf(others);
  const took = performance.now() - began;
  await holder.ended;
  servers.splice(0, servers.length, ...others, await startServer(team));
  return took;
}

async function withServers<T>(
  team: ServerTeam,
  count: number,
  use: (servers: CloudServer[]) => Promise<T>,
): Promise<T> {
  const servers: CloudServer[] = [];
  try {
    for (let started = 0; started < count; started += 1) servers.push(await startServer(team));
    await holderOf(servers);
    return await use(servers);
  } finally {
    await Promise.all(servers.map((server) => server.end()));
  }
}

const failoverRows = (team: ServerTeam): Promise<Row[]> =>
  withServers(team, 3, async (servers) => {
    const row = (name: string, signal: NodeJS.Signals): Promise<Row> =>
      cost(name, 'ms', {
        floor: () => lockPasses(team.url, signal),
        subject: () => passOn(team, servers, signal),
        turns: FAILOVER_TURNS,
      });
    return [await row('kill -9 to held', 'SIGKILL'), await row('SIGTERM to held', 'SIGTERM')];
  });

async function register({ kubeconfigs }: ChangingClusters, server: CloudServer): Promise<void> {
  for (const [index, kubeconfig] of kubeconfigs.entries()) {
    const { id } = await server.ask('POST', '/k8s/clusters', { name: `bench-${index}`, kubeconfig });
    await server.ask('POST', `/k8s/clusters/${id}/sync`);
  }
}

/** The floor of a takeover: reads and parses all rows, as the server that takes over does. */
async function readRows(url: string): Promise<number> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const began = performance.now();
  const { rows } = await client.query('SELECT record FROM berth.workloads');
  for (const { record } of rows) JSON.parse(record);
  const took = performance.now() - began;
  await client.end();
  if (rows.length !== ROWS) throw new Error(`${rows.length} rows`);
  return took;
}

const loadRow = (team: ServerTeam, servers: CloudServer[]): Promise<Row> =>
  cost('SIGTERM to held, 100,000 rows', 'ms', {
    floor: () => readRows(team.url),
    subject: () => passOn(team, servers, 'SIGTERM'),
    turns: ROWS_TURNS,
  });

/** When the change of each workload arrived. */
type Arrivals = Map<string, number>;

interface Follower {
  arrivals: Arrivals;
  close(): void;
}

/** Follows the event stream of a server. */
function followServer({ port }: CloudServer): Promise<Follower> {
  const arrivals: Arrivals = new Map();
  const path = '/k8s/events?types=workload.asleep,workload.awake';
  return new Promise((resolve, reject) => {
    const sent = http.get(
      { host: '127.0.0.1', port, path, headers: tokenHeaders, agent: false },
      (answer) => {
        let rest = '';
        answer.setEncoding('utf8').on('data', (text: string) => {
          const now = machineMs();
          const frames = (rest + text).split('\n\n');
          rest = frames.pop() ?? '';
          for (const frame of frames) {
            const name = /"workload":"([^"]+)"/.exec(frame)?.[1];
            if (name !== undefined) arrivals.set(name, now);
          }
        });
        answer.on('error', () => undefined);
        resolve({ arrivals, close: () => sent.destroy() });
      },
    );
    sent.on('error', reject);
  });
}

/** The floor: watches the clusters directly. */
async function followClusters(kubeconfigs: readonly string[]): Promise<Follower> {
  const arrivals: Arrivals = new Map();
  const aborts: AbortController[] = [];
  const resource = workloadsResource('Deployment');
  const opened = kubeconfigs.map(async (kubeconfig) => {
    const access = parseKubeconfig(kubeconfig, Date.now());
    const dialer = createClusterDialer(access, { allow: 'any', apiOnLoopback: true });
    const cluster = createKubeCluster(createKubeHttp(dialer, systemClock));
    const from = await cluster.currentVersion(resource);
    await new Promise<void>((resolve) => {
      const onEvent = (event: { type: string; row?: { name: string } } | null): void => {
        if (event?.row) arrivals.set(event.row.name, machineMs());
      };
      const abort = new AbortController();
      aborts.push(abort);
      const watch = cluster.watch(resource, from, { onOpen: resolve, onEvent }, abort.signal);
      watch.catch(() => undefined).finally(() => cluster.close());
    });
  });
  await Promise.all(opened);
  const close = (): void => {
    for (const abort of aborts) abort.abort();
  };
  return { arrivals, close };
}

/** Waits until every follower has received every change. Returns the 99th percentile of the delays. */
async function delays(followers: readonly Follower[], changed: ChangeTimes): Promise<number> {
  for (const { arrivals } of followers)
    while (changed.some(([name]) => !arrivals.has(name)))
      await new Promise((resolve) => setTimeout(resolve, 20));
  const all = followers.flatMap(({ arrivals }) =>
    changed.map(([name, at]) => (arrivals.get(name) ?? Number.NaN) - at),
  );
  return all.toSorted((a, b) => a - b)[Math.floor(all.length * 0.99)] ?? Number.NaN;
}

async function changesTold(clusters: ChangingClusters, followers: readonly Follower[]): Promise<number> {
  const first = await clusters.change(WARM_UP, RATE);
  await delays(followers, first);
  for (const { arrivals } of followers) arrivals.clear();
  const result = await delays(followers, await clusters.change(CHANGES, RATE));
  for (const follower of followers) follower.close();
  return result;
}

const changesRow = (clusters: ChangingClusters, servers: readonly CloudServer[]): Promise<Row> =>
  cost('2,000 changes/s told by each of 5, p99', 'ms', {
    floor: async () => changesTold(clusters, [await followClusters(clusters.kubeconfigs)]),
    subject: async () => changesTold(clusters, await Promise.all(servers.map(followServer))),
    turns: CHANGE_TURNS,
  });

export const shared: Benchmark = {
  name: 'shared',
  question: 'How soon does another server have the clusters, and how soon does each tell a change?',
  run: () =>
    withFolder(async (folder) => {
      const postgres = await startPostgres({ isDurable: true });
      try {
        const rows = await failoverRows(newTeam(folder, await postgres.createDatabase()));
        const team = newTeam(folder, await postgres.createDatabase());
        const large = await withChangingClusters(CLUSTERS, WORKLOADS, (clusters) =>
          withServers(team, SERVERS, async (servers) => {
            await register(clusters, await holderOf(servers));
            const changes = await changesRow(clusters, servers);
            return [await loadRow(team, servers), changes];
          }),
        );
        return [...rows, ...large];
      } finally {
        await postgres.remove();
      }
    }),
};

if (process.argv[2] === ROLE) await holdLock(process.argv[3] ?? '');
