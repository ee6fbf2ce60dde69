// The gateway between clients and agents that send ambiguous requests and responses, in raw bytes on the
// wire.
import { once } from 'node:events';
import net from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Gateway } from '../../../src/actors/gateway/gateway_server.ts';
import { eventually } from '../../kit/eventually.ts';
import { listenAnywhere, quietDaemon, routeTo } from './gateway_kit.ts';

let gateway: Gateway;
let port: number;
const closers: (() => unknown)[] = [];

beforeEach(async () => {
  gateway = new Gateway({ agentDomain: 'agents.localhost', allowedExtensions: [], tokens: [] }, quietDaemon);
  port = await listenAnywhere(gateway);
});
afterEach(async () => {
  await gateway.close();
  for (const close of closers.splice(0).reverse()) await close();
});

/** An agent in raw bytes: `onData` gets a connection and everything received on it so far. */
async function bytesAgent(onData: (socket: net.Socket, all: string, connection: number) => void) {
  const sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    const connection = sockets.size;
    let all = '';
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => {
      all += bytes.toString('latin1');
      onData(socket, all, connection);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closers.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const agentPort = (server.address() as net.AddressInfo).port;
  gateway.setRoutes([routeTo(agentPort)]);
}

/** Answers every head that arrives with `bytes`. */
const saying = (bytes: string) =>
  bytesAgent((socket, all) => all.endsWith('\r\n\r\n') && socket.write(bytes, 'latin1'));

const HOST = (): string => `Host: bot.agents.localhost:${port}\r\n`;

interface Client {
  send(text: string): void;
  /** Resolves with everything received once `fits` holds. */
  until(fits: (all: string) => boolean): Promise<string>;
  /** Resolves with everything received once the gateway has closed the connection. */
  closed: Promise<string>;
}

async function connect(): Promise<Client> {
  const socket = net.connect(port, '127.0.0.1');
  await once(socket, 'connect');
  closers.push(() => socket.destroy());
  let all = '';
  const looks = new Set<() => void>();
  const closed = new Promise<string>((resolve) => socket.on('close', () => resolve(all)));
  socket.on('error', () => undefined);
  socket.on('data', (bytes) => {
    all += bytes.toString('latin1');
    for (const look of looks) look();
  });
  return {
    closed,
    send: (text) => void socket.write(text, 'latin1'),
    until: (fits) =>
      new Promise((resolve, reject) => {
        const look = (): void => (fits(all) ? resolve(all) : undefined);
        looks.add(look);
        void closed.then(() => reject(new Error(`hung up after ${JSON.stringify(all)}`)));
        look();
      }),
  };
}

async function raw(text: string): Promise<string> {
  const client = await connect();
  client.send(text);
  return client.closed;
}

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

describe('a client that smuggles requests', () => {
  it('cannot remove the length of its body by naming it in Connection', async () => {
    const requests: string[] = [];
    await bytesAgent((socket, all) => {
      requests.push(all);
      socket.end(OK);
    });
    const body = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n';
    await raw(
      `POST /a HTTP/1.1\r\n${HOST()}Connection: close, content-length, transfer-encoding, host\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    expect(requests.join('')).toMatch(
      new RegExp(`^POST /a HTTP/1.1\r\n${HOST()}(?:.+\r\n)*Content-Length: ${body.length}\r\n`),
    );
  });

  it.each([
    ['two hosts', () => `GET / HTTP/1.1\r\n${HOST()}Host: other\r\n\r\n`],
    ['no path', () => `GET http://other/ HTTP/1.1\r\n${HOST()}\r\n`],
    ['another coding', () => `POST / HTTP/1.1\r\n${HOST()}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`],
    [
      'two codings',
      () =>
        `POST / HTTP/1.1\r\n${HOST()}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
    [
      'a coding that is none',
      () => `POST / HTTP/1.1\r\n${HOST()}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`,
    ],
    ['a line that goes on', () => `GET / HTTP/1.1\r\n${HOST()}X-A: 1\r\n Host: other\r\n\r\n`],
    ['a lone CR', () => `GET / HTTP/1.1\r\n${HOST()}X-A: 1\rX-B: 2\r\n\r\n`],
    ['a lone LF', () => `GET / HTTP/1.1\n${HOST()}\r\n`],
    ['a space before the colon', () => `POST / HTTP/1.1\r\n${HOST()}Content-Length : 4\r\n\r\nabcd`],
    ['a sign in its length', () => `POST / HTTP/1.1\r\n${HOST()}Content-Length: +4\r\n\r\nabcd`],
  ])('with %s gets 400, and neither it nor what follows reaches an agent', async (_what, request) => {
    let heard = '';
    await bytesAgent((socket, all) => {
      heard += all;
      socket.end(OK);
    });
    const client = await connect();
    client.send(`${request()}GET /smuggled HTTP/1.1\r\n${HOST()}\r\n`);
    const answer = await client.closed;
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer.match(/HTTP\/1\.1 /g)).toHaveLength(1);
    expect(heard).toBe('');
  });

  it.each([
    ['two hosts', () => `${HOST()}Host: other\r\n`],
    ['a body', () => `${HOST()}Content-Length: 4\r\n`],
    ['chunks', () => `${HOST()}Transfer-Encoding: chunked\r\n`],
  ])('with %s in front of a WebSocket gets 400 and reaches no agent', async (_what, lines) => {
    let heard = '';
    await bytesAgent((socket, all) => {
      heard += all;
      socket.end(OK);
    });
    const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\n';
    expect(await raw(`GET / HTTP/1.1\r\n${lines()}${upgrade}\r\n`)).toMatch(/^HTTP\/1\.1 400 /);
    expect(heard).toBe('');
  });

  it('can only upgrade to WebSocket: after any other upgrade, its data is read as requests, and each is checked', async () => {
    const heard: string[] = [];
    await bytesAgent((socket, all) => {
      if (all.endsWith('\r\n\r\n')) return;
      heard.push(all);
      socket.end(OK);
    });
    const h2c = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n';
    const all = await raw(
      `POST /a HTTP/1.1\r\n${HOST()}${h2c}Content-Length: 4\r\n\r\nbodyGET /b HTTP/1.1\r\nHost: other\r\nConnection: close\r\n\r\n`,
    );
    expect(all).toMatch(/^HTTP\/1\.1 200 [\s\S]*okHTTP\/1\.1 404 /);
    expect(heard).toHaveLength(1);
    expect(heard[0]).toMatch(/^POST \/a HTTP\/1\.1\r\n(?:.+\r\n)*\r\nbody$/);
    expect(heard[0]).not.toMatch(/^(?:upgrade|http2-settings|connection):/im);
  });

  it.each([
    [
      'POST',
      '1.1',
      'Content-Length: 4\r\n',
      () => `bodyGET / HTTP/1.1\r\n${HOST()}Connection: close\r\n\r\n`,
    ],
    ['GET', '1.0', '', () => ''],
  ])('with %s and HTTP/%s gets a plain response and no WebSocket', async (method, version, length, rest) => {
    const heard: string[] = [];
    await bytesAgent((socket, all) => {
      heard.push(all);
      socket.end(OK);
    });
    const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\n';
    const answer = await raw(`${method} / HTTP/${version}\r\n${HOST()}${upgrade}${length}\r\n${rest()}`);
    expect(answer).toMatch(/^HTTP\/1\.1 200 [\s\S]*ok/);
    expect(heard[0]).toMatch(new RegExp(`^${method} / HTTP/1.1\r\n`));
    expect(heard[0]).not.toMatch(/^(?:upgrade|connection):/im);
  });

  it('that upgrades while a request is open ends only its own connection', async () => {
    await bytesAgent((socket, all) => {
      if (all.includes('/slow')) setTimeout(() => socket.write(OK), 50);
      else socket.write(OK);
    });
    for (const protocol of ['h2c', 'websocket']) {
      const client = await connect();
      const upgrade = `Connection: Upgrade\r\nUpgrade: ${protocol}\r\n`;
      client.send(`GET /slow HTTP/1.1\r\n${HOST()}\r\nGET /up HTTP/1.1\r\n${HOST()}${upgrade}\r\n`);
      await client.until((all) => all.includes('ok'));
      expect(await raw(`GET / HTTP/1.1\r\n${HOST()}Connection: close\r\n\r\n`)).toMatch(/ok$/);
    }
  });

  it('that asks for another protocol repeatedly is answered each time, in order', async () => {
    await bytesAgent((socket, all) => {
      const path = all.slice(all.lastIndexOf('GET /') + 5, all.lastIndexOf(' HTTP'));
      if (all.endsWith('\r\n\r\n'))
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${path.length + 2}\r\n\r\n<${path}>`);
    });
    const count = 30;
    const h2c = 'Connection: Upgrade\r\nUpgrade: h2c\r\n';
    const lines = Array.from({ length: count }, (_, index) =>
      index === count - 1 ? 'Connection: close\r\n' : h2c,
    );
    const all = await raw(
      lines.map((more, index) => `GET /${index} HTTP/1.1\r\n${HOST()}${more}\r\n`).join(''),
    );
    expect(all.match(/<\d+>/g)).toEqual(lines.map((_, index) => `<${index}>`));
  });

  it('gets its WebSocket once its earlier request is answered', async () => {
    let answerSlow = (): void => undefined;
    const heard: string[] = [];
    await bytesAgent((socket, all) => {
      heard.push(all);
      if (all.includes('/slow')) answerSlow = () => socket.write(OK);
      else if (all.endsWith('early')) socket.write('echo');
      else
        socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    });
    const client = await connect();
    const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\n';
    client.send(`GET /slow HTTP/1.1\r\n${HOST()}\r\nGET /up HTTP/1.1\r\n${HOST()}${upgrade}\r\n`);
    expect(await raw(`GET / HTTP/1.1\r\nHost: other\r\nConnection: close\r\n\r\n`)).toMatch(/ 404 /);
    client.send('early');
    await eventually(() => heard.length > 0);
    expect(heard.join('')).not.toContain('/up');
    answerSlow();
    expect(await client.until((all) => all.endsWith('echo'))).toMatch(
      /^HTTP\/1\.1 200 [\s\S]*ok(?=HTTP\/1\.1 101 )/,
    );
  });

  it('cannot hide the framing of its request behind many headers', async () => {
    const heard: string[] = [];
    await bytesAgent((socket, all) => {
      heard.push(all);
      if (all.endsWith('body')) socket.end(OK);
    });
    const lines = `${HOST()}${'X:\r\n'.repeat(2_500)}Content-Length: 4\r\nConnection: close\r\n`;
    expect(await raw(`POST /a HTTP/1.1\r\n${lines}\r\nbody`)).toMatch(/^HTTP\/1\.1 200 [\s\S]*ok$/);
    expect(heard.at(-1)).toMatch(/\r\nContent-Length: 4\r\n[\s\S]*\r\n\r\nbody$/);
  });

  it('that never completes a request head is disconnected, whether or not it has sent part of one', async () => {
    const clients = [await connect(), await connect()];
    clients[1]?.send('GET / HTTP/1.1\r\nX-A: ');
    await Promise.all(clients.map(({ closed }) => closed));
  }, 20_000);

  it('that queues more than a few requests behind the first is disconnected', async () => {
    let requests = 0;
    const left = new Promise<void>((resolve) => {
      void bytesAgent((socket) => {
        requests += 1;
        socket.on('close', () => resolve());
      });
    });
    const client = await connect();
    const get = `GET / HTTP/1.1\r\n${HOST()}\r\n`;
    client.send(get.repeat(500));
    await eventually(() => requests > 0);
    for (let turn = 0; turn < 5; turn += 1) client.send(get.repeat(20));
    await client.closed;
    await left;
    expect(requests).toBe(1);
  });

  it.each([
    ['first', ['http://localhost', 'https://evil.example']],
    ['last', ['https://evil.example', 'http://localhost']],
    ['in the middle', ['https://evil.example', 'http://localhost', 'https://evil.example']],
    ['every time', ['http://localhost', 'http://localhost']],
  ])('cannot send several origins, with the allowed one %s', async (_, origins) => {
    await saying(OK);
    const lines = origins.map((origin) => `Origin: ${origin}\r\n`).join('');
    const upgrade = 'Upgrade: websocket\r\nConnection: Upgrade\r\n';
    for (const more of ['Connection: close\r\n', upgrade])
      expect(await raw(`GET / HTTP/1.1\r\n${HOST()}${lines}${more}\r\n`)).toMatch(/^HTTP\/1\.1 403 /);
  });

  it('gets the responses to pipelined requests in order', async () => {
    await bytesAgent((socket, all) => {
      if (!all.endsWith('\r\n\r\n')) return;
      const path = all.slice(all.lastIndexOf('GET /') + 5, all.lastIndexOf(' HTTP'));
      // Handled concurrently, the first would be answered last.
      setTimeout(
        () => socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n${path}`),
        path === '1' ? 50 : 0,
      );
    });
    const ask = (path: string, more = ''): string => `GET ${path} HTTP/1.1\r\n${HOST()}${more}\r\n`;
    const all = await raw(ask('/1') + ask('/2') + ask('/3', 'Connection: close\r\n'));
    expect(all.match(/\r\n\r\n(.)/g)).toEqual(['\r\n\r\n1', '\r\n\r\n2', '\r\n\r\n3']);
  });
});

describe('an agent that smuggles responses', () => {
  it.each([
    ['a lone LF in a value', 'HTTP/1.1 200 OK\r\nX-A: 1\nSet-Cookie: x=1\r\nContent-Length: 0\r\n\r\n'],
    ['a lone CR in a value', 'HTTP/1.1 200 OK\r\nX-A: 1\rSet-Cookie: x=1\r\nContent-Length: 0\r\n\r\n'],
    ['a NUL in a value', 'HTTP/1.1 200 OK\r\nX-A: 1\x00\r\nContent-Length: 0\r\n\r\n'],
    ['a lone LF in its reason', 'HTTP/1.1 200 O\nK\r\nContent-Length: 0\r\n\r\n'],
    ['a lone LF after its reason', 'HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n'],
    ['CRLF before the empty line alone', 'HTTP/1.1 200 OK\nContent-Length: 0\r\n\n'],
    ['an empty line that ends in LF alone', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\n'],
    ['a chunk size before a lone LF', 'HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n1\na\n0\n\n\r\n'],
    ['a control in its reason', 'HTTP/1.1 200 O\x01K\r\nContent-Length: 0\r\n\r\n'],
    ['a status that is none', 'HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n'],
    ['a line that goes on', 'HTTP/1.1 200 OK\r\nX-A: 1\r\n more\r\nContent-Length: 0\r\n\r\n'],
    ['a protocol that nobody asked for', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n'],
    ['lengths that differ in one line', 'HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\nxx'],
    ['a negative length', 'HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n'],
    ['a chunk size that is none, at once', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'],
  ])('with %s causes a 502, and the gateway continues', async (_what, bytes) => {
    await saying(bytes);
    expect(await raw(`GET / HTTP/1.1\r\n${HOST()}Connection: close\r\n\r\n`)).toMatch(/^HTTP\/1\.1 502 /);
    await saying(OK);
    expect(await raw(`GET / HTTP/1.1\r\n${HOST()}Connection: close\r\n\r\n`)).toMatch(/ok$/);
  });

  it('cannot replace the response to the next request', async () => {
    await saying(`${OK}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil`);
    for (let turn = 0; turn < 3; turn += 1) {
      expect(await raw(`GET / HTTP/1.1\r\n${HOST()}Connection: close\r\n\r\n`)).toMatch(/\r\n\r\nok$/);
    }
  });
});

describe('responses on the wire', () => {
  const get = (version: string, more = ''): string => `GET / HTTP/${version}\r\n${HOST()}${more}\r\n`;

  it('have their head sent before the body arrives', async () => {
    let finish: () => void = () => undefined;
    await bytesAgent((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 4\r\n\r\n');
      finish = () => socket.write('done');
    });
    const client = await connect();
    client.send(get('1.1'));
    expect(await client.until((all) => all.includes('\r\n\r\n'))).toMatch(/\r\n\r\n$/);
    finish();
    await client.until((all) => all.endsWith('done'));
  });

  it('are complete whether their chunks arrive in one packet or byte by byte', async () => {
    const chunked =
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n4\r\ndefg\r\n0\r\nT: 1\r\n\r\n';
    await saying(chunked);
    expect(await raw(get('1.0'))).toMatch(/\r\n\r\nabcdefg$/);
    await bytesAgent((socket) => {
      for (const byte of chunked) socket.write(byte);
    });
    const client = await connect();
    client.send(get('1.1'));
    const all = await client.until((text) => text.endsWith('\r\n0\r\n\r\n'));
    expect(all.slice(all.indexOf('\r\n\r\n') + 4).replace(/[\da-f]+\r\n(.*)\r\n/g, '$1')).toMatch(/^abcdefg/);
  });

  it('have a head with CRLF where all lines from the agent end in LF', async () => {
    const head = 'HTTP/1.1 200 OK\nContent-Type: text/plain\nContent-Length: 9\n\n';
    await bytesAgent((socket, all) => {
      if (!all.endsWith('\r\n\r\n')) return;
      for (const byte of `HTTP/1.1 103 Early Hints\n\n${head}a\r\n\r\nb\n\nc`) socket.write(byte);
    });
    const client = await connect();
    client.send(get('1.1'));
    const all = await client.until((text) => text.endsWith('\n\nc'));
    expect(all).toMatch(/^HTTP\/1\.1 200 OK\r\nContent-Type: text\/plain\r\n(?:.+\r\n)*\r\na\r\n\r\nb\n\nc$/);
    client.send(get('1.1', 'Connection: close\r\n'));
    expect((await client.closed).split('HTTP/1.1 200 OK')).toHaveLength(3);
    await bytesAgent((socket) => void socket.end('HTTP/1.0 200 OK\n\nall of it'));
    expect(await raw(get('1.0'))).toMatch(/\r\n\r\nall of it$/);
  });

  it('in chunks end with the connection for an HTTP/1.0 client', async () => {
    await saying('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n');
    const all = await raw(get('1.0'));
    expect(all).toMatch(/\r\n\r\nok$/);
    expect(all).not.toMatch(/transfer-encoding/i);
  });

  it('that end with the connection to the agent also end for the client', async () => {
    await bytesAgent((socket) => void socket.end('HTTP/1.0 200 OK\r\n\r\nall of it'));
    expect(await raw(get('1.1', 'Connection: close\r\n'))).toMatch(/all of it/);
    expect(await raw(get('1.0'))).toMatch(/\r\n\r\nall of it$/);
  });

  it.each([
    ['HEAD', 'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n', /Content-Length: 1000\r\n(?:.+\r\n)*\r\n$/],
    ['GET', 'HTTP/1.1 204 No Content\r\n\r\n', /^HTTP\/1\.1 204 [\s\S]*\r\n\r\n$/],
    ['GET', 'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\n\r\n', /^HTTP\/1\.1 304 [\s\S]*\r\n\r\n$/],
    [
      'GET',
      `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${OK}`,
      /^HTTP\/1\.1 200 [\s\S]*ok$/,
    ],
  ])('to %s answered with %j get no extra body', async (method, bytes, shape) => {
    await saying(bytes);
    const client = await connect();
    client.send(`${method} / HTTP/1.1\r\n${HOST()}\r\n`);
    await client.until((all) => all.includes('\r\n\r\n'));
    client.send(`${method} / HTTP/1.1\r\n${HOST()}Connection: close\r\n\r\n`);
    const all = await client.closed;
    const second = all.lastIndexOf('HTTP/1.1 ');
    for (const part of [all.slice(0, second), all.slice(second)]) expect(part).toMatch(shape);
  });

  it('contain bytes above 127 unchanged, in heads and bodies', async () => {
    const bytes = Array.from({ length: 256 }, (_, index) => String.fromCharCode(index)).join('');
    await saying(`HTTP/1.1 200 OK\r\nX-Name: caf\xe9\r\nContent-Length: 256\r\n\r\n${bytes}`);
    const all = await raw(get('1.1', 'Connection: close\r\n'));
    expect(all).toContain('X-Name: caf\xe9\r\n');
    expect(all.endsWith(`\r\n\r\n${bytes}`)).toBe(true);
  });
});

describe('a request that must not be repeated', () => {
  it('uses a new connection, because an idle one may be closing', async () => {
    const seen: string[] = [];
    await bytesAgent((socket, all, connection) => {
      const line = all.slice(all.lastIndexOf(' /') + 1, all.lastIndexOf(' HTTP'));
      if (!all.endsWith('\r\n\r\n')) return;
      seen.push(`${connection}${line}`);
      // An idle connection is closed as soon as anything arrives on it.
      if (all.indexOf(' HTTP/1.1') !== all.lastIndexOf(' HTTP/1.1')) socket.destroy();
      else socket.write(OK);
    });
    const ask = (method: string, path: string): string =>
      `${method} ${path} HTTP/1.1\r\n${HOST()}Content-Length: 0\r\nConnection: close\r\n\r\n`;
    expect(await raw(ask('GET', '/1'))).toMatch(/ok$/);
    expect(await raw(ask('POST', '/2'))).toMatch(/ok$/);
    expect(seen).toEqual(['1/1', '2/2']);
    // A repeatable request is repeated when the idle connection was lost.
    expect(await raw(ask('GET', '/3'))).toMatch(/ok$/);
    expect(seen.slice(2).map((line) => line.slice(1))).toEqual(['/3', '/3']);
  });

  it.each([
    ['that never arrives', '', 'Content-Length: 100'],
    ['that arrives in part', 'x'.repeat(50), 'Content-Length: 100'],
    ['in chunks', '4\r\nbody\r\n', 'Transfer-Encoding: chunked'],
  ])('that is answered before a body %s leaves a connection that is not reused', async (_, body, length) => {
    const requests: string[] = [];
    await bytesAgent((socket, all, connection) => {
      if (all.endsWith('\r\n\r\n')) requests[connection] = all.slice(0, all.indexOf(' HTTP'));
      // Not read any further, as by a program that has decided by the head.
      if (all.startsWith('POST')) socket.pause();
      socket.write(OK);
    });
    const client = await connect();
    client.send(`POST /a HTTP/1.1\r\n${HOST()}${length}\r\n\r\n`);
    await client.until((all) => all.endsWith('ok'));
    client.send(body);
    expect(await raw(`GET /b HTTP/1.1\r\n${HOST()}Connection: close\r\n\r\n`)).toMatch(/ok$/);
    expect(requests).toEqual([undefined, 'POST /a', 'GET /b']);
  });

  it('whose body the agent did not wait for does not block the client', async () => {
    await bytesAgent((socket) => void socket.write(OK));
    const client = await connect();
    const size = 8 * 1024 * 1024;
    client.send(`POST / HTTP/1.1\r\n${HOST()}Content-Length: ${size}\r\n\r\n`);
    await client.until((all) => all.endsWith('ok'));
    client.send('x'.repeat(size));
    client.send(`GET / HTTP/1.1\r\n${HOST()}Connection: close\r\n\r\n`);
    expect((await client.closed).match(/ok/g)).toHaveLength(2);
  });
});
