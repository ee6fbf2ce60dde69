// docs/reference.md "Resilience", all at once: many callers start, stop, restart and kill services while the
// daemon and the process host are repeatedly killed with -9. Afterwards each process, event and line must
// match what the daemon reports, and what the services themselves have recorded, except for what a killed host
// had read and not yet written. BERTH_CHAOS_SEED repeats the choices of a run; the moments of the kills remain
// the machine's.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type Daemon, eventually, hostPid, newFolder, type SseEvent, startDaemon } from '../kit/daemon.ts';
import { freePort } from '../kit/free_ports.ts';
import { must } from '../kit/must.ts';
import { random } from '../kit/random.ts';

const PRINT_MS = 50;
const SERVICES = Array.from({ length: 16 }, (_, index) => ({
  name: `s${index}`,
  port: freePort(),
  // A run records each line in a file of its own after printing it.
  cmd: `n=0; while :; do n=$((n+1)); echo $$ $n; echo $n >> "$PRINTED/$BERTH_SERVICE.$$"; sleep ${PRINT_MS / 1000}; done`,
  restart: index % 3 === 0 ? 'always' : 'no',
}));
const CALLERS = 5;
/** Needs a host. */
const PROBE_RESTART = '/v1/services/probe/restart';
const TYPES = 'service.started,service.stopped,service.crashed';
/** The targets of the kills, in turn. */
const KILLED = ['daemon', 'daemon', 'host', 'daemon'] as const;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const SEED = Number(process.env['BERTH_CHAOS_SEED'] ?? Date.now() % 1_000_000);
const below = random(SEED);
const anyOf = <T>(of: readonly T[]): T => must(of[below(of.length)]);

function processes(): { pid: number; parent: number; command: string; environment: string }[] {
  return readdirSync('/proc').flatMap((name) => {
    try {
      const [, rest = ''] = readFileSync(`/proc/${name}/stat`, 'utf8').split(') ');
      const [state, parent] = rest.split(' ');
      if (state === 'Z') return [];
      const command = readFileSync(`/proc/${name}/cmdline`, 'utf8');
      return [
        {
          pid: Number(name),
          parent: Number(parent),
          command,
          environment: readFileSync(`/proc/${name}/environ`, 'utf8'),
        },
      ];
    } catch {
      return [];
    }
  });
}

/** The shells of this run's services, by their mark and their command. */
function shells(mark: string): Map<string, number[]> {
  const found = new Map<string, number[]>();
  for (const { pid, command, environment } of processes()) {
    if (!environment.includes(mark) || !command.includes('while :')) continue;
    const name = must(/(?:^|\0)BERTH_SERVICE=([^\0]*)/.exec(environment)?.[1]);
    found.set(name, [...(found.get(name) ?? []), pid]);
  }
  return found;
}

async function killDaemon(daemon: Daemon): Promise<void> {
  daemon.signal('SIGKILL');
  await daemon.exited;
}

/** Waits a moment when a call failed because the daemon, or the process to kill, was missing; else throws. */
async function ifAway(error: unknown): Promise<void> {
  if (!/^E[A-Z]+$/.test((error as NodeJS.ErrnoException).code ?? '')) throw error;
  await pause(20);
}

/**
 * Makes calls to random services one after the other, whatever their result; retries while the daemon is
 * away.
 */
async function call(current: () => Daemon, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    const { name } = anyOf(SERVICES);
    const action = anyOf(['start', 'start', 'start', 'stop?grace=300', 'restart', 'kill']);
    try {
      if (action === 'kill') {
        const { body } = await current().request('GET', `/v1/services/${name}`);
        if (body.pid) process.kill(-must(body.pid as number), 'SIGKILL');
      } else await current().request('POST', `/v1/services/${name}/${action}`);
    } catch (error) {
      await ifAway(error);
    }
  }
}

/** Every event with an id across daemon restarts, resumed at the last one. */
async function listen(current: () => Daemon, isOver: () => boolean): Promise<SseEvent[]> {
  const events: SseEvent[] = [];
  while (!isOver()) {
    try {
      const last = events.at(-1)?.id;
      const stream = await current().events(
        `?types=${TYPES}`,
        last === undefined ? {} : { 'Last-Event-ID': String(last) },
      );
      while (
        !isOver() &&
        (await Promise.race([stream.closed.then(() => false), pause(50).then(() => true)]))
      );
      stream.close();
      await stream.closed;
      expect(stream.events.filter(({ event }) => event === 'stream.reset')).toEqual([]);
      events.push(...stream.events);
    } catch (error) {
      await ifAway(error);
    }
  }
  return events;
}

/** Epoch milliseconds from which to which there was no host. A run that ended then may lose its last lines. */
interface Hostless {
  from: number;
  to: number;
}

interface LoggedRun {
  /** The number of its last line. */
  last: number;
  /** The lines that do not follow the one before, as `before > number`. */
  breaks: string[];
}

/** What the log of `name` has of each run, by its pid. */
function loggedRuns(stateDir: string, name: string): Map<string, LoggedRun> {
  const runs = new Map<string, LoggedRun>();
  for (const line of readFileSync(join(stateDir, 'logs', name, 'out.log'), 'utf8').split('\n')) {
    if (line === '') continue;
    const [pid = '', number] = line.split(' ');
    const run = runs.get(pid) ?? { last: 0, breaks: [] };
    if (Number(number) !== run.last + 1) run.breaks.push(`${run.last} > ${number}`);
    run.last = Number(number);
    runs.set(pid, run);
  }
  return runs;
}

/** Whether the killed host may have read one piece of a run's output and not have written it. */
function isOfKilledHost([lost = '', ...others]: string[], file: string, hostless: Hostless): boolean {
  const [before, after] = lost.split(' > ').map(Number);
  const { birthtimeMs, mtimeMs } = statSync(file);
  const sawItsDeath = birthtimeMs < hostless.to && mtimeMs > hostless.from;
  return others.length === 0 && sawItsDeath && must(after) > must(before);
}

/** What differs between the logs and the files in which the runs have recorded what they had printed. */
function lostLines(stateDir: string, printed: string, hostless: Hostless): string[] {
  const faults: string[] = [];
  const logged = new Map(SERVICES.map(({ name }) => [name, new Map<string, LoggedRun>()]));
  for (const name of readdirSync(join(stateDir, 'logs')))
    if (logged.has(name)) logged.set(name, loggedRuns(stateDir, name));
  for (const file of readdirSync(printed)) {
    const [name = '', pid = ''] = file.split('.');
    const path = join(printed, file);
    const { last, breaks } = logged.get(name)?.get(pid) ?? { last: 0, breaks: [] };
    if (breaks.length > 0 && !isOfKilledHost(breaks, path, hostless)) faults.push(`${file}: ${breaks}`);
    const { mtimeMs } = statSync(path);
    if (mtimeMs > hostless.from && mtimeMs < hostless.to) continue;
    const recorded = readFileSync(path, 'utf8').split('\n').length - 1;
    // A run that is killed between the two has printed one line more than it has recorded.
    if (last !== recorded && last !== recorded + 1) faults.push(`${file}: ${last} of ${recorded} lines`);
  }
  return faults;
}

interface KeptEvent {
  id: number;
  type: string;
  data: { pid: number };
}

/** Every event of the types listened to that the journal keeps. */
async function keptEvents(daemon: Daemon): Promise<KeptEvent[]> {
  const kept: KeptEvent[] = [];
  for (;;) {
    const since = kept.at(-1)?.id ?? 0;
    const path = `/v1/events/history?types=${TYPES}&since=${since}&limit=1024`;
    const { body } = await daemon.request('GET', path);
    if (body.events.length === 0) return kept;
    kept.push(...body.events);
  }
}

it(`whatever is killed, no process, event or line is lost or duplicated (seed ${SEED})`, async () => {
  const mark = `CHAOS=${process.pid}-${Date.now()}`;
  const printed = newFolder();
  const env = { ...Object.fromEntries([mark.split('=')]), PRINTED: printed } as Record<string, string>;
  let daemon = await startDaemon({ env });
  for (const spec of SERVICES) expect((await daemon.request('POST', '/v1/services', spec)).status).toBe(201);
  await daemon.request('POST', '/v1/services', { name: 'probe', port: freePort(), cmd: 'exec sleep 600' });
  const hostless = { from: 0, to: 0 };
  let isOver = false;
  const current = () => daemon;
  const over = () => isOver;
  const events = listen(current, over);
  const callers = Array.from({ length: CALLERS }, () => call(current, over));
  for (const what of KILLED) {
    await pause(500 + below(500));
    if (what === 'host') {
      hostless.from = Date.now() - PRINT_MS * 2;
      process.kill(hostPid(daemon.stateDir), 'SIGKILL');
      // While both are dead, nobody holds the output of a service that ends: the next host takes over first.
      await eventually(async () => (await daemon.request('POST', PROBE_RESTART)).status === 200);
      hostless.to = Date.now();
    } else {
      await killDaemon(daemon);
      daemon = await startDaemon({ stateDir: daemon.stateDir, env });
    }
  }
  await pause(500);
  isOver = true;
  await Promise.all(callers);
  const heard = await events;
  expect(heard.length).toBeGreaterThan(SERVICES.length);

  // A restart under way may complete first; then the daemon's report must match the processes.
  await eventually(async () => {
    const { body } = await daemon.request('GET', '/v1/services');
    const there = shells(mark);
    return (body.services as { name: string; status: string; pid?: number }[]).every(
      ({ name, status, pid }) => {
        if (name === 'probe') return true;
        const own = there.get(name) ?? [];
        return status === 'running'
          ? own.length === 1 && own[0] === pid
          : status !== 'starting' && own.length === 0;
      },
    );
  });
  // The listener stopped before the last events: those must be in the journal alone.
  const kept = await keptEvents(daemon);
  const ids = heard.map(({ id }) => must(id));
  expect(ids).toEqual(kept.map(({ id }) => id).slice(0, ids.length));
  // A start is told once, and that of every process that runs: restarts still come meanwhile.
  await eventually(async () => {
    const started = (await keptEvents(daemon)).filter(({ type }) => type === 'service.started');
    const pids = started.map(({ data }) => data.pid);
    expect(pids.length).toBe(new Set(pids).size);
    return [...shells(mark).values()].flat().every((pid) => pids.includes(pid));
  });

  daemon.signal('SIGTERM');
  expect(await daemon.exited).toEqual({ code: 0, signal: null });
  expect([...shells(mark)]).toEqual([]);
  expect(readdirSync(printed).length).toBeGreaterThan(SERVICES.length);
  expect(lostLines(daemon.stateDir, printed, hostless)).toEqual([]);
}, 60_000);
