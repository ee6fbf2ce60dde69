// Clients that send thousands of requests or messages at once to uWebSockets.js, which handles all that it
// has read in one turn of the event loop. node:http takes them one by one.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { afterThisTest } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import { send } from '../../kit/http_request.ts';
import { SERVERS } from '../kit.ts';
import { get, post, serve, text } from './raw_server.ts';

/** Keeps the event loop busy. */
function work(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

/** A connection that never reads until it is told to. */
function silentClient(port: number) {
  const socket = net.connect(port, '127.0.0.1');
  afterThisTest(() => void socket.destroy());
  const client = { socket, isCut: false };
  socket.on('error', () => undefined);
  socket.on('close', () => {
    client.isCut = true;
  });
  return client;
}

/** Node cannot make the receive buffer of a socket small, which fills the connection within a few answers. */
const UNREAD_ANSWERS = `
import socket, sys, time
batch = b'GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n' * 9
for connection in range(4):
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    client.connect(('127.0.0.1', int(sys.argv[1])))
    client.setblocking(False)
    try:
        for request in range(400):
            client.send(batch)
            time.sleep(0.0015)
    except OSError:
        pass
    client.close()
`;

describe.each(SERVERS)('%s: a flood', (kind) => {
  it('of requests whose responses are not read ends only its own connection', async () => {
    // Nine answers are a little more than uWebSockets.js collects before it writes.
    const answer = 'x'.repeat(1_700);
    const { port } = await serve(kind, (x) => text(x, answer));
    const flood = spawn('python3', ['-c', UNREAD_ANSWERS, String(port)], { stdio: 'inherit' });
    afterThisTest(() => void flood.kill('SIGKILL'));
    expect(await once(flood, 'exit')).toEqual([0, null]);
    expect((await send(port, 'GET', '/')).status).toBe(200);
  });
});

/** node:http takes requests and messages one by one. */
const TAKES_MANY_IN_A_TURN = SERVERS.filter((kind) => kind === 'uWebSockets.js');

describe.each(TAKES_MANY_IN_A_TURN)('%s: a flood', (kind) => {
  it('of requests that takes too long is ended, and a single request is answered', async () => {
    let handled = 0;
    const { port } = await serve(kind, (x) => {
      handled += 1;
      work(1);
      text(x, 'done');
    });
    const client = silentClient(port);
    client.socket.resume();
    client.socket.write(get('/').repeat(2_000));
    await eventually(() => client.isCut);
    expect(handled).toBeLessThan(1_000);
    expect((await send(port, 'GET', '/')).text).toBe('done');
  });

  it('of chunks is ended', async () => {
    let failure: unknown;
    const { port } = await serve(kind, (x) => {
      work(30);
      void x.readBody({ bytes: 1e6, ms: 60_000 }).catch((error: unknown) => {
        failure = error;
      });
    });
    const client = silentClient(port);
    client.socket.write(post('/', 'Transfer-Encoding: chunked\r\n', '1\r\nx\r\n'.repeat(150_000)));
    await eventually(() => client.isCut && failure !== undefined);
    expect(failure).toMatchObject({ code: 'request_timeout' });
  });

  it.each([
    ['messages', (client: WebSocket) => client.send('x')],
    ['pings', (client: WebSocket) => client.ping()],
  ])('of %s closes its WebSocket', async (_what, flood) => {
    const { port } = await serve(kind, (x) =>
      x.acceptWebSocket('berth.v1', () => ({
        message: () => work(1),
        drain: () => undefined,
        close: () => undefined,
      })),
    );
    const client = new WebSocket(`ws://127.0.0.1:${port}/ws/a/attach`, ['berth.v1']);
    afterThisTest(() => client.terminate());
    await new Promise((resolve) => client.on('open', resolve));
    const closed = new Promise((resolve) => client.on('close', resolve));
    client.on('error', () => undefined);
    // Pings cost nothing by themselves. However they are spread over turns, many come in one that takes long.
    for (let count = 0; count < 3_000; count += 1) {
      flood(client);
      if (count % 10 === 0) client.send('x');
    }
    expect(await closed).toBe(1006);
  });
});
