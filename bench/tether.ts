// Tethers of a real daemon on a real cluster. The floor is `kubectl port-forward` to the same pod.
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { createClusterDialer } from '../src/adapters/cluster_dialer.ts';
import { createKubeCluster, type KubeCluster } from '../src/adapters/kube/kube_cluster.ts';
import { createKubeHttp } from '../src/adapters/kube/kube_http.ts';
import { parseKubeconfig } from '../src/adapters/kube/kubeconfig.ts';
import { podsResource } from '../src/adapters/kube/pods.ts';
import { systemClock } from '../src/runtime/clock.ts';
import { startDaemon, withFolder } from './kit/daemon.ts';
import { type Benchmark, compare, cost, median, type Row, throughput } from './kit/harness.ts';
import {
  adminKubeconfig,
  getterKubeconfig,
  KUBECONFIG,
  kubectl,
  portForward,
  scaler,
  viewOf,
  workload,
} from './tether_cluster.ts';

const MIB = 1024 * 1024;
const BULK_MIB = 128;
const AT_ONCE = 20;
const TURN_MS = 1_500;
const ANSWERS = 40;
/**
 * Pause between connections, as when a user clicks: all threads and processes on the path become idle in it.
 */
const QUIET_MS = 25;
const TURNS = 9;

/** Opens a connection, sends `first`, and closes it once `isEnough` accepts what has arrived. */
function exchange(
  port: number,
  first: string | Buffer,
  isEnough: (text: string, bytes: number) => boolean,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let text = '';
    let bytes = 0;
    const socket: Socket = connect({
      port,
      host: '127.0.0.1',
      onread: {
        buffer: Buffer.alloc(256 * 1024),
        callback: (length, buffer) => {
          bytes += length;
          if (text.length < 4_096) text += Buffer.from(buffer.buffer, 0, length).toString('latin1');
          if (isEnough(text, bytes)) {
            resolve();
            socket.destroy();
          }
          return true;
        },
      },
    });
    socket.on('connect', () => socket.write(first));
    socket.on('error', reject);
    socket.on('close', () => reject(new Error(`closed after ${bytes} bytes`)));
  });
}

const page = (port: number): Promise<void> =>
  exchange(port, 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n', (text) => text.includes('hello from'));

const seconds = async (work: () => Promise<unknown>): Promise<number> => {
  const begin = performance.now();
  await work();
  return (performance.now() - begin) / 1_000;
};

const down = (port: number) => async (): Promise<number> =>
  BULK_MIB /
  (await seconds(() => exchange(port, `down ${BULK_MIB}\n`, (_, bytes) => bytes >= BULK_MIB * MIB)));
const up = (port: number) => {
  const sent = Buffer.concat([Buffer.from(`up ${BULK_MIB * MIB}\n`), Buffer.alloc(BULK_MIB * MIB)]);
  return async (): Promise<number> =>
    BULK_MIB / (await seconds(() => exchange(port, sent, (text) => text.includes('done'))));
};
/** The median time to the first response on a new connection, in ms; `quietMs` is the pause before each. */
const firstAnswer =
  (port: number, quietMs = 0) =>
  async (): Promise<number> => {
    const times: number[] = [];
    for (let index = 0; index < ANSWERS; index += 1) {
      if (quietMs > 0) await pause(quietMs);
      times.push((await seconds(() => page(port))) * 1_000);
    }
    return median(times);
  };

/**
 * A daemon in `folder`, as `startDaemon` starts it; `register` adds a cluster and returns a function that
 * opens tethers to its workloads in `namespace`.
 */
async function berth(namespace: string, ...[folder, config, environment]: Parameters<typeof startDaemon>) {
  const daemon = await startDaemon(folder, config, environment);
  const token = readFileSync(join(folder, 'state/cloud-token'), 'utf8').trim();
  const ask = async (method: string, path: string, body?: unknown): Promise<unknown> => {
    const answer = await fetch(`http://127.0.0.1:${daemon.port}/k8s${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: body === undefined ? null : JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${method} ${path}: ${await answer.text()}`);
    return answer.json();
  };
  const tether = async (cluster: string, name: string, containerPort: number): Promise<number> => {
    const path = `/workloads?cluster_id=${cluster}`;
    const rows = (await ask('GET', path)) as { id: string; namespace: string; name: string }[];
    // A namespace of an earlier run, with workloads of the same names, may still exist.
    const { id } = rows.find((row) => row.namespace === namespace && row.name === name) ?? { id: '' };
    const made = await ask('POST', `/workloads/${id}/tether`, { container_port: containerPort });
    const { tether_id } = made as { tether_id: string };
    const open = await ask('POST', `/tethers/${tether_id}/activate`);
    return (open as { local_port: number }).local_port;
  };
  return {
    end: () => daemon.end(),
    async register(name: string, kubeconfig: string) {
      const { id } = (await ask('POST', '/clusters', { name, kubeconfig })) as { id: string };
      await ask('POST', `/clusters/${id}/sync`);
      return (workload: string, containerPort: number) => tether(id, workload, containerPort);
    },
  };
}

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });

/** Two daemons: one offers a relay, the other opens remote tethers through it. */
async function remoteBerth(folder: string, namespace: string) {
  const [there, here] = ['there', 'here'].map((name) => join(folder, name));
  if (!there || !here) throw new Error('two folders');
  for (const name of [there, here]) mkdirSync(name);
  const port = await freePort();
  const relay = `[cloud]\ntoken = "there"\nbind = "127.0.0.1"\nport = ${port}\nrelay_port = 0\n`;
  const lender = await startDaemon(there, relay);
  const remote = `[cloud]\nremote = "http://127.0.0.1:${port}"\n`;
  const user = await berth(namespace, here, remote, { BERTH_REMOTE_TOKEN: 'there' });
  return { ...user, end: () => Promise.all([user.end(), lender.end()]) };
}

type Tethered = (workload: string, containerPort: number) => Promise<number>;

async function carried(tethered: Tethered, overWebSocket: Tethered, theirs: number[]): Promise<Row[]> {
  const [theirBulk = 0, theirPage = 0] = theirs;
  const bulk = await tethered('bench', 7000);
  const pages = await tethered('bench', 8080);
  const webSocket = await overWebSocket('bench', 8080);
  const turns = TURNS;
  const atOnce = (port: number) => () => throughput(() => page(port), AT_ONCE, TURN_MS);
  return [
    await compare('down', 'MiB/s', { floor: down(theirBulk), subject: down(bulk), turns }),
    await compare('up', 'MiB/s', { floor: up(theirBulk), subject: up(bulk), turns }),
    await compare(`${AT_ONCE} at once`, 'connections/s', {
      floor: atOnce(theirPage),
      subject: atOnce(pages),
      turns,
    }),
    await cost('first answer', 'ms', { floor: firstAnswer(theirPage), subject: firstAnswer(pages), turns }),
    await cost(`first answer after ${QUIET_MS} ms`, 'ms', {
      floor: firstAnswer(theirPage, QUIET_MS),
      subject: firstAnswer(pages, QUIET_MS),
      turns,
    }),
    await cost('first answer over WebSocket', 'ms', {
      floor: firstAnswer(theirPage),
      subject: firstAnswer(webSocket),
      turns,
    }),
  ];
}

/** Remote tethers through the relay of another daemon on this machine. The floor is a plain tether. */
async function relayed(tethered: Tethered, remotely: Tethered): Promise<Row[]> {
  const turns = TURNS;
  const [bulk, pages] = [await tethered('bench', 7000), await tethered('bench', 8080)];
  const [theirBulk, theirPages] = [await remotely('bench', 7000), await remotely('bench', 8080)];
  return [
    await compare('down, remote', 'MiB/s', { floor: down(bulk), subject: down(theirBulk), turns }),
    await compare('up, remote', 'MiB/s', { floor: up(bulk), subject: up(theirBulk), turns }),
    await cost('first answer, remote', 'ms', {
      floor: firstAnswer(pages),
      subject: firstAnswer(theirPages),
      turns,
    }),
  ];
}

/** A connection that wakes a workload. The floor is the time from the change of replicas to a Ready pod. */
async function woken(tethered: Tethered, cluster: KubeCluster, namespace: string): Promise<Row> {
  const port = await tethered('asleep', 8080);
  const scale = scaler(cluster, namespace, 'asleep');
  const timed = (work: () => Promise<void>) => async (): Promise<number> => {
    await scale.down();
    return (await seconds(work)) * 1_000;
  };
  return cost('wake by a connection', 'ms', {
    floor: timed(() => scale.up()),
    subject: timed(() => page(port)),
    turns: TURNS,
  });
}

async function measure(folder: string, namespace: string): Promise<Row[]> {
  const access = parseKubeconfig(adminKubeconfig(), Date.now());
  const cluster = createKubeCluster(
    createKubeHttp(createClusterDialer(access, { allow: 'any', apiOnLoopback: true }), systemClock),
  );
  const { rows } = await cluster.list(
    podsResource({ kind: 'Deployment', namespace, name: 'bench', selector: 'app=bench' }),
  );
  const forward = await portForward(namespace, rows[0]?.name ?? '');
  const daemon = await berth(namespace, folder);
  const remote = await remoteBerth(folder, namespace);
  try {
    const tethered = await daemon.register('bench', adminKubeconfig());
    const overWebSocket = await daemon.register('getter', getterKubeconfig(namespace));
    return [
      ...(await carried(tethered, overWebSocket, forward.ports)),
      ...(await relayed(tethered, await remote.register('bench', adminKubeconfig()))),
      await woken(tethered, cluster, namespace),
    ];
  } finally {
    forward.child.kill();
    await Promise.all([daemon.end(), remote.end(), cluster.close()]);
  }
}

async function run(): Promise<Row[]> {
  if (KUBECONFIG === '')
    throw new Error(`the tether benchmark needs a cluster: BERTH_TEST_KUBECONFIG names its kubeconfig`);
  const namespace = `berth-bench-${randomBytes(3).toString('hex')}`;
  kubectl(['create', 'namespace', namespace]);
  try {
    for (const name of ['bench', 'asleep'])
      kubectl(['-n', namespace, 'apply', '-f', '-'], JSON.stringify(workload(name)));
    for (const name of ['bench', 'asleep'])
      kubectl(['-n', namespace, 'rollout', 'status', `deployment/${name}`, '--timeout=60s']);
    return await withFolder((folder) => measure(folder, namespace));
  } finally {
    kubectl(['delete', 'namespace', namespace, '--wait=false']);
    kubectl(['delete', 'clusterrolebinding', viewOf(namespace), '--ignore-not-found']);
  }
}

export const tether: Benchmark = {
  name: 'tether',
  question: 'How fast is a tether, next to kubectl port-forward on the same pod?',
  run,
};
