// The listener of a relay and its clients, over real sockets: docs/reference.md "Relay".
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { dialRelay } from '../../../src/adapters/relay/dial_relay.ts';
import type { MuxStream } from '../../../src/adapters/relay/mux_stream.ts';
import { RELAY_PATH } from '../../../src/adapters/relay/relay_path.ts';
import { listenForRelays } from '../../../src/adapters/relay/relay_server.ts';
import { isTicketValid, newTicket } from '../../../src/adapters/relay/ticket.ts';
import { RELAY } from '../../../src/settings/cloud_limits.ts';
import { MIB } from '../../../src/settings/limits.ts';
import { afterThisTest, realTime } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';

const TOKEN = 'the-token';
const ticketOf = (token: string, now: number): string => newTicket(token, now).ticket;
const ignore = (): void => undefined;

/** A relay whose streams get back what they send, as fast as they take it. */
async function echoing() {
  const server = await listenForRelays({
    bind: '127.0.0.1',
    port: 0,
    clock: realTime,
    acceptsTicket: (ticket) => isTicketValid(TOKEN, ticket, Date.now()),
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

describe('a relay', () => {
  it('carries megabytes both ways, beside a reader that has stopped', async () => {
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

  it('answers nothing but WebSockets', async () => {
    const { server } = await echoing();
    expect(await answerTo(server.port, `GET ${RELAY_PATH} HTTP/1.1\r\nhost: localhost\r\n\r\n`)).toContain(
      ' 426 ',
    );
  });
});
