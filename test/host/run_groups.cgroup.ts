// docs/reference.md "Resource limits", held by real control groups of version 2. Few machines let a test
// make them, so test/kit/cgroup_machine.sh runs this file alone, in a virtual machine.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, it, vi } from 'vitest';
import { processRow, isRunning as rowRuns } from '../../src/adapters/process/process_table.ts';
import { shellStart } from '../../src/host/child.ts';
import { RunGroups } from '../../src/host/run_groups.ts';
import { newRunId } from '../../src/protocol/names.ts';
import type { RunLimits } from '../../src/protocol/service.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { MIB } from '../../src/settings/limits.ts';
import { eventually } from '../kit/eventually.ts';
import { must } from '../kit/must.ts';

const GROUP = '/sys/fs/cgroup/berth-test';

// Its processor may be an emulated one.
vi.setConfig({ testTimeout: 300_000 });
beforeAll(() => {
  writeFileSync('/sys/fs/cgroup/cgroup.subtree_control', '+memory +cpu +pids');
  mkdirSync(GROUP, { recursive: true });
  writeFileSync(join(GROUP, 'cgroup.procs'), String(process.pid));
});

const isRunning = (pid: number): boolean => rowRuns(processRow(pid));
const runGroups = (): string[] => readdirSync(GROUP).filter((name) => name.startsWith('berth.run-'));

/** Runs `cmd` as the host does, in a group with `limits`. */
function start(cmd: string, limits: RunLimits) {
  const said: string[] = [];
  const groups = new RunGroups({
    clock: systemClock,
    stateId: '1-2',
    ownPids: () => new Set([process.pid]),
    log: (text) => said.push(text),
  });
  const folder = groups.make(newRunId(Date.now()), limits);
  expect(said).toEqual([]);
  const child = spawn('/bin/sh', shellStart({ cmd, cwd: '/', cgroup: folder }).args, { stdio: 'ignore' });
  const read = (file: string): string => readFileSync(join(must(folder), file), 'latin1').trim();
  return { groups, folder: must(folder), child, read };
}

it('a cgroup ends all processes of a run that uses too much memory, and that end is recognized', async () => {
  // The shell that only waits for the greedy program ends with it.
  const greedy = start('tail /dev/zero; sleep 1000', { memoryMB: 32 });
  expect(await once(greedy.child, 'exit')).toEqual([null, 'SIGKILL']);
  expect(greedy.groups.isOutOfMemory(greedy.folder)).toBe(true);
  const other = start('exit 3', { memoryMB: 32 });
  expect(await once(other.child, 'exit')).toEqual([3, null]);
  expect(other.groups.isOutOfMemory(other.folder)).toBe(false);
  for (const { groups, folder } of [greedy, other]) await groups.end(folder);
  expect(runGroups()).toEqual([]);
});

it('a cgroup limits processes and processor time, and ends processes that have left the process tree', async () => {
  // One of them in a session of its own, without a parent.
  const cmd = '(setsid sleep 1001 &); for one in 1 2 3 4 5 6 7 8; do sleep 1000 & done; wait';
  const { groups, folder, child, read } = start(cmd, { pids: 6, cpus: 0.5, memoryMB: 64 });
  await eventually(() => read('pids.current') === '6');
  expect([read('pids.max'), read('cpu.max'), read('memory.max')]).toEqual([
    '6',
    '50000 100000',
    String(64 * MIB),
  ]);
  const inside = read('cgroup.procs').split('\n').map(Number);
  expect(inside).toContain(child.pid);
  await groups.end(folder);
  expect(inside.filter(isRunning)).toEqual([]);
  expect(runGroups()).toEqual([]);
});
