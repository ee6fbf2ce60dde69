// Server-sent events and log follow: what is resent after a break, and what ends a stream.
import type http from 'node:http';
import { describe, expect, it, vi } from 'vitest';
import { createClient } from '../../src/client/create_client.ts';
import { createFetchTransport } from '../../src/client/fetch_transport.ts';
import { nodeTransport } from '../../src/client/node_transport.ts';
import type { DaemonEvent } from '../../src/client/records.ts';
import { eventually } from '../kit/eventually.ts';
import { freePort } from '../kit/free_ports.ts';
import { json, serve } from '../kit/recording_server.ts';

const open = (response: http.ServerResponse, ...frames: string[]): void => {
  response.writeHead(200, { 'Content-Type': 'text/event-stream' });
  response.write(frames.join(''));
};
const frame = (id: number, type: string, data: object): string =>
  `id: ${id}\nevent: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
const crashed = (id: number): string =>
  frame(id, 'service.crashed', { name: 'web', exitCode: id, signal: null });

describe.each([
  ['node:http', nodeTransport],
  ['fetch', createFetchTransport()],
])('a stream over %s', (_name, transport) => {
  it("yields typed events, and reconnects after the server's delay with the last id", async () => {
    const fake = await serve((_asked, response, count) => {
      if (count === 1) {
        open(response, 'retry: 10\n\n', crashed(7), ': a comment\n\n', crashed(8));
        response.end();
      } else if (count === 2) {
        response.socket?.destroy();
      } else {
        open(response, crashed(9));
      }
    });
    const leave = new AbortController();
    const states: (number | true)[] = [];
    const events: DaemonEvent[] = [];
    const berth = createClient(transport, { url: fake.url });
    for await (const event of berth.events({
      types: ['service.crashed'],
      names: ['web', 'db'],
      lastEventId: 6,
      detail: true,
      signal: leave.signal,
      onState: (state) => states.push(state.open ? true : state.retryMs),
    })) {
      events.push(event);
      if (events.length === 3) leave.abort();
    }
    expect(events).toEqual(
      [7, 8, 9].map((id) => ({
        id,
        type: 'service.crashed',
        data: { name: 'web', exitCode: id, signal: null },
      })),
    );
    expect(fake.asked.map(({ headers }) => headers['last-event-id'])).toEqual(['6', '8', '8']);
    expect(fake.asked[0]?.path).toBe('/v1/events?types=service.crashed&names=web%2Cdb&detail=true');
    expect(states).toEqual([true, 10, 10, true]);
  });

  it('yields stream.reset, which has no id, and resumes from the last event with an id', async () => {
    const fake = await serve((_asked, response, count) => {
      open(response, 'retry: 1\n\n', 'event: stream.reset\ndata: {"oldest":40}\n\n', crashed(40 + count));
      if (count === 1) response.end();
    });
    const events: DaemonEvent[] = [];
    for await (const event of createClient(transport, { url: fake.url }).events({ lastEventId: 3 })) {
      events.push(event);
      if (events.length === 3) break;
    }
    expect(events.map(({ type, id }) => [type, id])).toEqual([
      ['stream.reset', null],
      ['service.crashed', 41],
      ['stream.reset', null],
    ]);
    expect(fake.asked[1]?.headers['last-event-id']).toBe('41');
  });

  it('decodes characters that are split across packets', async () => {
    const bytes = Buffer.from('event: line\ndata: {"line":"größer ✓"}\n\n');
    const fake = await serve((_asked, response) => {
      open(response);
      const cuts = [...bytes.keys()].filter((at) => ((bytes[at] ?? 0) & 0xc0) === 0x80);
      let from = 0;
      const next = (): void => {
        const to = cuts.shift() ?? bytes.length;
        response.write(bytes.subarray(from, to));
        from = to;
        if (from < bytes.length) setTimeout(next, 5);
      };
      next();
    });
    for await (const line of createClient(transport, { url: fake.url }).followLogs('web')) {
      expect(line).toBe('größer ✓');
      break;
    }
  });

  it('closes its connection when the loop ends', async () => {
    let closed: () => void = () => {};
    const gone = new Promise<void>((resolve) => {
      closed = resolve;
    });
    const fake = await serve((_asked, response) => {
      response.on('close', closed);
      open(response, crashed(1));
    });
    for await (const _event of createClient(transport, { url: fake.url }).events()) break;
    await gone;
  });

  it('reconnects when a connection is silent, but not while the reader is slow', async () => {
    const fake = await serve((_asked, response, count) => open(response, 'retry: 1\n\n', crashed(count)));
    const events = createClient(transport, { url: fake.url }).events();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      expect(await events.next()).toMatchObject({ value: { id: 1 } });
      vi.advanceTimersByTime(60_000);
      const next = events.next();
      await new Promise((resolve) => setImmediate(resolve));
      expect(fake.asked).toHaveLength(1);
      await vi.advanceTimersByTimeAsync(44_999);
      expect(fake.asked).toHaveLength(1);
      const until = vi.waitUntil(() => vi.advanceTimersByTime(1_000) && fake.asked.length === 2);
      expect(await next).toMatchObject({ value: { id: 2 } });
      await until;
    } finally {
      vi.useRealTimers();
      await events.return(undefined);
    }
  });

  it('throws errors that a retry cannot fix', async () => {
    const denied = { code: 'unauthorized', message: 'token', hint: 'send it' };
    const fake = await serve((_asked, response) => json(response, 401, denied));
    const events = createClient(transport, { url: fake.url }).events();
    await expect(events.next()).rejects.toMatchObject({ code: 'unauthorized', status: 401 });
    expect(fake.asked).toHaveLength(1);
  });

  it('throws when nothing listens at its first connection', async () => {
    const url = `http://127.0.0.1:${freePort()}`;
    await expect(createClient(transport, { url }).events().next()).rejects.toMatchObject({
      code: 'unreachable',
    });
  });

  it('throws when the response to its first connection is not a stream', async () => {
    const fake = await serve((_asked, response) => json(response, 200, {}));
    await expect(createClient(transport, { url: fake.url }).events().next()).rejects.toMatchObject({
      code: 'bad_answer',
    });
    expect(fake.asked).toHaveLength(1);
  });

  it('retries its first connection with reconnect: always', async () => {
    const fake = await serve((_asked, response, count) =>
      count === 1 ? response.destroy() : open(response, crashed(1)),
    );
    const lost: string[] = [];
    const events = createClient(transport, { url: fake.url }).events({
      reconnect: 'always',
      onState: (state) => {
        if (!state.open) lost.push(state.error.code);
      },
    });
    expect(await events.next()).toMatchObject({ value: { id: 1 } });
    expect(lost).toEqual(['unreachable']);
    await events.return(undefined);
  });

  it('throws when the connection is lost with reconnect: false', async () => {
    const fake = await serve((_asked, response) => {
      open(response, crashed(1));
      response.end();
    });
    const events = createClient(transport, { url: fake.url }).events({ reconnect: false });
    expect(await events.next()).toMatchObject({ done: false });
    await expect(events.next()).rejects.toMatchObject({ code: 'closed' });
    expect(fake.asked).toHaveLength(1);
  });

  it('resumes from the start of a stream in which it has received nothing', async () => {
    const fake = await serve((_asked, response, count) => {
      open(response, 'retry: 1\n\n: id 6\n\n: id x y\n\n', ...(count < 3 ? [] : [crashed(9)]));
      if (count < 4) response.end();
    });
    const events = createClient(transport, { url: fake.url }).events();
    await events.next();
    const next = events.next();
    await eventually(() => fake.asked.length === 4);
    expect(fake.asked.map(({ headers }) => headers['last-event-id'])).toEqual([undefined, '6', '6', '9']);
    expect(await next).toMatchObject({ value: { id: 9 } });
    await events.return(undefined);
  });

  it('asks for past lines until it has received one, then resumes after the last line', async () => {
    const line = (text: string, id: number) => `id: ${id}\nevent: line\ndata: {"line":"${text}"}\n\n`;
    const fake = await serve((_asked, response, count) => {
      open(response, 'retry: 1\n\n', count === 1 ? '' : line(`line ${count}`, count * 10));
      if (count < 4) response.end();
    });
    const seen: string[] = [];
    for await (const text of createClient(transport, { url: fake.url }).followLogs('web', { lines: 5 })) {
      seen.push(text);
      if (seen.length === 3) break;
    }
    expect(seen).toEqual(['line 2', 'line 3', 'line 4']);
    expect(fake.asked.map(({ path, headers }) => [path, headers['last-event-id']])).toEqual([
      ['/v1/services/web/logs/stream?lines=5', undefined],
      ['/v1/services/web/logs/stream?lines=5', undefined],
      ['/v1/services/web/logs/stream?lines=5', '20'],
      ['/v1/services/web/logs/stream?lines=5', '30'],
    ]);
  });

  it.each([
    ['more than half a minute', '99999999999999', 30_000],
    ['no pause at all', '0', 10],
  ])('limits the delay of a server that asks for %s', async (_what, asked, kept) => {
    const fake = await serve((_asked, response) => {
      open(response, `retry: ${asked}\n\n`, crashed(1));
      response.end();
    });
    const leave = new AbortController();
    const pauses: number[] = [];
    const onState = (state: { open: boolean; retryMs?: number }): void => {
      if (state.open) return;
      pauses.push(state.retryMs ?? 0);
      leave.abort();
    };
    const events = createClient(transport, { url: fake.url }).events({ signal: leave.signal, onState });
    for await (const event of events) expect(event.type).toBe('service.crashed');
    expect(pauses).toEqual([kept]);
  });

  it('ends at once when it is aborted while it waits to reconnect', async () => {
    const fake = await serve((_asked, response) => {
      open(response, 'retry: 3600000\n\n', crashed(1));
      response.end();
    });
    const leave = new AbortController();
    const seen: unknown[] = [];
    for await (const event of createClient(transport, { url: fake.url }).events({
      signal: leave.signal,
      onState: (state) => state.open || leave.abort(),
    })) {
      seen.push(event);
    }
    expect(seen).toHaveLength(1);
  });
});
