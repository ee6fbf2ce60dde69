// Following a log, docs/reference.md "Logs of a service": the service is a stand-in with a real log; the
// clients are real.
import { mkdtempSync, rmSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ServiceLog } from '../../../src/actors/service/service_log.ts';
import { LogWriter } from '../../../src/logs/writer.ts';
import { fail } from '../../../src/protocol/errors.ts';
import type { ServiceProtocol } from '../../../src/protocol/service.ts';
import { localTime } from '../../../src/protocol/timestamps.ts';
import { MIB } from '../../../src/settings/limits.ts';
import { afterThisTest, type Stand, settle, virtualClock } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import {
  type FrontSetup,
  type Running,
  runningState,
  SERVERS,
  type SseClient,
  specRow,
  sse,
  startFront,
  stateRow,
} from '../kit.ts';

type Output = 'stdout' | 'stderr';

const FIRST_RUN = '00000000000000aa';
const NEXT_RUN = '00000000000000bb';

/** The log of a service as the host writes it and its actor reads it. */
class Log extends ServiceLog {
  readonly limits = { maxBytes: Number.POSITIVE_INFINITY, keep: 0 };
  run = FIRST_RUN;
  now = Date.parse('2026-11-20T10:00:00Z');
  private readonly writer: LogWriter;

  constructor() {
    const folder = mkdtempSync(join(tmpdir(), 'berth-follow-'));
    // The test itself reports growth.
    super(folder, { follow: () => {}, grew: () => {} });
    this.writer = new LogWriter(folder, this.limits, () => this.now);
    afterThisTest(() => {
      this.writer.close();
      rmSync(folder, { recursive: true });
    });
  }

  add(text: string | Buffer, stream: Output = 'stdout'): void {
    this.writer.append(stream === 'stdout' ? 1 : 2, this.run, Buffer.from(text as string));
  }
}

interface Logged extends Running {
  log: Log;
  service: Stand<ServiceProtocol>;
  /** Writes to the log and reports its growth. */
  print(text: string | Buffer, stream?: Output): void;
}

async function startLogged(setup: FrontSetup): Promise<Logged> {
  const front = await startFront(setup);
  const log = new Log();
  front.views.tell('specs', { rows: [specRow('web'), specRow('other')] });
  front.views.tell('states', { rows: [runningState('web', 5)] });
  const service = await front.stand<ServiceProtocol>('service:web', {
    read: ({ offset, limit, ...query }) => log.parts(offset, limit, query),
    tailStart: (query) => log.tailStart(query),
  });
  await settle();
  const print = (text: string | Buffer, stream: Output = 'stdout') => {
    log.add(text, stream);
    front.views.tell('grew', { name: 'web' });
  };
  return Object.assign(front, { log, service, print });
}

const linesOf = (client: SseClient): string[] =>
  client.frames.flatMap(({ event, data }) => (event === 'line' ? [JSON.parse(data ?? '').line] : []));
async function lines(client: SseClient, count: number): Promise<string[]> {
  await client.until(count);
  return linesOf(client);
}

describe.each(SERVERS)('a log stream of %s', (server) => {
  const start = (setup: FrontSetup = {}) => startLogged({ server, ...setup });
  const follow = (front: Running, query = '', headers = {}) =>
    sse(front.port, `/v1/services/web/logs/stream${query}`, headers);

  it('shows every line from now on', async () => {
    const front = await start();
    front.log.add('before\n');
    const client = await follow(front);
    expect([client.status, client.headers['content-type']]).toEqual([200, 'text/event-stream']);
    front.print('one\ntwo\n');
    front.print('thr');
    front.print('ee\n\n');
    expect(await lines(client, 4)).toEqual(['one', 'two', 'three', '']);
    expect(client.frames[0]).toMatchObject({ retry: 1000, event: null });
  });

  it('shows the last lines first on request, and completes an unfinished one', async () => {
    const front = await start();
    front.log.add('a\nb\nc\nhalf');
    const client = await follow(front, '?lines=2');
    expect(await lines(client, 1)).toEqual(['c']);
    front.print(' and half\nnext\n');
    expect(await lines(client, 3)).toEqual(['c', 'half and half', 'next']);
    const whole = await follow(front, '?lines=100');
    expect(await lines(whole, 5)).toEqual(['a', 'b', 'c', 'half and half', 'next']);
  });

  it('tells on request only that something was printed, also without a newline', async () => {
    const front = await start();
    front.log.add('before');
    const client = await follow(front, '?growth=true&stream=stdout');
    front.print('Continue? ');
    await client.until(1);
    front.print('an error', 'stderr');
    front.print('[y/N]');
    const frames = (await client.until(2)).slice(-2);
    expect(frames.map(({ event, data }) => [event, data])).toEqual([1, 2].map(() => ['growth', '{}']));
    client.close();
    front.print(' y');
    const again = await follow(front, '?growth=true', { 'last-event-id': String(frames[1]?.id) });
    expect((await again.until(1)).at(-1)).toMatchObject({ event: 'growth', id: front.log.end() });
  });

  it('completes the unfinished line of one output, whatever the other printed after it', async () => {
    const front = await start();
    front.log.add('a\nhal');
    front.log.add('oo', 'stderr');
    front.log.add('f a');
    front.log.add('ps', 'stderr');
    const out = await follow(front, '?stream=stdout&lines=2');
    expect(await lines(out, 1)).toEqual(['a']);
    const err = await follow(front, '?stream=stderr&lines=2');
    front.print(' line\n');
    expect(await lines(out, 2)).toEqual(['a', 'half a line']);
    front.print('nex');
    front.print('!\n', 'stderr');
    expect(await lines(err, 1)).toEqual(['oops!']);
    front.print('t\n');
    expect(await lines(out, 3)).toEqual(['a', 'half a line', 'next']);
  });

  it('completes an unfinished line as printed, not as read until then', async () => {
    const front = await start();
    const euro = Buffer.from('€');
    front.log.add(Buffer.concat([Buffer.from('loading 10%\r'), euro.subarray(0, 2)]));
    const [plain, raw] = await Promise.all([follow(front, '?lines=5'), follow(front, '?lines=5&raw=true')]);
    front.print(Buffer.concat([euro.subarray(2), Buffer.from('oading 20%\n')]));
    expect(await lines(plain, 1)).toEqual(['€oading 20%']);
    expect(await lines(raw, 1)).toEqual(['loading 10%\r€oading 20%']);
  });

  it('neither misses nor repeats lines printed while it is opened', async () => {
    const front = await start();
    let count = 0;
    const printing = setInterval(() => {
      count += 1;
      front.print(`${count}\n`);
    }, 1);
    afterThisTest(() => clearInterval(printing));
    const clients = await Promise.all(Array.from({ length: 10 }, () => follow(front, '?lines=1000')));
    await settle();
    const until = count + 20;
    for (const client of clients) {
      const got = (await lines(client, until)).map(Number).slice(0, until);
      expect(got).toEqual(Array.from({ length: until }, (_, index) => index + 1));
    }
  });

  it('turns output into readable text, or raw on request', async () => {
    const front = await start();
    const [plain, raw] = await Promise.all([follow(front), follow(front, '?raw=true')]);
    front.print('10%\r20%\r100%\n\x1b[31mred\x1b[0m\n');
    expect(await lines(plain, 2)).toEqual(['100%', 'red']);
    expect(await lines(raw, 2)).toEqual(['10%\r20%\r100%', '\x1b[31mred\x1b[0m']);
  });

  it('joins characters that arrive in two reads, and splits lines over 64 KiB', async () => {
    const front = await start();
    const client = await follow(front);
    const euro = Buffer.from('€');
    front.print(euro.subarray(0, 1));
    await settle();
    front.print(Buffer.concat([euro.subarray(1), Buffer.from('\n')]));
    expect(await lines(client, 1)).toEqual(['€']);
    front.print(`${'x'.repeat(65_535)}€${'y'.repeat(70_000)}\nend\n`);
    const got = await lines(client, 5);
    expect(got.slice(1).map((line) => line.length)).toEqual([65_535, 65_534, 4_467, 3]);
    expect(got.slice(1, 4).join('')).toBe(`${'x'.repeat(65_535)}€${'y'.repeat(70_000)}`);
  });

  it('serves others while a long log is replayed', async () => {
    const front = await start();
    // All of it went to the other output, so that no client slows it down by reading slowly.
    const end = 1_000 * MIB;
    let replayed = 0;
    front.service.answer({
      read: ({ offset, limit }) => {
        replayed = Math.min(end, offset + limit);
        return { start: offset, end: replayed, run: null, parts: [], times: [] };
      },
    });
    await follow(front, '?stream=stderr', { 'last-event-id': '0' });
    expect((await front.request('GET', '/v1/services')).status).toBe(200);
    expect(replayed).toBeLessThan(end);
  });

  it('shows one output only, on request', async () => {
    const front = await start();
    const client = await follow(front, '?stream=stderr');
    front.print('out\n');
    front.print('err\n', 'stderr');
    front.print('out\n');
    front.print('err 2\n', 'stderr');
    expect(await lines(client, 2)).toEqual(['err', 'err 2']);
  });

  it('continues one output after its last seen line', async () => {
    const front = await start();
    front.log.add('1\n2');
    front.log.add('a\nb\nc', 'stderr');
    front.log.add('\n3\n4');
    front.log.add('\n', 'stderr');
    front.log.add('\n');
    for (const [stream, seen] of [
      ['stdout', ['1', '2', '3', '4']],
      ['stderr', ['a', 'b', 'c']],
    ] as const) {
      const first = await follow(front, `?stream=${stream}&lines=50`);
      const frames = await first.until(seen.length);
      expect(linesOf(first)).toEqual(seen);
      for (const [at, { id }] of frames.filter(({ event }) => event === 'line').entries()) {
        if (at === seen.length - 1) continue;
        const again = await follow(front, `?stream=${stream}`, { 'last-event-id': String(id) });
        expect(await lines(again, seen.length - at - 1)).toEqual(seen.slice(at + 1));
      }
    }
  });

  it('shows when each line began, on request', async () => {
    const front = await start();
    const { log } = front;
    const began = log.now;
    const at = (seconds: number, line: string) => `${localTime(began + seconds * 1_000)} ${line}`;
    const all = await follow(front, '?timestamps=true');
    const errors = await follow(front, '?timestamps=true&stream=stderr');
    front.print('one\ntw');
    log.now += 1_000;
    front.print('oops\n', 'stderr');
    log.now += 1_000;
    front.print('last words');
    expect(await lines(errors, 1)).toEqual([at(1, 'oops')]);
    front.views.tell('states', { rows: [stateRow('web')] });
    const expected = [at(0, 'one'), at(0, 'twoops'), at(2, 'last words')];
    expect(await lines(all, 3)).toEqual(expected);
    expect(await lines(await follow(front, '?timestamps=true&lines=3'), 3)).toEqual(expected);
  });

  it('ends a line where its run ends', async () => {
    const front = await start();
    const client = await follow(front);
    front.print('killed in the mid');
    front.log.run = NEXT_RUN;
    front.print('next\n');
    expect(await lines(client, 2)).toEqual(['killed in the mid', 'next']);
    const past = await follow(front, '?lines=2');
    const frames = await past.until(2);
    expect(linesOf(past)).toEqual(['killed in the mid', 'next']);
    const last = frames.filter(({ event }) => event === 'line').map(({ id }) => id);
    const again = await follow(front, '', { 'last-event-id': String(last[0]) });
    expect(await lines(again, 1)).toEqual(['next']);
  });

  it('sends past lines only as fast as its client reads them', async () => {
    const front = await start();
    const line = `${'x'.repeat(65_535)}\n`;
    for (let count = 0; count < 1_000; count += 10) front.log.add(line.repeat(10));
    const slow = net.connect(front.port, '127.0.0.1');
    afterThisTest(() => {
      slow.destroy();
    });
    slow.write(
      `GET /v1/services/web/logs/stream?lines=1000 HTTP/1.1\r\nHost: localhost:${front.port}\r\n\r\n`,
    );
    await new Promise((resolve) => slow.once('data', resolve));
    slow.pause();
    for (let turn = 0; turn < 50; turn += 1) await settle();
    const offsets = front.service.of('read').map(({ offset }) => offset);
    expect(offsets[0]).toBe(0);
    expect(Math.max(...offsets)).toBeLessThan(front.log.end() / 2);
  });

  it('continues after the last line seen', async () => {
    const front = await start();
    const first = await follow(front);
    front.print('one\ntwo\n');
    const frames = await first.until(2);
    expect(frames.map(({ id }) => id)).toEqual([4, 8]);
    first.close();
    front.print('three\nfour\n');
    const again = await follow(front, '?lines=50', { 'last-event-id': String(frames[0]?.id) });
    expect(await lines(again, 3)).toEqual(['two', 'three', 'four']);
  });

  it('continues at the beginning of the log after rotation, or at its end when it is shorter', async () => {
    const front = await start();
    front.log.add('one\ntwo\n');
    front.log.limits.maxBytes = 8;
    front.log.add('three\n');
    const client = await follow(front, '', { 'last-event-id': '0' });
    expect(await lines(client, 1)).toEqual(['three']);
    const beyond = await follow(front, '', { 'last-event-id': '100000' });
    front.print('four\n');
    expect(await lines(beyond, 1)).toEqual(['four']);
    expect(await lines(client, 2)).toEqual(['three', 'four']);
  });

  it('shows the unterminated last line of an ended process', async () => {
    const front = await start();
    const client = await follow(front);
    front.print('whole\nlast words');
    expect(await lines(client, 1)).toEqual(['whole']);
    front.views.tell('states', { rows: [stateRow('web')] });
    expect(await lines(client, 2)).toEqual(['whole', 'last words']);
    front.views.tell('states', { rows: [runningState('web', 6)] });
    front.print('new\n');
    expect(await lines(client, 3)).toEqual(['whole', 'last words', 'new']);
  });

  it('notices growth of the log that was not reported', async () => {
    const clock = virtualClock();
    const front = await start({ clock });
    const client = await follow(front);
    await settle();
    front.log.add('untold\n');
    await clock.advance(5_000);
    expect(await lines(client, 1)).toEqual(['untold']);
  });

  it('buffers nothing for a reader that reads nothing, and misses nothing later', async () => {
    const front = await start();
    const slow = net.connect(front.port, '127.0.0.1');
    afterThisTest(() => {
      slow.destroy();
    });
    let got = '';
    slow.on('data', (part) => {
      got += part.toString('latin1');
    });
    slow.write(`GET /v1/services/web/logs/stream HTTP/1.1\r\nHost: localhost:${front.port}\r\n\r\n`);
    await eventually(() => got.includes('retry'));
    slow.pause();
    const total = 40_000;
    const line = (number: number) => `${String(number).padStart(6, '0')} ${'x'.repeat(240)}`;
    for (let number = 1; number <= total; number += 100) {
      front.print(`${Array.from({ length: 100 }, (_, index) => line(number + index)).join('\n')}\n`);
      if (number % 2000 === 1) await settle();
    }
    for (let turn = 0; turn < 50; turn += 1) await settle();
    const asked = Math.max(...front.service.of('read').map(({ offset }) => offset));
    // Lines not delivered were not even read.
    expect(asked).toBeLessThan(front.log.end() - 1_000_000);
    slow.resume();
    await eventually(() => got.includes(`${String(total).padStart(6, '0')} x`));
    const numbers = [...got.replace(/\r\n[0-9a-f]+\r\n/g, '').matchAll(/"line":"(\d{6}) x{240}"/g)].map(
      ([, n]) => Number(n),
    );
    expect(numbers).toEqual(Array.from({ length: total }, (_, index) => index + 1));
  });

  it('is read once for all clients that follow it at the same place', async () => {
    const front = await start();
    const clients = await Promise.all(Array.from({ length: 30 }, () => follow(front, '?lines=1000')));
    const before = front.service.of('read').length;
    const printed = Array.from({ length: 5_000 }, (_, index) => `line ${index} ${'x'.repeat(90)}`);
    front.print(`${printed.join('\n')}\n`);
    for (const client of clients) expect(await lines(client, printed.length)).toEqual(printed);
    // Its 500 KB are some 30 pieces, which are read once, not by each client.
    expect(front.service.of('read').length - before).toBeLessThan(2 * clients.length);
  });

  it('shows at once what is printed while the end of the log is read', async () => {
    const front = await start({ clock: virtualClock() });
    const client = await follow(front);
    await client.until(0);
    let isHeld = true;
    let arrived = (): void => {};
    let release = (): void => {};
    const reading = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    front.service.answer({
      read: async ({ offset, limit, ...query }) => {
        const slice = front.log.parts(offset, limit, query);
        if (!isHeld) return slice;
        isHeld = false;
        arrived();
        await held;
        return slice;
      },
    });
    front.views.tell('grew', { name: 'web' });
    await reading;
    front.print('late\n');
    await settle();
    release();
    expect(await lines(client, 1)).toEqual(['late']);
  });

  it('is read no further for a client that has disconnected', async () => {
    const front = await start();
    const end = 10_000 * MIB;
    let replayed = 0;
    front.service.answer({
      read: ({ offset, limit }) => {
        replayed = Math.min(end, offset + limit);
        return { start: offset, end: replayed, run: null, parts: [], times: [] };
      },
    });
    const client = await follow(front, '?stream=stderr', { 'last-event-id': '0' });
    client.close();
    await eventually(() => front.service.of('follow').length === 2);
    for (let turn = 0; turn < 5; turn += 1) await settle();
    const reads = front.service.of('read').length;
    for (let turn = 0; turn < 20; turn += 1) await settle();
    expect(front.service.of('read')).toHaveLength(reads);
    expect(replayed).toBeLessThan(end);
  });

  it('releases the log as often as it has followed it', async () => {
    const front = await start();
    const clients = [await follow(front), await follow(front)];
    for (const client of clients) client.close();
    const balance = () => front.service.of('follow').reduce((sum, { on }) => sum + (on ? 1 : -1), 0);
    while (front.service.of('follow').length < 4) await settle();
    expect(balance()).toBe(0);
  });

  it('leaves nothing behind of a client that disconnects before it is open', async () => {
    const front = await start();
    let arrived: () => void = () => {};
    let answer: () => void = () => {};
    const asked = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const gone = new Promise<void>((resolve) => {
      answer = resolve;
    });
    front.service.answer({
      tailStart: async (query) => {
        arrived();
        await gone;
        return front.log.tailStart(query);
      },
    });
    const socket = net.connect(front.port, '127.0.0.1');
    socket.write(`GET /v1/services/web/logs/stream HTTP/1.1\r\nHost: 127.0.0.1:${front.port}\r\n\r\n`);
    await asked;
    socket.destroy();
    // A request after the disconnect: the front has now handled the disconnect too.
    await front.request('GET', '/livez');
    answer();
    while (front.service.of('follow').length < 2) await settle();
    expect(front.service.of('follow')).toEqual([{ on: true }, { on: false }]);
    const reads = front.service.of('read').length;
    front.print('for nobody\n');
    await settle();
    expect(front.service.of('read')).toHaveLength(reads);
  });

  it('ends when its service is removed, and is not followed after that', async () => {
    const front = await start();
    const client = await follow(front);
    front.views.tell('removed', { name: 'web' });
    await client.closed;
    expect(client.response.complete).toBe(true);
    await settle();
    expect(front.service.of('follow')).toEqual([{ on: true }]);
    const other = await start();
    const ended = await follow(other);
    other.views.tell('snapshot', { text: JSON.stringify({ specs: [specRow('other')], states: [] }) });
    await ended.closed;
  });

  it('ends when its service cannot be read, and when the daemon closes', async () => {
    const front = await start();
    const client = await follow(front);
    front.service.answer({
      read: () => {
        throw fail('internal', 'the disk is gone');
      },
    });
    front.print('x\n');
    await client.closed;
    expect(client.response.complete).toBe(true);
    front.service.answer({ read: ({ offset, limit, ...query }) => front.log.parts(offset, limit, query) });
    const again = await follow(front);
    await front.front.close();
    await again.closed;
  });

  it('ends and reports a defect that a read throws, but no failure', async () => {
    const front = await start();
    const failed = await follow(front);
    front.service.answer({
      read: () => {
        throw fail('internal', 'the disk is gone');
      },
    });
    front.print('x\n');
    await failed.closed;
    expect(front.defects).toEqual([]);
    front.service.answer({ read: ({ offset, limit, ...query }) => front.log.parts(offset, limit, query) });
    const client = await follow(front);
    front.service.answer({ read: () => null as never });
    front.print('y\n');
    await client.closed;
    expect(front.defects).toEqual([expect.any(TypeError)]);
  });

  it('gives an ordinary error when it cannot begin', async () => {
    const front = await start();
    front.service.answer({
      tailStart: () => {
        throw fail('storage_full', 'no room');
      },
    });
    const answer = await front.request('GET', '/v1/services/web/logs/stream?lines=1');
    expect([answer.status, answer.body.code]).toEqual([503, 'storage_full']);
    expect(front.service.of('follow')).toEqual([{ on: true }, { on: false }]);
    front.service.answer({ tailStart: (query) => front.log.tailStart(query) });
    const head = await front.request('HEAD', '/v1/services/web/logs/stream');
    expect([head.status, head.text]).toEqual([200, '']);
    await settle();
    expect(front.service.of('follow').slice(2)).toEqual([{ on: true }, { on: false }]);
  });
});
