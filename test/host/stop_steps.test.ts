// docs/reference.md "Stop": the steps of a stop, between scans that a test makes by itself. So a scan can
// miss a process that has just been forked, as it happens to every scan at times.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { type ProcessRow, processRow } from '../../src/adapters/process/process_table.ts';
import { sendSignal } from '../../src/host/signals.ts';
import { TreeStop, type TreeStopOptions } from '../../src/host/stop_tree.ts';
import { afterThisTest } from '../kit/actors.ts';
import { eventually } from '../kit/eventually.ts';
import { must } from '../kit/must.ts';

/** A process of its own group, and its row of the process table. `trap`: what its shell does first. */
async function sleeper(trap = ':'): Promise<{ child: ChildProcess; row: ProcessRow }> {
  const child = spawn('sh', ['-c', `${trap}; exec sleep 600`], { detached: true, stdio: 'ignore' });
  await once(child, 'spawn');
  const pid = must(child.pid);
  afterThisTest(() => void child.kill('SIGKILL'));
  await eventually(() => processRow(pid)?.comm === 'sleep');
  return { child, row: must(processRow(pid)) };
}

const isAlive = ({ child }: { child: ChildProcess }): boolean =>
  child.exitCode === null && child.signalCode === null;

/** A stop of the tree of `row`, and the steps that its scans make. */
function stopOf(
  { child, row }: { child: ChildProcess; row: ProcessRow },
  graceMs: number,
  hasTerminal = false,
) {
  const target = {
    root: { run: 'r', pid: row.pid, startTicks: row.startTicks, grouped: true },
    hasTerminal,
    end: () => ({ exitCode: child.exitCode, signal: child.signalCode, exitUnknown: false }),
    onGone: () => {},
  };
  const options: TreeStopOptions = { signal: 'SIGTERM', graceMs, port: 0, isSent: false };
  const stop = new TreeStop(target, options, 0);
  const advance = (now: number, hasBlankOrphan: boolean, members: ProcessRow[]) =>
    stop.advance({ members, hasBlankOrphan, portListeners: () => [], now });
  const scan = (now: number, ...members: ProcessRow[]) => advance(now, false, members);
  return { stop, scan, scanWithBlankOrphan: (now: number) => advance(now, true, []) };
}

test('a process that one scan has missed is still stopped', async () => {
  const missed = await sleeper();
  const { stop, scan } = stopOf(missed, 5_000);
  expect(scan(0)).not.toBeNull();
  expect(scan(1, missed.row)).not.toBeNull();
  await once(missed.child, 'exit');
  expect(scan(2)).not.toBeNull();
  expect(scan(3)).toBeNull();
  expect(await stop.report).toMatchObject({ signal: 'SIGTERM', escalated: false, reaped: 1 });
});

test('a process in the middle of exec is waited for, and one that never shows an environment is not', async () => {
  const born = await sleeper();
  const { stop, scan, scanWithBlankOrphan } = stopOf(born, 5_000);
  for (let now = 0; now < 40; now += 5) expect(scanWithBlankOrphan(now)).toBe(5);
  expect(scan(40, born.row)).not.toBeNull();
  await once(born.child, 'exit');
  expect(scanWithBlankOrphan(45)).toBe(5);
  expect(scanWithBlankOrphan(95)).not.toBeNull();
  expect(scanWithBlankOrphan(96)).toBeNull();
  expect(await stop.report).toMatchObject({ signal: 'SIGTERM', reaped: 1 });
});

test('what is left after the grace period is frozen before any of it is killed', async () => {
  const stubborn = `trap '' TERM`;
  const [parent, forked] = [await sleeper(stubborn), await sleeper(stubborn)];
  const { stop, scan } = stopOf(parent, 0);
  scan(0, parent.row);
  scan(1, parent.row);
  const isFrozen = (row: ProcessRow) => processRow(row.pid)?.state === 'T';
  await eventually(() => isFrozen(parent.row));
  // A child that was forked just before: it is frozen as well, and only then do both end.
  scan(2, parent.row, forked.row);
  await eventually(() => isFrozen(forked.row));
  expect([parent, forked].map(isAlive)).toEqual([true, true]);
  const ends = Promise.all([once(parent.child, 'exit'), once(forked.child, 'exit')]);
  scan(3, parent.row, forked.row);
  expect(await ends).toEqual([
    [null, 'SIGKILL'],
    [null, 'SIGKILL'],
  ]);
  scan(4);
  expect(scan(5)).toBeNull();
  expect(await stop.report).toMatchObject({ escalated: true, reaped: 2 });
});

test('a process that got the pid of another one gets none of its signals', async () => {
  const heir = await sleeper();
  sendSignal({ ...heir.row, startTicks: heir.row.startTicks - 1 }, 'SIGKILL');
  // Signals arrive in order: that one would have ended it.
  sendSignal(heir.row, 'SIGTERM');
  expect(await once(heir.child, 'exit')).toEqual([null, 'SIGTERM']);
});

test('a stop can be shortened and not lengthened', async () => {
  const stubborn = await sleeper(`trap '' TERM`);
  const { stop, scan } = stopOf(stubborn, 5_000);
  const { row } = stubborn;
  scan(0, row);
  stop.hurry(3_000);
  stop.hurry(9_000);
  expect(scan(2_990, row)).toBe(10);
  const exit = once(stubborn.child, 'exit');
  // It is frozen, then killed.
  scan(3_000, row);
  scan(3_001, row);
  expect(await exit).toEqual([null, 'SIGKILL']);
  scan(3_002);
  expect(scan(3_003)).toBeNull();
  expect(await stop.report).toMatchObject({ signal: 'SIGKILL', escalated: true, ms: 3_003 });
});

test('a shortened stop hangs the terminal up after half of the shorter time', async () => {
  const stubborn = await sleeper(`trap '' TERM`);
  const { stop, scan } = stopOf(stubborn, 5_000, true);
  const { row } = stubborn;
  scan(0, row);
  const exit = once(stubborn.child, 'exit');
  scan(1_500, row);
  stop.hurry(3_000);
  expect(stubborn.child.signalCode).toBeNull();
  scan(1_501, row);
  expect(await exit).toEqual([null, 'SIGHUP']);
});
