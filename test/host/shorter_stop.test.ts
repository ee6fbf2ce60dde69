// docs/reference.md "Stop": a stop that joins one under way can shorten it, and never lengthens it. The first
// one's grace period is an hour, so that a stop that is not shortened outlasts the test.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { processTable } from '../../src/adapters/process/process_table.ts';
import { ledgerFile, readLedger } from '../../src/adapters/storage/ledger_file.ts';
import { RunLedger } from '../../src/host/run_ledger.ts';
import { must } from '../kit/must.ts';
import {
  connectDaemon,
  type Daemon,
  eventually,
  hostsOf,
  isRunning,
  newState,
  useHost,
} from '../kit/process_host.ts';

useHost();

const HOUR_MS = 3_600_000;
const KILLED = { exitCode: null, signal: 'SIGKILL', escalated: true, left: [], portFree: true };

/** A tree of two that catches SIGTERM, says so and goes on. */
async function stubborn(daemon: Daemon, service = 'web') {
  const cmd = `(trap '' TERM; exec sleep 600) & trap 'echo got' TERM; echo ready; while :; do sleep 0.05; done`;
  const run = await daemon.spawn(service, cmd, { cwd: daemon.stateDir });
  await eventually(() => daemon.tail(service).length > 0);
  return run;
}
type Started = Awaited<ReturnType<typeof stubborn>>;

/** The live processes of the group of a run. */
const group = ({ pid }: Started) =>
  [...processTable().values()].filter((row) => row.pgid === pid && isRunning(row.pid));

/** Begins a stop, whose failure when its host is killed does not matter. */
function begin(daemon: Daemon, run: Started, more: { command?: string } = {}) {
  const report = daemon.stop(run, { graceMs: HOUR_MS, ...more });
  report.catch(() => {});
  return report;
}

/** A stop command that leaves the file `begun` and then takes ten minutes. */
const SLOW = 'touch begun; exec sleep 600';
const hasBegun = ({ stateDir }: Daemon) => eventually(() => existsSync(join(stateDir, 'begun')));
const hasSignal = (daemon: Daemon) => eventually(() => daemon.tail('web').includes('got'));

test('within the grace period of the signal', async () => {
  const daemon = await connectDaemon(newState());
  const run = await stubborn(daemon);
  expect(group(run).length).toBeGreaterThan(1);
  const first = begin(daemon, run);
  await hasSignal(daemon);
  const second = await daemon.stop(run, { graceMs: 0 });
  expect(second).toMatchObject(KILLED);
  expect(second.reaped).toBeGreaterThan(1);
  expect(await first).toEqual(second);
  expect(group(run)).toEqual([]);
});

test('while the command runs, which is ended', async () => {
  const daemon = await connectDaemon(newState());
  const run = await stubborn(daemon);
  const first = begin(daemon, run, { command: SLOW });
  await hasBegun(daemon);
  const second = await daemon.stop(run, { graceMs: 50, command: SLOW });
  expect(second).toMatchObject(KILLED);
  expect(second.ms).toBeGreaterThanOrEqual(50);
  expect(await first).toEqual(second);
  expect(group(run)).toEqual([]);
});

test('while the command runs on although the process has ended', async () => {
  const daemon = await connectDaemon(newState());
  const run = await daemon.spawn('web', 'exec sleep 600', { cwd: daemon.stateDir });
  const first = begin(daemon, run, { command: `kill -9 ${run.pid}; ${SLOW}` });
  await daemon.ended(run);
  await hasBegun(daemon);
  const second = await daemon.stop(run, { graceMs: 0 });
  expect(second).toMatchObject({ signal: 'SIGKILL', escalated: false, left: [] });
  expect(await first).toEqual(second);
});

test('before the command begins, which is then skipped', async () => {
  const daemon = await connectDaemon(newState());
  const run = await stubborn(daemon);
  // A probe that must be ended first.
  const probe = daemon.host.ask('exec', { ...run, cmd: 'touch probing; exec sleep 600', timeoutMs: HOUR_MS });
  await eventually(() => existsSync(join(daemon.stateDir, 'probing')));
  const first = begin(daemon, run, { command: SLOW });
  expect(await daemon.stop(run, { graceMs: 0 })).toMatchObject(KILLED);
  expect(await first).toMatchObject(KILLED);
  expect(existsSync(join(daemon.stateDir, 'begun'))).toBe(false);
  expect((await probe).signal).toBe('SIGKILL');
});

test('also after a stop that does not shorten it', async () => {
  const daemon = await connectDaemon(newState());
  const run = await stubborn(daemon);
  const first = begin(daemon, run, { command: 'touch begun' });
  const longer = daemon.stop(run, { graceMs: 2 * HOUR_MS });
  await hasSignal(daemon);
  const shorter = daemon.stop(run, { graceMs: 100 });
  const again = daemon.stop(run, { graceMs: HOUR_MS });
  const reports = await Promise.all([first, longer, shorter, again]);
  expect(reports[0]).toMatchObject(KILLED);
  expect(new Set(reports.map((report) => JSON.stringify(report))).size).toBe(1);
});

test.each([
  ['within the grace period of the signal', undefined, hasSignal],
  ['while the command runs', SLOW, hasBegun],
] as const)('%s also for the next host, if this one is killed', async (_, command, isUnderWay) => {
  const stateDir = newState();
  const daemon = await connectDaemon(stateDir);
  const run = await stubborn(daemon);
  void begin(daemon, run, command === undefined ? {} : { command });
  await isUnderWay(daemon);
  daemon.stop(run, { graceMs: HOUR_MS / 2 }).catch(() => {});
  const path = ledgerFile(join(stateDir, 'host'));
  const rowOf = () => must(readLedger(path).get(run.run));
  const { at, killAt } = await eventually(() => {
    const { stop } = rowOf();
    return stop?.killAt === undefined ? null : { at: stop.at, killAt: stop.killAt };
  });
  expect(killAt - at).toBeLessThan(HOUR_MS);
  expect(killAt - at).toBeGreaterThanOrEqual(HOUR_MS / 2);
  for (const pid of hostsOf(stateDir)) process.kill(pid, 'SIGKILL');
  await daemon.lost;
  // As if that half hour were over.
  const row = rowOf();
  new RunLedger(path).put({ ...row, stop: { ...must(row.stop), killAt: Date.now() } });
  const next = await connectDaemon(stateDir);
  expect(await next.ended(run)).toMatchObject({ exitUnknown: true });
  expect(group(run)).toEqual([]);
});

test('by a stop that joins the one that the next host continues', async () => {
  const stateDir = newState();
  const daemon = await connectDaemon(stateDir);
  const run = await stubborn(daemon);
  void begin(daemon, run);
  await hasSignal(daemon);
  for (const pid of hostsOf(stateDir)) process.kill(pid, 'SIGKILL');
  await daemon.lost;
  const next = await connectDaemon(stateDir);
  const stopping = { stopping: true, stopGraceMs: HOUR_MS, end: null };
  expect((await next.host.ask('runOf', { service: 'web' })).run).toMatchObject(stopping);
  expect(await next.stop(run, { graceMs: 0 })).toMatchObject({
    escalated: true,
    exitUnknown: true,
    left: [],
  });
  expect(group(run)).toEqual([]);
});
