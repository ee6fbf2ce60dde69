// docs/reference.md "Event stream" through real sockets, on both servers. The hub alone: event_hub.test.ts.
import { readFileSync } from 'node:fs';
import net from 'node:net';
import { describe, expect, it } from 'vitest';
import type { EventRecord } from '../../../src/protocol/events.ts';
import { afterThisTest, pipePair, settle, virtualClock } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import { eventRecord, type Running, SERVERS, sse, startFront } from '../kit.ts';

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);
const records = (from: number, to: number) => range(from, to).map((id) => eventRecord(id));
const tell = (front: Running, events: EventRecord[]) => front.views.tell('events', { events });

describe.each(SERVERS)('an event stream of %s', (server) => {
  it('sends missed and new events, each once, with the lines in order', async () => {
    const front = await startFront({ server, kept: records(1, 20) });
    const client = await sse(front.port, '/v1/events', { 'last-event-id': '15' });
    expect([client.status, client.headers['content-type'], client.headers['cache-control']]).toEqual([
      200,
      'text/event-stream',
      'no-store',
    ]);
    tell(front, records(21, 22));
    tell(front, records(23, 23));
    const frames = await client.until(8);
    expect(client.frames[0]).toEqual({ id: null, event: null, data: null, retry: 1000 });
    expect(frames.map(({ id }) => id)).toEqual(range(16, 23));
    expect(frames[0]).toEqual({
      id: 16,
      event: 'service.started',
      data: '{"name":"web","pid":16,"url":"http://localhost:3000"}',
      retry: null,
    });
    const bytes = await front.raw(
      `GET /v1/events?lastEventId=22 HTTP/1.1\r\nHost: localhost:${front.port}\r\n\r\n`,
      /23,"url".*\n\n/,
    );
    expect(bytes.text).toContain('retry: 1000\n\nid: 23\nevent: service.started\ndata: {"name":"web"');
  });

  it('prefers the id in the header to the query, and treats an empty one as none', async () => {
    const front = await startFront({ server, kept: records(1, 5) });
    const ids = async (query: string, headers: Record<string, string>) => {
      const client = await sse(front.port, `/v1/events${query}`, headers);
      await settle();
      tell(front, []);
      return client;
    };
    const both = await ids('?lastEventId=1', { 'last-event-id': '4' });
    const query = await ids('?lastEventId=3', {});
    const none = await ids('', {});
    const bad = await ids('?lastEventId=x', {});
    tell(front, records(6, 6));
    expect((await both.until(2)).map(({ id }) => id)).toEqual([5, 6]);
    expect((await query.until(3)).map(({ id }) => id)).toEqual([4, 5, 6]);
    expect((await none.until(1)).map(({ id }) => id)).toEqual([6]);
    const reset = await bad.until(7);
    expect([reset[0]?.event, reset[0]?.id, reset[0]?.data]).toEqual(['stream.reset', null, '{"oldest":1}']);
  });

  it('filters and adds detail as the query says', async () => {
    const front = await startFront({ server });
    const client = await sse(
      front.port,
      '/v1/events?types=service.crashed,service.stopped&names=web,db&detail=true',
    );
    tell(front, [
      eventRecord(1),
      eventRecord(2, { type: 'service.crashed', data: '{"name":"web","exitCode":3,"signal":null}' }),
      eventRecord(3, { type: 'service.crashed', name: 'other' }),
      eventRecord(4, { type: 'service.stopped', name: 'db', data: '{"name":"db","exitCode":0}' }),
    ]);
    const frames = await client.until(2);
    expect(frames.map(({ id, event }) => [id, event])).toEqual([
      [2, 'service.crashed'],
      [4, 'service.stopped'],
    ]);
    expect(Object.keys(JSON.parse(frames[0]?.data ?? ''))).toEqual([
      'name',
      'exitCode',
      'signal',
      'at',
      'run',
    ]);
  });

  it('sends something every few seconds', async () => {
    const clock = virtualClock();
    const front = await startFront({ server, clock });
    const client = await sse(front.port, '/v1/events');
    // The first one is the id at which the stream begins.
    for (const beats of [2, 3, 4]) {
      await clock.advance(5_000);
      await eventually(() => client.comments >= beats);
    }
    expect(client.comments).toBe(4);
  });

  it('loses nothing for clients that reconnect with their last id', async () => {
    const front = await startFront({ server });
    const total = 2_000;
    let sent = 0;
    const seen: number[][] = [[], [], [], []];
    const feeding = (async () => {
      while (sent < total) {
        const count = Math.min(1 + (sent % 7), total - sent);
        tell(front, records(sent + 1, sent + count));
        sent += count;
        await settle();
      }
    })();
    await Promise.all(
      seen.map(async (ids, index) => {
        let last = 0;
        while (last < total) {
          const client = await sse(front.port, '/v1/events', { 'last-event-id': String(last) });
          const frames = await client.until(Math.min(50 + index * 37, total - last));
          client.close();
          for (const { id, event } of frames) {
            expect(event).toBe('service.started');
            ids.push(id ?? 0);
          }
          last = ids.at(-1) ?? 0;
        }
      }),
    );
    await feeding;
    for (const ids of seen) expect(ids).toEqual(range(1, total));
  });

  it('disconnects a reader that reads nothing, which loses nothing when it reconnects', async () => {
    const front = await startFront({ server });
    const data = `{"name":"web","url":"${'x'.repeat(8_000)}"}`;
    const slow = net.connect(front.port, '127.0.0.1');
    afterThisTest(() => {
      slow.destroy();
    });
    const closed = new Promise<void>((resolve) => slow.on('close', () => resolve()));
    slow.on('error', () => {});
    const opened = new Promise<void>((resolve) => slow.once('data', () => resolve()));
    slow.write(`GET /v1/events HTTP/1.1\r\nHost: localhost:${front.port}\r\n\r\n`);
    await opened;
    slow.pause();
    const fine = await sse(front.port, '/v1/events');
    let id = 0;
    let gone = false;
    // The kernel takes some megabytes before any data waits here.
    while (!gone) {
      tell(
        front,
        Array.from({ length: 20 }, (_, index) => eventRecord(id + index + 1, { data })),
      );
      id += 20;
      await fine.until(id);
      gone = hasNoReader(front, slow);
    }
    slow.resume();
    await closed;
    const again = await sse(front.port, '/v1/events', { 'last-event-id': String(id - 500) });
    expect((await again.until(500)).map((frame) => frame.id)).toEqual(range(id - 499, id));
    expect(fine.frames.filter(({ id: of }) => of !== null)).toHaveLength(id);
  });

  it('reads the journal again when events were missed', async () => {
    const front = await startFront({ server, kept: records(1, 2) });
    const client = await sse(front.port, '/v1/events');
    front.events.answer({ subscribe: () => ({ kept: records(1, 6), lastId: 6, completeFrom: 1 }) });
    tell(front, records(5, 5));
    tell(front, records(6, 7));
    expect((await client.until(5)).map(({ id }) => id)).toEqual([3, 4, 5, 6, 7]);
    expect(front.events.of('subscribe')).toHaveLength(2);
  });

  it('asks the journal until it responds', async () => {
    const clock = virtualClock();
    const front = await startFront({ server, clock });
    let refusals = 0;
    front.events.answer({
      subscribe: () => {
        refusals += 1;
        throw new Error('not yet');
      },
    });
    const again = front.front.restoreEvents();
    for (let tries = 0; tries < 3; tries += 1) await clock.advance(500);
    expect(refusals).toBeGreaterThan(1);
    front.crashes.splice(0);
    front.events.answer({ subscribe: () => ({ kept: records(1, 1), lastId: 1, completeFrom: 1 }) });
    while (front.events.of('subscribe').length < refusals + 2) await clock.advance(500);
    await again;
    front.crashes.splice(0);
    const client = await sse(front.port, '/v1/events?lastEventId=0');
    expect(await client.until(1)).toHaveLength(1);
  });

  it('reads the journal again when the services thread was lost', async () => {
    const front = await startFront({ server });
    const { ends, cut } = pipePair();
    front.node.connect('services-0', ends[0]);
    cut('it died');
    await settle();
    await front.events.next('subscribe');
    await front.events.next('subscribe');
    expect(front.events.of('subscribe')).toHaveLength(2);
  });

  it('ends in order when the daemon closes', async () => {
    const front = await startFront({ server });
    const client = await sse(front.port, '/v1/events');
    tell(front, records(1, 1));
    await settle();
    await front.front.close();
    await client.closed;
    expect(client.frames.map(({ id }) => id)).toEqual([null, 1]);
    expect(client.response.complete).toBe(true);
  });
});

/** Whether the front has cut off `socket`: the kernel then has no established connection of that port. */
function hasNoReader(front: Running, socket: net.Socket): boolean {
  const hex = (port: number) => port.toString(16).toUpperCase().padStart(4, '0');
  const ours = `:${hex(front.port)} 0100007F:${hex(socket.localPort ?? 0)} 01`;
  return !readFileSync('/proc/net/tcp', 'utf8').includes(ours);
}
