// The gateway between real sockets: an agent's server behind it, raw and ordinary clients in front.
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { Gateway } from '../../../src/actors/gateway/gateway_server.ts';
import { listenAnywhere, quietDaemon, routeTo } from './gateway_kit.ts';

const TOKEN = 'secret-token';
let gateway: Gateway;
let port: number;
const closers: (() => unknown)[] = [];

beforeEach(async () => {
  gateway = new Gateway(
    { agentDomain: 'agents.localhost', allowedExtensions: [], tokens: [TOKEN] },
    quietDaemon,
  );
  port = await listenAnywhere(gateway);
});
afterEach(async () => {
  await gateway.close();
  for (const close of closers.splice(0).reverse()) await close();
});

const portOf = (server: net.Server): number => (server.address() as net.AddressInfo).port;

async function agent(
  handler: http.RequestListener,
  more: { name?: string; host?: string | null; isRunning?: boolean; isAsleep?: boolean } = {},
) {
  const server = http.createServer(handler).listen(0, '127.0.0.1');
  await once(server, 'listening');
  closers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const name = more.name ?? 'bot';
  gateway.setRoutes([
    routeTo(portOf(server), {
      hostname: `${name}.agents.localhost`,
      name,
      hostHeader: more.host ?? null,
      isAsleep: more.isAsleep ?? false,
      ...(more.isRunning === false ? { pid: null } : {}),
    }),
  ]);
  return server;
}

/** Sends bytes unchanged and resolves with everything received until the connection ends. */
function raw(text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, '127.0.0.1', () => socket.write(text));
    let all = '';
    socket.on('data', (bytes) => {
      all += bytes.toString('latin1');
    });
    socket.on('close', () => resolve(all));
    socket.on('error', reject);
  });
}

const HOST = (): string => `bot.agents.localhost:${port}`;

interface Got {
  status: number;
  headers: http.IncomingHttpHeaders;
  body: string;
}

function call(path: string, options: http.RequestOptions = {}, body?: string | Buffer): Promise<Got> {
  return new Promise((resolve, reject) => {
    const request = http.request(
      {
        port,
        host: '127.0.0.1',
        path,
        agent: false,
        ...options,
        headers: { Host: HOST(), ...options.headers },
      },
      (response) => {
        const parts: Buffer[] = [];
        response.on('data', (part) => parts.push(part));
        response.on('error', reject);
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: Buffer.concat(parts).toString(),
          }),
        );
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

/** An agent that answers with the request it got. */
const mirror: http.RequestListener = (request, response) => {
  response.setHeader('Content-Type', 'application/json');
  response.end(JSON.stringify({ method: request.method, url: request.url, headers: request.headers }));
};

describe('the guard', () => {
  it.each([
    ['other.agents.localhost', 404],
    ['localhost', 404],
    ['bot.agents.localhost.evil.example', 404],
    ['BOT.Agents.LocalHost.', 200],
    ['bot.agents.localhost', 200],
  ])('Host %s gets %d', async (host, status) => {
    await agent(mirror);
    expect((await call('/', { headers: { Host: `${host}:${port}` } })).status).toBe(status);
  });

  it('requires its own port in Host, and requires Host', async () => {
    await agent(mirror);
    expect((await call('/', { headers: { Host: 'bot.agents.localhost:1' } })).status).toBe(404);
    expect((await call('/', { headers: { Host: 'bot.agents.localhost' } })).status).toBe(404);
    expect(await raw('GET / HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 404 /);
    expect(await raw('GET / HTTP/1.1\r\nHost: [::::]]:x\r\nConnection: close\r\n\r\n')).toMatch(
      /^HTTP\/1\.1 404 /,
    );
  });

  it.each([
    ['http://localhost:3000', 200],
    ['http://127.0.0.1', 200],
    ['http://[::1]:8080', 200],
    ['http://other.agents.localhost:5', 200],
    ['https://x.localhost', 200],
    ['chrome-extension://abcdef', 200],
    ['https://evil.example', 403],
    ['null', 403],
    ['http://localhost.evil.example', 403],
    ['http://evil.example/.localhost', 403],
    ['file://localhost', 403],
  ])('Origin %s gets %d, for WebSocket too', async (origin, status) => {
    const server = await agent(mirror);
    new WebSocketServer({ server });
    expect((await call('/', { headers: { Origin: origin } })).status).toBe(status);
    const upgrade = await new Promise<number>((resolve) => {
      const socket = new WebSocket(`ws://127.0.0.1:${port}/`, { headers: { Host: HOST(), Origin: origin } });
      socket.on('open', () => {
        socket.terminate();
        resolve(200);
      });
      socket.on('unexpected-response', (_request, response) => {
        response.resume();
        socket.terminate();
        resolve(response.statusCode ?? 0);
      });
      socket.on('error', () => undefined);
    });
    expect(upgrade).toBe(status);
  });

  const image = { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'no-cors', 'Sec-Fetch-Dest': 'image' };
  const visit = { ...image, 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'document' };
  it.each<[what: string, headers: Record<string, string>, status: number]>([
    ['an image of an unknown page', image, 403],
    ['an image of a stranger', { ...image, Referer: 'https://evil.example/' }, 403],
    ['an image of a stranger like us', { ...image, Referer: 'http://localhost.evil.example/' }, 403],
    ['an image of another service', { ...image, Referer: 'http://web.localhost:11612/' }, 200],
    ['an image of a page on a port', { ...image, Referer: 'http://localhost:3000/a?b' }, 200],
    ['an image of an unknown site', { ...image, 'Sec-Fetch-Site': 'elsewhere' }, 403],
    ['an image of the same site', { ...image, 'Sec-Fetch-Site': 'same-site' }, 200],
    ['a frame of a stranger', { ...visit, 'Sec-Fetch-Dest': 'iframe' }, 403],
    ['a link of a stranger', { ...visit, Referer: 'https://evil.example/' }, 200],
    ['a prefetch of a stranger', { ...visit, 'Sec-Purpose': 'prefetch;prerender' }, 403],
    ['no page', {}, 200],
  ])('%s without Origin gets an answer as a page may', async (_what, headers, status) => {
    await agent(mirror);
    expect((await call('/', { headers })).status).toBe(status);
  });

  it('wakes nothing for a page that may not call', async () => {
    await agent(mirror, { isAsleep: true });
    // The attempt to wake fails here.
    expect((await call('/', { headers: visit })).status).toBe(502);
    expect((await call('/', { headers: image })).status).toBe(403);
  });

  it('admits only the named extensions when some are named', async () => {
    await agent(mirror);
    gateway.settings = { ...gateway.settings, allowedExtensions: ['good'] };
    expect((await call('/', { headers: { Origin: 'chrome-extension://good' } })).status).toBe(200);
    expect((await call('/', { headers: { Origin: 'chrome-extension://bad' } })).status).toBe(403);
  });

  it('compares the id of an extension exactly, with nothing after it', async () => {
    await agent(mirror);
    gateway.settings = { ...gateway.settings, allowedExtensions: ['Good'] };
    expect((await call('/', { headers: { Origin: 'chrome-extension://Good' } })).status).toBe(200);
    for (const origin of ['good', 'Good:123', 'Good/', 'Good:'])
      expect((await call('/', { headers: { Origin: `chrome-extension://${origin}` } })).status).toBe(403);
    gateway.settings = { ...gateway.settings, allowedExtensions: [] };
    expect((await call('/', { headers: { Origin: 'chrome-extension://any:123' } })).status).toBe(403);
  });
});

describe('forwarding', () => {
  it('drops hop-by-hop and forwarding headers and sets its own forwarding headers', async () => {
    await agent(mirror);
    const { body } = await call('/a/b?c=%20d', {
      headers: {
        Connection: 'close, X-Private',
        'X-Private': '1',
        'X-Forwarded-For': '6.6.6.6',
        'X-Forwarded-Anything': '1',
        Forwarded: 'for=6.6.6.6',
        TE: 'trailers',
        'Proxy-Authorization': 'x',
        'X-Real-IP': '6.6.6.6',
        'Berth-Cloud-Token': 'x',
        X_Forwarded_For: '6.6.6.6',
        X_Real_IP: '6.6.6.6',
        Proxy_Connection: 'close',
        Content_Length: '7',
        Sec_WebSocket_Protocol: 'x, bearer.abc',
        api_key: 'kept',
        'X-Own': 'kept',
      },
    });
    const seen = JSON.parse(body);
    expect(seen.url).toBe('/a/b?c=%20d');
    expect(seen.headers).toMatchObject({
      host: HOST(),
      'x-own': 'kept',
      api_key: 'kept',
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-host': HOST(),
      'x-forwarded-proto': 'http',
      forwarded: `for=127.0.0.1;host="${HOST()}";proto=http`,
      via: '1.1 berth',
    });
    const dropped = [
      'x-private',
      'x-forwarded-anything',
      'te',
      'proxy-authorization',
      'x-real-ip',
      'berth-cloud-token',
    ];
    const respelled = [
      'x_forwarded_for',
      'x_real_ip',
      'proxy_connection',
      'content_length',
      'sec_websocket_protocol',
    ];
    for (const name of [...dropped, ...respelled]) expect(seen.headers[name]).toBeUndefined();
  });

  it.each([
    [`Bearer ${TOKEN}`, undefined],
    [`bearer   ${TOKEN}`, undefined],
    [`Bearer\t${TOKEN}`, undefined],
    [`BEARER \t ${TOKEN}`, undefined],
    [`Bearer berth.token.${'x'.repeat(43)}`, undefined],
    [`Bearer berth.token.${'x'.repeat(42)}`, `Bearer berth.token.${'x'.repeat(42)}`],
    [TOKEN, TOKEN],
    [`Bearer ${TOKEN}x`, `Bearer ${TOKEN}x`],
    ['Basic abc', 'Basic abc'],
  ])('turns Authorization %s into %s', async (given, passed) => {
    await agent(mirror);
    const { body } = await call('/', { headers: { Authorization: given } });
    expect(JSON.parse(body).headers.authorization).toBe(passed);
  });

  const carrying = (token: string): string =>
    `base64url.bearer.authorization.berth.${Buffer.from(token).toString('base64url')}`;
  it.each([
    [`berth.v1, ${carrying(TOKEN)}`, 'berth.v1'],
    [`${carrying(TOKEN)},chat ,${carrying(TOKEN)}`, 'chat'],
    [carrying(TOKEN), undefined],
    [`chat, ${carrying(`berth.page-1.${'x'.repeat(43)}`)}`, 'chat'],
    [`chat, base64url.bearer.authorization.berth.berth.page-1.${'x'.repeat(43)}`, 'chat'],
    [`chat, ${carrying('other')}`, `chat, ${carrying('other')}`],
  ])('turns the WebSocket protocols %s into %s', async (given, passed) => {
    const server = await agent(mirror);
    let seen: http.IncomingHttpHeaders = {};
    server.on('upgrade', (request, socket) => {
      seen = request.headers;
      socket.end('HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n');
    });
    const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\n';
    await raw(`GET / HTTP/1.1\r\nHost: ${HOST()}\r\n${upgrade}Sec-WebSocket-Protocol: ${given}\r\n\r\n`);
    expect(seen['sec-websocket-protocol']).toBe(passed);
    expect(seen.upgrade).toBe('websocket');
  });

  it.each([
    ['a=1; Domain=agents.localhost; Path=/', 'a=1; Path=/'],
    ['a=1; domain =.Agents.Localhost', 'a=1'],
    ['a=1; Domain=localhost;Secure', 'a=1;Secure'],
    ['a=1; Domain=other.agents.localhost', 'a=1'],
    ['a=1; Domain=bot.agents.localhost; Domain=agents.localhost', 'a=1'],
    ['a=1; Domain=.BOT.agents.localhost', 'a=1'],
    ['a=1; Domain=x.bot.agents.localhost', 'a=1; Domain=x.bot.agents.localhost'],
    ['Domain=agents.localhost; Path=/', 'Domain=agents.localhost; Path=/'],
  ])('turns the cookie %j into %j', async (given, passed) => {
    const server = await agent((_, response) => {
      response.writeHead(200, ['Set-Cookie', given, 'X-Other', given, 'set-cookie', given]).end();
    });
    const { headers } = await call('/');
    expect([headers['set-cookie'], headers['x-other']]).toEqual([[passed, passed], given]);
    const folded = given.replace('; ', ';\r\n ');
    server.on('upgrade', (_, socket) =>
      socket.end(
        `HTTP/1.1 101 Switching Protocols\r\nX-Other: ${given}\r\nSet-Cookie: ${given}\r\nSet-Cookie : ${folded}\r\n\r\n`,
      ),
    );
    const head = await raw(
      `GET / HTTP/1.1\r\nHost: ${HOST()}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
    );
    expect(head).toBe(
      `HTTP/1.1 101 Switching Protocols\r\nX-Other: ${given}\r\nSet-Cookie: ${passed}\r\nSet-Cookie : ${passed}\r\n\r\n`,
    );
  });

  it('answers 409 for a host name of two services, and names both', async () => {
    const row = { isAgent: false, hostname: 'a-b.localhost' };
    gateway.setRoutes([routeTo(1, { ...row, name: 'a-b' }), routeTo(2, { ...row, name: 'a_b' })]);
    const answer = await raw(`GET / HTTP/1.1\r\nHost: a-b.localhost:${port}\r\nConnection: close\r\n\r\n`);
    expect(answer).toContain('HTTP/1.1 409');
    expect(answer).toContain('"a-b.localhost is the host name of a-b and a_b"');
  });

  it('sends the Host header that an agent requires', async () => {
    await agent(mirror, { host: '127.0.0.1:4242' });
    expect(JSON.parse((await call('/')).body).headers.host).toBe('127.0.0.1:4242');
  });

  it('preserves the status, repeated headers and empty responses', async () => {
    await agent((request, response) => {
      if (request.url === '/304') response.writeHead(304, { ETag: '"x"' }).end();
      else if (request.url === '/204') response.writeHead(204).end();
      else
        response
          .writeHead(
            418,
            'I am a teapot',
            [
              ['Set-Cookie', 'a=1'],
              ['Set-Cookie', 'b=2'],
            ].flat(),
          )
          .end('short and stout');
    });
    expect(await call('/')).toMatchObject({
      status: 418,
      body: 'short and stout',
      headers: { 'set-cookie': ['a=1', 'b=2'] },
    });
    expect((await call('/304')).status).toBe(304);
    expect((await call('/204')).status).toBe(204);
    const head = await call('/', { method: 'HEAD' });
    expect([head.status, head.body]).toEqual([418, '']);
  });

  it('forwards large bodies unchanged in both directions, with a length and in chunks', async () => {
    await agent((request, response) => {
      const hash = createHash('sha256');
      const parts: Buffer[] = [];
      request.on('data', (part) => {
        hash.update(part);
        parts.push(part);
      });
      request.on('end', () => {
        response.setHeader('X-Hash', hash.digest('hex'));
        response.end(Buffer.concat(parts));
      });
    });
    const bytes = randomBytes(8 * 1024 * 1024);
    const sum = createHash('sha256').update(bytes).digest('hex');
    for (const headers of [{ 'Content-Length': String(bytes.length) }, { 'Transfer-Encoding': 'chunked' }]) {
      const got = await new Promise<{ sent: unknown; came: string }>((resolve, reject) => {
        const request = http.request(
          {
            port,
            host: '127.0.0.1',
            path: '/',
            method: 'POST',
            agent: false,
            headers: { Host: HOST(), ...headers },
          },
          (response) => {
            const hash = createHash('sha256');
            response.on('data', (part) => hash.update(part));
            response.on('end', () => resolve({ sent: response.headers['x-hash'], came: hash.digest('hex') }));
          },
        );
        request.on('error', reject);
        request.end(bytes);
      });
      expect(got).toEqual({ sent: sum, came: sum });
    }
  });

  it('slows down an agent whose client does not read', async () => {
    let written = 0;
    await agent((request, response) => {
      if (request.url === '/small') {
        response.end('small');
        return;
      }
      const more = (): void => {
        while (written < 512 * 1024 * 1024) {
          written += 65_536;
          if (!response.write(Buffer.alloc(65_536))) {
            response.once('drain', more);
            return;
          }
        }
      };
      more();
    });
    const socket = net.connect(port, '127.0.0.1', () =>
      socket.write(`GET / HTTP/1.1\r\nHost: ${HOST()}\r\n\r\n`),
    );
    socket.pause();
    // The buffers of two sockets and two streams fill; then nothing moves. Everything runs in this process
    // and no event says that they are full, so a number of event loop turns without progress counts as full.
    let before = -1;
    while (before !== written || written === 0) {
      before = written;
      for (let others = 0; others < 50; others += 1) expect((await call('/small')).body).toBe('small');
    }
    socket.destroy();
    expect(written).toBeGreaterThan(0);
    expect(written).toBeLessThan(64 * 1024 * 1024);
  });

  it('forwards server-sent events as they arrive, and disconnects from the agent when the client disconnects', async () => {
    let send: (text: string) => void = () => undefined;
    let gone: () => void = () => undefined;
    const closed = new Promise<void>((resolve) => {
      gone = resolve;
    });
    await agent((request, response) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      send = (text) => response.write(text);
      send('data: 0\n\n');
      request.on('close', gone);
    });
    const request = http.get({ port, host: '127.0.0.1', headers: { Host: HOST() }, agent: false });
    request.on('error', () => undefined);
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    for (let index = 0; index < 3; index += 1) {
      const [part] = await once(response, 'data');
      expect(String(part)).toBe(`data: ${index}\n\n`);
      send(`data: ${index + 1}\n\n`);
    }
    request.destroy();
    await closed;
  });

  it('reuses connections, and retries once when the agent has closed an idle one', async () => {
    let connections = 0;
    const server = await agent(mirror);
    server.on('connection', () => {
      connections += 1;
    });
    for (let index = 0; index < 5; index += 1) expect((await call('/')).status).toBe(200);
    expect(connections).toBe(1);
    server.closeAllConnections();
    expect((await call('/')).status).toBe(200);
    expect(connections).toBe(2);
  });

  it('forwards WebSocket upgrades, also with data right after the head', async () => {
    const server = await agent(mirror);
    const sockets = new WebSocketServer({ server });
    sockets.on('connection', (socket) =>
      socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary })),
    );
    const client = new WebSocket(`ws://127.0.0.1:${port}/echo`, { headers: { Host: HOST() } });
    await once(client, 'open');
    client.send('hello');
    expect(String((await once(client, 'message'))[0])).toBe('hello');
    const bytes = randomBytes(1024 * 1024);
    client.send(bytes);
    expect(((await once(client, 'message'))[0] as Buffer).equals(bytes)).toBe(true);
    client.close();
    await once(client, 'close');
  });

  it('answers an upgrade whose connection the agent resets with 502, as it does a plain request', async () => {
    const server = await agent((request) => request.socket.resetAndDestroy());
    server.on('upgrade', (request) => request.socket.resetAndDestroy());
    for (const more of ['Connection: close\r\n', 'Connection: Upgrade\r\nUpgrade: websocket\r\n']) {
      const answer = await raw(`GET / HTTP/1.1\r\nHost: ${HOST()}\r\n${more}\r\n`);
      expect(answer).toMatch(/^HTTP\/1\.1 502 [\s\S]*"code":"bad_gateway"/);
    }
  });

  it('forwards the refusal of an upgrade, and nothing after it', async () => {
    const urls: string[] = [];
    const server = await agent((request, response) => {
      urls.push(request.url ?? '');
      response.end('plain');
    });
    server.on('upgrade', (request, socket) => {
      urls.push(request.url ?? '');
      socket.write('HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno');
    });
    const answer = await raw(
      `GET /up HTTP/1.1\r\nHost: ${HOST()}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 403 No\r\n[\s\S]*no$/);
    expect(urls).toEqual(['/up']);
  });
});

describe('failures', () => {
  it('a stopped agent gives 503, as page or JSON', async () => {
    await agent(mirror, { isRunning: false });
    const json = await call('/');
    expect([json.status, JSON.parse(json.body).code, json.headers['retry-after']]).toEqual([
      503,
      'not_running',
      '1',
    ]);
    const page = await call('/', { headers: { Accept: 'text/html,*/*' } });
    expect(page.headers['content-type']).toContain('text/html');
    expect(page.body).toContain('The agent bot is not running');
  });

  it('a refused connection gives 502 and names the agent', async () => {
    const server = await agent(mirror);
    server.close();
    await once(server, 'close');
    const answer = await call('/');
    expect(answer.status).toBe(502);
    expect(JSON.parse(answer.body).message).toContain('bot');
  });

  it('a request that returns to the gateway is refused as a loop', async () => {
    await agent(mirror);
    expect((await call('/', { headers: { Via: '1.0 x, 1.1 berth' } })).status).toBe(508);
    gateway.setRoutes([routeTo(port)]);
    expect((await call('/')).status).toBe(508);
  });

  it.each([
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx'],
    [
      'length and chunks',
      'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['an unknown coding', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n'],
    ['a bad header', 'HTTP/1.1 200 OK\r\nbad header: x\r\n\r\n'],
    ['no HTTP', 'SSH-2.0-OpenSSH\r\n\r\n'],
    ['an early end', 'HTTP/1.1 200'],
  ])('an answer with %s gives 502', async (_what, bytes) => {
    const server = net.createServer((socket) => socket.end(bytes)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    closers.push(() => server.close());
    gateway.setRoutes([routeTo(portOf(server))]);
    expect((await call('/')).status).toBe(502);
  });

  it('a truncated response body closes the connection of the client', async () => {
    await agent((_request, response) => {
      response.writeHead(200, { 'Content-Length': 100 });
      response.write('half', () => response.destroy());
    });
    await expect(call('/')).rejects.toThrow();
  });

  it('a request with two lengths, or with a length and chunks, never reaches the agent', async () => {
    let requests = 0;
    await agent((_request, response) => {
      requests += 1;
      response.end();
    });
    const head = `POST / HTTP/1.1\r\nHost: ${HOST()}\r\n`;
    expect(await raw(`${head}Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx`)).toMatch(/^HTTP\/1\.1 400 /);
    expect(await raw(`${head}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 400 /,
    );
    expect(requests).toBe(0);
  });
});
