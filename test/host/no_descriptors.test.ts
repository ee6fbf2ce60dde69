// A host without free descriptors still sees the processes it has to end, and draws no conclusion when it
// cannot.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { processRow, processTable } from '../../src/adapters/process/process_table.ts';
import { ProcessTree } from '../../src/adapters/process/process_tree.ts';
import { treeUsage } from '../../src/adapters/process/process_usage.ts';
import { isOutOfDescriptors } from '../../src/adapters/process/reserved_descriptor.ts';
import { TreeStops } from '../../src/host/tree_stops.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { must } from '../kit/must.ts';
import {
  after,
  connectDaemon,
  descriptorsOf,
  eventually,
  hasOnlyItsOwn,
  hostsOf,
  isRunning,
  newState,
  useHost,
  wait,
} from '../kit/process_host.ts';

useHost();

const outOfFiles = () => Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' });

/** Leaves the host of `stateDir` no descriptor: none above those it has, and idle connections in the gaps. */
async function useUp(stateDir: string): Promise<void> {
  const host = must(hostsOf(stateDir)[0]);
  // Libraries load for some time after the start, opening and closing files.
  await eventually(() => readFileSync(`/proc/${host}/maps`, 'latin1').includes('pty.node'));
  const most = must(descriptorsOf(host).at(-1)) + 1;
  execFileSync('prlimit', ['--pid', String(host), `--nofile=${most}:`]);
  for (let gaps = 1; gaps > 0; gaps = most - descriptorsOf(host).length) {
    for (let gap = 0; gap < gaps; gap += 1) {
      const socket = net.connect(join(stateDir, 'host', 'host.sock'));
      // The host closes the connection that is one too many.
      socket.on('error', () => {});
      after(() => {
        socket.destroy();
      });
    }
    await wait(10);
  }
}

test('a host without descriptors ends a whole tree, even processes that left group and session', async () => {
  const stateDir = newState();
  const daemon = await connectDaemon(stateDir);
  // The process in its own session is an orphan at once.
  const away = `sh -c 'setsid sleep 1000 & echo $!'`;
  const started = await daemon.spawn('web', `${away}; exec sleep 1000`);
  const [pid] = await eventually(() =>
    daemon.tail('web').length > 0 ? daemon.tail('web').map(Number) : null,
  );
  await eventually(() => processRow(must(pid))?.session === pid);
  await hasOnlyItsOwn(must(pid));
  await useUp(stateDir);
  const report = await daemon.stop(started);
  expect(report).toMatchObject({ signal: 'SIGTERM', reaped: 2, left: [], escalated: false });
  expect([started.pid, must(pid)].filter(isRunning)).toEqual([]);
});

test('a stop that cannot see what runs reports that, and continues as soon as it can', async () => {
  const child = spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' });
  const pid = must(child.pid);
  const ended = once(child, 'exit');
  after(() => {
    child.kill('SIGKILL');
  });
  const root = { run: 'a', pid, startTicks: must(processRow(pid)).startTicks, grouped: true };
  let looks = 0;
  let isBlind = true;
  const reports: unknown[] = [];
  const stops = new TreeStops({
    clock: systemClock,
    tree: new ProcessTree(() => {
      looks += 1;
      if (isBlind) throw outOfFiles();
      return processTable();
    }),
    roots: () => [],
    protectedPids: () => new Set([1, process.pid]),
    reservedDescriptor: { lend: (look) => look() },
    onScanFailed: (error) => reports.push(error),
  });
  const end = () => ({ exitCode: null, signal: 'SIGTERM', exitUnknown: false });
  const target = { root, hasTerminal: false, end, onGone: () => reports.push('gone') };
  let report: unknown = null;
  const stopped = stops.stop(target, { signal: 'SIGTERM', graceMs: 20_000, port: 0, isSent: false });
  void stopped.then((said) => {
    report = said;
  });
  await eventually(() => looks >= 4);
  expect([report, isRunning(pid), stops.roots()]).toEqual([null, true, [root]]);
  expect(reports).toEqual([outOfFiles()]);
  isBlind = false;
  expect(await stopped).toMatchObject({ reaped: 1, left: [], escalated: false });
  await ended;
  expect(reports.slice(1)).toContain('gone');
});

test('a process with an unreadable mark does not count as unmarked', () => {
  let isBlind = true;
  const row = must(processRow(process.pid));
  const tree = new ProcessTree(
    () => new Map([[row.pid, row]]),
    () => {
      if (isBlind) throw outOfFiles();
      return Buffer.from('BERTH_RUN=a\0');
    },
  );
  const scan = () => tree.scan([{ run: 'a', pid: 0, startTicks: 0, grouped: false }], new Set());
  expect(scan).toThrow('EMFILE');
  isBlind = false;
  expect(scan().members.get('a')).toEqual([row]);
});

test('without descriptors nothing is measured, and nothing is reported as idle', async () => {
  const usage = treeUsage(() => {
    throw outOfFiles();
  });
  const row = must(processRow(process.pid));
  const { runs } = await usage([{ run: 'a', pid: row.pid, startTicks: row.startTicks, grouped: true }]);
  expect(runs.size).toBe(0);
});

test('no other failure counts as a lack of descriptors', () => {
  expect(isOutOfDescriptors(outOfFiles())).toBe(true);
  expect([Object.assign(new Error(), { code: 'ENOENT' }), new Error(), null].map(isOutOfDescriptors)).toEqual(
    [false, false, false],
  );
});
