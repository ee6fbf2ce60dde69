// Starts the process host as a real process, and talks to it as a thread of the daemon does.
import { existsSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll } from 'vitest';
import { connectHost, type HostConnection } from '../../src/adapters/host/host_connection.ts';
import { processRow, processTable, isRunning as rowRuns } from '../../src/adapters/process/process_table.ts';
import { lineText } from '../../src/logs/line_text.ts';
import { readLog, readLogTail } from '../../src/logs/reader.ts';
import type {
  HostProtocol,
  SpawnReply,
  SpawnRequest,
  StopReport,
  StopRequest,
} from '../../src/protocol/host.ts';
import { newRunId } from '../../src/protocol/names.ts';
import type { RunEnd, ServiceProtocol } from '../../src/protocol/service.ts';
import { actor, type Protocol, type Ref } from '../../src/runtime/actor.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { bundle } from './bundle.ts';
import { eventually } from './eventually.ts';
import { removeFolder } from './remove_folder.ts';
import { untypedNode } from './untyped_node.ts';

export { eventually };

export let entry = '';
const closers: (() => void | Promise<void>)[] = [];
/** Registers calls for after the test, last first. */
export const after = (close: () => void | Promise<void>): void => {
  closers.push(close);
};

/** Prepares the tests of a file: builds the host, and ends everything that each test started. */
export function useHost(): void {
  beforeAll(async () => {
    entry = await bundle('workers/host.ts');
  });
  afterEach(async () => {
    while (closers.length > 0) await closers.pop()?.();
  });
}

export function newState(): string {
  const folder = mkdtempSync(join(tmpdir(), 'berth-host-'));
  const stateDir = join(folder, 'state');
  after(async () => {
    await endAll(stateDir);
    await removeFolder(folder);
  });
  return stateDir;
}

export const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export const isRunning = (pid: number): boolean => rowRuns(processRow(pid));

/** The running hosts of a state directory. */
export function hostsOf(stateDir: string): number[] {
  return [...processTable().values()].flatMap((row) => {
    if (!rowRuns(row)) return [];
    try {
      const command = readFileSync(`/proc/${row.pid}/cmdline`, 'utf8').split('\0');
      return command[1]?.includes('workers-host') && command[2] === stateDir ? [row.pid] : [];
    } catch {
      return [];
    }
  });
}

/** Ends the hosts of a state directory and the processes that carry its mark. */
async function endAll(stateDir: string): Promise<void> {
  for (const pid of hostsOf(stateDir)) process.kill(pid, 'SIGKILL');
  const mark = `BERTH_TEST=${stateDir}\0`;
  for (const { pid } of processTable().values()) {
    try {
      if (readFileSync(`/proc/${pid}/environ`).includes(mark)) process.kill(pid, 'SIGKILL');
    } catch {
      // Not ours, or already ended.
    }
  }
  await eventually(() => hostsOf(stateDir).length === 0);
}

export interface Daemon {
  stateDir: string;
  host: Ref<HostProtocol>;
  connection: HostConnection;
  /** Ends and log growth as the host reported them, in order. */
  ends: RunEnd[];
  grew: { service: string; end: number }[];
  lost: Promise<string>;
  spawn(
    service: string,
    cmd: string,
    more?: Partial<SpawnRequest>,
  ): Promise<SpawnReply & { run: string; service: string }>;
  stop(of: { service: string; run: string }, more?: Partial<StopRequest>): Promise<StopReport>;
  /** The end of a run, once it is reported. */
  ended(of: { run: string }): Promise<RunEnd>;
  tail(service: string, lines?: number): string[];
  /** All raw bytes left of its log. */
  whole(service: string): Buffer;
  disconnect(): void;
}

type Told = Pick<ServiceProtocol, 'exited' | 'grew'>;

/** Connects to the host of `stateDir` as one thread of a daemon. */
export async function connectDaemon(
  stateDir: string,
  who: { session?: string; node?: string; version?: string; entry?: string } = {},
): Promise<Daemon> {
  const { session = 'one', node: name = 'services-0', version = 'test' } = who;
  const connection = await connectHost({
    stateDir,
    entry: who.entry ?? entry,
    identity: { version, session, node: name },
    withinMs: 20_000,
  });
  return daemonOver(stateDir, connection, name);
}

export function daemonOver(stateDir: string, connection: HostConnection, name: string): Daemon {
  const node = untypedNode({
    name,
    clock: systemClock,
    nodeOf: (address) => (address === 'host' ? 'host' : name),
    defaultDeadlineMs: 60_000,
  });
  const ends: RunEnd[] = [];
  const grew: { service: string; end: number }[] = [];
  const service = actor<Told & Protocol<Told>, string>('service', (_, address) => ({
    exited: (end) => {
      ends.push(end);
      return null;
    },
    grew: ({ end }) => {
      grew.push({ service: address.slice('service:'.length), end });
      return null;
    },
  }));
  node.family('service:', service, (address) => address);
  let lose: (reason: string) => void = () => {};
  const lost = new Promise<string>((resolve) => {
    lose = resolve;
  });
  node.onPeerLost((peer, reason) => {
    if (peer === 'host') lose(reason);
  });
  node.connect('host', connection.pipe);
  after(async () => {
    await node.stop();
  });
  const host = node.ref<HostProtocol>('host');
  const logs = (of: string) => join(stateDir, 'logs', of);
  return {
    stateDir,
    host,
    connection,
    ends,
    grew,
    lost,
    async spawn(of, cmd, more = {}) {
      const run = newRunId(Date.now());
      const env: [string, string][] = [
        ['PATH', process.env['PATH'] ?? ''],
        ['BERTH_TEST', stateDir],
        ...(more.env ?? []),
        ['BERTH_SERVICE', of],
        ['BERTH_RUN', run],
      ];
      const memo = { revision: 1, port: 0, ready: null, passed: false, deadline: null, restarts: 0 };
      const request = {
        service: of,
        run,
        cmd,
        cwd: '/',
        port: 0,
        umask: 0o022,
        pty: null,
        memo,
        ...more,
        env,
      };
      return { ...(await host.ask('spawn', request)), run: request.run, service: of };
    },
    stop: ({ service: of, run }, more = {}) =>
      host.ask('stop', { service: of, run, signal: 'SIGTERM', graceMs: 5_000, port: 0, ...more }),
    ended: ({ run }) => eventually(() => ends.find((end) => end.run === run)),
    tail: (of, lines = 50) =>
      readLogTail(logs(of), { lines, stream: null, run: null }).lines.map((line) =>
        lineText(line, { raw: false, stamp: null }),
      ),
    whole: (of) => {
      if (!existsSync(logs(of))) return Buffer.alloc(0);
      return Buffer.from(readLog(logs(of), 0, Number.MAX_SAFE_INTEGER).bytes);
    },
    disconnect: () => node.disconnect('host'),
  };
}

/** The descriptors of a process. */
export const descriptorsOf = (pid: number): number[] =>
  readdirSync(`/proc/${pid}/fd`)
    .map(Number)
    .sort((a, b) => a - b);

/**
 * Resolves once a program has only 0, 1 and 2 open. Libraries are open only during loading; inherited
 * descriptors would stay.
 */
export const hasOnlyItsOwn = (pid: number): Promise<unknown> =>
  eventually(() => descriptorsOf(pid).join() === '0,1,2');
