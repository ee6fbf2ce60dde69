// What a new host does with the runs of one that was killed: those that live it watches and reads on, of those that ended
// meanwhile nobody knows how: docs/reference.md "Death of the process host".
import { readdirSync } from 'node:fs';
import type { Libc } from '../adapters/process/libc.ts';
import {
  environOf,
  isAlive,
  type ProcessRow,
  processRow,
  processTable,
} from '../adapters/process/process_table.ts';
import { runMarkInEnviron } from '../adapters/process/process_tree.ts';
import type { LedgerRow } from '../adapters/storage/ledger_file.ts';
import type { Clock } from '../runtime/actor.ts';
import { FIFO_KINDS, type Fifos } from './fifo.ts';
import { type HostRun, type HostRuns, UNKNOWN_OUTCOME } from './host_runs.ts';
import type { LogWriters } from './log_writers.ts';
import type { RunLedger } from './run_ledger.ts';
import { type OutputReaders, openOutputReaders } from './spawn_piped.ts';
import type { TreeStops } from './stop_tree.ts';

export interface AdoptRunsConfig {
  clock: Clock;
  ledger: RunLedger;
  logWriters: LogWriters;
  stops: TreeStops;
  runs: HostRuns;
  boot: string;
  fifos: Fifos;
  libc: Libc | null;
}

/** How often a process that is no child of ours is looked at. Its FIFOs mostly tell earlier. */
const ALIVE_CHECK_MS = 1_000;
/** What is left of a terminal's processes after its hang-up has this long to end. */
const HANGUP_MS = 1_000;

/** Processes by the run they are marked with, the leaders of sessions only: as such every run begins. */
function leadersByRun(): Map<string, ProcessRow> {
  const found = new Map<string, ProcessRow>();
  for (const row of processTable().values()) {
    const environ = row.session === row.pid ? environOf(row.pid) : undefined;
    const run = environ && runMarkInEnviron(environ);
    if (run) found.set(run, row);
  }
  return found;
}

/** Rows without a process yet: the host was killed right after the start. Gives each its process, or drops it. */
function identifyUnknownPids(ledger: RunLedger): void {
  const unnamed = [...ledger.rows.values()].filter((row) => row.pid === 0 && !row.recordEnd);
  if (unnamed.length === 0) return;
  const leaders = leadersByRun();
  for (const row of unnamed) {
    const process = leaders.get(row.run);
    if (process) ledger.put({ ...row, pid: process.pid, startTicks: process.startTicks });
    else ledger.drop(row.run);
  }
}

/** FIFOs of runs that nobody knows any more. */
function sweepFifos(fifos: Fifos, keep: ReadonlySet<string>): void {
  const runs = readdirSync(fifos.folder).flatMap((name) => {
    const [run = '', kind = ''] = name.split('.');
    return FIFO_KINDS.some((known) => known === kind) ? [run] : [];
  });
  for (const run of new Set(runs)) if (!keep.has(run)) fifos.remove(run);
}

/** Reads on and watches until the process has ended. */
function watchRun(run: HostRun, config: AdoptRunsConfig): void {
  const { clock, logWriters, runs, fifos, libc } = config;
  const { service, run: id, pid, startTicks } = run.row;
  let cancel = () => {};
  let intakes: OutputReaders | undefined;
  const look = () => {
    if (run.row.recordEnd || isAlive(pid, startTicks)) return;
    cancel();
    fifos.remove(id, intakes?.drain());
    runs.end(run, UNKNOWN_OUTCOME);
  };
  cancel = clock.every(ALIVE_CHECK_MS, look);
  intakes = openOutputReaders(
    fifos.folder,
    id,
    libc,
    (stream, bytes) => logWriters.append(service, stream, id, bytes),
    () => {
      logWriters.closeFiles(service);
      look();
    },
  );
  look();
}

function resumeStop(run: HostRun, row: LedgerRow, config: AdoptRunsConfig): void {
  const { clock, stops, runs } = config;
  if (row.pty) {
    // Its terminal was the host's and went with it.
    const order = { signal: 'SIGHUP', graceMs: HANGUP_MS, port: row.port, sent: true } as const;
    void stops.stop({ ...run, onGone: () => runs.end(run, { ...UNKNOWN_OUTCOME, signal: 'SIGHUP' }) }, order);
  } else if (row.stop) {
    const waited = clock.now() - row.stop.at;
    const graceMs = Math.min(row.stop.graceMs, Math.max(0, row.stop.graceMs - waited));
    void stops.stop(run, { signal: 'SIGTERM', graceMs, port: row.port, sent: true });
  }
}

/** Takes over what the ledger holds. Reads nothing of the past twice and ends nothing that does not have to. */
export function adoptRuns(config: AdoptRunsConfig): void {
  const { ledger, runs, boot, fifos } = config;
  identifyUnknownPids(ledger);
  const rows = [...ledger.rows.values()];
  sweepFifos(fifos, new Set(rows.filter((row) => !row.recordEnd).map((row) => row.run)));
  for (const row of rows) {
    const run = runs.add(row, false, null);
    if (row.recordEnd) continue;
    if (row.boot !== boot) {
      runs.end(run, { ...UNKNOWN_OUTCOME, cause: 'reboot' });
      fifos.remove(row.run);
      continue;
    }
    // A pid that another process has now is not touched, nor is a group of that number.
    run.root.grouped = processRow(row.pid)?.startTicks === row.startTicks;
    if (!row.pty) watchRun(run, config);
    resumeStop(run, row, config);
  }
}
