// One request and its whole response over a plain socket: in any bytes, however they are cut.
import net from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { connectTo, requestOn } from '../../src/client/socket_request.ts';

const servers: net.Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve));
});

/** A server that answers every connection with `pieces`, each in its own packet, and then closes or stays. */
async function answering(pieces: string[], close = true): Promise<{ url: string; asked: () => string }> {
  let asked = '';
  const server = net.createServer((socket) => {
    socket.setNoDelay(true);
    socket.on('error', () => {});
    socket.once('data', async (text) => {
      asked += text;
      for (const piece of pieces) {
        socket.write(piece);
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
      if (close) socket.end();
    });
    socket.on('end', () => socket.end());
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as net.AddressInfo).port}/v1/x?a=%20b`,
    asked: () => asked,
  };
}

const send = async (request: Parameters<typeof requestOn>[1]) => {
  const socket = connectTo(new URL(request.url));
  try {
    return await requestOn(socket, request);
  } finally {
    socket.destroy();
  }
};

const get = (url: string, signal?: AbortSignal) =>
  send({ method: 'GET', url, headers: [['Authorization', 'Bearer t']], ...(signal ? { signal } : {}) });

describe('a response', () => {
  it.each([
    ['with a length, and more behind it', ['HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello garbage']],
    [
      'cut within the head and the body',
      ['HTTP/1.1 20', '0 OK\r\nContent-Le', 'ngth: 5\r\n\r', '\nhe', 'llo'],
    ],
    [
      'in chunks',
      ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n'],
    ],
    [
      'in chunks cut anywhere',
      [
        'HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n',
        '3\r',
        '\nhe',
        'l\r\n2\r\nlo\r',
        '\n0\r\n',
        '\r\n',
      ],
    ],
  ])('%s is complete as soon as its last byte arrives', async (_how, pieces) => {
    const { url } = await answering(pieces, false);
    expect(await get(url)).toMatchObject({ status: 200, body: 'hello' });
  });

  it('without a length ends with the connection', async () => {
    const { url } = await answering(['HTTP/1.0 404 No\r\nX-A: b: c \r\n\r\nhel', 'lo']);
    const { status, headers, body } = await get(url);
    expect([status, headers.get('x-a'), body]).toEqual([404, 'b: c', 'hello']);
  });

  it('keeps characters whole that arrive in parts', async () => {
    const text = Buffer.from('✓ü');
    const server = net.createServer((socket) => {
      socket.once('data', () => {
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\n\r\n`);
        for (const byte of text) socket.write(Buffer.from([byte]));
      });
      socket.on('end', () => socket.end());
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as net.AddressInfo;
    expect((await get(`http://127.0.0.1:${port}/`)).body).toBe('✓ü');
  });

  it.each([
    ['nothing at all', []],
    ['half a head', ['HTTP/1.1 200 OK\r\nConte']],
    ['half a body', ['HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe']],
    ['half a chunk', ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe']],
    ['another protocol', ['SSH-2.0-OpenSSH_9.2\r\n\r\n']],
    ['a chunk of no size', ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n\r\n']],
  ])('that is %s is an error', async (_what, pieces) => {
    const { url } = await answering(pieces);
    await expect(get(url)).rejects.toThrow();
  });
});

describe('a request', () => {
  it('has only the required headers', async () => {
    const { url, asked } = await answering(['HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n']);
    await get(url);
    expect(asked()).toBe(
      `GET /v1/x?a=%20b HTTP/1.1\r\nHost: ${new URL(url).host}\r\nConnection: close\r\nAuthorization: Bearer t\r\n\r\n`,
    );
  });

  it('has the length of its body in bytes, also where a required body is empty', async () => {
    const { url, asked } = await answering(['HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n']);
    await send({ method: 'POST', url, headers: [], body: '"ü"' });
    expect(asked()).toContain('\r\nContent-Length: 4\r\n\r\n"ü"');
    await send({ method: 'DELETE', url, headers: [] });
    expect(asked()).toMatch(/DELETE [\s\S]*\r\nContent-Length: 0\r\n\r\n$/);
  });

  it('ends when it is aborted, before and during a wait', async () => {
    const { url } = await answering([], false);
    const reason = new Error('left');
    await expect(get(url, AbortSignal.abort(reason))).rejects.toBe(reason);
    const leave = new AbortController();
    const waiting = get(url, leave.signal);
    leave.abort(reason);
    await expect(waiting).rejects.toBe(reason);
  });

  it('reaches an IPv6 address', async ({ skip }) => {
    const server = net.createServer((socket) => {
      socket.resume().end('HTTP/1.1 204 No\r\nContent-Length: 0\r\n\r\n');
    });
    const isThere = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(0, '::1', () => resolve(true));
    });
    if (!isThere) skip('there is no ::1');
    servers.push(server);
    const { port } = server.address() as net.AddressInfo;
    expect((await get(`http://[::1]:${port}/`)).status).toBe(204);
  });
});
