// Tethers whose workloads are behind the relay of another Berth: docs/reference.md "Remote tethers".
import { describe, expect, it } from 'vitest';
import { tetherActor } from '../../../src/actors/tethers/tether.ts';
import { openLoopbackPeers } from '../../../src/adapters/process/loopback_peers.ts';
import { dialRelay } from '../../../src/adapters/relay/dial_relay.ts';
import type { MuxStream } from '../../../src/adapters/relay/mux_stream.ts';
import { type OpenRequest, readOpenRequest } from '../../../src/adapters/relay/open_request.ts';
import { RelayLink } from '../../../src/adapters/relay/relay_link.ts';
import { RELAY_PATH } from '../../../src/adapters/relay/relay_path.ts';
import { listenForRelays, type RelayServer } from '../../../src/adapters/relay/relay_server.ts';
import { fail } from '../../../src/protocol/errors.ts';
import type { TetherStats, TethersProtocol } from '../../../src/protocol/tethers.ts';
import { RELAY, TETHER } from '../../../src/settings/cloud_limits.ts';
import { MIB } from '../../../src/settings/limits.ts';
import { afterThisTest, realTime, settle, type TestClock, virtualClock, world } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import { freePort } from '../../kit/free_ports.ts';
import { must } from '../../kit/must.ts';
import { answer, client, heldConnections, RULE, UNUSED } from './tether_kit.ts';

const ignore = (): void => undefined;

/** A stream as the relay sees it. */
class Taken {
  readonly stream: MuxStream;
  readonly request: OpenRequest | null;
  text = '';
  hasEnded = false;
  reset: string | null = null;
  /** Called with each piece. */
  onText: (text: string) => void = ignore;
  onEnd = ignore;

  constructor(stream: MuxStream, body: Buffer) {
    this.stream = stream;
    this.request = readOpenRequest(body);
    stream.listen({
      onData: (bytes) => {
        this.text += bytes.toString('latin1');
        this.onText(this.text);
      },
      onEnd: () => {
        this.hasEnded = true;
        this.onEnd();
      },
      onDrained: ignore,
      onClosed: ignore,
      onReset: (code) => {
        this.reset = code;
      },
    });
  }
}

interface Options {
  clock?: TestClock;
  /** What the relay does with a stream. */
  take?: (taken: Taken) => void;
  /** Why there is no way to it. */
  refuse?: () => Error | null;
  /** Resolves when the way to it is found. */
  found?: Promise<void>;
  /** Who is logged in there. */
  user?: () => string;
}

/** A relay, and an open tether that leads to it. */
async function remote({
  clock = realTime,
  take = ignore,
  refuse = () => null,
  found,
  user = () => '',
}: Options = {}) {
  const relayPort = freePort();
  const taken: Taken[] = [];
  let server: RelayServer | null = null;
  let dials = 0;
  const start = async (): Promise<void> => {
    server = await listenForRelays({
      bind: '127.0.0.1',
      port: relayPort,
      clock: realTime,
      passesTo: () => null,
      readTicket: () => ({ holder: null }),
      eventsOf: () => ({
        onStream: (stream, body) => {
          const one = new Taken(stream, body);
          taken.push(one);
          take(one);
        },
      }),
    });
  };
  const stop = async (): Promise<void> => {
    await server?.close();
    server = null;
  };
  await start();
  afterThisTest(stop);
  const space = world({ clock });
  const link = new RelayLink({
    clock,
    watchHolder: () => {
      const holder = user();
      return () => user() === holder;
    },
    dial: async (onClosed) => {
      dials += 1;
      const refusal = refuse();
      if (refusal) throw refusal;
      await found;
      return dialRelay(`ws://127.0.0.1:${relayPort}${RELAY_PATH}`, 'ticket', realTime, onClosed);
    },
    onDefect: (error) => {
      throw error;
    },
  });
  afterThisTest(() => link.close());
  const tethers = await space.stand<TethersProtocol>('tethers');
  const peers = await openLoopbackPeers();
  afterThisTest(() => peers.close());
  const config = { rule: RULE, peers, networkClock: clock, held: heldConnections(), link };
  const ref = await space.start('tether:T1', tetherActor, config);
  const tether = {
    ...{ id: 'T1', clusterId: 'C1', workloadId: 'W1', containerPort: 5432, label: null, wake: false },
    ...{ localPort: null, active: false, pod: 'db-0' },
  };
  const { port } = await ref.ask('open', { tether, ports: [freePort()], numbers: UNUSED });
  const last = (): TetherStats | undefined => tethers.of('stats').at(-1)?.numbers;
  return { port, taken, start, stop, last, dials: () => dials };
}

/** Lets time pass until `isDone`. */
async function pass(clock: TestClock, isDone: () => boolean): Promise<void> {
  await eventually(async () => {
    await clock.advance(TETHER.tickIntervalMs);
    await settle();
    return isDone();
  });
}

describe('a remote tether', () => {
  it('requests its port, and forwards in both directions with half-closes', async () => {
    const here = await remote({
      take: (taken) => {
        taken.onEnd = () => {
          taken.stream.write(Buffer.from(`got ${taken.text}`));
          taken.stream.end();
        };
      },
    });
    const one = client(here.port, 'hello');
    one.socket.end();
    expect(await one.ended).toBe('end');
    expect(one.text()).toBe('got hello');
    expect(must(here.taken[0]).request).toEqual({
      ...{ workloadId: 'W1', containerPort: 5432, wake: false, pod: 'db-0', allowNotReady: false },
      halfClosedTimeoutMs: TETHER.halfClosedTimeoutMs,
    });
    const numbers = await eventually(() => here.last()?.connections === 0 && here.last());
    expect(numbers).toMatchObject({ bytesIn: 5, bytesOut: 9, lastError: null });
  });

  it('uses one connection for all clients, and a client that stops reading blocks no other', async () => {
    const here = await remote({
      take: (taken) => {
        taken.onText = (text) => {
          if (text === 'many') taken.stream.write(Buffer.alloc(8 * MIB));
          else taken.stream.write(Buffer.from(text));
          if (text !== 'many') taken.stream.end();
        };
      },
    });
    const stopped = client(here.port, 'many');
    stopped.socket.pause();
    for (let index = 0; index < 5; index += 1) expect(await answer(here.port, `${index}`)).toBe(`${index}`);
    stopped.socket.resume();
    await eventually(() => stopped.bytes() === 8 * MIB);
    expect(here.dials()).toBe(1);
  });

  it('delivers the data of a client that disconnected at once', async () => {
    const here = await remote();
    const one = client(here.port, 'put it there');
    await eventually(() => here.taken.length === 1);
    one.socket.destroy();
    await eventually(() => must(here.taken[0]).reset === 'closed');
    expect(must(here.taken[0]).text).toBe('put it there');
  });

  it('resets the client when the pod breaks the connection, and says why until it works again', async () => {
    let isBroken = true;
    const here = await remote({
      take: (taken) => {
        if (isBroken) taken.stream.reset('failed', 'the pod\u001b[31m\nsays \u202eno');
        else taken.stream.write(Buffer.from('yes'));
      },
    });
    const one = client(here.port, 'hello');
    expect(await one.ended).toBe('ECONNRESET');
    expect(await eventually(() => here.last()?.lastError)).toBe('the pod [31m says no');
    expect(here.taken.length).toBe(1);
    isBroken = false;
    await client(here.port, 'hello').until((text) => text === 'yes');
    await eventually(() => here.last()?.lastError === null);
  });

  it('retries a stream that no pod has seen, with everything that was sent', async () => {
    const here = await remote({
      take: (taken) => {
        const isFirst = here.taken.length === 1;
        taken.onText = (text) => {
          if (isFirst) taken.stream.reset('unseen', 'the relay ends');
          else if (text.length === 5) taken.stream.write(Buffer.from(`got ${text}`));
        };
      },
    });
    const one = client(here.port, 'hello');
    expect(await one.until((text) => text.length === 9)).toBe('got hello');
  });
});

describe('a remote tether after a login as another user', () => {
  it('opens no connection with the rights of the first, and ends those that are open', async () => {
    const clock = virtualClock();
    let user = 'anna';
    const take = ({ stream }: Taken): void => void stream.write(Buffer.from(`hello ${user}`));
    const here = await remote({ clock, take, user: () => user });
    const first = client(here.port, 'hi');
    await first.until((text) => text === 'hello anna');
    await client(here.port, 'hi').until((text) => text === 'hello anna');
    expect(here.dials()).toBe(1);
    user = 'bob';
    await client(here.port, 'hi').until((text) => text === 'hello bob');
    expect(here.dials()).toBe(2);
    await clock.advance(RELAY.reviewIntervalMs);
    expect(await first.ended).toBe('ECONNRESET');
    await client(here.port, 'hi').until((text) => text === 'hello bob');
    expect(here.dials()).toBe(2);
  });
});

describe('a remote tether whose relay ends', () => {
  it('resets clients that have sent something, and lets others wait for the next connection', async () => {
    const here = await remote({
      take: (taken) => {
        taken.onText = (text) => {
          if (text === 'again') taken.stream.write(Buffer.from('welcome'));
        };
      },
    });
    const silent = client(here.port);
    const asking = client(here.port, 'order 1 pizza');
    await eventually(
      () => here.taken.some(({ text }) => text === 'order 1 pizza') && here.taken.length === 2,
    );
    await here.stop();
    expect(await asking.ended).toBe('ECONNRESET');
    await here.start();
    silent.socket.write('again');
    expect(await silent.until((text) => text === 'welcome')).toBe('welcome');
    const next = client(here.port, 'again');
    await next.until((text) => text === 'welcome');
    expect(here.taken.filter(({ text }) => text.includes('pizza')).length).toBe(1);
  });

  it('lets clients wait for a while, and then resets them with the reason', async () => {
    const clock = virtualClock();
    const here = await remote({ clock });
    await here.stop();
    const one = client(here.port, 'hello');
    let how = '';
    void one.ended.then((ended) => {
      how = ended;
    });
    await pass(clock, () => how !== '');
    expect(how).toBe('ECONNRESET');
    await pass(clock, () => here.last()?.lastError != null);
    expect(here.last()?.lastError).toMatch(/^the relay at 127\.0\.0\.1:\d+ does not answer: .*ECONNREFUSED/);
    const dials = here.dials();
    for (let index = 0; index < 20; index += 1) await clock.advance(RELAY.retry.maxDelayMs);
    expect(here.dials(), 'nobody waits').toBeLessThanOrEqual(dials + 1);
  });

  it('lets clients wait no longer for a Berth that accepts connections and never answers', async () => {
    const clock = virtualClock();
    const here = await remote({ clock, found: new Promise(ignore) });
    const began = clock.monotonic();
    let how = '';
    void client(here.port, 'hello').ended.then((ended) => {
      how = ended;
    });
    await pass(clock, () => how !== '');
    expect(how).toBe('ECONNRESET');
    await pass(clock, () => here.last()?.lastError != null);
    expect(here.last()?.lastError).toBe('the other Berth does not answer');
    // Without an answer the connection would be held as long as for a pod.
    expect(clock.monotonic() - began).toBeLessThan(TETHER.podWaitTimeoutMs / 2);
    expect(here.dials()).toBe(1);
  });

  it('resets clients at once when the Berth refuses the token, and asks again for the next client', async () => {
    const clock = virtualClock();
    let isRefused = true;
    const here = await remote({
      clock,
      refuse: () => (isRefused ? fail('remote_denied', 'the other Berth refuses the token: 401') : null),
      take: ({ stream }) => void stream.write(Buffer.from('welcome')),
    });
    expect(await client(here.port, 'hello').ended).toBe('ECONNRESET');
    await pass(clock, () => here.last()?.lastError != null);
    expect(here.last()?.lastError).toBe('the other Berth refuses the token: 401');
    isRefused = false;
    const next = client(here.port, 'hello');
    let text = '';
    void next
      .until((got) => got === 'welcome')
      .then((got) => {
        text = got;
      });
    await pass(clock, () => text !== '');
  });
});
