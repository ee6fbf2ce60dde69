// The gateway holds nothing open for clients that have left. The agents here are plain sockets that count.
import diagnostics from 'node:diagnostics_channel';
import { once } from 'node:events';
import net from 'node:net';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Gateway } from '../../../src/actors/gateway/gateway_server.ts';
import { listenAnywhere, quietDaemon, routeTo } from './gateway_kit.ts';

let gateway: Gateway;
let port: number;
const closers: (() => unknown)[] = [];
/** The gateway's ends of its client connections, in order. */
let ends: net.Socket[];

const noteEnd = (message: unknown): void => {
  const { socket } = message as { socket: net.Socket };
  if (socket.localPort === port) ends.push(socket);
};

beforeEach(async () => {
  gateway = new Gateway({ agentDomain: 'agents.localhost', allowedExtensions: [], tokens: [] }, quietDaemon);
  port = await listenAnywhere(gateway);
  ends = [];
  diagnostics.subscribe('net.server.socket', noteEnd);
});
afterEach(async () => {
  diagnostics.unsubscribe('net.server.socket', noteEnd);
  await gateway.close();
  for (const close of closers.splice(0).reverse()) await close();
});

interface Agent {
  server: net.Server;
  port: number;
  /** Its connections, ended ones included. */
  sockets: net.Socket[];
  /** Everything received on each. */
  heard: string[];
  open(): number;
}

/**
 * An agent in raw bytes: `onData` gets a connection and everything received on it; without `onData` the agent
 * never answers.
 */
async function agent(onData?: (socket: net.Socket, all: string) => void): Promise<Agent> {
  const sockets: net.Socket[] = [];
  const heard: string[] = [];
  const server = net.createServer((socket) => {
    const index = sockets.push(socket) - 1;
    heard.push('');
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => {
      heard[index] += bytes.toString('latin1');
      onData?.(socket, heard[index] ?? '');
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closers.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port: agentPort } = server.address() as net.AddressInfo;
  gateway.setRoutes([routeTo(agentPort)]);
  return {
    server,
    port: agentPort,
    sockets,
    heard,
    open: () => sockets.filter((socket) => !socket.closed).length,
  };
}

interface Client {
  /** Ends its side only when the test asks. */
  socket: net.Socket;
  /** Everything received so far. */
  got(): string;
}

async function connect(text: string): Promise<Client> {
  const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  await once(socket, 'connect');
  closers.push(() => socket.destroy());
  let all = '';
  socket.on('error', () => undefined);
  socket.on('data', (bytes) => {
    all += bytes.toString('latin1');
  });
  socket.write(text, 'latin1');
  return { socket, got: () => all };
}

const HOST = (name = 'bot'): string => `Host: ${name}.agents.localhost:${port}\r\n`;
const upgrade = (name = 'bot'): string =>
  `GET /ws HTTP/1.1\r\n${HOST(name)}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;
const get = (path: string, name = 'bot'): string => `GET ${path} HTTP/1.1\r\n${HOST(name)}\r\n`;
const saying = (text: string): string => `HTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\n\r\n${text}`;
const SWITCHING = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';

const until = (check: () => void) => vi.waitFor(check, { timeout: 10_000 });
const allEnded = () => until(() => expect(ends.every((end) => end.closed)).toBe(true));

describe('a WebSocket that the agent has not answered yet', () => {
  it.each<[string, (socket: net.Socket) => unknown]>([
    ['hangs up', (socket) => socket.destroy()],
    ['resets', (socket) => socket.resetAndDestroy()],
    ['ends its side', (socket) => socket.end()],
    ['sends a little and hangs up', (socket) => socket.end('early')],
    ['sends without end', (socket) => socket.write('x'.repeat(256 * 1024))],
  ])('holds nothing at the agent once its client %s', async (_what, leave) => {
    const mute = await agent();
    const clients = await Promise.all(Array.from({ length: 5 }, () => connect(upgrade())));
    await until(() => expect(mute.heard.filter((all) => all.endsWith('\r\n\r\n'))).toHaveLength(5));
    expect(mute.open()).toBe(5);
    for (const { socket } of clients) leave(socket);
    await until(() => expect(mute.open()).toBe(0));
    await allEnded();
  });

  it('delivers what its client sent meanwhile, in order and before later data', async () => {
    const slow = await agent();
    const client = await connect(`${upgrade()}one `);
    await until(() => expect(slow.heard[0]).toMatch(/\r\n\r\n$/));
    client.socket.write('two ');
    await until(() => expect(ends[0]?.bytesRead).toBe(upgrade().length + 'one two '.length));
    slow.sockets[0]?.write(SWITCHING);
    client.socket.write('three');
    await until(() => expect(slow.heard[0]).toMatch(/\r\n\r\none two three$/));
    slow.sockets[0]?.end('back');
    await once(client.socket, 'end');
    expect(client.got()).toBe(`${SWITCHING}back`);
  });

  it('that the agent refuses leaves nothing open once its client has sent more and disconnected', async () => {
    const refusing = await agent((socket, all) => {
      if (all.endsWith('\r\n\r\n')) socket.write('HTTP/1.1 403 Forbidden\r\nContent-Length: 100\r\n\r\nno');
    });
    const client = await connect(upgrade());
    await until(() => expect(client.got()).toMatch(/no$/));
    client.socket.end('more');
    await until(() => expect(refusing.open()).toBe(0));
    await allEnded();
  });

  it('that the agent answers with an endless head fails with the reason', async () => {
    const endless = await agent((socket) =>
      socket.write(`HTTP/1.1 200 OK\r\nX-A: ${'x'.repeat(128 * 1024)}`),
    );
    const client = await connect(upgrade());
    await once(client.socket, 'end');
    expect(client.got()).toMatch(/^HTTP\/1\.1 502 [\s\S]*too long/);
    client.socket.end();
    await until(() => expect(endless.open()).toBe(0));
    await allEnded();
  });
});

describe('a WebSocket that the gateway refuses', () => {
  it.each<[string, (socket: net.Socket) => unknown]>([
    ['sends more and hangs up', (socket) => socket.end('more')],
    ['resets', (socket) => socket.resetAndDestroy()],
  ])('is released when its client %s', async (_what, leave) => {
    await agent();
    const client = await connect(upgrade('other'));
    await until(() => expect(client.got()).toMatch(/^HTTP\/1\.1 404 /));
    leave(client.socket);
    await allEnded();
  });
});

describe('pipelined requests', () => {
  /** Resolves when the gateway has read `bytes` of its first client, and so has begun all it will. */
  const read = (bytes: number) => until(() => expect(ends[0]?.bytesRead).toBe(bytes));

  it('use one connection to the agent, and none after the client has disconnected', async () => {
    const mute = await agent();
    const text = get('/first') + get('/then').repeat(300);
    const { socket } = await connect(text);
    await read(text.length);
    // Its own connections are dialled after all that the first client could have had dialled.
    const probe = await connect(get('/probe'));
    await until(() => expect(mute.heard.join('')).toContain('GET /probe '));
    expect(mute.open()).toBe(2);
    socket.destroy();
    probe.socket.destroy();
    await until(() => expect(mute.open()).toBe(0));
    await allEnded();
    expect(mute.heard.join('')).not.toContain('GET /then ');
  });

  it('are not forwarded for a client that disconnected without reading the previous response', async () => {
    const large = await agent((socket, all) => {
      if (all.includes('GET /large ')) socket.write(saying('x'.repeat(32 * 1024 * 1024)));
    });
    const { socket } = await connect(get('/large') + get('/then'));
    socket.pause();
    await until(() => expect(ends[0]?.writableNeedDrain).toBe(true));
    socket.resetAndDestroy();
    await allEnded();
    await until(() => expect(large.open()).toBe(0));
    expect(large.heard.join('')).not.toContain('GET /then ');
  });

  it('arrive complete with their bodies, and their responses, refusals included, arrive in order', async () => {
    const bodies: number[] = [];
    await agent((socket, all) => {
      const head = all.lastIndexOf(' HTTP/1.1\r\n');
      const path = all.slice(all.lastIndexOf(' /', head) + 1, head);
      const bytes = all.length - all.indexOf('\r\n\r\n', head) - 4;
      if (!path.startsWith('/post')) {
        if (all.endsWith('\r\n\r\n')) socket.write(saying(path));
      } else if (path === '/post/chunks' ? all.endsWith('\r\n0\r\n\r\n') : bytes === size) {
        bodies.push(all.split('*').length - 1);
        socket.write(saying(path));
      }
    });
    const size = 300 * 1024;
    const post = (path: string, more: string, body: string): string =>
      `POST ${path} HTTP/1.1\r\n${HOST()}${more}\r\n\r\n${body}`;
    const chunk = `${size.toString(16)}\r\n${'*'.repeat(size)}\r\n`;
    const client = await connect(
      [
        get('/1'),
        post('/post/length', `Content-Length: ${size}`, '*'.repeat(size)),
        get('/2', 'unknown'),
        get('/3'),
        post('/post/chunks', 'Transfer-Encoding: chunked', `${chunk}${chunk}0\r\n\r\n`),
        `GET /4 HTTP/1.1\r\n${HOST()}Origin: https://evil.example\r\n\r\n`,
        get('/5'),
      ].join(''),
    );
    await until(() => expect(client.got()).toMatch(/\/5$/));
    expect(
      client
        .got()
        .match(/HTTP\/1\.1 \d+|\/(?:\d|post\/\w+)(?=HTTP|$)/g)
        ?.join(' '),
    ).toBe(
      [
        ['HTTP/1.1 200', '/1', 'HTTP/1.1 200', '/post/length', 'HTTP/1.1 404', 'HTTP/1.1 200', '/3'],
        ['HTTP/1.1 200', '/post/chunks', 'HTTP/1.1 403', 'HTTP/1.1 200', '/5'],
      ]
        .flat()
        .join(' '),
    );
    expect(bodies).toEqual([size, 2 * size]);
  });

  it('are checked when their turn comes', async () => {
    const slow = await agent();
    const client = await connect(get('/1') + get('/2'));
    await until(() => expect(slow.heard[0]).toMatch(/\r\n\r\n$/));
    const other = await agent((socket) => socket.write(saying('other')));
    slow.sockets[0]?.write(saying('slow'));
    await until(() => expect(client.got()).toMatch(/slow[\s\S]*other$/));
    expect([slow.heard.join('').match(/GET/g), other.heard.join('').match(/GET/g)]).toEqual([
      ['GET'],
      ['GET'],
    ]);
  });
});

describe('an agent that stops', () => {
  it('has its idle connections closed, and other agents keep theirs', async () => {
    const answering = (socket: net.Socket, all: string): void => {
      if (all.endsWith('\r\n\r\n')) socket.write(saying('ok'));
    };
    const [stopped, runs] = [await agent(answering), await agent(answering)];
    const rows = [stopped, runs].map((one, index) =>
      routeTo(one.port, { name: `a${index}`, hostname: `a${index}.agents.localhost` }),
    );
    gateway.setRoutes(rows);
    const clients = [await connect(get('/', 'a0')), await connect(get('/', 'a1'))];
    await until(() => expect(clients.map((client) => client.got().endsWith('ok'))).toEqual([true, true]));
    expect([stopped.open(), runs.open()]).toEqual([1, 1]);
    gateway.setRoutes(rows.map((row, index) => (index === 0 ? { ...row, pid: null } : row)));
    await until(() => expect(stopped.open()).toBe(0));
    clients[1]?.socket.write(get('/again', 'a1'));
    await until(() => expect(runs.heard[0]).toContain('GET /again '));
  });
});

describe('the body of a request', () => {
  it('is read only as fast as the agent reads it', async () => {
    const slow = await agent();
    const server = slow.server;
    server.on('connection', (socket) => socket.pause());
    const size = 256 * 1024 * 1024;
    const client = await connect(`POST / HTTP/1.1\r\n${HOST()}Content-Length: ${size}\r\n\r\n`);
    let sent = 0;
    const piece = Buffer.alloc(1024 * 1024);
    const more = (): void => {
      while (sent < size && client.socket.write(piece)) sent += piece.length;
      client.socket.once('drain', more);
    };
    more();
    // The buffers of two connections fill, then nothing moves. No event says so: requests of others that pass
    // without progress do.
    const quick = await agent((socket, all) => {
      if (all.endsWith('\r\n\r\n')) socket.write(saying('ok'));
    });
    gateway.setRoutes([routeTo(slow.port), routeTo(quick.port, { hostname: 'quick.agents.localhost' })]);
    const other = await connect('');
    let passed = 0;
    for (let before = -1; before !== sent || sent === 0; ) {
      before = sent;
      for (let turn = 0; turn < 50; turn += 1) {
        other.socket.write(get('/', 'quick'));
        passed += 1;
        await until(() => expect(other.got().split('HTTP/1.1 200').length - 1).toBe(passed));
      }
    }
    expect(ends[0]?.bytesRead).toBeLessThan(64 * 1024 * 1024);
  });
});
