// The cost of one service in a daemon that has many registered services, or many running ones.
import { setTimeout as pause } from 'node:timers/promises';
import { IDLE, registerMany, withDaemon } from './kit/daemon.ts';
import { growth, type Row } from './kit/harness.ts';
import { runHttpLoad } from './kit/http_load.ts';
import { cpuMs, memoryOf } from './kit/process_stats.ts';

const REGISTERED = [10, 100, 1_000];
const RUNNING = [10, 100, 300];
const SETTLE_MS = 1_000;
const READ_MS = 500;
const CONNECTIONS = 16;
/** The daemon measures its services twice in this time. */
const IDLE_MS = 4_000;
/** Registrations before the measurement: after fewer, the cost would include compilation by V8. */
const WARM = 4_000;
const CHANGES = 2_000;
const KIB = 1_024;

/** Runs `work` and divides the processor time of `pids`, in microseconds, by the count that it returns. */
export async function microseconds(pids: readonly number[], work: () => Promise<number>): Promise<number> {
  const spent = (): number => pids.reduce((sum, pid) => sum + cpuMs(pid), 0);
  const before = spent();
  const done = await work();
  return ((spent() - before) * 1_000) / done;
}

/** The number of responses from a path of the daemon within `READ_MS`. */
export async function reads(port: number, path: string, headers = ''): Promise<number> {
  const request = `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n${headers}\r\n`;
  return (await runHttpLoad(port, request, CONNECTIONS, READ_MS)) * (READ_MS / 1_000);
}

/**
 * Registers `size` services repeatedly: first a fixed number of registrations that warm up the daemon equally
 * at every size, then those that are measured.
 */
const withMany = (size: number): Promise<number[]> =>
  withDaemon(async (daemon) => {
    const of = [daemon.pid];
    let revision = 0;
    const change = (count: number) => async (): Promise<number> => {
      for (let done = 0; done < count; done += size) {
        revision += 1;
        await registerMany(daemon, size, `exec sleep ${revision}`);
      }
      return count;
    };
    await change(WARM)();
    return [
      await microseconds(of, change(CHANGES)),
      await microseconds(of, () => reads(daemon.port, '/v1/services/svc-1')),
      await microseconds(of, async () => (await reads(daemon.port, '/v1/services')) * size),
    ];
  });

export const registeredServices = (): Promise<Row[]> =>
  growth({
    names: ['registration', 'read of one', 'list, of each in it'],
    unit: 'µs of processor time',
    sizes: REGISTERED,
    sizeName: (size) => `${size} registered`,
    sample: withMany,
  });

interface Costs {
  start: number;
  stop: number;
  idle: number;
  memory: number;
}

const run = (size: number): Promise<Costs> =>
  withDaemon(async (daemon) => {
    const of = [daemon.pid, daemon.hostPid];
    const memory = (): number => of.reduce((sum, pid) => sum + memoryOf(pid, 'Pss'), 0);
    const group =
      (what: string, name = 'some') =>
      async (): Promise<number> => {
        await daemon.ask('POST', `/v1/groups/${name}/${what}`);
        return size;
      };
    // Warms up with the same number of services at every size.
    await registerMany(daemon, Math.max(...RUNNING));
    await group('start', 'bench')();
    await group('stop', 'bench')();
    await registerMany(daemon, size, IDLE, 'some');
    await pause(SETTLE_MS);
    const before = memory();
    const start = await microseconds(of, group('start'));
    await pause(SETTLE_MS);
    const grown = ((memory() - before) * KIB) / size;
    const idle = await microseconds(of, async () => {
      await pause(IDLE_MS);
      return (size * IDLE_MS) / 1_000;
    });
    return { start, idle, memory: grown, stop: await microseconds(of, group('stop')) };
  });

/** Measures all costs in one run. The rows named `memory` are in KiB, the others in microseconds. */
export async function runningServices(): Promise<Row[]> {
  const rows = await growth({
    names: ['start in a group', 'stop in a group', 'idle for a second', 'memory'],
    unit: 'µs of processor time',
    sizes: RUNNING,
    sizeName: (size) => `${size} running`,
    sample: async (size) => {
      const { start, stop, idle, memory } = await run(size);
      return [start, stop, idle, memory];
    },
  });
  return rows.map((row) => (row.curve?.name === 'memory' ? { ...row, unit: 'KiB (PSS)' } : row));
}
