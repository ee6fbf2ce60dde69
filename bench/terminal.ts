// Agents: unwatched output from a terminal to the log, the newest lines of a log, and spinup. The floors are
// a small process with only node-pty that counts bytes, a bare server with a prepared response, and a bare
// start in a terminal.
import { setTimeout as pause } from 'node:timers/promises';
import { type BareProcess, withBareProcess } from './kit/bare_client.ts';
import { type Daemon, daemonRequester, IDLE, withDaemon } from './kit/daemon.ts';
import { subscribe } from './kit/event_subscribers.ts';
import { type Benchmark, compare, cost, median, type Row } from './kit/harness.ts';

const MIB = 1_024 * 1_024;
const PRINTED = 96 * MIB;
const LINES = 1_000;
const LINE = 'x'.repeat(199);
const PRINT = `yes ${'0123456789'.repeat(10)} | head -c ${PRINTED}`;
/** Runs per sample; the median counts. */
const TIMES = 20;
/** A terminal adds a carriage return to each line. */
const LOST = 0.98;

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

async function medianOf(work: (number: number) => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let number = 0; number < TIMES; number += 1) times.push(await timed(() => work(number)));
  return median(times);
}

/** Throughput in MiB a second, from the start of the program to its end. */
const throughput = (daemon: Daemon, bare: BareProcess): Promise<Row> =>
  compare('output without a viewer', 'MiB/s', {
    floor: async () => {
      let bytes = 0;
      const ms = await timed(async () => {
        bytes = await bare.ask('readTerminal', { cmd: PRINT });
      });
      if (bytes < PRINTED * LOST) throw new Error(`node-pty lost output: ${bytes} bytes of ${PRINTED}`);
      return PRINTED / MIB / (ms / 1_000);
    },
    subject: async () => {
      const stream = await subscribe(daemon.port, '/v1/events?types=service.stopped');
      const ended = stream.until('event: service.stopped');
      const ms = await timed(async () => {
        await daemon.ask('POST', '/v1/agents/spinup', { name: 'printer', cmd: PRINT });
        await ended;
      });
      stream.end();
      return PRINTED / MIB / (ms / 1_000);
    },
    turns: 5,
  });

async function newestLines(daemon: Daemon, bare: BareProcess): Promise<Row> {
  const cmd = `i=0; while [ $i -lt ${LINES + 100} ]; do echo ${LINE}; i=$((i+1)); done; ${IDLE}`;
  await daemon.ask('POST', '/v1/agents/spinup', { name: 'talker', cmd });
  const read = () => daemon.ask('GET', `/v1/agents/talker/logs?lines=${LINES}`);
  let body = '';
  for (let count = 0; count < LINES; await pause(10)) {
    const logs = (await read()) as { lines: string[] };
    count = logs.lines.filter((line) => line === LINE).length;
    body = JSON.stringify(logs);
  }
  const plain = daemonRequester(await bare.ask('serve', { body, frame: '' }));
  try {
    return await cost(`newest ${LINES} lines`, 'ms', {
      floor: () => medianOf(() => plain.ask('GET', '/')),
      subject: () => medianOf(read),
    });
  } finally {
    plain.close();
  }
}

async function spinup({ ask }: Daemon, bare: BareProcess): Promise<Row> {
  return cost('spinup', 'ms', {
    floor: () => medianOf(() => bare.ask('spawnTerminal', { cmd: IDLE })),
    subject: async () => {
      const ms = await medianOf((number) =>
        ask('POST', '/v1/agents/spinup', { name: `idle-${number}`, cmd: IDLE }),
      );
      for (let number = 0; number < TIMES; number += 1) await ask('DELETE', `/v1/agents/idle-${number}`);
      return ms;
    },
    turns: 5,
  });
}

export const terminal: Benchmark = {
  name: 'terminal',
  question: "What do agents' terminals take, next to node-pty alone?",
  run: () =>
    withBareProcess((bare) =>
      withDaemon(async (daemon) => [
        await throughput(daemon, bare),
        await newestLines(daemon, bare),
        await spinup(daemon, bare),
      ]),
    ),
};
