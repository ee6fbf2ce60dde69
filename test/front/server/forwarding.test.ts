// Requests that another Berth answers: docs/reference.md "Shared database".
import http from 'node:http';
import net from 'node:net';
import { text as read } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { Forwarder, type ForwardTarget } from '../../../src/front/server/forwarding.ts';
import type { HttpExchange, ServerOptions } from '../../../src/front/server/http_server.ts';
import { afterThisTest } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import { send } from '../../kit/http_request.ts';
import { serve, text } from './raw_server.ts';

const here = (exchange: HttpExchange): void => text(exchange, 'here');

/** A server that passes /k8s on to the one that `handle` answers, as long as `isAway`. */
async function passing(handle: http.RequestListener, more: Partial<ServerOptions> = {}) {
  const other = http.createServer(handle);
  await new Promise<void>((resolve) => void other.listen(0, '127.0.0.1', resolve));
  afterThisTest(() => {
    other.closeAllConnections();
    other.close();
  });
  const { port: otherPort } = other.address() as net.AddressInfo;
  const state = { target: { host: '127.0.0.1', port: otherPort } as ForwardTarget | null };
  const forwarder = new Forwarder(() => state.target, {
    passes: (path) => path.startsWith('/k8s'),
    isPublic: (path) => path === '/k8s/login',
    addedHeaders: () => [],
    passedOn: (address) => `client ${address}`,
  });
  afterThisTest(() => forwarder.close());
  const served = await serve('node:http', here, { forwarder, ...more });
  return { ...served, other, state };
}

it('forwarded requests are unchanged, and so are their responses', async () => {
  const { port, state } = await passing((req, res) => {
    const parts: Buffer[] = [];
    req.on('data', (part) => parts.push(part));
    req.on('end', () => {
      res.writeHead(409, ['Link', '<a>', 'Link', '<b>', 'Content-Type', 'application/json']);
      const { method, url, headers } = req;
      res.end(JSON.stringify({ method, url, headers, body: Buffer.concat(parts).toString() }));
    });
  });
  const headers = { Host: 'berth.example.com', Authorization: 'Bearer t', 'Idempotency-Key': 'k' };
  const answer = await send(port, 'POST', '/k8s/x%2Fy?limit=1', { body: { a: 1 }, headers });
  expect([answer.status, answer.headers['link']]).toEqual([409, '<a>, <b>']);
  expect(answer.body).toMatchObject({
    method: 'POST',
    url: '/k8s/x%2Fy?limit=1',
    body: '{"a":1}',
    headers: {
      ...{ host: 'berth.example.com', authorization: 'Bearer t', 'idempotency-key': 'k' },
      'berth-passed-on': 'client 127.0.0.1',
    },
  });
  expect((await send(port, 'GET', '/livez')).text).toBe('here');
  state.target = null;
  expect((await send(port, 'GET', '/k8s/x')).text, 'the clusters are here now').toBe('here');
});

it('forwarded requests for a stream pass its events as they arrive, and its end on either side', async () => {
  const streams: http.ServerResponse[] = [];
  const { port } = await passing((_req, res) => {
    res.writeHead(200, { 'Content-Type': 'text/event-stream' });
    res.flushHeaders();
    streams.push(res);
  });
  const open = () =>
    new Promise<http.IncomingMessage>((resolve) =>
      http.get({ port, path: '/k8s/events', agent: false }, resolve),
    );
  const [one, two] = [await open(), await open()];
  let got = '';
  one.on('data', (part) => {
    got += part;
  });
  streams[0]?.write('data: 1\n\n');
  await eventually(() => got === 'data: 1\n\n');
  two.destroy();
  await eventually(() => streams[1]?.destroyed);
  const ended = new Promise((resolve) => one.on('close', resolve));
  one.on('error', () => undefined);
  streams[0]?.destroy();
  await ended;
});

it('forwarded requests fail with 503 if the other server is gone, before and during its response', async () => {
  const { port, other, state } = await passing((req) => req.socket.destroy());
  const cut = await send(port, 'GET', '/k8s/x');
  expect([cut.status, cut.body.code, cut.headers['retry-after']]).toEqual([503, 'daemon_busy', '1']);
  other.close();
  expect((await send(port, 'POST', '/k8s/x', { body: {} })).status).toBe(503);
  state.target = null;
  expect((await send(port, 'GET', '/k8s/x')).status).toBe(200);
});

it('forwarded requests without a body have none at the other server, whatever the method', async () => {
  const { port } = await passing((req, res) => {
    const { 'content-length': length, 'transfer-encoding': coding } = req.headers;
    res.end(JSON.stringify({ method: req.method, length, coding }));
  });
  // As curl sends them: Node would add a length itself.
  for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']) {
    const head = `${method} /k8s/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;
    const [, body = ''] = (await answersTo(port, head)).split('\r\n\r\n');
    expect(JSON.parse(body)).toEqual({ method, length: '0' });
  }
});

/** All bytes that come back. */
async function answersTo(port: number, request: string): Promise<string> {
  const socket = net.connect(port, '127.0.0.1');
  socket.write(request);
  return read(socket);
}

it('forwarded requests end their connection if the response arrives before the whole body', async () => {
  const { port } = await passing((_req, res) => res.writeHead(413).end('too large'));
  const answer = await answersTo(port, 'POST /k8s/x HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc');
  expect(answer).toMatch(/^HTTP\/1.1 413 /);
  expect(answer).toContain('\r\nConnection: close\r\n');
  expect(answer.split('HTTP/1.1'), 'one answer').toHaveLength(2);
});

it('forwarded requests count as unauthenticated until the other server has accepted a token', async () => {
  const answers: Record<string, number> = { '/k8s/refused': 401, '/k8s/broken': 400, '/k8s/starting': 503 };
  const { port } = await passing((req, res) => res.writeHead(answers[req.url ?? ''] ?? 200).end(), {
    maxStrangers: 1,
  });
  const connect = async (method: string, path: string) => {
    const socket = net.connect(port, '127.0.0.1');
    afterThisTest(() => void socket.destroy());
    const state = { isOpen: true };
    socket.on('close', () => {
      state.isOpen = false;
    });
    socket.write(`${method} ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
    await new Promise((resolve) => socket.once('data', resolve));
    return state;
  };
  const known = await connect('GET', '/k8s/x');
  const strangers = [
    await connect('GET', '/k8s/refused'),
    await connect('GET', '/k8s/broken'),
    await connect('GET', '/k8s/starting'),
    await connect('GET', '/k8s/login'),
    await connect('OPTIONS', '/k8s/x'),
  ];
  const last = await connect('GET', '/k8s/refused');
  await eventually(() => strangers.every(({ isOpen }) => !isOpen));
  expect([known.isOpen, last.isOpen]).toEqual([true, true]);
});
