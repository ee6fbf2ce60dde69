// What the clients of a tether get from their pods, on a node that this test speaks for.
import { createServer, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { HeldConnections } from '../../../src/actors/tethers/held_connections.ts';
import { SocketClient } from '../../../src/actors/tethers/session_client.ts';
import { SessionRouter } from '../../../src/actors/tethers/session_router.ts';
import { type PodSource, UsedPods } from '../../../src/actors/tethers/used_pods.ts';
import type { ClusterDialer } from '../../../src/adapters/cluster_dialer.ts';
import type { PodRow } from '../../../src/adapters/kube/pods.ts';
import { openLoopbackPeers } from '../../../src/adapters/process/loopback_peers.ts';
import { TETHER } from '../../../src/settings/cloud_limits.ts';
import { KIB } from '../../../src/settings/limits.ts';
import {
  DATA_ID,
  data,
  ERROR_ID,
  type Far,
  farEnd,
  frame,
  reply,
  upgradeTo,
} from '../../adapters/portforward/far_end.ts';
import { ReferenceNode } from '../../adapters/portforward/reference_node.ts';
import { afterThisTest, realTime, settle, type TestClock, virtualClock } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import { type Client, client, heldConnections } from './tether_kit.ts';

const podNamed = (name: string): PodRow => ({
  uid: name,
  namespace: 'n',
  name,
  isOwn: true,
  isReady: true,
  isRunning: true,
  readyChangedAt: null,
  isEnding: false,
  trouble: null,
  mayPass: false,
});

interface Carried {
  clock: TestClock;
  held: HeldConnections;
  pods: { usable: PodRow[]; isFresh: boolean; absent: string[]; gone: string[] };
  /** Why clients were reset, and when a pod has answered. */
  told: (string | null)[];
  router: SessionRouter;
  connect(first?: string): Client;
}

interface CarriedOptions {
  dialer: ClusterDialer;
  pods?: string[];
  clock?: TestClock;
  held?: HeldConnections;
  halfClosedTimeoutMs?: number;
}

/** A listener whose clients go to `pods`, which the test changes by hand. */
async function carried(options: CarriedOptions): Promise<Carried> {
  const clock = options.clock ?? realTime;
  const held = options.held ?? heldConnections();
  const none: string[] = [];
  const pods = { usable: (options.pods ?? ['p']).map(podNamed), isFresh: false, absent: none, gone: none };
  const told: (string | null)[] = [];
  const peers = await openLoopbackPeers();
  const source: PodSource = {
    dialer: options.dialer,
    get usable() {
      return pods.usable;
    },
    isUsable: (uid) => pods.usable.some((pod) => pod.uid === uid),
    isGone: (uid) => pods.gone.includes(uid),
    isFresh: () => pods.isFresh,
    reportAbsent: (uid) => pods.absent.push(uid),
    stop: () => undefined,
  };
  const router = new SessionRouter({
    clock,
    held,
    targets: new UsedPods({ clock, pods: source, port: 80 }),
    halfClosedTimeoutMs: options.halfClosedTimeoutMs ?? TETHER.halfClosedTimeoutMs,
    target: { trouble: null, timeoutReason: 'nothing came', ensureAwake: async () => null },
    onDefect: (error) => {
      throw error;
    },
    onBytes: () => undefined,
    onAnswered: () => told.push(null),
    onClosed: (reason) => reason !== null && told.push(reason),
  });
  const stopTicks = clock.every(TETHER.tickIntervalMs, () => router.tick());
  const server = createServer({ allowHalfOpen: true }, (socket) =>
    router.connect(new SocketClient(socket, peers)),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  afterThisTest(async () => {
    stopTicks();
    router.close();
    await new Promise((resolve) => server.close(resolve));
    peers.close();
  });
  return { clock, held, pods, told, router, connect: (first) => client(port, first) };
}

/** Turns of the loop in which what was sent over loopback arrives. */
const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 30; turn += 1) await settle();
};

const isAsked = (received: Buffer): boolean => received.length > 0;
const opened = Buffer.concat([reply(ERROR_ID), reply(DATA_ID)]);
const refusal = Buffer.concat([
  opened,
  data(ERROR_ID, 'dial tcp4 127.0.0.1:80: connect: connection refused', true),
]);
/** A whole answer; the connection takes no further stream. */
const answerOf = (text: string): Buffer =>
  Buffer.concat([opened, data(DATA_ID, text, true), data(ERROR_ID, '', true), frame(7, Buffer.alloc(8))]);
/** The name of the pod in the path of a forward. */
const podOf = ({ path }: Far): string => /\/pods\/([^/]+)\//.exec(path)?.[1] ?? '';

/** A node whose connections answer their first stream as `answer` says; null: not at all. */
const node = (answer: (far: Far, count: number) => Buffer | null): Promise<ClusterDialer> => {
  let streams = 0;
  return farEnd((far) => {
    void far.until(isAsked).then(() => {
      streams += 1;
      const bytes = answer(far, streams);
      if (bytes) far.socket.write(bytes);
    });
  });
};

describe('a port that refuses connections', () => {
  it('is retried while the pod is new, until its program listens', async () => {
    const dialer = await node((_, count) => (count < 6 ? refusal : answerOf('hello')));
    const here = await carried({ dialer });
    here.pods.isFresh = true;
    const { ended, text } = here.connect('GET\n');
    expect(await ended).toBe('end');
    expect(text()).toBe('hello');
    expect(here.told).toEqual([null]);
  });

  it('of a new pod has its client reset after the full wait, and no earlier', async () => {
    const clock = virtualClock();
    const here = await carried({ dialer: await node(() => refusal), clock });
    here.pods.isFresh = true;
    const began = clock.monotonic();
    const { ended } = here.connect('GET\n');
    const over = eventually(async () => {
      await clock.advance(TETHER.retry.maxDelayMs);
      await turns();
      return here.told.length > 0;
    });
    expect(await ended).toBe('ECONNRESET');
    await over;
    expect(here.told[0]).toContain('connection refused');
    expect(clock.monotonic() - began).toBeGreaterThanOrEqual(TETHER.podWaitTimeoutMs);
  });

  it('of an old pod has its client reset soon', async () => {
    const clock = virtualClock();
    const here = await carried({ dialer: await node(() => refusal), clock });
    const began = clock.monotonic();
    const { ended } = here.connect('GET\n');
    await eventually(async () => {
      await clock.advance(50);
      await turns();
      return here.told.length > 0;
    });
    expect(await ended).toBe('ECONNRESET');
    expect(clock.monotonic() - began).toBeLessThan(TETHER.podWaitTimeoutMs / 2);
  });
});

describe('a pod that cannot be reached', () => {
  it('gets no other connection while another pod is there', async () => {
    const asked: string[] = [];
    const absence = Buffer.concat([opened, data(ERROR_ID, 'the container is not running', true)]);
    const dialer = await node((far) => {
      asked.push(podOf(far));
      return podOf(far) === 'bad' ? absence : answerOf('hello');
    });
    const here = await carried({ dialer, pods: ['bad', 'good'], clock: virtualClock() });
    const first = here.connect('GET\n');
    await eventually(() => here.pods.absent.length === 1);
    await here.clock.advance(TETHER.retry.initialDelayMs);
    expect(await first.ended).toBe('end');
    for (let round = 0; round < 4; round += 1) expect(await here.connect('GET\n').ended).toBe('end');
    expect(asked.filter((name) => name === 'bad')).toHaveLength(1);
  });

  it('because its node does not answer is skipped for longer', async () => {
    const asked: string[] = [];
    const away = 'HTTP/1.1 500 Wrong\r\nContent-Length: 26\r\n\r\n{"message":"dial timeout"}';
    const dialer = await farEnd(
      (far) => void far.until(isAsked).then(() => far.socket.write(answerOf('hello'))),
      (key, protocol, path) => {
        asked.push(path);
        return path.includes('/dead/') ? away : upgradeTo(key, protocol);
      },
    );
    const here = await carried({ dialer, pods: ['dead', 'good'], clock: virtualClock() });
    const first = here.connect('GET\n');
    await eventually(async () => {
      await here.clock.advance(TETHER.retry.initialDelayMs);
      return asked.some((path) => path.includes('/good/'));
    });
    expect(await first.ended).toBe('end');
    for (let round = 0; round < 4; round += 1) {
      await here.clock.advance(2 * TETHER.podAvoidMs);
      expect(await here.connect('GET\n').ended).toBe('end');
    }
    expect(asked.filter((path) => path.includes('/dead/'))).toHaveLength(1);
  });
});

describe('what a client has sent', () => {
  it('is never sent to a second pod once the first may have received it', async () => {
    const seen: Far[] = [];
    const dialer = await farEnd((far) => {
      seen.push(far);
      void far.until(isAsked).then(() => far.socket.write(opened));
      void far.until((received) => received.includes('PAY 100')).then(() => far.socket.resetAndDestroy());
    });
    const here = await carried({ dialer, pods: ['one', 'two'] });
    expect(await here.connect('PAY 100\n').ended).toBe('ECONNRESET');
    expect(here.told).toHaveLength(1);
    // A later connection is not affected, and brings nothing back.
    const later = here.connect('ASK\n');
    await eventually(() => seen.some((far) => far.received().includes('ASK')));
    later.socket.destroy();
    expect(seen.filter((far) => far.received().includes('PAY 100'))).toHaveLength(1);
  });

  it.each([
    ['a few bytes', 10],
    ['more than is read before a pod takes it', 3 * TETHER.maxPendingBytes],
  ])('is forwarded although the client disconnects while a connection is being made: %s', async (_, size) => {
    const clock = virtualClock();
    const fars: Far[] = [];
    const far = await farEnd((end) => {
      fars.push(end);
      void end.until(isAsked).then(() => end.socket.write(opened));
    });
    let begin = (): void => undefined;
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const dialer: ClusterDialer = { ...far, connect: (signal) => begun.then(() => far.connect(signal)) };
    const here = await carried({ dialer, clock });
    const { socket } = here.connect();
    await new Promise<void>((resolve) => socket.write('~'.repeat(size), () => resolve()));
    socket.destroy();
    await turns();
    await clock.advance(3 * TETHER.clientGoneGraceMs);
    begin();
    const carriedBytes = (): number =>
      Math.max(0, ...fars.map((end) => end.received().toString('latin1').split('~').length - 1));
    await eventually(() => carriedBytes() === size, carriedBytes);
  });

  it('is buffered up to a limit for all clients together, and forwarded completely afterwards', async () => {
    const CLIENTS = 12;
    const SENT = 60 * KIB;
    const held = new HeldConnections({ maxConnections: 100, maxBytes: 3 * SENT });
    const received: Far[] = [];
    const dialer = await farEnd((far) => {
      received.push(far);
      void far.until(isAsked).then(() => far.socket.write(opened));
    });
    const here = await carried({ dialer, held, pods: [] });
    const sent = '~'.repeat(SENT);
    // Read from when there was room, read from no more, and never read from.
    const early = Array.from({ length: 4 }, () => here.connect());
    await eventually(() => held.count === early.length);
    const filling = Array.from({ length: 4 }, () => here.connect(sent));
    await eventually(() => held.isFull);
    for (const { socket } of early) socket.write('~');
    const kept = (): number => held.keptBytes - early.length;
    await eventually(() => kept() >= 3 * SENT);
    await turns();
    for (const { socket } of early) socket.write(sent.slice(1));
    const late = Array.from({ length: 4 }, () => here.connect(sent));
    await eventually(() => held.count === CLIENTS);
    await turns();
    expect(kept()).toBeLessThanOrEqual(filling.length * SENT);
    here.pods.usable = [podNamed('p')];
    here.router.onTargetsChange();
    const carriedBytes = (): number =>
      received.reduce((sum, far) => sum + far.received().toString('latin1').split('~').length - 1, 0);
    await eventually(() => carriedBytes() === CLIENTS * SENT, carriedBytes);
    for (const { socket } of [...early, ...filling, ...late]) socket.destroy();
    await eventually(() => here.router.size === 0);
    expect([held.count, held.keptBytes]).toEqual([0, 0]);
  });
});

describe('a client that waits', () => {
  it('counts towards the limit of all listeners together, and is reset beyond it', async () => {
    const held = new HeldConnections({ maxConnections: 3, maxBytes: 1_000 });
    const dialer = await node(() => null);
    const [one, two] = [await carried({ dialer, held, pods: [] }), await carried({ dialer, held, pods: [] })];
    const waiting = [one.connect('a'), one.connect('b'), two.connect('c')];
    await eventually(() => held.count === 3);
    expect(await two.connect('d').ended).toBe('ECONNRESET');
    expect(two.told).toEqual(['3 connections are waiting: no more are held']);
    waiting[0]?.socket.destroy();
    await eventually(() => held.count === 2);
    two.connect('e');
    await eventually(() => held.count === 3);
    expect(waiting.slice(1).some(({ socket }) => socket.destroyed)).toBe(false);
  });
});

describe('a client that has half-closed', () => {
  it('is reset after the half_closed_timeout of its tether, with the reason', async () => {
    const clock = virtualClock();
    const ends: Socket[] = [];
    const FIN = data(DATA_ID, '', true);
    const dialer = await farEnd((far) => {
      void far.until(isAsked).then(() => far.socket.write(opened));
      // As nodes do: the pod's side is closed once they hear of the half-close.
      void far
        .until((received) => received.includes(FIN))
        .then(() => {
          ends.push(far.socket);
          far.socket.write(Buffer.concat([data(DATA_ID, '', true), data(ERROR_ID, '', true)]));
        });
    });
    const here = await carried({ dialer, clock, halfClosedTimeoutMs: 5_000 });
    const { socket, ended } = here.connect('ask\n');
    socket.end();
    await turns();
    await clock.advance(5_000);
    await turns();
    // Time in which this process did not run is no silence of the pod.
    clock.standStill(60_000);
    await clock.advance(0);
    await turns();
    expect(ends).toEqual([]);
    await clock.advance(TETHER.tickIntervalMs);
    expect(await ended).toBe('ECONNRESET');
    expect(here.told).toEqual(['the pod was silent for 5 s after its client had half-closed']);
  });
});

describe('a client whose pod has been deleted', () => {
  it('gets what is on its way, and is reset once nothing comes, whatever it sends itself', async () => {
    const clock = virtualClock();
    let far = (_: string): void => undefined;
    const dialer = await farEnd((end) => {
      far = (text) => end.socket.write(data(DATA_ID, text));
      new ReferenceNode(end, { frozen: new Set(), isRead: true });
    });
    const here = await carried({ dialer, clock });
    const { socket, ended, text } = here.connect('ask\n');
    await turns();
    const pass = async (ms: number): Promise<void> => {
      for (let passed = 0; passed < ms; passed += 1_000) {
        await clock.advance(1_000);
        await turns();
      }
    };
    // It was quiet for long before.
    await pass(60_000);
    here.pods.usable = [];
    here.router.onTargetsChange();
    await pass(2 * TETHER.goneSilenceMs);
    expect(here.told).toEqual([]);
    here.pods.gone.push('p');
    await pass(TETHER.goneSilenceMs);
    far('part');
    await turns();
    socket.write('more\n');
    await pass(TETHER.goneSilenceMs);
    socket.write('more\n');
    await turns();
    expect(here.told).toEqual([null]);
    await pass(2 * TETHER.tickIntervalMs);
    expect(await ended).toBe('ECONNRESET');
    expect(text()).toBe('part');
    expect(here.told).toEqual([null, 'the pod is gone']);
  });
});
