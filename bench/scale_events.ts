// The cost of one subscriber when there are many, and of one event when there are many per second.
import net from 'node:net';
import { Server } from './front.ts';
import { withDaemon, withFolder } from './kit/daemon.ts';
import { type Counter, countFrames } from './kit/event_subscribers.ts';
import { growth, median, type Row } from './kit/harness.ts';
import { memoryOf, threadMs } from './kit/process_stats.ts';

const SUBSCRIBERS = [1, 10, 100, 1_000, 5_000];
const CROWDS = [1_000, 5_000];
const EVENTS = 200;
const RATES = [100, 1_000, 10_000, 100_000];
const RATE_SECONDS = 2;
/** Connections that are opened at the same time, fewer than the backlog of a listener. */
const AT_ONCE = 200;
const STREAM = '/v1/events?types=service.registered';
const KIB = 1_024;

async function open(port: number, count: number): Promise<Counter[]> {
  const counters: Counter[] = [];
  while (counters.length < count) {
    const some = Math.min(AT_ONCE, count - counters.length);
    counters.push(...(await Promise.all(Array.from({ length: some }, () => countFrames(port, STREAM)))));
  }
  return counters;
}

/** Runs `use` with `count` subscribers to the daemon. */
async function withSubscribers<T>(
  port: number,
  count: number,
  use: (of: Counter[]) => Promise<T>,
): Promise<T> {
  const counters = await open(port, count);
  try {
    return await use(counters);
  } finally {
    for (const counter of counters) counter.end();
  }
}

/** Processor time of the front thread in microseconds, per event and subscriber. */
const deliver = (count: number): Promise<number> =>
  withDaemon(({ port, pid, ask }) =>
    withSubscribers(port, count, async (counters) => {
      const register = (number: number, revision: string): Promise<unknown> =>
        ask('POST', '/v1/services', {
          name: `svc-${number % 20}`,
          port: 14_000 + (number % 20),
          cwd: '/tmp',
          cmd: `exec sleep ${revision}${number}`,
        });
      const many = async (revision: string): Promise<void> => {
        for (let number = 0; number < EVENTS; number += 1) await register(number, revision);
      };
      await many('1');
      await Promise.all(counters.map((counter) => counter.reached(EVENTS)));
      const before = threadMs(pid);
      await many('2');
      await Promise.all(counters.map((counter) => counter.reached(2 * EVENTS)));
      const spent = threadMs(pid) - before;
      const wrong = counters.find((counter) => counter.count() !== 2 * EVENTS);
      if (wrong) throw new Error(`${wrong.count()} events of ${2 * EVENTS}`);
      return (spent * 1_000) / (EVENTS * count);
    }),
  );

const roomOf = (count: number): Promise<number> =>
  withDaemon(async ({ port, pid }) => {
    const before = memoryOf(pid, 'Pss');
    return withSubscribers(port, count, async () => ((memoryOf(pid, 'Pss') - before) * KIB) / count);
  });

export async function subscribers(): Promise<Row[]> {
  const delivery = await growth({
    names: ['delivery of an event'],
    unit: 'µs of processor time',
    sizes: SUBSCRIBERS,
    sizeName: (size) => `${size} subscribers`,
    sample: async (size) => [await deliver(size)],
  });
  const memory = await growth({
    names: ['memory of a subscriber'],
    unit: 'KiB (PSS)',
    sizes: CROWDS,
    sizeName: (size) => `${size} subscribers`,
    sample: async (size) => [await roomOf(size)],
  });
  return [...delivery, ...memory];
}

/** One subscriber that records the delay of each batch of events: those with the same `sent`. */
function timer(port: number): { delays: number[]; count: () => number; end: () => void } {
  const delays: number[] = [];
  let events = 0;
  let rest = '';
  const socket = net.connect(port, '127.0.0.1');
  socket.on('data', (part) => {
    const now = process.hrtime.bigint();
    const text = rest + part.toString('latin1');
    const end = text.lastIndexOf('\n\n') + 2;
    rest = text.slice(end);
    let last = '';
    for (const [, sent = ''] of text.slice(0, end).matchAll(/"sent":(\d+)}/g)) {
      events += 1;
      if (sent !== last) delays.push(Number(now - BigInt(sent)) / 1e6);
      last = sent;
    }
  });
  socket.write(`GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
  return { delays, count: () => events, end: () => socket.destroy() };
}

/**
 * The processor time of journal and front per event in microseconds, and the median delay from the owner of
 * an event to a subscriber in milliseconds.
 */
const atRate = (perSecond: number): Promise<number[]> =>
  withFolder(async (folder) => {
    const server = await Server.start('journal', [], folder);
    const { delays, count, end } = timer(server.port);
    try {
      await server.ask({ perSecond, seconds: 1 });
      const from = delays.length;
      const before = await server.ask('cpu');
      const spent = (await server.ask({ perSecond, seconds: RATE_SECONDS })) - before;
      const events = perSecond * RATE_SECONDS;
      while (count() < events + perSecond) await new Promise((resolve) => setTimeout(resolve, 1));
      return [(spent * 1e6) / events, median(delays.slice(from))];
    } finally {
      end();
      server.end();
    }
  });

export async function eventRates(): Promise<Row[]> {
  const rows = await growth({
    names: ['event', 'delay of an event'],
    unit: 'µs of processor time',
    sizes: RATES,
    sizeName: (size) => `${size} events/s`,
    sample: atRate,
  });
  return rows.map((row) => (row.curve?.name === 'delay of an event' ? { ...row, unit: 'ms' } : row));
}
