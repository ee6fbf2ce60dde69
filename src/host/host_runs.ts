// Every run this host has: alive, or ended and not yet acknowledged. The ledger comes first: a run is in it before its start
// is answered, an end before it is told.
import { constants } from 'node:os';
import type { Libc } from '../adapters/process/libc.ts';
import { processRow, residentBytes } from '../adapters/process/process_table.ts';
import type { RunRoot } from '../adapters/process/process_tree.ts';
import type { ReservedDescriptor } from '../adapters/process/reserved_descriptor.ts';
import type { LedgerRow } from '../adapters/storage/ledger_file.ts';
import { fail } from '../protocol/errors.ts';
import type {
  LedgerRun,
  RunMetadata,
  SpawnReply,
  SpawnRequest,
  StopReport,
  StopRequest,
} from '../protocol/host.ts';
import type { RunEnd } from '../protocol/service.ts';
import type { Clock } from '../runtime/actor.ts';
import { MIB } from '../settings/limits.ts';
import { type ChildEvents, checkStartable, diskFull, spawnFailure, startFailed } from './child.ts';
import type { Fifos } from './fifo.ts';
import type { LogWriters } from './log_writers.ts';
import type { HostTerminal, SpawnTerminal } from './pty.ts';
import type { StartProgram } from './reap_children.ts';
import type { RunLedger } from './run_ledger.ts';
import { spawnPiped } from './spawn_piped.ts';
import type { StopTarget, TreeStops } from './stop_tree.ts';

export interface HostRunsConfig {
  clock: Clock;
  ledger: RunLedger;
  logWriters: LogWriters;
  stops: TreeStops;
  boot: string;
  fifos: Fifos;
  /** null where it does not load: terminals are refused then. */
  libc: Libc | null;
  /** What starts processes without a terminal; null: Node does. */
  startProgram: StartProgram | null;
  /** Rejects where terminals are not to be had. */
  loadTerminals: () => Promise<SpawnTerminal>;
  /** An end is in the ledger and may be told. */
  onEnded: (end: RunEnd) => void;
  /** Lent to the look at a process that was just started: its start is what it is known by. */
  reservedDescriptor: ReservedDescriptor;
}

export interface HostRun extends StopTarget {
  row: LedgerRow;
  root: RunRoot;
  /** Its process is a child of ours; of one that was taken over only the absence can be noticed. */
  isOwnChild: boolean;
  terminal: HostTerminal | null;
}

type RunOutcome = Pick<RunEnd, 'exitCode' | 'signal' | 'exitUnknown' | 'cause'>;
export const UNKNOWN_OUTCOME: RunOutcome = { exitCode: null, signal: null, exitUnknown: true, cause: 'exit' };

export class HostRuns {
  readonly all = new Map<string, HostRun>();
  private readonly config: HostRunsConfig;
  /** Runs that are being started. */
  private readonly starting = new Map<string, { service: string; reply: Promise<SpawnReply> }>();

  constructor(config: HostRunsConfig) {
    this.config = config;
  }

  /** How many processes there are, those about to be included. */
  get liveCount(): number {
    let count = this.starting.size;
    for (const { row } of this.all.values()) if (!row.recordEnd) count += 1;
    return count;
  }

  roots(): RunRoot[] {
    return [...this.all.values()].filter(({ row }) => !row.recordEnd).map(({ root }) => root);
  }

  /** The processes that somebody waits for already. */
  childPids(): Set<number> {
    return new Set(
      [...this.all.values()].flatMap(({ isOwnChild, row }) =>
        isOwnChild && !row.recordEnd ? [row.pid] : [],
      ),
    );
  }

  /** Ends that were told before `time` and not acknowledged. */
  unacknowledged(time: number): RunEnd[] {
    return [...this.all.values()].flatMap(({ row }) =>
      row.recordEnd && row.recordEnd.at < time ? [row.recordEnd] : [],
    );
  }

  /** The run of a service: the one that lives, or else the latest. */
  ofService(name: string): HostRun | undefined {
    let found: HostRun | undefined;
    for (const run of this.all.values()) {
      if (run.row.service !== name) continue;
      if (!run.row.recordEnd) return run;
      if (!found || run.row.startedAt >= found.row.startedAt) found = run;
    }
    return found;
  }

  /** Of `service`, or of all, once no start that was asked for before is under way: whoever looks may not miss its process. */
  async settledRows(name: string | null): Promise<LedgerRun[]> {
    const under = [...this.starting.values()].filter((start) => name === null || start.service === name);
    await Promise.allSettled(under.map(({ reply }) => reply));
    if (name === null) return [...this.all.values()].map(runRowOf);
    const run = this.ofService(name);
    return run ? [runRowOf(run)] : [];
  }

  /** Starts a process; the same run again gets the same answer. Rejects with start_failed, storage_full or already_running. */
  spawn(request: SpawnRequest): Promise<SpawnReply> {
    const { service, run } = request;
    const known = this.all.get(run);
    if (known && !known.row.recordEnd) return Promise.resolve(spawnReplyOf(known.row));
    const under = this.starting.get(run);
    if (under) return under.reply;
    const other = this.ofService(service);
    if (other && !other.row.recordEnd)
      return Promise.reject(fail('already_running', `${service} runs already, with pid ${other.row.pid}`));
    const reply = this.begin(request).finally(() => this.starting.delete(run));
    this.starting.set(run, { service, reply });
    return reply;
  }

  private async begin(request: SpawnRequest): Promise<SpawnReply> {
    const { clock, ledger, boot } = this.config;
    const { service, run, port, memo, pty } = request;
    checkStartable(request);
    const intent: LedgerRow = {
      ...{ service, run, port, memo, boot },
      ...{ pid: 0, startTicks: 0, startedAt: clock.now() },
      ...{ pty: pty !== null, stop: null, recordEnd: null },
    };
    // A host that is killed between the start and the next line must be missed by its successor: by mark, not by pid.
    if (!ledger.put(intent)) {
      ledger.drop(run);
      throw diskFull(service);
    }
    try {
      return await this.launch(request, intent);
    } catch (error) {
      ledger.drop(run);
      throw spawnFailure(service, error);
    }
  }

  private async launch(request: SpawnRequest, intent: LedgerRow): Promise<SpawnReply> {
    const { fifos, libc, startProgram, loadTerminals, logWriters, ledger, reservedDescriptor } = this.config;
    const { service, run } = request;
    const events: ChildEvents = {
      onOutput: (stream, bytes) => logWriters.append(service, stream, run, bytes),
      onExit: (exitCode, signal) => {
        const known = this.all.get(run);
        if (known) this.end(known, { exitCode, signal, exitUnknown: false, cause: 'exit' });
      },
    };
    let terminal: HostTerminal | null = null;
    let pid: number;
    if (request.pty) {
      if (!libc) throw startFailed(service, 'terminals need koffi, which does not load here');
      const spawnTerminal = await loadTerminals().catch((error) => {
        throw startFailed(service, `terminals need node-pty, which does not load here: ${error}`);
      });
      terminal = spawnTerminal(request, libc, events);
      pid = terminal.pid;
    } else {
      const drained = () => logWriters.closeFiles(service);
      pid = await spawnPiped(request, { fifos, libc, startProgram, events, onDrained: drained });
    }
    // Its end comes as an event, in another turn: nothing is missed until `keep`.
    const first = reservedDescriptor.lend(() => processRow(pid));
    const row = { ...intent, pid, startTicks: first?.startTicks ?? 0 };
    const known = this.add(row, true, terminal);
    // What could not be written down must not run: nobody would know of it.
    if (!ledger.put(row)) {
      await this.config.stops.stop(known, { signal: 'SIGKILL', graceMs: 0, port: 0, sent: false });
      this.all.delete(run);
      throw diskFull(service);
    }
    return spawnReplyOf(row);
  }

  /** Takes a run in. */
  add(row: LedgerRow, ours: boolean, terminal: HostTerminal | null): HostRun {
    const root: RunRoot = { run: row.run, pid: row.pid, startTicks: row.startTicks, grouped: !row.recordEnd };
    const run: HostRun = {
      row,
      root,
      isOwnChild: ours,
      terminal,
      pty: row.pty,
      end: () => run.row.recordEnd,
      onGone: () => {
        if (!ours) this.end(run, UNKNOWN_OUTCOME);
      },
    };
    this.all.set(row.run, run);
    return run;
  }

  /** Its process has ended: in the ledger, then told. Once. */
  end(run: HostRun, outcome: RunOutcome): void {
    if (run.row.recordEnd) return;
    const { service, run: id, pty } = run.row;
    const end: RunEnd = { service, run: id, ...outcome, at: this.config.clock.now() };
    run.row = { ...run.row, recordEnd: end };
    run.terminal = null;
    this.config.ledger.put(run.row);
    if (pty) this.config.logWriters.closeFiles(service);
    this.config.logWriters.notifyGrowth();
    this.config.onEnded(end);
    this.config.stops.checkSoon();
  }

  /** Ends the tree of a run, or joins the stop under way. Of a run that has ended it ends what that has left behind. */
  async stop({ service, run: id, signal, graceMs, port }: StopRequest): Promise<StopReport> {
    if (!isSignalName(signal)) throw fail('invalid_spec', `${signal} is no signal`);
    await this.starting.get(id)?.reply.catch(() => undefined);
    const known = this.all.get(id);
    if (known && !known.row.stop && !known.row.recordEnd) {
      known.row = { ...known.row, stop: { signal, graceMs, at: this.config.clock.now() } };
      this.config.ledger.put(known.row);
    }
    return this.config.stops.stop(known ?? forgottenTarget(service, id), {
      signal,
      graceMs,
      port,
      sent: false,
    });
  }

  setRunMetadata(run: string, runMetadata: RunMetadata): void {
    const known = this.all.get(run);
    if (!known) return;
    known.row = { ...known.row, memo: runMetadata };
    this.config.ledger.put(known.row);
  }

  acknowledge(run: string): void {
    if (!this.all.get(run)?.row.recordEnd) return;
    this.all.delete(run);
    this.config.ledger.drop(run);
  }

  /** Drops all that is kept of a service. Throws already_running while it has a process. */
  forget(name: string): void {
    const run = this.ofService(name);
    if (run && !run.row.recordEnd) throw fail('already_running', `${name} has a process: stop it first`);
    for (const { row } of [...this.all.values()]) if (row.service === name) this.acknowledge(row.run);
    this.config.logWriters.remove(name);
  }
}

const isSignalName = (name: string): name is NodeJS.Signals => Object.hasOwn(constants.signals, name);

function runRowOf({ row }: HostRun): LedgerRun {
  const { boot: _boot, stop, ...shown } = row;
  return { ...shown, stopping: stop !== null };
}

const spawnReplyOf = ({ pid, startTicks, startedAt }: LedgerRow): SpawnReply => ({
  pid,
  startTicks,
  startedAt,
  rssMB: Math.ceil(residentBytes(pid) / MIB),
});

/** A run that is not in the ledger any more: only what bears its mark can be found. */
function forgottenTarget(name: string, run: string): StopTarget {
  const end = { service: name, run, ...UNKNOWN_OUTCOME, at: 0 };
  return {
    root: { run, pid: 0, startTicks: 0, grouped: false },
    pty: false,
    end: () => end,
    onGone: () => {},
  };
}
