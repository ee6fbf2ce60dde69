// docs/reference.md "Resilience", all at once: many callers start, stop, restart and kill services while the
// daemon and the process host are repeatedly killed with -9. Afterwards each process, event and line must
// match what the daemon reports.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type Daemon, eventually, hostPid, startDaemon } from '../kit/daemon.ts';
import { freePort } from '../kit/free_ports.ts';
import { must } from '../kit/must.ts';

const SERVICES = Array.from({ length: 16 }, (_, index) => ({
  name: `s${index}`,
  port: freePort(),
  cmd: 'n=0; while :; do n=$((n+1)); echo line $n; sleep 0.05; done',
  restart: index % 3 === 0 ? 'always' : 'no',
}));
const CALLERS = 5;
/** The targets of the kills, in turn. */
const KILLED = ['daemon', 'daemon', 'host', 'daemon'] as const;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const anyOf = <T>(of: readonly T[]): T => must(of[Math.floor(Math.random() * of.length)]);

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
async function listen(current: () => Daemon, isOver: () => boolean): Promise<number[]> {
  const ids: number[] = [];
  while (!isOver()) {
    try {
      const last = ids.at(-1);
      const stream = await current().events(
        '?types=service.started,service.stopped,service.crashed',
        last === undefined ? {} : { 'Last-Event-ID': String(last) },
      );
      while (
        !isOver() &&
        (await Promise.race([stream.closed.then(() => false), pause(50).then(() => true)]))
      );
      stream.close();
      await stream.closed;
      expect(stream.events.filter(({ event }) => event === 'stream.reset')).toEqual([]);
      ids.push(...stream.events.map(({ id }) => must(id)));
    } catch (error) {
      await ifAway(error);
    }
  }
  return ids;
}

/** The numbered lines of a service's log, run by run: each run begins with 1 and has no gap. */
function gaps(stateDir: string, name: string): string[] {
  const text = readFileSync(join(stateDir, 'logs', name, 'out.log'), 'utf8');
  let before = 0;
  return text.split('\n').flatMap((line) => {
    if (line === '') return [];
    const number = Number(/^line (\d+)$/.exec(line)?.[1]);
    const fits = number === 1 || number === before + 1;
    before = number;
    return fits ? [] : [`${name}: ${line}`];
  });
}

it('whatever is killed, no process, event or line is lost or doubled', async () => {
  const mark = `CHAOS=${process.pid}-${Date.now()}`;
  const env = Object.fromEntries([mark.split('=')]) as Record<string, string>;
  let daemon = await startDaemon({ env });
  for (const spec of SERVICES) expect((await daemon.request('POST', '/v1/services', spec)).status).toBe(201);
  let isOver = false;
  const current = () => daemon;
  const over = () => isOver;
  const events = listen(current, over);
  const callers = Array.from({ length: CALLERS }, () => call(current, over));
  for (const what of KILLED) {
    await pause(500 + Math.random() * 500);
    if (what === 'host') process.kill(hostPid(daemon.stateDir), 'SIGKILL');
    else {
      await killDaemon(daemon);
      daemon = await startDaemon({ stateDir: daemon.stateDir, env });
    }
  }
  await pause(500);
  isOver = true;
  await Promise.all(callers);
  const ids = await events;
  expect(ids.length).toBeGreaterThan(SERVICES.length);
  expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b));

  // A restart under way may complete first; then the daemon's report must match the processes.
  await eventually(async () => {
    const { body } = await daemon.request('GET', '/v1/services');
    const there = shells(mark);
    return (body.services as { name: string; status: string; pid?: number }[]).every(
      ({ name, status, pid }) => {
        const own = there.get(name) ?? [];
        return status === 'running'
          ? own.length === 1 && own[0] === pid
          : status !== 'starting' && own.length === 0;
      },
    );
  });
  const ran = SERVICES.filter(({ name }) => readdirSync(join(daemon.stateDir, 'logs')).includes(name));
  expect(ran.length).toBeGreaterThan(0);
  expect(ran.flatMap(({ name }) => gaps(daemon.stateDir, name))).toEqual([]);

  daemon.signal('SIGTERM');
  expect(await daemon.exited).toEqual({ code: 0, signal: null });
  expect([...shells(mark)]).toEqual([]);
}, 60_000);
