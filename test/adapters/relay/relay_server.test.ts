// The listener of a relay and its clients, over real sockets: docs/reference.md "Relay".
import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { dialRelay, openRelay } from '../../../src/adapters/relay/dial_relay.ts';
import { RELAY_PROTOCOL } from '../../../src/adapters/relay/frames.ts';
import type { MuxStream } from '../../../src/adapters/relay/mux_stream.ts';
import { RELAY_PATH } from '../../../src/adapters/relay/relay_path.ts';
import { listenForRelays } from '../../../src/adapters/relay/relay_server.ts';
import { newTicket, readTicket } from '../../../src/adapters/relay/ticket.ts';
import { WebSocketServer } from '../../../src/adapters/websocket.ts';
import type { Clock } from '../../../src/runtime/actor.ts';
import { PRINCIPALS, RELAY } from '../../../src/settings/cloud_limits.ts';
import { HTTP, MIB } from '../../../src/settings/limits.ts';
import { afterThisTest, realTime, settle, virtualClock } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';

const TOKEN = 'the-token';
const ticketOf = (token: string, now: number): string => newTicket(token, now, null).ticket;
const ignore = (): void => undefined;

/** A relay whose streams get back what they send, as fast as they take it. */
async function echoing(other: { host: string; port: number } | null = null, clock: Clock = realTime) {
  const server = await listenForRelays({
    bind: '127.0.0.1',
    port: 0,
    clock,
    passesTo: () => other,
    readTicket: (ticket) => readTicket(TOKEN, ticket, Date.now()),
    eventsOf: () => ({
      onStream: (stream) =>
        stream.listen({
          onData: (bytes) => {
            if (!stream.write(bytes)) stream.pause();
          },
          onDrained: () => stream.resume(),
          onEnd: () => stream.end(),
          onClosed: ignore,
          onReset: ignore,
        }),
    }),
  });
  afterThisTest(() => server.close());
  return { server, url: `ws://127.0.0.1:${server.port}${RELAY_PATH}` };
}

async function dialled(url: string, onClosed = ignore) {
  const connection = await dialRelay(url, ticketOf(TOKEN, Date.now()), realTime, onClosed);
  afterThisTest(() => connection.close('the test ends'));
  return connection;
}

/** What a stream gets, and how it ends. */
function heard(stream: MuxStream) {
  const found = { bytes: 0, end: '' };
  stream.listen({
    onData: (bytes) => {
      found.bytes += bytes.length;
    },
    onDrained: ignore,
    onEnd: ignore,
    onClosed: () => {
      found.end = 'closed';
    },
    onReset: (code, text) => {
      found.end = `${code}: ${text}`;
    },
  });
  return found;
}

/** The status line of the answer to a request as it is. */
function answerTo(port: number, request: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(request));
    socket.on('data', (bytes) => {
      text += bytes;
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(text.split('\r\n')[0] ?? ''));
  });
}

it('a standby relay forwards no client to a relay that would forward it back', async () => {
  const targets: { host: string; port: number }[] = [];
  const relay = (at: number) =>
    listenForRelays({
      ...{ bind: '127.0.0.1', port: 0, clock: realTime },
      passesTo: () => targets[at] ?? null,
      readTicket: (ticket) => readTicket(TOKEN, ticket, Date.now()),
      eventsOf: () => ({ onStream: ignore }),
    });
  const relays = [await relay(0), await relay(1)];
  for (const one of relays) afterThisTest(() => one.close());
  for (const { port } of relays) targets.unshift({ host: '127.0.0.1', port });
  const url = `ws://127.0.0.1:${relays[0]?.port}${RELAY_PATH}`;
  const dialling = dialRelay(url, ticketOf(TOKEN, Date.now()), realTime, ignore);
  await expect(dialling).rejects.toMatchObject({
    code: 'remote_unreachable',
    message: expect.stringContaining('503'),
  });
});

it('a standby relay forwards clients to the relay that has the workloads, with every byte', async () => {
  const there = await echoing();
  const target = { host: '127.0.0.1', port: there.server.port };
  const here = await echoing(target);
  const closed: string[] = [];
  const { mux } = await dialled(here.url, () => closed.push('closed'));
  const stream = mux.open(Buffer.from('{}'));
  const found = heard(stream);
  const bytes = 3 * MIB;
  stream.write(Buffer.alloc(bytes, 'x'));
  await eventually(() => found.bytes === bytes);
  await expect(dialRelay(here.url, ticketOf('another', Date.now()), realTime, ignore)).rejects.toThrow(/401/);
  await there.server.close();
  await eventually(() => closed.length === 1);
  await expect(dialRelay(here.url, ticketOf(TOKEN, Date.now()), realTime, ignore)).rejects.toThrow();
});

it('a relay ends what it passes on to another relay than the one that has the workloads now', async () => {
  const there = await echoing();
  const target = { host: '127.0.0.1', port: there.server.port };
  const { server, url } = await echoing(target);
  let isClosed = false;
  const { mux } = await dialled(url, () => {
    isClosed = true;
  });
  const stream = mux.open(Buffer.from('{}'));
  const found = heard(stream);
  stream.write(Buffer.from('a'));
  server.endPassed({ ...target });
  await eventually(() => found.bytes === 1);
  stream.write(Buffer.from('b'));
  await eventually(() => found.bytes === 2);
  expect(isClosed).toBe(false);
  server.endPassed({ ...target, port: target.port + 1 });
  await eventually(() => isClosed);
  expect(found.end).toMatch(/^lost/);
});

it('a relay that says nothing after a stream was opened is given up soon, but not because this process stood still', async () => {
  // Accepts the handshake, then is silent, as a machine that has vanished.
  const sockets = new WebSocketServer({ host: '127.0.0.1', port: 0, handleProtocols: () => RELAY_PROTOCOL });
  afterThisTest(() => {
    for (const client of sockets.clients) client.terminate();
    sockets.close();
  });
  await once(sockets, 'listening');
  const { port } = sockets.address() as AddressInfo;
  const clock = virtualClock();
  let isClosed = false;
  const connection = await dialRelay(`ws://127.0.0.1:${port}`, 'a ticket', clock, () => {
    isClosed = true;
  });
  afterThisTest(() => connection.close('the test ends'));
  await clock.advance(RELAY.probeMs);
  const found = heard(connection.mux.open(Buffer.from('{}')));
  heard(connection.mux.open(Buffer.from('{}')));
  clock.standStill(RELAY.deadPeerMs);
  await clock.advance(RELAY.probeMs - 1);
  for (let turn = 0; turn < 30; turn += 1) await settle();
  expect(isClosed).toBe(false);
  await clock.advance(1);
  await eventually(() => isClosed);
  expect(found.end).toMatch(/^lost/);
});

describe('a relay', () => {
  it('forwards megabytes in both directions, next to a reader that has stopped', async () => {
    const { url } = await echoing();
    const { mux } = await dialled(url);
    const stopped = mux.open(Buffer.from('{}'));
    heard(stopped);
    stopped.pause();
    stopped.write(Buffer.alloc(4 * MIB));
    const stream = mux.open(Buffer.from('{}'));
    const got = heard(stream);
    stream.write(Buffer.alloc(8 * MIB));
    stream.end();
    await eventually(() => got.end !== '');
    expect(got).toEqual({ bytes: 8 * MIB, end: 'closed' });
    expect(stopped.bufferedBytes).toBeGreaterThan(0);
  });

  it('tells its streams when it ends', async () => {
    const { url, server } = await echoing();
    let isClosed = false;
    const { mux } = await dialled(url, () => {
      isClosed = true;
    });
    const got = heard(mux.open(Buffer.from('{}')));
    await server.close();
    await eventually(() => isClosed);
    expect(got.end).toMatch(/^lost: /);
    expect(mux.isFree).toBe(false);
    await expect(dialled(url)).rejects.toThrow(/ECONNREFUSED/);
  });

  it.each([
    ['no ticket', {}, 401],
    ['a wrong ticket', { authorization: `Bearer ${ticketOf('another', Date.now())}` }, 401],
    ['an old ticket', { authorization: `Bearer ${ticketOf(TOKEN, Date.now() - 2 * RELAY.ticketMs)}` }, 401],
    ['a ticket of the future', { authorization: `Bearer ${ticketOf(TOKEN, Date.now() + 1e10)}` }, 401],
    ['the token itself', { authorization: `Bearer ${TOKEN}` }, 401],
    [
      'an origin',
      { authorization: `Bearer ${ticketOf(TOKEN, Date.now())}`, origin: 'http://localhost' },
      403,
    ],
    [
      'another protocol',
      { authorization: `Bearer ${ticketOf(TOKEN, Date.now())}`, 'sec-websocket-protocol': 'x' },
      400,
    ],
  ])('refuses a client with %s', async (_, headers, status) => {
    const { server } = await echoing();
    const all = {
      host: 'localhost',
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
      'sec-websocket-protocol': 'berth.relay.v1',
      ...headers,
    };
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
    const request = `GET ${RELAY_PATH} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`;
    expect(await answerTo(server.port, request)).toContain(` ${status} `);
  });

  it('accepts clients with a ticket despite many idle connections without one', async () => {
    const { server, url } = await echoing();
    const known = await dialled(url);
    const open = new Set<Socket>();
    for (let count = 0; count < HTTP.maxStrangers + 3; count += 1) {
      const stranger = connect(server.port, '127.0.0.1');
      afterThisTest(() => void stranger.destroy());
      stranger.on('error', ignore);
      stranger.on('close', () => open.delete(stranger));
      await new Promise((resolve) => stranger.on('connect', resolve));
      open.add(stranger);
    }
    await eventually(() => open.size === HTTP.maxStrangers);
    for (const { mux } of [known, await dialled(url)]) {
      const stream = mux.open(Buffer.from('{}'));
      const got = heard(stream);
      stream.write(Buffer.from('hello'));
      stream.end();
      await eventually(() => got.end !== '');
      expect(got).toEqual({ bytes: 5, end: 'closed' });
    }
  });

  it('accepts WebSockets only', async () => {
    const { server } = await echoing();
    expect(await answerTo(server.port, `GET ${RELAY_PATH} HTTP/1.1\r\nhost: localhost\r\n\r\n`)).toContain(
      ' 426 ',
    );
  });
});

/** A clock that jumps, and whose timers go off, when the test says. */
function heldClock() {
  let ahead = 0;
  const timers = new Set<{ ms: number; run: () => void }>();
  const clock: Clock = {
    ...realTime,
    now: () => realTime.now() + ahead,
    after: (ms, run) => {
      const timer = { ms, run };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
  };
  /** Has the only one go off. */
  const pass = (): void => {
    const [timer] = timers;
    expect(timers.size).toBe(1);
    timers.clear();
    timer?.run();
  };
  const jump = (ms: number): void => {
    ahead += ms;
  };
  return { clock, timers, pass, jump, spans: () => [...timers].map(({ ms }) => ms) };
}

const MINUTE = 60_000;

describe('a relay connection of a user', () => {
  const until = (ms: number, subjects = ['user:anna', 'group:dev']) => ({
    subjects,
    expiresAt: Date.now() + ms,
  });
  const ticketFor = (holder: ReturnType<typeof until>): string => newTicket(TOKEN, Date.now(), holder).ticket;

  /** A connection of somebody whose tokens last so long, one after the other; then there are no more. */
  async function admitted(lifetimes: number[]) {
    const [server, client] = [heldClock(), heldClock()];
    const { url } = await echoing(null, server.clock);
    const admit = async () => {
      const endsInMs = lifetimes.shift();
      if (endsInMs === undefined) throw new Error('the login has ended');
      return { url, ticket: ticketFor(until(endsInMs)), endsInMs };
    };
    const seen = { isClosed: false };
    const connection = await openRelay(admit, client.clock, () => {
      seen.isClosed = true;
    });
    afterThisTest(() => connection.close('the test ends'));
    const stream = connection.mux.open(Buffer.from('{}'));
    const found = heard(stream);
    const isCarried = async (): Promise<void> => {
      const before = found.bytes;
      stream.write(Buffer.from('hello'));
      await eventually(() => found.bytes === before + 5);
    };
    await isCarried();
    return { server, client, seen, found, isCarried };
  }

  it('ends with the token, and its streams with it', async () => {
    const { server, client, seen, found, isCarried } = await admitted([10 * MINUTE]);
    expect(client.spans(), 'half a minute before').toEqual([9.5 * MINUTE]);
    server.jump(9 * MINUTE);
    server.pass();
    await isCarried();
    // As if the machine had been suspended: no timer has noticed.
    server.jump(MINUTE);
    expect(server.spans()).toEqual([PRINCIPALS.lookMs]);
    server.pass();
    await eventually(() => seen.isClosed);
    expect(found.end).toBe('lost: the token of this connection has expired');
    expect(client.spans()).toEqual([]);
  });

  it('continues with another ticket, which is requested before', async () => {
    const { server, client, seen, isCarried } = await admitted([MINUTE, 10 * MINUTE]);
    client.pass();
    await eventually(() => client.spans()[0] === 9.5 * MINUTE);
    // What is carried now comes after the ticket.
    await isCarried();
    server.jump(9 * MINUTE);
    server.pass();
    await isCarried();
    expect([server.timers.size, seen.isClosed]).toEqual([1, false]);
  });

  it('requests another ticket again until the end', async () => {
    const { server, client, seen, isCarried } = await admitted([MINUTE]);
    for (let attempt = 0; attempt < 2; attempt += 1) {
      client.pass();
      await eventually(() => client.timers.size === 1);
      await isCarried();
    }
    server.jump(MINUTE);
    server.pass();
    await eventually(() => seen.isClosed);
    expect(client.spans()).toEqual([]);
  });

  it('counts towards the limit of its user, and not of other users', async () => {
    const { url } = await echoing();
    const anna = ticketFor(until(MINUTE));
    const dial = async (ticket: string): Promise<void> => {
      const connection = await dialRelay(url, ticket, realTime, ignore);
      afterThisTest(() => connection.close('the test ends'));
    };
    for (let count = 0; count < RELAY.maxOfOne; count += 1) await dial(anna);
    await expect(dial(anna)).rejects.toMatchObject({ message: expect.stringContaining('429') });
    await dial(ticketFor(until(MINUTE, ['user:bob'])));
    await dial(ticketOf(TOKEN, Date.now()));
  });

  it('cannot be continued with the ticket of another user', async () => {
    const { url } = await echoing();
    const wrong = [
      ticketFor(until(MINUTE, ['user:mallory', 'group:dev'])),
      ticketFor(until(MINUTE, ['user:anna'])),
      newTicket('another', Date.now(), until(MINUTE)).ticket,
      ticketOf(TOKEN, Date.now()),
      '',
    ];
    for (const ticket of wrong)
      await new Promise<void>((resolve, reject) => {
        const dialling = dialRelay(url, ticketFor(until(MINUTE)), realTime, resolve);
        dialling.then(({ mux }) => mux.showTicket(ticket), reject);
      });
  });
});
