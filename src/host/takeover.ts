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
} from '../adapters/process/proctable.ts';
import { markOf } from '../adapters/process/tree.ts';
import type { LedgerRow } from '../adapters/storage/ledgerfile.ts';
import type { Clock } from '../runtime/actor.ts';
import { type Fifos, KINDS } from './fifo.ts';
import type { Journal } from './journal.ts';
import type { Ledger } from './ledger.ts';
import { type Run, type Runs, UNKNOWN } from './runs.ts';
import { type Intakes, openIntakes } from './spawn.ts';
import type { Stops } from './stop.ts';

export interface TakeoverConfig {
  clock: Clock;
  ledger: Ledger;
  journal: Journal;
  stops: Stops;
  runs: Runs;
  boot: string;
  fifos: Fifos;
  libc: Libc | null;
}

/** How often a process that is no child of ours is looked at. Its FIFOs mostly tell earlier. */
const LOOK_MS = 1_000;
/** What is left of a terminal's processes after its hang-up has this long to end. */
const HANGUP_MS = 1_000;

/** Processes by the run they are marked with, the leaders of sessions only: as such every run begins. */
function leadersByMark(): Map<string, ProcessRow> {
  const found = new Map<string, ProcessRow>();
  for (const row of processTable().values()) {
    const environ = row.session === row.pid ? environOf(row.pid) : undefined;
    const run = environ && markOf(environ);
    if (run) found.set(run, row);
  }
  return found;
}

/** Rows without a process yet: the host was killed right after the start. Gives each its process, or drops it. */
function findUnnamed(ledger: Ledger): void {
  const unnamed = [...ledger.rows.values()].filter((row) => row.pid === 0 && !row.end);
  if (unnamed.length === 0) return;
  const leaders = leadersByMark();
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
    return KINDS.some((known) => known === kind) ? [run] : [];
  });
  for (const run of new Set(runs)) if (!keep.has(run)) fifos.remove(run);
}

/** Reads on and watches until the process has ended. */
function adopt(run: Run, config: TakeoverConfig): void {
  const { clock, journal, runs, fifos, libc } = config;
  const { service, run: id, pid, startTicks } = run.row;
  let cancel = () => {};
  let intakes: Intakes | undefined;
  const look = () => {
    if (run.row.end || isAlive(pid, startTicks)) return;
    cancel();
    fifos.remove(id, intakes?.finish());
    runs.end(run, UNKNOWN);
  };
  cancel = clock.every(LOOK_MS, look);
  intakes = openIntakes(
    fifos.folder,
    id,
    libc,
    (stream, bytes) => journal.append(service, stream, id, bytes),
    () => {
      journal.rest(service);
      look();
    },
  );
  look();
}

function resume(run: Run, row: LedgerRow, config: TakeoverConfig): void {
  const { clock, stops, runs } = config;
  if (row.pty) {
    // Its terminal was the host's and went with it.
    const order = { signal: 'SIGHUP', graceMs: HANGUP_MS, port: row.port, sent: true } as const;
    void stops.stop({ ...run, gone: () => runs.end(run, { ...UNKNOWN, signal: 'SIGHUP' }) }, order);
  } else if (row.stop) {
    const waited = clock.now() - row.stop.at;
    const graceMs = Math.min(row.stop.graceMs, Math.max(0, row.stop.graceMs - waited));
    void stops.stop(run, { signal: 'SIGTERM', graceMs, port: row.port, sent: true });
  }
}

/** Takes over what the ledger holds. Reads nothing of the past twice and ends nothing that does not have to. */
export function takeOver(config: TakeoverConfig): void {
  const { ledger, runs, boot, fifos } = config;
  findUnnamed(ledger);
  const rows = [...ledger.rows.values()];
  sweepFifos(fifos, new Set(rows.filter((row) => !row.end).map((row) => row.run)));
  for (const row of rows) {
    const run = runs.keep(row, false, null);
    if (row.end) continue;
    if (row.boot !== boot) {
      runs.end(run, { ...UNKNOWN, cause: 'reboot' });
      fifos.remove(row.run);
      continue;
    }
    // A pid that another process has now is not touched, nor is a group of that number.
    run.root.grouped = processRow(row.pid)?.startTicks === row.startTicks;
    if (!row.pty) adopt(run, config);
    resume(run, row, config);
  }
}
