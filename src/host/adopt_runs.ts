// Adopts the runs of a host that was killed: docs/reference.md "Crash of the process host". A new host
// watches the live ones and continues to read their output; how the others ended is unknown.
import { readdirSync } from 'node:fs';
import type { Libc } from '../adapters/process/libc.ts';
import {
  environOf,
  isAlive,
  isRunning,
  type ProcessRow,
  processRow,
  processTable,
} from '../adapters/process/process_table.ts';
import { ownEnvironReader, runMarkInEnviron, variableInEnviron } from '../adapters/process/process_tree.ts';
import type { LedgerRow, RunOrigin } from '../adapters/storage/ledger_file.ts';
import { hasCommand, isNotified } from '../protocol/checks.ts';
import { SERVICE_NAME_PATTERN } from '../protocol/names.ts';
import type { Clock } from '../runtime/actor.ts';
import { FIFO_KINDS, type Fifos } from './fifo.ts';
import { endMark, graceLeftMs, type HostRun, isSignalName, startMark, UNKNOWN_OUTCOME } from './host_run.ts';
import type { HostRuns } from './host_runs.ts';
import type { LogWriters } from './log_writers.ts';
import { type NoticeSockets, sweepNoticeSockets } from './notice_sockets.ts';
import type { RunCommands } from './run_commands.ts';
import type { RunGroups } from './run_groups.ts';
import type { RunLedger } from './run_ledger.ts';
import { type OutputReaders, openOutputReaders } from './spawn_piped.ts';
import type { TreeStops } from './tree_stops.ts';

export interface AdoptRunsConfig {
  clock: Clock;
  ledger: RunLedger;
  logWriters: LogWriters;
  stops: TreeStops;
  runs: HostRuns;
  origin: Required<RunOrigin>;
  fifos: Fifos;
  libc: Libc | null;
  commands: RunCommands;
  groups: RunGroups;
  notices: NoticeSockets;
  /** Writes a line to the log of the host. */
  log: (text: string) => void;
}

/** How often to check a process that is not our child. The end of its FIFOs is usually noticed earlier. */
const ALIVE_CHECK_MS = 1_000;
/** The grace period for processes whose terminal hung up with the host. */
const HANGUP_MS = 1_000;

/**
 * Ends the rows of runs that were started in another state directory, of which this one is a copy. Their
 * processes are neither watched nor signalled: without pid and cgroup, nothing reaches them. What was to
 * follow their end is left to the original as well.
 */
function endForeignRows({ clock, ledger, origin }: AdoptRunsConfig): void {
  for (const row of ledger.rows.values()) {
    if (row.stateId === undefined || row.stateId === origin.stateId) continue;
    const { cgroup: _, ...rest } = row;
    const { run, service } = row;
    const memo = { ...row.memo, relaunch: false, cascade: false };
    const cause = row.boot === origin.boot ? 'foreign' : 'reboot';
    const end = row.end ?? { service, run, ...UNKNOWN_OUTCOME, cause, at: clock.now() };
    ledger.put({ ...rest, memo, pid: 0, startTicks: 0, end });
  }
}

/** The processes of this state directory for which `fits` holds, by the run they are marked with. */
function processesByRun(
  { origin }: AdoptRunsConfig,
  fits: (row: ProcessRow) => boolean,
): Map<string, ProcessRow> {
  const ownEnvironOf = ownEnvironReader(origin.stateId);
  const found = new Map<string, ProcessRow>();
  for (const row of processTable().values()) {
    const environ = fits(row) ? ownEnvironOf(row.pid) : undefined;
    const id = environ && runMarkInEnviron(environ);
    if (id) found.set(id, row);
  }
  return found;
}

/** The session leaders, by the run they are marked with. Every run begins as one. */
const leadersByRun = (config: AdoptRunsConfig): Map<string, ProcessRow> =>
  processesByRun(config, (row) => row.session === row.pid);

/**
 * Finds the processes of rows without a pid, left by a host that was killed right after the start. A row of
 * which only later processes are left has ended: they are stopped before the next start of its service. Drops
 * rows without any process.
 */
function identifyUnknownPids(config: AdoptRunsConfig): void {
  const { clock, ledger, logWriters } = config;
  const unidentified = [...ledger.rows.values()].filter((row) => row.pid === 0 && !row.end);
  if (unidentified.length === 0) return;
  const leaders = leadersByRun(config);
  const isComplete = unidentified.every(({ run }) => leaders.has(run));
  const orphans = isComplete ? leaders : processesByRun(config, isRunning);
  for (const row of unidentified) {
    const { service, run } = row;
    const process = leaders.get(run);
    if (process) {
      logWriters.mark(service, startMark(run, process.pid, clock.now()), true);
      ledger.put({ ...row, pid: process.pid, startTicks: process.startTicks });
    } else if (orphans.has(run))
      ledger.put({ ...row, end: { service, run, ...UNKNOWN_OUTCOME, at: clock.now() } });
    else ledger.drop(run);
  }
}

/** The runs that have FIFOs. */
function runsWithFifos({ folder }: Fifos): Set<string> {
  const runs = readdirSync(folder).flatMap((file) => {
    const [run = '', kind = ''] = file.split('.');
    return FIFO_KINDS.some((known) => known === kind) ? [run] : [];
  });
  return new Set(runs);
}

/**
 * Adds rows for the runs that a damaged ledger has lost: their FIFOs are in this state directory, and their
 * processes carry their marks. What the daemon had noted about them is unknown.
 */
function recoverLostRows(config: AdoptRunsConfig): void {
  const { clock, fifos, ledger, log, origin } = config;
  const lost = [...runsWithFifos(fifos)].filter((run) => !ledger.rows.has(run));
  if (lost.length === 0) return;
  const leaders = leadersByRun(config);
  for (const run of lost) {
    const { pid, startTicks } = leaders.get(run) ?? {};
    const environ = pid === undefined ? undefined : environOf(pid);
    const service = environ && variableInEnviron(environ, 'BERTH_SERVICE=');
    if (pid === undefined || startTicks === undefined) continue;
    if (!service || !SERVICE_NAME_PATTERN.test(service)) continue;
    const port = Number(variableInEnviron(environ, 'PORT='));
    const memo = { revision: 0, port: port || null, ready: null, passed: true, deadline: null, restarts: 0 };
    const process = { pid, startTicks, startedAt: clock.now(), ...origin, pty: false };
    ledger.put({ ...process, service, run, port, memo, stop: null, end: null });
    log(`the ledger had lost ${service} (pid ${pid}), which was found by its environment`);
  }
}

/** Removes the FIFOs of all runs except those of `keep`. */
function sweepFifos(fifos: Fifos, keep: ReadonlySet<string>): void {
  for (const run of runsWithFifos(fifos)) if (!keep.has(run)) fifos.remove(run);
}

/** Resumes reading, and watches until the process has ended. */
function watchRun(run: HostRun, config: AdoptRunsConfig): void {
  const { clock, logWriters, runs, fifos, libc } = config;
  const { name, row } = run;
  const { run: id, pid, startTicks } = row;
  let cancel = () => {};
  let readers: OutputReaders | undefined;
  const check = () => {
    if (run.row.end || isAlive(pid, startTicks)) return;
    cancel();
    fifos.remove(id, readers?.drain());
    runs.end(run, UNKNOWN_OUTCOME);
  };
  cancel = clock.every(ALIVE_CHECK_MS, check);
  readers = openOutputReaders(
    fifos.folder,
    id,
    libc,
    (stream, bytes) => logWriters.append(name, stream, id, bytes),
    () => {
      logWriters.closeFiles(name);
      check();
    },
  );
  check();
}

/** Resumes what the checks of a run need, and ends commands left by the earlier host. */
function resumeChecks({ row }: HostRun, { commands, notices }: AdoptRunsConfig): void {
  const { memo, run, stop } = row;
  const { live = null, ready } = memo;
  // No other command carries the mark, and a scan of all processes takes some milliseconds.
  if (hasCommand(ready) || hasCommand(live) || stop?.isCommand) void commands.endLeftovers(run);
  if (!isNotified(ready) && !isNotified(live)) return;
  try {
    notices.open(run, memo.passed);
  } catch {
    // Its checks report that nothing arrives.
  }
}

/** Resumes a stop under way, or ends a run that has lost its terminal. */
function resumeStop(run: HostRun, row: LedgerRow, config: AdoptRunsConfig): void {
  const { clock, stops, runs } = config;
  if (row.pty) {
    // Its terminal belonged to the earlier host and has hung up.
    const onGone = () => runs.end(run, { ...UNKNOWN_OUTCOME, signal: 'SIGHUP' });
    const options = { signal: 'SIGHUP', graceMs: HANGUP_MS, port: row.port, isSent: true } as const;
    void stops.stop({ ...run, onGone }, options);
  } else if (row.stop) {
    const { isCommand = false, isSent = true, signal } = row.stop;
    const graceMs = graceLeftMs(row.stop, clock.now());
    const known = isSignalName(signal) ? signal : 'SIGTERM';
    void stops.stop(run, { signal: known, graceMs, port: row.port, isSent: isSent && !isCommand });
  }
}

/** Adopts the runs in the ledger. Output is read exactly once, and no process is ended unnecessarily. */
export function adoptRuns(config: AdoptRunsConfig): void {
  const { ledger, logWriters, runs, origin, fifos, groups } = config;
  endForeignRows(config);
  identifyUnknownPids(config);
  recoverLostRows(config);
  const rows = [...ledger.rows.values()];
  const living = new Set(rows.filter((row) => !row.end).map((row) => row.run));
  sweepFifos(fifos, living);
  sweepNoticeSockets(fifos.folder, living);
  if (rows.some((row) => row.cgroup !== undefined)) groups.sweep(living);
  for (const row of rows) {
    const run = runs.add(row, 'adopted', null, null);
    if (row.end) {
      // The earlier host may have been killed before it wrote the mark.
      logWriters.mark(row.service, endMark(row.end, row.pid), true);
      logWriters.closeFiles(row.service);
      continue;
    }
    if (row.boot !== origin.boot) {
      runs.end(run, { ...UNKNOWN_OUTCOME, cause: 'reboot' });
      fifos.remove(row.run);
      continue;
    }
    resumeChecks(run, config);
    // If another process has the pid now, a process group with that number does not belong to the run either.
    run.root.grouped = processRow(row.pid)?.startTicks === row.startTicks;
    if (!row.pty) watchRun(run, config);
    resumeStop(run, row, config);
  }
}
