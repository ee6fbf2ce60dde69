// A new token ends what came in with the old one: docs/reference.md "Tokens".
import http from 'node:http';
import { describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { fail } from '../../../src/protocol/errors.ts';
import type { McpCallersProtocol, McpProtocol } from '../../../src/protocol/mcp.ts';
import type { ServiceProtocol } from '../../../src/protocol/service.ts';
import type { TerminalProtocol } from '../../../src/protocol/terminal.ts';
import { afterThisTest, settle } from '../../kit/actors.ts';
import { eventRecord, runningState, SERVERS, specRow, sse, startFront } from '../kit.ts';

const authorization = 'Bearer old';
const AGENT = { agentType: null, hostname: 'bot.agents.localhost', cols: 80, rows: 24 };
const NEW = { token: 'new', allowedExtensions: [], allowedOrigins: [] };

describe.each(SERVERS)('a token change on %s', (server) => {
  const start = async () => {
    const front = await startFront({ server, token: 'old' });
    front.views.tell('specs', { rows: [specRow('web'), specRow('bot', { agent: AGENT, group: 'Agents' })] });
    front.views.tell('states', { rows: [runningState('web', 5), runningState('bot', 6)] });
    await settle();
    return front;
  };
  const empty = { start: 0, end: 0, run: null, parts: [], times: [] };

  it('ends the streams of events and logs, which get nothing more', async () => {
    const front = await start();
    const service = await front.stand<ServiceProtocol>('service:web', {
      tailStart: () => 0,
      read: () => empty,
    });
    const events = await sse(front.port, '/v1/events', { authorization });
    const log = await sse(front.port, '/v1/services/web/logs/stream', { authorization });
    front.front.reload({ ...NEW, token: 'old' });
    front.views.tell('events', { events: [eventRecord(1)] });
    await events.until(1);
    front.front.reload(NEW);
    front.views.tell('events', { events: [eventRecord(2)] });
    await Promise.all([events.closed, log.closed]);
    expect(events.frames.map(({ id }) => id)).not.toContain(2);
    expect(await service.next('follow')).toEqual({ on: true });
    expect(await service.next('follow')).toEqual({ on: false });
    expect((await sse(front.port, '/v1/events', { authorization })).status).toBe(401);
  });

  it('ends the stream of the logs of several services', async () => {
    const front = await start();
    await front.stand<ServiceProtocol>('service:web', { tailStart: () => 0, read: () => empty });
    const logs = await sse(front.port, '/v1/logs/stream?names=web', { authorization });
    expect(logs.status).toBe(200);
    front.front.reload(NEW);
    await logs.closed;
  });

  it('ends the streamed answer of a tool', async () => {
    const front = await start();
    const answer = { status: 200, contentType: 'text/event-stream', body: null };
    const mcp = await front.stand<McpProtocol>('mcp', { serve: () => answer });
    const headers = {
      authorization,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    };
    const called = new Promise<http.IncomingMessage>((resolve, reject) => {
      const call = http.request({ port: front.port, method: 'POST', path: '/mcp', headers }, resolve);
      call.on('error', reject).end('{}');
    });
    const { id } = await mcp.next('serve');
    const bytes = Buffer.from('data: {}\n\n');
    front.node.ref<McpCallersProtocol>('mcpcallers').tell('chunk', { id, bytes });
    const streamed = await called;
    const closed = new Promise((resolve) => streamed.on('error', () => {}).on('close', resolve));
    expect(await new Promise((resolve) => streamed.once('data', resolve))).toEqual(bytes);
    front.front.reload(NEW);
    await closed;
    expect(await mcp.next('cancel')).toEqual({ id });
  });

  it('refuses a log stream that is still being opened', async () => {
    const front = await start();
    let answer: (offset: number) => void = () => {};
    const service = await front.stand<ServiceProtocol>('service:web', {
      tailStart: () =>
        new Promise<number>((resolve) => {
          answer = resolve;
        }),
      read: () => empty,
    });
    const opening = sse(front.port, '/v1/services/web/logs/stream?lines=5', { authorization });
    await service.next('tailStart');
    front.front.reload(NEW);
    answer(0);
    expect((await opening).status).toBe(401);
  });

  it('answers waiting requests', async () => {
    const front = await start();
    let endStop = (): void => {};
    const service = await front.stand<ServiceProtocol>('service:web', {
      stop: () =>
        new Promise((_, reject) => {
          endStop = () => reject(fail('daemon_busy', 'it lives on'));
        }),
    });
    const ask = (method: string, path: string) => front.request(method, path, { headers: { authorization } });
    const wait = ask('GET', '/v1/agents/wait?names=bot&for=blocked&timeout=3600000');
    const stop = ask('POST', '/v1/services/web/stop');
    await service.next('stop');
    front.front.reload({ ...NEW, token: 'old' });
    front.front.reload(NEW);
    expect((await stop).body).toMatchObject({
      code: 'unauthorized',
      message: 'the token has changed; the request may still take effect',
    });
    expect((await wait).body.code).toBe('unauthorized');
    endStop();
  });

  it('closes terminals, and passes on no later keys', async () => {
    const front = await start();
    const service = await front.stand<TerminalProtocol>('service:bot');
    const token = `base64url.bearer.authorization.berth.${Buffer.from('old').toString('base64url')}`;
    const url = `ws://127.0.0.1:${front.port}/v1/agents/bot/attach`;
    const socket = new WebSocket(url, ['berth.v1', token]);
    afterThisTest(() => socket.terminate());
    await new Promise((resolve) => socket.on('open', resolve));
    await service.next('attach');
    // The frame is on its way when the token changes.
    front.front.reload(NEW);
    socket.send(Buffer.from('rm -rf /\r'));
    const [code, reason] = await new Promise<[number, string]>((resolve) =>
      socket.on('close', (closeCode, text) => resolve([closeCode, text.toString()])),
    );
    expect([code, reason]).toEqual([1008, 'the token has changed']);
    await service.next('detach');
    expect(service.of('input')).toEqual([]);
  });
});
