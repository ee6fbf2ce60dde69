// Services that answer a request by its head, and close the connection while its body is still sent: the
// answer reaches the client, whatever the gateway notices first.
import { once } from 'node:events';
import http from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { Gateway } from '../../../src/actors/gateway/gateway_server.ts';
import { MIB } from '../../../src/settings/limits.ts';
import { afterThisTest } from '../../kit/actors.ts';
import { listenAnywhere, quietDaemon, routeTo } from './gateway_kit.ts';

/** The larger one never fits into the buffers between the client and the service. */
const BODIES = [100, 16 * MIB].map((size) => Buffer.alloc(size, 'a'));
const ROUNDS = 20;

/** A gateway in front of `server`. Resolves with its port. */
async function gatewayTo(server: net.Server): Promise<number> {
  const open: net.Socket[] = [];
  server.on('connection', (socket) => open.push(socket)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  afterThisTest(() => {
    server.close();
    for (const socket of open) socket.destroy();
  });
  const gateway = new Gateway({ agentDomain: '', allowedExtensions: [], tokens: [] }, quietDaemon);
  afterThisTest(() => gateway.close());
  const port = await listenAnywhere(gateway);
  gateway.setRoutes([routeTo((server.address() as AddressInfo).port)]);
  return port;
}

/** A service in raw bytes, which does `atOnce` for the first bytes of each connection and reads no more. */
const bytesServer = (atOnce: (socket: net.Socket) => unknown): net.Server =>
  net.createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => {
      socket.pause();
      atOnce(socket);
    });
  });

type Answer = [status: number, body: string];

/** The answer to an upload of `sent`, which goes on while the answer is read. */
function upload(port: number, agent: http.Agent, sent: Buffer, framing: object): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = { Host: `bot.agents.localhost:${port}`, ...framing };
    const options = { agent, port, host: '127.0.0.1', method: 'POST', headers };
    const request = http.request(options, (response) => {
      text(response).then((body) => resolve([response.statusCode ?? 0, body]), reject);
    });
    request.on('error', reject);
    request.end(sent);
  });
}

const keepAlive = (): http.Agent => {
  const agent = new http.Agent({ keepAlive: true });
  afterThisTest(() => agent.destroy());
  return agent;
};

/** The answers to many uploads, one after another, with a length and in chunks. */
async function uploads(port: number): Promise<Answer[]> {
  const agent = keepAlive();
  const answers: Answer[] = [];
  for (const body of BODIES)
    for (const framing of [{ 'Content-Length': body.length }, { 'Transfer-Encoding': 'chunked' }])
      for (let round = 0; round < ROUNDS; round += 1) answers.push(await upload(port, agent, body, framing));
  return answers;
}

const answer = (framing: string): string => `HTTP/1.1 413 Too Large\r\n${framing}\r\n\r\ntoo large`;
const CLOSE = 'Connection: close';
const LENGTH = `Content-Length: 9\r\n${CLOSE}`;

it.each<[string, net.Server]>([
  [
    'a Node server that closes',
    http.createServer((_request, response) =>
      response.writeHead(413, { Connection: 'close' }).end('too large'),
    ),
  ],
  ['a close', bytesServer((socket) => socket.write(answer(LENGTH), () => socket.destroy()))],
  ['a close in the same moment', bytesServer((socket) => socket.end(answer(LENGTH)).destroySoon())],
  ['a reset', bytesServer((socket) => socket.write(answer(LENGTH), () => socket.resetAndDestroy()))],
  ['its end, and a close', bytesServer((socket) => socket.write(answer(CLOSE), () => socket.destroy()))],
  [
    'its end, and a reset',
    bytesServer((socket) => socket.write(answer(CLOSE), () => socket.resetAndDestroy())),
  ],
  ['a half-close', bytesServer((socket) => socket.end(answer(CLOSE)))],
])('an answer before the upload, with %s, reaches the client', async (_what, server) => {
  for (const got of await uploads(await gatewayTo(server))) expect(got).toEqual([413, 'too large']);
});

it('an answer without a length is complete when a reset follows, as of a close with an unread body', async () => {
  let reset: () => void = () => undefined;
  const server = bytesServer((socket) => {
    reset = () => socket.resetAndDestroy();
    socket.write(answer(CLOSE));
  });
  const port = await gatewayTo(server);
  const headers = { Host: `bot.agents.localhost:${port}`, 'Content-Length': 4 };
  const request = http.request({ agent: keepAlive(), port, host: '127.0.0.1', method: 'POST', headers });
  request.flushHeaders();
  const [response] = await once(request, 'response');
  // The gateway has read the answer and has nothing to write, so it learns of the reset while it reads.
  reset();
  expect(await text(response)).toBe('too large');
});

it.each<[string, (socket: net.Socket) => unknown]>([
  ['closes', (socket) => socket.destroy()],
  ['resets the connection', (socket) => socket.resetAndDestroy()],
  ['closes within its head', (socket) => socket.write('HTTP/1.1 413', () => socket.destroy())],
])('an upload to a service that %s without an answer is 502', async (_what, atOnce) => {
  for (const [status, body] of await uploads(await gatewayTo(bytesServer(atOnce))))
    expect([status, JSON.parse(body).code]).toEqual([502, 'bad_gateway']);
});
