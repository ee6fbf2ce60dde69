// How the front divides its time between followers of many logs: docs/reference.md "Streams".
import { expect, it } from 'vitest';
import type { ResponseStream } from '../../../src/front/server/http_server.ts';
import { MergedLogs } from '../../../src/front/streams/merged_logs.ts';
import type { LogJobs } from '../../../src/protocol/logs.ts';
import { settle, virtualClock } from '../../kit/actors.ts';
import { EVERY_LINE } from '../../kit/log_filter.ts';

const FOLLOWERS = 40;

it('followers at the same place are written to in slices, with other work in between', async () => {
  let reads = 0;
  const place = { offset: 0, marks: 0, open: [null, null] as [null, null], around: 0 };
  const jobs: LogJobs = {
    start: async ({ names }) => names.map((name) => ({ name, run: null, place })),
    read: async ({ grown }) => {
      reads += 1;
      const frames = Buffer.from('event: line\n\n');
      return { frames, moved: grown.map((name) => ({ name, place })), unfinished: [] };
    },
    search: () => Promise.reject(new Error('nobody searches')),
  };
  const options = { clock: virtualClock(), folder: '/', isRunning: () => false, notify: () => undefined };
  const logs = new MergedLogs({
    ...options,
    jobs,
    onDefect: (error) => {
      throw error;
    },
  });
  let turn = 0;
  const turns: number[] = [];
  /** A client that takes everything; to write to it takes a millisecond. */
  const open = (): ResponseStream => ({
    isOpen: true,
    bufferedBytes: 0,
    onDrain: null,
    onClose: null,
    keepAlive: () => undefined,
    end: () => undefined,
    destroy: () => undefined,
    write: (bytes) => {
      if (!Buffer.from(bytes).includes('event: line')) return;
      const until = performance.now() + 1;
      while (performance.now() < until);
      turns.push(turn);
    },
  });
  const request = { select: () => ['web'], run: null, ansi: false, endsWithServices: true, lines: 0 };
  for (let count = 0; count < FOLLOWERS; count += 1)
    await logs.follow({ ...request, filter: EVERY_LINE, cursor: null, follow: true, open });
  while (turns.length < FOLLOWERS) {
    await settle();
    turn += 1;
  }
  const mostInOneTurn = Math.max(...turns.map((one) => turns.filter((other) => other === one).length));
  expect(mostInOneTurn).toBeLessThan(FOLLOWERS / 4);
  expect(reads).toBeLessThan(FOLLOWERS);
});
