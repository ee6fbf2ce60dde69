// A sync of 10,000 workloads by a real daemon: its duration next to a bare client that only reads and parses
// the same pages, its memory cost, and the longest time the front blocks meanwhile, next to the front of a
// daemon that is idle while the bare client reads. The cluster is a double of an API server in a process of
// its own.
import { fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createClusterDialer } from '../src/adapters/cluster_dialer.ts';
import { createKubeHttp } from '../src/adapters/kube/kube_http.ts';
import { parseKubeconfig } from '../src/adapters/kube/kubeconfig.ts';
import { systemClock } from '../src/runtime/clock.ts';
import { type Json, kubeDouble, workload } from '../test/kit/kube_double.ts';
import { type Daemon, PLAIN_ENVIRONMENT, startDaemon, withFolder } from './kit/daemon.ts';
import { type Benchmark, costs } from './kit/harness.ts';
import { memoryOf, threadMs } from './kit/process_stats.ts';

const WORKLOADS = 10_000;
const PAGE = 500;
const TURNS = 3;
const ROLE = 'cloud-double';

const seconds = (since: number): number => (performance.now() - since) / 1_000;

/** A workload of typical size: an API server sends 3 to 5 KB for one. */
function usual(index: number) {
  const object = workload(`team-${index % 40}`, `service-${index}`, 2);
  const [container] = object.spec.template.spec.containers;
  container.env = Array.from({ length: 30 }, (_, at) => ({ name: `SETTING_${at}`, value: 'v'.repeat(40) }));
  return object;
}

async function serveDouble(workloads: number): Promise<void> {
  const double = await kubeDouble();
  for (let index = 0; index < workloads; index += 1)
    double.put(index % 2 === 0 ? 'Deployment' : 'StatefulSet', usual(index));
  double.compact();
  process.on('disconnect', () => process.exit());
  process.send?.(double.kubeconfig);
}

/** Runs `use` with a cluster of that many workloads, in a process of its own. */
export async function withDouble<T>(workloads: number, use: (kubeconfig: string) => Promise<T>): Promise<T> {
  const child = fork(fileURLToPath(import.meta.url), [ROLE, String(workloads)], { env: PLAIN_ENVIRONMENT });
  const kubeconfig = await new Promise<string>((resolve, reject) => {
    child.once('message', (text) => resolve(String(text)));
    child.once('exit', (code) => reject(new Error(`the double ended (${code})`)));
  });
  try {
    return await use(kubeconfig);
  } finally {
    child.disconnect();
  }
}

/** The floor: reads and parses every page and keeps nothing. */
async function bareRead(kubeconfig: string): Promise<void> {
  const access = parseKubeconfig(kubeconfig, Date.now());
  const client = createKubeHttp(
    createClusterDialer(access, { allow: 'any', apiOnLoopback: true }),
    systemClock,
  );
  const readAll = async (plural: string): Promise<void> => {
    for (let next: string | undefined = ''; next !== undefined; ) {
      const query: Record<string, string> = { limit: String(PAGE), ...(next ? { continue: next } : {}) };
      const path = `/apis/apps/v1/${plural}`;
      const body = await client.call({ action: 'read', path, query, maxBytes: 2 ** 30 });
      next = JSON.parse(body.toString()).metadata.continue;
    }
  };
  await Promise.all(['deployments', 'statefulsets'].map(readAll));
  await client.close();
}

/**
 * Sends requests over one connection in a loop. `stop` returns the longest processor time, in ms, that the
 * front's thread spent between a request and its response: the wait it imposes on others, independent of the
 * machine's load.
 */
async function watchFront({ port, pid }: Daemon): Promise<{ stop(): number }> {
  const request = `GET /livez HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`;
  const socket = connect(port, '127.0.0.1');
  await new Promise((resolve) => socket.once('connect', resolve));
  let most = 0;
  let before = 0;
  const ask = (): void => {
    before = threadMs(pid);
    socket.write(request);
  };
  socket.on('data', () => {
    most = Math.max(most, threadMs(pid) - before);
    setTimeout(ask, 1);
  });
  ask();
  return {
    stop() {
      socket.destroy();
      return most;
    },
  };
}

function call(port: number, token: string, method: string, path: string, body?: object): Promise<Json> {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const headers = {
    Authorization: `Bearer ${token}`,
    ...(text === undefined
      ? {}
      : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) }),
  };
  return new Promise((resolve, reject) => {
    const sent = http.request({ host: '127.0.0.1', port, method, path, headers, agent: false }, (answer) => {
      let got = '';
      answer.setEncoding('utf8');
      answer.on('data', (part) => {
        got += part;
      });
      answer.on('end', () => {
        if ((answer.statusCode ?? 500) < 300) resolve(JSON.parse(got));
        else reject(new Error(`${method} ${path}: ${answer.statusCode} ${got}`));
      });
    });
    sent.on('error', reject);
    sent.end(text);
  });
}

export type Ask = (method: string, path: string, body?: object) => Promise<Json>;

/** A client of a daemon's cloud API. It resolves with the parsed body; it rejects on any status but 2xx. */
export const cloudClient =
  ({ port }: Daemon, token: string): Ask =>
  (method, path, body) =>
    call(port, token, method, path, body);

/** The values of one turn, in this order. */
const UNITS: Readonly<Record<string, string>> = {
  'sync of 10,000': 's',
  'memory more': 'MiB',
  'longest wait for the front': 'ms',
};
type Turn = [seconds: number, memory: number, wait: number];

/**
 * Measures `work`: its duration in seconds, the daemon's growth in MiB, and the front's longest block in ms.
 */
async function measured(daemon: Daemon, work: () => Promise<void>): Promise<Turn> {
  const before = memoryOf(daemon.pid, 'Rss');
  const front = await watchFront(daemon);
  const begin = performance.now();
  await work();
  const took = seconds(begin);
  return [took, memoryOf(daemon.pid, 'Rss') - before, front.stop()];
}

/** Runs `use` with a daemon of its own and a client of its cloud API. */
export function withCloud<T>(use: (daemon: Daemon, ask: Ask, token: string) => Promise<T>): Promise<T> {
  return withFolder(async (folder) => {
    const daemon = await startDaemon(folder);
    try {
      const token = readFileSync(join(folder, 'state', 'cloud-token'), 'utf8').trim();
      return await use(daemon, cloudClient(daemon, token), token);
    } finally {
      await daemon.end();
    }
  });
}

const syncOnce = (kubeconfig: string): Promise<Turn> =>
  withCloud(async (daemon, ask) => {
    const { id } = await ask('POST', '/k8s/clusters', { name: 'bench', kubeconfig });
    const turn = await measured(daemon, async () => {
      const { synced } = await ask('POST', `/k8s/clusters/${id}/sync`);
      if (synced !== WORKLOADS) throw new Error(`${synced} synced`);
    });
    const { length } = await ask('GET', '/k8s/workloads');
    if (length !== WORKLOADS) throw new Error(`${length} listed`);
    return turn;
  });

const readOnce = (kubeconfig: string): Promise<Turn> =>
  withCloud((daemon) => measured(daemon, () => bareRead(kubeconfig)));

export const cloud: Benchmark = {
  name: 'cloud',
  question: 'What does a sync of 10,000 workloads take, cost and hold up?',
  run: () =>
    withDouble(WORKLOADS, async (kubeconfig) => {
      const sides = {
        floor: () => readOnce(kubeconfig),
        subject: () => syncOnce(kubeconfig),
        turns: TURNS,
      };
      const rows = await costs(Object.keys(UNITS), '', sides);
      return rows.map((row) => ({ ...row, unit: UNITS[row.name] ?? '' }));
    }),
};

if (process.argv[2] === ROLE) await serveDouble(Number(process.argv[3]));
