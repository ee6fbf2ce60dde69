// docs/reference.md "Ready-check": probes over real sockets, and the gate.
import http from 'node:http';
import https from 'node:https';
import net, { type AddressInfo, type Server } from 'node:net';
import { describe, expect, it } from 'vitest';
import {
  type AskProbe,
  limitProbes,
  type ProbeResult,
  responseStatus,
  socketProbe,
  type UrlQuestion,
} from '../../src/adapters/ready_probe.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { afterThisTest, settle, virtualClock } from '../kit/actors.ts';
import { certificate } from '../kit/certificates.ts';
import { freePort } from '../kit/free_ports.ts';

const LOCAL = '127.0.0.1';

async function listen(server: Server, host = LOCAL): Promise<number> {
  const sockets = new Set<net.Socket>();
  server.on('connection', (socket: net.Socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, host, resolve);
  });
  afterThisTest(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return (server.address() as AddressInfo).port;
}

/** A server that answers every connection with `bytes`, or closes it if there are none. */
const raw = (bytes: string): Promise<number> =>
  listen(
    net.createServer((socket) => {
      if (bytes === '') socket.end();
      else socket.write(bytes);
    }),
  );

const probe = (url: string, limitMs = 2_000, more: Omit<UrlQuestion, 'url'> = {}): Promise<ProbeResult> =>
  new Promise((resolve) => socketProbe(systemClock)({ url, ...more }, limitMs, resolve));

const passed = (status: number | null): ProbeResult => ({ status, error: null });

describe('a probe over HTTP', () => {
  it.each([
    [200, true],
    [204, true],
    [302, true],
    [399, true],
    [401, false],
    [404, false],
    [500, false],
  ])('answered with %i passes: %s', async (status, passes) => {
    const asked: string[] = [];
    const port = await listen(
      http.createServer((request, response) => {
        asked.push(`${request.method} ${request.url} ${request.headers.host}`);
        response.writeHead(status, status === 302 ? { location: '/elsewhere' } : {}).end();
      }),
    );
    const outcome = await probe(`http://${LOCAL}:${port}/health?deep=1`);
    expect(outcome).toEqual(
      passes ? passed(status) : { status, error: `it answered ${status}; 2xx or 3xx is needed` },
    );
    // A redirect is not followed.
    expect(asked).toEqual([`GET /health?deep=1 ${LOCAL}:${port}`]);
  });

  it('does not read a body, and leaves no connection', async () => {
    let closed = (): void => {};
    const gone = new Promise<void>((resolve) => {
      closed = resolve;
    });
    const port = await listen(
      http.createServer((request, response) => {
        request.socket.on('close', closed);
        response.writeHead(200);
        const more = (): void => {
          while (!response.destroyed && response.write('x'.repeat(65_536)));
        };
        response.on('drain', more);
        more();
      }),
    );
    expect(await probe(`http://${LOCAL}:${port}/`)).toEqual(passed(200));
    await gone;
  });

  it("sends the URL's login, whatever characters it has", async () => {
    const seen: (string | undefined)[] = [];
    const port = await listen(
      http.createServer((request, response) => {
        seen.push(request.headers.authorization);
        response.end();
      }),
    );
    await probe(`http://us%40er:p%zz@${LOCAL}:${port}/`);
    expect(seen).toEqual([`Basic ${Buffer.from('us@er:p%zz').toString('base64')}`]);
  });

  it.each([
    ['HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n', passed(200)],
    ['HTTP/1.0 200\n', passed(200)],
    ['SSH-2.0-OpenSSH_9\r\n', { status: null, error: 'what it answers is not HTTP/1' }],
    ['\0\0\x12\x04\0\0\0\0\0', { status: null, error: 'what it answers is not HTTP/1' }],
    ['', { status: null, error: 'the connection was closed without an answer' }],
  ])('of a server that sends %o', async (bytes, outcome) => {
    const port = await raw(bytes);
    expect(await probe(`http://${LOCAL}:${port}/`)).toEqual(outcome);
  });

  it('accepts a status line that arrives byte by byte', async () => {
    const port = await listen(
      net.createServer(async (socket) => {
        for (const byte of 'HTTP/1.1 200 OK\r\n') {
          socket.write(byte);
          await settle();
        }
      }),
    );
    expect(await probe(`http://${LOCAL}:${port}/`)).toEqual(passed(200));
  });

  it('gives up after its limit, and closes the connection', async () => {
    let closed = (): void => {};
    const gone = new Promise<void>((resolve) => {
      closed = resolve;
    });
    const port = await listen(net.createServer((socket) => socket.resume().on('close', closed)));
    expect(await probe(`http://${LOCAL}:${port}/`, 50)).toEqual({
      status: null,
      error: 'no answer within 50 ms',
    });
    await gone;
  });

  it('that is given up reports nothing more', async () => {
    let connected = (): void => {};
    const there = new Promise<void>((resolve) => {
      connected = resolve;
    });
    let closed = (): void => {};
    const gone = new Promise<void>((resolve) => {
      closed = resolve;
    });
    const port = await listen(
      net.createServer((socket) => {
        connected();
        socket.resume().on('close', closed);
      }),
    );
    const results: ProbeResult[] = [];
    const giveUp = socketProbe(systemClock)({ url: `http://${LOCAL}:${port}/` }, 2_000, (outcome) =>
      results.push(outcome),
    );
    await there;
    giveUp();
    await gone;
    expect(results).toEqual([]);
  });

  it('of a port without a listener', async () => {
    const port = freePort();
    const error = 'connection refused: nothing listens there';
    expect(await probe(`http://localhost:${port}/`)).toEqual({ status: null, error });
    expect(await probe(`http://${LOCAL}:${port}/`)).toEqual({ status: null, error });
  });

  it('of a name that does not resolve', async () => {
    expect((await probe('http://no-such-host.invalid:1/')).error).toMatch(/does not resolve/);
  });
});

describe('a probe of localhost', () => {
  const hello = (): Server => http.createServer((_, response) => response.end());

  it.each([
    ['localhost', LOCAL],
    ['localhost', '::1'],
    ['web.agents.localhost', LOCAL],
    ['web.agents.localhost', '::1'],
    ['[::1]', '::1'],
  ])('as %s finds a listener on %s only', async (name, host) => {
    const port = await listen(hello(), host);
    expect(await probe(`http://${name}:${port}/`)).toEqual(passed(200));
    expect(await probe(`tcp://${name}:${port}`)).toEqual(passed(null));
  });

  it('takes the result of the first address to answer', async () => {
    const port = await listen(http.createServer((_, response) => response.writeHead(503).end()));
    expect(await probe(`http://localhost:${port}/`)).toMatchObject({ status: 503 });
  });
});

describe('a probe over TLS', () => {
  it('does not verify the certificate of a loopback server', async () => {
    const { key, cert } = certificate({ commonName: 'somebody-else' });
    const port = await listen(
      https.createServer({ key, cert }, (_, response) => {
        response.writeHead(204).end();
      }),
    );
    expect(await probe(`https://localhost:${port}/`)).toEqual(passed(204));
    expect(await probe(`https://${LOCAL}:${port}/`)).toEqual(passed(204));
  });

  it('reports why there is no TLS', async () => {
    const port = await listen(http.createServer((_, response) => response.end()));
    const { status, error } = await probe(`https://localhost:${port}/`);
    expect(status).toBeNull();
    expect(error).toMatch(/ssl|tls|packet|version/i);
  });
});

describe('the status of a response', () => {
  it('is not read without limit', () => {
    expect(responseStatus('HTTP/1.1 100 Continue\r\n\r\n'.repeat(1_000))).toBeNull();
    expect(responseStatus(`HTTP/1.1 200 ${'x'.repeat(20_000)}`)).toBeNull();
    expect(responseStatus('HTTP/1.1 100 Continue\r\n\r\n')).toBeUndefined();
    expect(responseStatus('HTT')).toBeUndefined();
    expect(responseStatus('HTX')).toBeNull();
    expect(responseStatus('HTTP/1.1 101 Switching Protocols\r\n')).toBe(101);
  });
});

describe('the gate', () => {
  /** A gate for two, what it has let in, and what it has cancelled. */
  function gateForTwo() {
    const clock = virtualClock();
    const open: string[] = [];
    const done = new Map<string, (outcome: ProbeResult) => void>();
    const given: string[] = [];
    const inner: AskProbe<string> = (url, _limit, report) => {
      open.push(url);
      done.set(url, report);
      return () => given.push(url);
    };
    return { clock, open, done, given, probes: limitProbes(inner, clock, 2) };
  }

  it('admits a fixed number at once, the others in order of arrival', () => {
    const { open, done, given, probes } = gateForTwo();
    const results: string[] = [];
    const cancels = ['a', 'b', 'c', 'd', 'e'].map((url) => probes(url, 1, () => results.push(url)));
    expect(open).toEqual(['a', 'b']);
    cancels[2]?.();
    done.get('a')?.(passed(200));
    expect(open).toEqual(['a', 'b', 'd']);
    cancels[1]?.();
    expect(given).toEqual(['b']);
    expect(open).toEqual(['a', 'b', 'd', 'e']);
    // A completed probe is not cancelled, and its place is freed only once.
    cancels[0]?.();
    cancels[1]?.();
    probes('f', 1, () => results.push('f'));
    expect(open).toEqual(['a', 'b', 'd', 'e']);
    done.get('d')?.(passed(200));
    expect(open).toEqual(['a', 'b', 'd', 'e', 'f']);
    expect(results).toEqual(['a', 'd']);
  });

  it('does not count one that has taken 2 s, whenever it ends', async () => {
    const { clock, open, done, probes } = gateForTwo();
    const cancels = ['a', 'b', 'c', 'd', 'e', 'f'].map((url) => probes(url, 3_600_000, () => {}));
    await clock.advance(1_999);
    expect(open).toEqual(['a', 'b']);
    await clock.advance(1);
    expect(open).toEqual(['a', 'b', 'c', 'd']);
    done.get('a')?.(passed(200));
    cancels[1]?.();
    expect(open).toEqual(['a', 'b', 'c', 'd']);
    cancels[2]?.();
    expect(open).toEqual(['a', 'b', 'c', 'd', 'e']);
  });
});
