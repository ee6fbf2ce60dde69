// Full load for minutes: services are registered, started, crash, are stopped and removed; agents are started
// and removed; lists and logs are read; streams stay open or reconnect. The benchmark compares the memory in
// the last minute with that in the second, to show whether it grows.
import { setTimeout as pause } from 'node:timers/promises';
import { type Daemon, withDaemon } from './kit/daemon.ts';
import { countFrames } from './kit/event_subscribers.ts';
import { type Benchmark, median, type Row } from './kit/harness.ts';
import { runHttpLoad } from './kit/http_load.ts';
import { memoryOf } from './kit/process_stats.ts';

const MINUTES = 10;
const MINUTE_MS = 60_000;
const SAMPLE_MS = 1_000;
/** The number of loops that register, run and remove a service, and of services that only print. */
const LANES = 4;
const TALKERS = 20;
const TALK = `while :; do echo "$BERTH_SERVICE says that it is there"; sleep 0.1; done`;
const FAIL = 'sleep 0.05; exit 3';
const RUN = 'exec sleep 1000';
const SUBSCRIBERS = 50;
/** How long each short-lived stream stays open. */
const VISIT_MS = 500;
const READ_CONNECTIONS = 2;
const READ_MS = 1_000;
const FIRST_PORT = 14_100;

/** Whether the load continues, and how many services have been registered and removed so far. */
interface Going {
  on: boolean;
  lives: number;
}

/** One life of a service: it is registered, crashes, is registered anew, started, stopped and removed. */
async function life({ ask }: Daemon, name: string, port: number): Promise<void> {
  const path = `/v1/services/${name}`;
  const register = (cmd: string): Promise<unknown> =>
    ask('POST', '/v1/services', { name, port, group: `group-${port}`, cwd: '/tmp', cmd });
  await register(FAIL);
  await ask('POST', `${path}/start?wait=false`);
  while (((await ask('GET', path)) as { status: string }).status !== 'crashed') await pause(10);
  await ask('GET', `${path}/explain`);
  await register(RUN);
  await ask('POST', `${path}/start`);
  await ask('GET', `${path}/logs`);
  await ask('POST', `${path}/stop`);
  await ask('DELETE', path);
}

async function lives(daemon: Daemon, lane: number, going: Going): Promise<void> {
  for (let number = 0; going.on; number += 1) {
    await life(daemon, `life-${lane}-${number}`, FIRST_PORT + lane);
    going.lives += 1;
  }
}

async function agents({ ask }: Daemon, going: Going): Promise<void> {
  for (let number = 0; going.on; number += 1) {
    const name = `agent-${number}`;
    await ask('POST', '/v1/agents/spinup', { name, cmd: `seq 1000; ${RUN}` });
    await ask('GET', `/v1/agents/${name}/logs?lines=100`);
    await ask('DELETE', `/v1/agents/${name}`);
  }
}

async function readers({ port }: Daemon, going: Going): Promise<void> {
  const paths = ['/v1/services', '/v1/services/talker-1', '/v1/services/talker-1/logs', '/v1/events/history'];
  const resolve = `GET /v1/resolve/talker-1 HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`;
  for (let number = 0; going.on; number += 1) {
    await runHttpLoad(port, resolve, READ_CONNECTIONS, READ_MS);
    const until = performance.now() + READ_MS;
    while (performance.now() < until) {
      const got = await fetch(`http://127.0.0.1:${port}${paths[number % paths.length]}`);
      await got.text();
    }
  }
}

/** Opens one stream after another, of events (with a replay) or of logs, and closes it after `VISIT_MS`. */
async function visitors({ port }: Daemon, going: Going): Promise<void> {
  const paths = ['/v1/events?lastEventId=1', '/v1/services/talker-2/logs/stream', '/v1/events?detail=true'];
  for (let number = 0; going.on; number += 1) {
    const visit = await countFrames(port, paths[number % paths.length] ?? '');
    await pause(VISIT_MS);
    visit.end();
  }
}

const KINDS = ['Pss', 'Rss'] as const;
/** The memory in one minute: the medians of a sample per second, in MiB. */
interface Minute {
  daemon: { Pss: number; Rss: number };
  host: { Pss: number; Rss: number };
}

async function sampleMinute({ pid, hostPid }: Daemon): Promise<Minute> {
  const until = performance.now() + MINUTE_MS;
  const seen: Record<(typeof KINDS)[number], [daemon: number, host: number][]> = { Pss: [], Rss: [] };
  while (performance.now() < until) {
    await pause(SAMPLE_MS);
    for (const kind of KINDS) seen[kind].push([memoryOf(pid, kind), memoryOf(hostPid, kind)]);
  }
  const of = (kind: (typeof KINDS)[number], column: 0 | 1) => median(seen[kind].map((pair) => pair[column]));
  return {
    daemon: { Pss: of('Pss', 0), Rss: of('Rss', 0) },
    host: { Pss: of('Pss', 1), Rss: of('Rss', 1) },
  };
}

const mib = (value: number): string => value.toFixed(1).padStart(6);

async function underLoad(daemon: Daemon, minutes: number): Promise<Minute[]> {
  const going: Going = { on: true, lives: 0 };
  const work = [
    ...Array.from({ length: LANES }, (_, lane) => lives(daemon, lane, going)),
    agents(daemon, going),
    readers(daemon, going),
    visitors(daemon, going),
  ];
  const taken: Minute[] = [];
  const watch = async (): Promise<void> => {
    for (let minute = 1; minute <= minutes; minute += 1) {
      const took = await sampleMinute(daemon);
      taken.push(took);
      const { daemon: own, host } = took;
      const text = `daemon ${mib(own.Rss)} RSS ${mib(own.Pss)} PSS, host ${mib(host.Rss)} RSS ${mib(host.Pss)} PSS`;
      console.log(`  minute ${String(minute).padStart(2)}: ${text} MiB, ${going.lives} lives so far`);
    }
    going.on = false;
  };
  try {
    await Promise.all([watch(), ...work]);
  } finally {
    going.on = false;
  }
  return taken;
}

function rowsOf(minutes: readonly Minute[]): Row[] {
  const last = minutes.at(-1);
  const second = minutes[1] ?? last;
  if (!last || !second) return [];
  const row = (name: string, of: (minute: Minute) => number, minute = last): Row => {
    const [subject, floor] = [of(minute), of(second)];
    const ratio = floor / subject;
    const over = subject - floor;
    return { name, unit: 'MiB', subject, floor, over, ratio, least: ratio, greatest: ratio, turns: 1 };
  };
  return [
    row('RSS', ({ daemon, host }) => daemon.Rss + host.Rss),
    row('RSS of the daemon', ({ daemon }) => daemon.Rss),
    row('RSS of the host', ({ host }) => host.Rss),
    row('PSS', ({ daemon, host }) => daemon.Pss + host.Pss),
    ...minutes.map((minute, index) => ({
      ...row(`RSS in minute ${index + 1}`, ({ daemon, host }) => daemon.Rss + host.Rss, minute),
      curve: { name: 'RSS by the minute', size: index + 1, before: null },
    })),
  ];
}

async function run(minutes = MINUTES): Promise<Row[]> {
  return withDaemon(async (daemon) => {
    for (let number = 1; number <= TALKERS; number += 1) {
      const service = {
        name: `talker-${number}`,
        port: 14_000 + number,
        group: 'talkers',
        cwd: '/tmp',
        cmd: TALK,
      };
      await daemon.ask('POST', '/v1/services', service);
    }
    await daemon.ask('POST', '/v1/groups/talkers/start');
    const streams = Array.from({ length: SUBSCRIBERS }, () => countFrames(daemon.port, '/v1/events'));
    const open = await Promise.all(streams);
    try {
      return rowsOf(await underLoad(daemon, minutes));
    } finally {
      for (const stream of open) stream.end();
    }
  });
}

export const soak: Benchmark = {
  name: 'soak',
  question: 'Does memory grow under full load? (The floor is the second minute.)',
  run,
};
