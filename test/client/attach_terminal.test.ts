// The attach protocol against a real WebSocket server: docs/reference.md "Attach".
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import { createClient } from '../../src/client/create_client.ts';
import { nodeTransport } from '../../src/client/node_transport.ts';
import { json, serve } from '../kit/recording_server.ts';
import { bearerOf, proofFor } from '../kit/server_proof.ts';

const TOKEN = 'pass/word';

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

async function terminals(
  onSocket: (socket: WebSocket, request: http.IncomingMessage) => void,
): Promise<string> {
  const server = http.createServer((request, response) =>
    json(response, 200, proofFor(request.url ?? '', request.headers.host ?? '', { daemon: TOKEN })),
  );
  const sockets = new WebSocketServer({ server, handleProtocols: () => 'berth.v1' });
  sockets.on('connection', onSocket);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(() => {
    for (const socket of sockets.clients) socket.terminate();
    sockets.close();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

it('sends keys and sizes, and delivers and acknowledges output until the exit', async () => {
  const heard: unknown[] = [];
  const asked: unknown[] = [];
  const url = await terminals((socket, request) => {
    asked.push(request.url, request.headers['sec-websocket-protocol']);
    socket.on('message', (data: Buffer, isBinary) => {
      heard.push(isBinary ? data.toString() : JSON.parse(data.toString()));
      if (heard.length < 3) return;
      socket.send(JSON.stringify({ exit: { exitCode: null, signal: 'SIGTERM' } }));
      socket.close(1000, 'ended');
    });
    socket.send(JSON.stringify({ size: [80, 24] }));
    socket.send(Buffer.from('screen'));
  });
  const output: string[] = [];
  const sizes: number[][] = [];
  const terminal = await createClient(nodeTransport, { url, token: TOKEN }).attach('bot', {
    onOutput: (bytes) => void output.push(Buffer.from(bytes).toString()),
    onSize: (...size) => sizes.push(size),
  });
  terminal.write('ls\r');
  terminal.resize(100, 30);
  expect(await terminal.ended).toEqual({
    exit: { exitCode: null, signal: 'SIGTERM' },
    code: 1000,
    reason: 'ended',
    undelivered: 0,
  });
  expect(asked).toEqual([
    '/v1/agents/bot/attach',
    `berth.v1,base64url.bearer.authorization.berth.${Buffer.from(bearerOf(TOKEN)).toString('base64url')}`,
  ]);
  expect(output).toEqual(['screen']);
  expect(sizes).toEqual([[80, 24]]);
  expect(heard).toContainEqual('ls\r');
  expect(heard).toContainEqual({ resize: [100, 30] });
  expect(heard).toContainEqual({ ack: 6 });
});

const PASTED = Array.from({ length: 50_000 }, (_, n) => String(100_000 + n)).join('');

it('sends long input in parts, in order, and only so much before it is acknowledged', async () => {
  const lengths: number[] = [];
  let text = '';
  let acknowledged = 0;
  let most = 0;
  const url = await terminals((socket) => {
    const acknowledge = (): void => {
      const bytes = text.length - acknowledged;
      acknowledged += bytes;
      socket.send(JSON.stringify({ ack: bytes }));
    };
    acknowledge();
    socket.on('message', (data: Buffer) => {
      lengths.push(data.length);
      text += data;
      most = Math.max(most, text.length - acknowledged);
      const isWhole = text.length === PASTED.length;
      if (isWhole || text.length - acknowledged > 32 * 1024) acknowledge();
      if (isWhole) socket.close(1000);
    });
  });
  const unsent: number[] = [];
  const terminal = await createClient(nodeTransport, { url }).attach('bot', {
    onOutput: () => {},
    onUnsent: (bytes) => unsent.push(bytes),
  });
  terminal.write(PASTED);
  expect(await terminal.ended).toMatchObject({ code: 1000, undelivered: 0 });
  expect([text === PASTED, Math.max(...lengths), most]).toEqual([true, 32 * 1024, 64 * 1024]);
  expect([unsent[0], unsent.at(-1)]).toEqual([PASTED.length - 64 * 1024, 0]);
  expect(unsent).toEqual(unsent.toSorted((one, other) => other - one));
});

it.each(['the server closes', 'the viewer leaves'])(
  'reports how much input was not taken when %s, and sends none of it afterwards',
  async (how) => {
    let length = 0;
    const url = await terminals((socket) => {
      socket.send(JSON.stringify({ ack: 0 }));
      socket.on('message', (data: Buffer) => {
        length += data.length;
        if (length < 64 * 1024) return;
        if (how === 'the server closes') socket.close(1012);
        // It arrives while the viewer's side is closing.
        else socket.send(JSON.stringify({ ack: length }));
      });
    });
    const terminal = await createClient(nodeTransport, { url }).attach('bot', { onOutput: () => {} });
    terminal.write(PASTED);
    if (how === 'the viewer leaves') terminal.detach();
    const { undelivered } = await terminal.ended;
    const taken = how === 'the viewer leaves' ? 64 * 1024 : 0;
    expect([length, undelivered]).toEqual([64 * 1024, PASTED.length - taken]);
    terminal.write('x');
    expect((await terminal.ended).undelivered).toBe(undelivered);
  },
);

it.each([
  [60_000, 60_000],
  // A program may end at a key that was typed.
  [5, 0],
])('of %i bytes that are not acknowledged, %i count as lost', async (written, undelivered) => {
  const url = await terminals((socket) => {
    socket.send(JSON.stringify({ ack: 0 }));
    socket.on('message', () => socket.close(1000));
  });
  const terminal = await createClient(nodeTransport, { url }).attach('bot', { onOutput: () => {} });
  terminal.write('x'.repeat(written));
  expect((await terminal.ended).undelivered).toBe(undelivered);
});

it('sends all input at once to a server that acknowledges none', async () => {
  let text = '';
  const url = await terminals((socket) => {
    socket.send(JSON.stringify({ size: [80, 24] }));
    socket.on('message', (data: Buffer) => {
      text += data;
      if (text.length === PASTED.length) socket.close(1000);
    });
  });
  const terminal = await createClient(nodeTransport, { url }).attach('bot', { onOutput: () => {} });
  terminal.write(PASTED);
  expect([(await terminal.ended).undelivered, text === PASTED]).toEqual([0, true]);
});

it('acknowledges output only after it was consumed', async () => {
  let take: () => void = () => {};
  const taken = new Promise<void>((resolve) => {
    take = resolve;
  });
  let acknowledged: (value: unknown) => void = () => {};
  const ack = new Promise((resolve) => {
    acknowledged = resolve;
  });
  const order: string[] = [];
  const url = await terminals((socket) => {
    socket.on('message', (data) => {
      order.push('acknowledged');
      acknowledged(JSON.parse(data.toString()));
    });
    socket.send(Buffer.alloc(1000));
  });
  const terminal = await createClient(nodeTransport, { url }).attach('bot', { onOutput: () => taken });
  order.push('taken');
  take();
  expect(await ack).toEqual({ ack: 1000 });
  expect(order).toEqual(['taken', 'acknowledged']);
  terminal.detach();
  expect(await terminal.ended).toMatchObject({ exit: null });
});

it('detaches when its signal aborts, and reports a lost connection', async () => {
  const url = await terminals((socket, request) => {
    if (request.url?.includes('lost')) socket.terminate();
  });
  const berth = createClient(nodeTransport, { url });
  const leave = new AbortController();
  const terminal = await berth.attach('bot', { onOutput: () => {}, signal: leave.signal });
  leave.abort();
  expect(await terminal.ended).toMatchObject({ exit: null, code: 1000 });
  const lost = await berth.attach('lost', { onOutput: () => {} });
  expect(await lost.ended).toMatchObject({ exit: null, code: 1006 });
});

it.each(['onOutput', 'onSize'] as const)(
  'an error in %s ends the attachment with that error',
  async (thrower) => {
    let left: (code: number) => void = () => {};
    const leaving = new Promise<number>((resolve) => {
      left = resolve;
    });
    const url = await terminals((socket) => {
      socket.on('close', left);
      socket.send(JSON.stringify({ size: [80, 24] }));
      socket.send(Buffer.from('screen'));
    });
    const broken = (): never => {
      throw new Error('the disk is full');
    };
    const options = { onOutput: () => {}, [thrower]: broken };
    const terminal = await createClient(nodeTransport, { url }).attach('bot', options);
    await expect(terminal.ended).rejects.toThrow('the disk is full');
    expect(await leaving).toBe(1000);
  },
);

it('throws the error of a daemon that refuses the upgrade', async () => {
  const body = { code: 'not_running', message: 'bot does not run', hint: 'Start it first.' };
  const fake = await serve(() => {});
  fake.server.on('upgrade', (_request, socket) => {
    const text = JSON.stringify(body);
    socket.on('error', () => {});
    socket.on('end', () => socket.end()).resume();
    socket.write(
      `HTTP/1.1 409 Conflict\r\nContent-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`,
    );
  });
  const attach = createClient(nodeTransport, { url: fake.url }).attach('bot', { onOutput: () => {} });
  await expect(attach).rejects.toMatchObject({ ...body, status: 409 });
});

it('times out when the server sends no proof', async () => {
  const silent = http.createServer(() => {});
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  closing.push(() => {
    silent.closeAllConnections();
    silent.close();
  });
  const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const client = createClient(nodeTransport, { url, token: TOKEN, deadlineMs: 50 });
  await expect(client.attach('bot', { onOutput: () => {} })).rejects.toMatchObject({
    code: 'unreachable',
    message: `no proof comes from ${new URL(url).host}`,
  });
});

it('stops reading a refusal that is larger than a daemon sends', async () => {
  const fake = await serve(() => {});
  fake.server.on('upgrade', (_request, socket) => {
    const more = (): void => {
      while (socket.writable && socket.write('x'.repeat(65_536)));
    };
    socket.on('error', () => {}).on('drain', more);
    socket.write('HTTP/1.1 409 Conflict\r\nContent-Type: application/json\r\n\r\n');
    more();
  });
  const attach = createClient(nodeTransport, { url: fake.url }).attach('bot', { onOutput: () => {} });
  await expect(attach).rejects.toMatchObject({ status: 409 });
});
