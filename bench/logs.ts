// A search over 1 GiB of logs of 50 services: the time to the first page, how long the search blocks threads
// that serve other requests, and its memory. The floor of the time is `grep -c` over the same files.
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { LogWriter } from '../src/logs/writer.ts';
import { KIB, MIB } from '../src/settings/limits.ts';
import { type Daemon, registerMany, startDaemon, withFolder } from './kit/daemon.ts';
import { type Benchmark, cost, type Row } from './kit/harness.ts';
import { memoryOf } from './kit/process_stats.ts';
import { type ThreadHolds, threadHolds } from './kit/thread_holds.ts';

const SERVICES = 50;
/** The one with the rare line. */
const LAST_SERVICE = `svc-${SERVICES}`;
const TOTAL_BYTES = 1_024 * MIB;
const PIECE_BYTES = 16 * KIB;
const RUN = '00000000000000a1';
const TURNS = 5;
const QUIET_MS = 500;
const RARE = 'payment failed';
const run = promisify(execFile);

function line(number: number): string {
  const level = number % 50 === 0 ? 'WARN ' : 'INFO ';
  const request = `id=${(number * 7_919) % 1_000_003} path=/api/v1/items/${number} status=200`;
  return `2026-11-23T03:00:0${number % 10}.123Z ${level} [worker-${number % 7}] ${request} duration=${number % 97}ms\n`;
}

/**
 * Writes the logs piece by piece in turn, as the process host does. One rare line is the oldest of its log.
 */
function writeLogs(folder: string): void {
  let now = Date.parse('2026-11-20T00:00:00Z');
  const limits = { maxBytes: 10 * MIB, keep: 100 };
  const writers = Array.from(
    { length: SERVICES },
    (_, index) => new LogWriter(join(folder, `svc-${index + 1}`), limits, () => now),
  );
  writers[SERVICES - 1]?.append(1, RUN, Buffer.from(`ERROR ${RARE} for order 7\n`));
  let number = 0;
  for (let total = 0; total < TOTAL_BYTES; ) {
    for (const writer of writers) {
      let piece = '';
      for (; piece.length < PIECE_BYTES; number += 1) piece += line(number);
      writer.append(number % 10 === 0 ? 2 : 1, RUN, Buffer.from(piece));
      total += piece.length;
      now += 20;
    }
  }
  for (const writer of writers) writer.close();
}

const filesIn = (folder: string): string[] =>
  readdirSync(folder).flatMap((name) =>
    readdirSync(join(folder, name))
      .filter((file) => file.endsWith('.log'))
      .map((file) => join(folder, name, file)),
  );

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

/** Milliseconds that a case-insensitive `grep -c` for a text takes. */
async function grep(files: readonly string[], text: string): Promise<number> {
  // Its exit code is 1 if it finds nothing.
  return timed(() =>
    run('grep', ['-c', '-i', '-F', '-e', text, ...files], {
      env: { LC_ALL: 'C', PATH: process.env['PATH'] },
    }).catch(() => null),
  );
}

interface Page {
  lines: unknown[];
  before: string | null;
}

/** Milliseconds until the first page of a search. */
async function firstPage(daemon: Daemon, query: string): Promise<number> {
  return timed(() => daemon.ask('GET', `/v1/logs?limit=100&${query}`));
}

/** Milliseconds until a page of a search has a line, or no page is left. */
async function untilFound(daemon: Daemon, query: string): Promise<number> {
  return timed(async () => {
    for (let before = ''; ; ) {
      const page = (await daemon.ask('GET', `/v1/logs?limit=100&${query}${before}`)) as Page;
      if (page.lines.length > 0 || page.before === null) return;
      before = `&before=${page.before}`;
    }
  });
}

/** Milliseconds until a client has all lines of a log as a stream. */
async function streamed({ port }: Daemon, name: string): Promise<number> {
  return timed(async () => {
    const query = `names=${name}&follow=false&since=2026-11-20T00:00:00Z`;
    const answer = await fetch(`http://127.0.0.1:${port}/v1/logs/stream?${query}`);
    const text = await answer.text();
    if (!text.includes(RARE)) throw new Error('the stream does not have all lines');
  });
}

/** Milliseconds that reading the lines of `files` and writing each as JSON takes. */
async function asJson(files: readonly string[]): Promise<number> {
  return timed(async () => {
    const lines = files.flatMap((file) => readFileSync(file, 'utf8').split('\n'));
    return lines.map((text) => JSON.stringify({ text })).join('\n');
  });
}

async function measure(daemon: Daemon, files: readonly string[]): Promise<Row[]> {
  const before = memoryOf(daemon.pid, 'Pss');
  const q = `q=${encodeURIComponent(RARE)}`;
  const rows = [
    await cost('first page of a common text', 'ms', {
      floor: () => grep(files, 'status=200'),
      subject: () => firstPage(daemon, 'q=status%3D200'),
      turns: TURNS,
    }),
    await cost('first page of a rare text', 'ms', {
      floor: () => grep(files, RARE),
      subject: () => firstPage(daemon, q),
      turns: TURNS,
    }),
    await cost('a rare text, to the oldest line', 'ms', {
      floor: () => grep(files, RARE),
      subject: () => untilFound(daemon, q),
      turns: TURNS,
    }),
    await cost('a rare expression, to the oldest line', 'ms', {
      floor: () => grep(files, RARE),
      subject: () => untilFound(daemon, `regex=${encodeURIComponent('payment (failed|lost)')}`),
      turns: TURNS,
    }),
    await cost('all lines of a log, streamed', 'ms', {
      floor: () => asJson(files.filter((file) => file.includes(`/${LAST_SERVICE}/`))),
      subject: () => streamed(daemon, LAST_SERVICE),
      turns: TURNS,
    }),
  ];
  const more = await cost('memory more', 'MiB', {
    floor: async () => before,
    subject: async () => memoryOf(daemon.pid, 'Pss') - before,
    turns: 1,
  });
  return [...rows, more];
}

/** The longest time for which a search blocks a thread that serves other requests. */
async function measureHolds(daemon: Daemon, holds: ThreadHolds): Promise<Row> {
  return cost('longest hold of another thread', 'ms', {
    floor: () => holds.during(() => pause(QUIET_MS)),
    subject: () => holds.during(() => firstPage(daemon, `q=${encodeURIComponent(RARE)}`)),
    turns: TURNS,
  });
}

async function measureAndEnd<T>(daemon: Daemon, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } finally {
    await daemon.end();
  }
}

export const logs: Benchmark = {
  name: 'logs',
  question: 'How long does a search over 1 GiB of logs of 50 services take?',
  run: () =>
    withFolder(async (folder) => {
      const path = join(folder, 'state', 'logs');
      const daemon = await startDaemon(folder);
      const rows = await measureAndEnd(daemon, async () => {
        await registerMany(daemon, SERVICES);
        writeLogs(path);
        return measure(daemon, filesIn(path));
      });
      const holds = threadHolds(folder);
      const probed = await startDaemon(folder, undefined, holds.environment);
      return [...rows, await measureAndEnd(probed, () => measureHolds(probed, holds))];
    }),
};
