// Starting, stopping and losing processes through the whole daemon: request, service actor, process host,
// process, answer or event. The floors are a small Node process that does nothing but the system calls: the
// same shells, sessions and pipes.
import http from 'node:http';
import { type BareProcess, withBareProcess } from './kit/bare_client.ts';
import { type Daemon, IDLE, registerMany, withDaemon } from './kit/daemon.ts';
import { subscribe } from './kit/event_subscribers.ts';
import { type Benchmark, cost, costs, median, type Row } from './kit/harness.ts';

const IN_GROUP = 100;
/** Runs per sample; the median counts. */
const STARTS = 15;
const SERVER = `exec '${process.execPath}' -e 'require("http").createServer((q,s)=>s.end("ok")).listen(process.env.PORT,"127.0.0.1")'`;
const PORT = 13_900;
const URL_OF_SERVER = `http://127.0.0.1:${PORT}/`;
const POLL_MS = 5;

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

/** The median time of `work`; `after` follows each run. */
async function medianOf(work: () => Promise<unknown>, after: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let count = 0; count < STARTS; count += 1) {
    times.push(await timed(work));
    await after();
  }
  return median(times);
}

const startOne = (daemon: Daemon, bare: BareProcess): Promise<Row> =>
  cost('start to process', 'ms', {
    floor: () =>
      medianOf(
        () => bare.ask('spawn', { cmd: IDLE, count: 1 }),
        () => bare.ask('stop', null),
      ),
    subject: () =>
      medianOf(
        () => daemon.ask('POST', '/v1/services/svc-1/start?wait=false'),
        () => daemon.ask('POST', '/v1/services/svc-1/stop'),
      ),
    turns: 7,
  });

const answers = (): Promise<boolean> =>
  new Promise((resolve) => {
    const request = http.get(URL_OF_SERVER, { agent: false }, (answer) => {
      answer.resume();
      resolve(answer.statusCode === 200);
    });
    request.on('error', () => resolve(false));
  });

async function startServer(daemon: Daemon, bare: BareProcess): Promise<Row> {
  const spec = { name: 'server', port: PORT, cwd: '/tmp', cmd: SERVER, ready: URL_OF_SERVER };
  await daemon.ask('POST', '/v1/services', spec);
  const bareStart = async (): Promise<void> => {
    await bare.ask('spawn', { cmd: SERVER, count: 1, port: PORT });
    while (!(await answers())) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  };
  return cost('start to ready', 'ms', {
    floor: async () => {
      const ms = await timed(bareStart);
      await bare.ask('stop', null);
      return ms;
    },
    subject: async () => {
      const ms = await timed(() => daemon.ask('POST', '/v1/services/server/start'));
      await daemon.ask('POST', '/v1/services/server/stop');
      return ms;
    },
  });
}

const startGroup = (daemon: Daemon, bare: BareProcess): Promise<Row[]> =>
  costs([`start of a group of ${IN_GROUP}`, `stop of a group of ${IN_GROUP}`], 'ms', {
    floor: async () => [
      await timed(() => bare.ask('spawn', { cmd: IDLE, count: IN_GROUP })),
      await timed(() => bare.ask('stop', null)),
    ],
    subject: async () => [
      await timed(() => daemon.ask('POST', '/v1/groups/bench/start')),
      await timed(() => daemon.ask('POST', '/v1/groups/bench/stop')),
    ],
  });

async function crash(daemon: Daemon, bare: BareProcess): Promise<Row> {
  const stream = await subscribe(daemon.port, '/v1/events?types=service.crashed');
  try {
    return await cost('crash to event', 'ms', {
      floor: async () => {
        await bare.ask('spawn', { cmd: IDLE, count: 1 });
        return timed(() => bare.ask('crash', null));
      },
      subject: async () => {
        const { pid } = (await daemon.ask('POST', '/v1/services/svc-1/start')) as { pid: number };
        const event = stream.until('event: service.crashed');
        return timed(() => {
          process.kill(pid, 'SIGKILL');
          return event;
        });
      },
      turns: 25,
    });
  } finally {
    stream.end();
  }
}

export const processes: Benchmark = {
  name: 'processes',
  question: 'What do starts, stops and crashes take through the whole daemon, next to the bare system calls?',
  run: () =>
    withBareProcess((bare) =>
      withDaemon(async (daemon) => {
        await registerMany(daemon, IN_GROUP);
        return [
          await startOne(daemon, bare),
          await startServer(daemon, bare),
          ...(await startGroup(daemon, bare)),
          await crash(daemon, bare),
        ];
      }),
    ),
};
