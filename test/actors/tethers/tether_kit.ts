// Shared by the tests of tethers: a workload on the real cluster that follows its client's orders, a tether
// to it, and clients.
import { createHash } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { HeldConnections } from '../../../src/actors/tethers/held_connections.ts';
import { tetherActor } from '../../../src/actors/tethers/tether.ts';
import type { TetherConfig } from '../../../src/actors/tethers/tether_clients.ts';
import type { AddressRule } from '../../../src/adapters/address_rule.ts';
import { parseKubeconfig } from '../../../src/adapters/kube/kubeconfig.ts';
import { openLoopbackPeers } from '../../../src/adapters/process/loopback_peers.ts';
import type { TetherTarget, WorkloadsProtocol } from '../../../src/protocol/cloud.ts';
import type { ClusterAccess } from '../../../src/protocol/clusters.ts';
import type {
  StoredTether,
  TetherProtocol,
  TetherSettings,
  TetherStats,
  TethersProtocol,
} from '../../../src/protocol/tethers.ts';
import type { Ref } from '../../../src/runtime/actor.ts';
import { TETHER } from '../../../src/settings/cloud_limits.ts';
import { afterThisTest, realTime, type Stand, type TestClock, type World, world } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import { ownPorts } from '../../kit/free_ports.ts';
import type { Json } from '../../kit/kube_double.ts';
import { api, kubeconfig, type Sandbox } from '../../kit/kube_real.ts';

export const RULE: AddressRule = { allow: 'any', apiOnLoopback: true };
export const access = (text = kubeconfig()): ClusterAccess => parseKubeconfig(text, Date.now());

/** The first line of a connection is its order. */
const SERVE = `#!/bin/sh
read -r what a b
case "$what" in
  name) hostname ;;
  stay) hostname; while read -r line; do hostname; done ;;
  echo) exec cat ;;
  down) i=0; while [ $i -lt $a ]; do cat /tmp/block; i=$((i+1)); done ;;
  sum) i=0; (while [ $i -lt $a ]; do cat /tmp/block; i=$((i+1)); done) | md5sum ;;
  up) head -c $a | md5sum ;;
  late) sleep $a; i=0; while [ $i -lt $b ]; do cat /tmp/block; i=$((i+1)); done ;;
  twice) hostname; sleep $a; hostname ;;
  stuck) echo stuck; sleep 1000 ;;
  post) head -c $a | md5sum > /tmp/posted.$$ && mv /tmp/posted.$$ /tmp/posted ;;
  posted) while [ ! -f /tmp/posted ]; do sleep 0.1; done; cat /tmp/posted; rm /tmp/posted ;;
esac
`;
/** Begins to serve; a command of a pod. */
export const LISTEN =
  'printf "%s" "$SERVE" > /tmp/serve && chmod +x /tmp/serve && head -c 1048576 /dev/urandom > /tmp/block && exec nc -ll -p 7000 -e /tmp/serve';
export const BLOCK = 1024 * 1024;

/** A Deployment whose pods serve on 7000 as above and then become ready. */
export const server = (
  name: string,
  replicas: number,
  more: { probe?: Json; image?: string; command?: string; spec?: Json } = {},
): Json => ({
  metadata: { name },
  spec: {
    replicas,
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name } },
      spec: {
        terminationGracePeriodSeconds: 0,
        containers: [
          {
            name: 'main',
            image: more.image ?? 'busybox:1.35',
            imagePullPolicy: more.image ? 'Always' : 'IfNotPresent',
            env: [{ name: 'SERVE', value: SERVE }],
            command: ['sh', '-c', more.command ?? LISTEN],
            readinessProbe:
              more.probe === undefined ? { tcpSocket: { port: 7000 }, periodSeconds: 1 } : more.probe,
          },
        ],
        ...more.spec,
      },
    },
  },
});

export interface Pods {
  names(): Promise<string[]>;
  /** Resolves when exactly that many pods are Ready, and no others exist. */
  ready(count: number): Promise<string[]>;
  remove(name: string): Promise<void>;
}

export const podsOf = (sandbox: Sandbox, name: string): Pods => {
  const path = `/api/v1/namespaces/${sandbox.namespace}/pods`;
  const list = async (): Promise<Json[]> =>
    (await api('GET', `${path}?labelSelector=app%3D${name}`)).body.items;
  const isReady = (pod: Json): boolean =>
    !pod.metadata.deletionTimestamp &&
    (pod.status.conditions ?? []).some((one: Json) => one.type === 'Ready' && one.status === 'True');
  return {
    names: async () => (await list()).map((pod) => pod.metadata.name),
    ready: (count) =>
      eventually(async () => {
        const pods = await list();
        return pods.length === count && pods.every(isReady) && pods.map((pod) => pod.metadata.name);
      }),
    async remove(pod) {
      await api('DELETE', `${path}/${pod}?gracePeriodSeconds=0`);
    },
  };
};

export interface Field {
  world: World;
  workloads: Stand<WorkloadsProtocol>;
  tethers: Stand<TethersProtocol>;
  ref: Ref<TetherProtocol>;
  port: number;
  route: TetherTarget;
  /** The first reported numbers, past or to come, that fit. */
  until(fits: (numbers: TetherStats) => boolean): Promise<TetherStats>;
  /**
   * The number once it has begun to change and has stopped: no event says that a tether has stopped reading.
   * Each report is requested, since only changed numbers are reported otherwise, and comes with a tick of the
   * tether: two reports are at least one tick apart.
   */
  settled(of: 'bytesIn' | 'bytesOut'): Promise<number>;
}

export interface FieldOptions {
  sandbox: Pick<Sandbox, 'namespace'>;
  name: string;
  containerPort?: number;
  wake?: boolean;
  settings?: Partial<TetherSettings>;
  /** The account that asks, in place of the administrator. */
  token?: string;
  /** The API server's address and CA, in place of the kubeconfig's. */
  server?: string;
  ca?: string;
  /** Another cluster. */
  access?: ClusterAccess;
  clock?: TestClock;
  state?: TetherTarget['state'];
  /** The route is withheld until this resolves. */
  onRoute?: () => Promise<void>;
  /** What `wake` does. */
  onWake?: () => Promise<void>;
}

export const STORED: StoredTether = {
  id: 'T1',
  clusterId: 'C1',
  workloadId: 'W1',
  containerPort: 7000,
  label: null,
  wake: true,
  localPort: null,
  active: false,
};
/** As one thread of a daemon has them. */
export const heldConnections = (limits = TETHER.held): HeldConnections => new HeldConnections(limits);
export const UNUSED = { connections: 0, bytesIn: 0, bytesOut: 0, lastError: null };

/** An open tether to workload `name`, with stand-ins for the actors it talks to. */
export async function field(options: FieldOptions): Promise<Field> {
  const space = world({ clock: options.clock ?? realTime });
  const route: TetherTarget = {
    clusterId: 'C1',
    access: {
      ...(options.access ?? access()),
      ...(options.token === undefined ? {} : { credential: { kind: 'token', token: options.token } }),
      ...(options.server === undefined ? {} : { server: options.server }),
      ...(options.ca === undefined ? {} : { ca: options.ca }),
    },
    workload: {
      id: 'W1',
      kind: 'Deployment',
      namespace: options.sandbox.namespace,
      name: options.name,
      selector: `app=${options.name}`,
    },
    state: options.state ?? 'awake',
    replicas: 1,
  };
  const workloads = await space.stand<WorkloadsProtocol>('workloads', {
    tetherTarget: async () => {
      await options.onRoute?.();
      return route;
    },
    wake: async () => {
      route.state = 'waking';
      await options.onWake?.();
      return { replicas: 1 };
    },
  });
  const tethers = await space.stand<TethersProtocol>('tethers');
  const peers = await openLoopbackPeers();
  afterThisTest(() => peers.close());
  const config: TetherConfig = {
    rule: RULE,
    peers,
    networkClock: realTime,
    held: heldConnections(),
    link: null,
  };
  const ref = await space.start('tether:T1', tetherActor, config);
  const [from, to] = ownPorts(3);
  const ports = Array.from({ length: to - from + 1 }, (_, index) => from + index);
  const stored = {
    ...STORED,
    containerPort: options.containerPort ?? 7000,
    wake: options.wake ?? true,
    ...options.settings,
  };
  const open = () => ref.ask('open', { tether: stored, ports, numbers: UNUSED });
  const { port } = await open();
  const reported = (): TetherStats[] => tethers.of('stats').map(({ numbers }) => numbers);
  const until = (fits: (numbers: TetherStats) => boolean): Promise<TetherStats> =>
    eventually(() => reported().find(fits));
  const settled = async (of: 'bytesIn' | 'bytesOut'): Promise<number> => {
    await until((numbers) => numbers[of] > 0);
    for (let last = 0; ; ) {
      const before = reported().length;
      await open();
      const now = (await eventually(() => reported()[before]))[of];
      if (now === last) return now;
      last = now;
    }
  };
  return { world: space, workloads, tethers, ref, port, route, until, settled };
}

export interface Client {
  socket: Socket;
  /** Everything received. */
  text(): string;
  bytes(): number;
  md5(): string;
  /** Resolves when the received text fits. */
  until(fits: (text: string) => boolean): Promise<string>;
  /** How it ended: `end` after a FIN, else the code of the error. */
  ended: Promise<string>;
}

/** A connection that sends `first` and reads everything. */
export function client(port: number, first = '', host = '127.0.0.1'): Client {
  const socket = connect({ port, host, allowHalfOpen: true });
  afterThisTest(() => void socket.destroy());
  const hash = createHash('md5');
  let text = '';
  let bytes = 0;
  let look = (): void => undefined;
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    hash.update(chunk);
    if (text.length < 10_000) text += chunk.toString('latin1');
    look();
  });
  const ended = new Promise<string>((resolve) => {
    socket.on('end', () => resolve('end'));
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    socket.on('close', () => resolve('close'));
  });
  if (first !== '') socket.write(first);
  return {
    socket,
    text: () => text,
    bytes: () => bytes,
    md5: () => hash.copy().digest('hex'),
    until: (fits) =>
      new Promise((resolve, reject) => {
        look = () => {
          if (fits(text)) resolve(text);
        };
        look();
        void ended.then((how) => reject(new Error(`ended (${how}) after ${JSON.stringify(text)}`)));
      }),
    ended,
  };
}

/**
 * The whole response to `first`; rejects on a reset. The client closes its side when the response has ended.
 */
export async function answer(port: number, first: string): Promise<string> {
  const { socket, text, ended } = client(port, first);
  const how = await ended;
  socket.end();
  if (how !== 'end') throw new Error(`ended (${how}) after ${JSON.stringify(text())}`);
  return text();
}

/** Sends all of `bytes` and leaves, whatever becomes of them. */
export function post(port: number, bytes: Buffer): Promise<void> {
  const sent = Buffer.concat([Buffer.from(`post ${bytes.length}\n`), bytes]);
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(sent, () => socket.destroy()));
    socket.on('error', reject).on('close', () => resolve());
  });
}

/** The first error that the tether reports. */
export const lastError = async (field: Field): Promise<string> =>
  (await field.until(({ lastError }) => lastError !== null)).lastError ?? '';
