// The same work on other supervisors. The floor here is the other supervisor: a ratio above 1 means that
// Berth is ahead.
import { setTimeout as pause } from 'node:timers/promises';
import { withFolder } from './kit/daemon.ts';
import { type Benchmark, median, type Row, throughput } from './kit/harness.ts';
import { cpuMs, isAlive, memoryOf } from './kit/process_stats.ts';
import { berth } from './peer_berth.ts';
import { type Install, SERVICES, type Supervisor } from './peer_interface.ts';
import { pm2 } from './peer_pm2.ts';
import { supervisor } from './peer_supervisord.ts';

const TIMES = 9;
const SETTLE_MS = 2_000;
const READ_MS = 1_000;
const IDLE_MS = 16_000;
/** V8 compiles periodic work for this long. */
const QUIET_MS = 120_000;
/** Interval at which Berth measures on its own what others measure on request. */
const WATCH_MS = 2_000;
/** The value of a row that is too small to measure. */
const LEAST = 0.01;

interface Line {
  name: string;
  unit: string;
  more: 'is better' | 'is worse';
}

const LINES = {
  cold: { name: 'cold start', unit: 'ms', more: 'is worse' },
  memory: { name: 'memory idle (PSS)', unit: 'MiB', more: 'is worse' },
  one: { name: 'start of one', unit: 'ms', more: 'is worse' },
  crash: { name: 'crash noticed', unit: 'ms', more: 'is worse' },
  all: { name: `start of ${SERVICES}`, unit: 'ms', more: 'is worse' },
  loaded: { name: `memory with ${SERVICES} (PSS)`, unit: 'MiB', more: 'is worse' },
  reads: { name: `status of ${SERVICES}`, unit: 'reads/s', more: 'is better' },
  idle: { name: `processor time, ${SERVICES} idle`, unit: '% of a core', more: 'is worse' },
  watched: {
    name: `processor time, ${SERVICES} idle, read every 2 s`,
    unit: '% of a core',
    more: 'is worse',
  },
  alive: { name: 'alive after kill -9', unit: 'services', more: 'is better' },
  talking: { name: 'printing ones alive after it', unit: 'services', more: 'is better' },
  known: { name: 'known to the next start', unit: 'services', more: 'is better' },
} as const satisfies Record<string, Line>;

type Table = { [K in keyof typeof LINES]: number };

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

const memory = (of: Supervisor): number => of.pids().reduce((sum, pid) => sum + memoryOf(pid, 'Pss'), 0);

async function single(of: Supervisor): Promise<Pick<Table, 'one' | 'crash'>> {
  const starts: number[] = [];
  const crashes: number[] = [];
  for (let count = 0; count < TIMES; count += 1) {
    starts.push(await timed(() => of.startOne()));
    await of.stopOne();
    await of.startOne();
    const pid = await of.pidOfOne();
    if (!(pid > 0)) throw new Error('it has no process, and 0 is the group of whoever signals it');
    const noticed = of.noticesEnd();
    // A supervisor that has to subscribe first has now done so.
    await pause(100);
    crashes.push(
      await timed(() => {
        process.kill(pid, 'SIGKILL');
        return noticed;
      }),
    );
    await of.stopOne().catch(() => undefined);
  }
  return { one: median(starts), crash: median(crashes) };
}

/** Percent of one core, while idle or while the state of all services is read every 2 s. */
async function share(of: Supervisor, isWatched: boolean): Promise<number> {
  const spent = (): number => of.pids().reduce((sum, pid) => sum + cpuMs(pid), 0);
  const before = spent();
  for (let passed = 0; passed < IDLE_MS; passed += WATCH_MS) {
    if (isWatched) await of.status();
    await pause(WATCH_MS);
  }
  return Math.max(LEAST, ((spent() - before) / IDLE_MS) * 100);
}

/** Counts the services that survive the kill of their supervisor, and those that its next start knows. */
async function killed(
  of: Supervisor,
  pids: readonly number[],
  talkers: readonly number[],
): Promise<Pick<Table, 'alive' | 'talking' | 'known'>> {
  await of.kill();
  await pause(SETTLE_MS);
  const left = pids.filter(isAlive);
  const talking = talkers.filter(isAlive);
  await of.start();
  const again = new Set(await of.running());
  const known = pids.filter((pid) => again.has(pid));
  return { alive: left.length, talking: talking.length, known: known.length };
}

async function measure(of: Supervisor): Promise<Table> {
  let pids: number[] = [];
  let talkers: number[] = [];
  try {
    const cold = await timed(() => of.start());
    await pause(SETTLE_MS);
    const idle = memory(of);
    await of.define();
    const singles = await single(of);
    const all = await timed(() => of.startAll());
    pids = await of.running();
    await pause(SETTLE_MS);
    const loaded = memory(of);
    const reads = await throughput(() => of.status(), 10, READ_MS);
    await pause(QUIET_MS);
    const shares = { idle: await share(of, false), watched: await share(of, true) };
    await of.startTalkers();
    talkers = (await of.running()).filter((pid) => !pids.includes(pid));
    const left = await killed(of, pids, talkers);
    return { cold, memory: idle, ...singles, all, loaded, reads, ...shares, ...left };
  } finally {
    await of.end();
    // No supervisor ends these processes any more, so the bench does.
    for (const pid of [...pids, ...talkers].filter(isAlive)) process.kill(pid, 'SIGKILL');
  }
}

function rowOf(line: Line, peer: string, own: number, other: number): Row {
  const ratio = line.more === 'is better' ? own / Math.max(1, other) : other / own;
  const numbers = { subject: own, floor: other, over: own - other };
  return {
    name: `${line.name}, ${peer}`,
    unit: line.unit,
    ...numbers,
    ratio,
    least: ratio,
    greatest: ratio,
    turns: 1,
  };
}

async function table(install: Install): Promise<{ name: string; table: Table } | null> {
  return withFolder(async (folder) => {
    const peer = await install(folder);
    return peer ? { name: peer.name, table: await measure(peer) } : null;
  });
}

async function run(): Promise<Row[]> {
  const own = await table(berth);
  if (!own) return [];
  const rows: Row[] = [];
  for (const install of [pm2, supervisor]) {
    const peer = await table(install);
    if (!peer) continue;
    for (const key of Object.keys(LINES) as (keyof Table)[])
      rows.push(rowOf(LINES[key], peer.name, own.table[key], peer.table[key]));
  }
  return rows;
}

export const peers: Benchmark = {
  name: 'peers',
  question:
    'How does Berth stand next to other supervisors that do the same work? (The other one is the floor.)',
  run,
};
