// The ledger comes first: what the host does next is in it already, so that a host killed right there leaves
// nothing unknown. Each test reads the file as the next host would, at the moment that matters.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadLibc } from '../../src/adapters/process/libc.ts';
import { ProcessTree } from '../../src/adapters/process/process_tree.ts';
import { reserveDescriptor } from '../../src/adapters/process/reserved_descriptor.ts';
import { ledgerFile, readLedger } from '../../src/adapters/storage/ledger_file.ts';
import type { ChildEvents } from '../../src/host/child.ts';
import { Fifos } from '../../src/host/fifo.ts';
import { HostRuns } from '../../src/host/host_runs.ts';
import { createLogWriters } from '../../src/host/log_writers.ts';
import { NoticeSockets } from '../../src/host/notice_sockets.ts';
import { RunCommands } from '../../src/host/run_commands.ts';
import { RunGroups } from '../../src/host/run_groups.ts';
import { RunLedger } from '../../src/host/run_ledger.ts';
import { TerminalWatch } from '../../src/host/terminal_watch.ts';
import { TreeStops } from '../../src/host/tree_stops.ts';
import type { RunEnd } from '../../src/protocol/service.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { tempDir } from '../kit/actors.ts';
import { must } from '../kit/must.ts';

const RUN = '00000000000000aa';

/** The runs of a host that starts no process; `onStart` is called in place of it. */
async function hostRuns(onStart: () => void, onEnded: (end: RunEnd) => void) {
  const folder = tempDir();
  mkdirSync(join(folder, 'host'));
  const path = ledgerFile(join(folder, 'host'));
  const libc = await loadLibc();
  const reservedDescriptor = reserveDescriptor();
  const stops = new TreeStops({
    clock: systemClock,
    tree: new ProcessTree(),
    roots: () => [],
    protectedPids: () => new Set(),
    reservedDescriptor,
    onScanFailed: () => {},
  });
  const process: { events?: ChildEvents } = {};
  const runs = new HostRuns({
    clock: systemClock,
    ledger: new RunLedger(path),
    logWriters: createLogWriters(join(folder, 'logs'), join(folder, 'ends'), systemClock.now, () => {}),
    stops,
    commands: new RunCommands(systemClock, stops),
    groups: new RunGroups({ clock: systemClock, stateId: '1-2', ownPids: () => new Set(), log: () => {} }),
    notices: new NoticeSockets(join(folder, 'runs'), libc, systemClock),
    watch: new TerminalWatch(systemClock, () => {}),
    origin: { boot: 'boot', stateId: '1-2' },
    fifos: new Fifos(join(folder, 'runs'), libc),
    libc,
    startProgram: null,
    loadTerminals: async () => (_request, _libc, events) => {
      onStart();
      process.events = events;
      return { pid: 2 ** 22, write: async () => true, resize: () => {} };
    },
    onEnded,
    reservedDescriptor,
  });
  const spawn = () =>
    runs.spawn({
      service: 'web',
      run: RUN,
      cmd: 'true',
      cwd: folder,
      env: [],
      port: 0,
      umask: 0o022,
      pty: { cols: 80, rows: 24 },
      memo: { revision: 1, port: 0, ready: null, passed: false, deadline: null, restarts: 0 },
    });
  return { path, process, spawn };
}

test('the intent is in the ledger before the process is started, and its pid before the answer', async () => {
  const found: (number | undefined)[] = [];
  const host = await hostRuns(
    () => found.push(readLedger(host.path).get(RUN)?.pid),
    () => {},
  );
  const { pid } = await host.spawn();
  // An intent has no pid: the next host looks for the process by its mark.
  expect(found).toEqual([0]);
  expect(readLedger(host.path).get(RUN)?.pid).toBe(pid);
});

test('an end is in the ledger before it is reported', async () => {
  const found: unknown[] = [];
  const host = await hostRuns(
    () => {},
    () => found.push(readLedger(host.path).get(RUN)?.end?.exitCode),
  );
  await host.spawn();
  must(host.process.events).onExit(7, null);
  expect(found).toEqual([7]);
});
