// Every run this host has: alive, or ended and not yet acknowledged. The ledger comes first: a run is in it before its start
// is answered, an end before it is told.
import { constants } from 'node:os';
import type { Spare } from '../adapters/process/descriptors.ts';
import type { Libc } from '../adapters/process/libc.ts';
import { processRow, residentBytes } from '../adapters/process/proctable.ts';
import type { Root } from '../adapters/process/tree.ts';
import type { LedgerRow } from '../adapters/storage/ledgerfile.ts';
import { MIB } from '../limits.ts';
import { fail } from '../protocol/errors.ts';
import type { RunMemo, RunRow, SpawnReply, SpawnRequest, StopReport, StopRequest } from '../protocol/host.ts';
import type { RunEnd } from '../protocol/service.ts';
import type { Clock } from '../runtime/actor.ts';
import { asFailure, type ChildEvents, checkPlace, noRoom, startFailed } from './child.ts';
import type { StartProgram } from './children.ts';
import type { Fifos } from './fifo.ts';
import type { Journal } from './journal.ts';
import type { Ledger } from './ledger.ts';
import type { SpawnTerminal, Terminal } from './pty.ts';
import { spawnPiped } from './spawn.ts';
import type { Stops, Target } from './stop.ts';

export interface RunsConfig {
  clock: Clock;
  ledger: Ledger;
  journal: Journal;
  stops: Stops;
  boot: string;
  fifos: Fifos;
  /** null where it does not load: terminals are refused then. */
  libc: Libc | null;
  /** What starts processes without a terminal; null: Node does. */
  start: StartProgram | null;
  /** Rejects where terminals are not to be had. */
  terminals: () => Promise<SpawnTerminal>;
  /** An end is in the ledger and may be told. */
  ended: (end: RunEnd) => void;
  /** Lent to the look at a process that was just started: its start is what it is known by. */
  spare: Spare;
}

export interface Run extends Target {
  row: LedgerRow;
  root: Root;
  /** Its process is a child of ours; of one that was taken over only the absence can be noticed. */
  ours: boolean;
  terminal: Terminal | null;
}

type Outcome = Pick<RunEnd, 'exitCode' | 'signal' | 'exitUnknown' | 'cause'>;
export const UNKNOWN: Outcome = { exitCode: null, signal: null, exitUnknown: true, cause: 'exit' };

export class Runs {
  readonly all = new Map<string, Run>();
  private readonly config: RunsConfig;
  /** Runs that are being started. */
  private readonly starting = new Map<string, { service: string; reply: Promise<SpawnReply> }>();

  constructor(config: RunsConfig) {
    this.config = config;
  }

  /** How many processes there are, those about to be included. */
  get live(): number {
    let count = this.starting.size;
    for (const { row } of this.all.values()) if (!row.end) count += 1;
    return count;
  }

  roots(): Root[] {
    return [...this.all.values()].filter(({ row }) => !row.end).map(({ root }) => root);
  }

  /** The processes that somebody waits for already. */
  pids(): Set<number> {
    return new Set([...this.all.values()].flatMap(({ ours, row }) => (ours && !row.end ? [row.pid] : [])));
  }

  /** Ends that were told before `time` and not acknowledged. */
  unacknowledged(time: number): RunEnd[] {
    return [...this.all.values()].flatMap(({ row }) => (row.end && row.end.at < time ? [row.end] : []));
  }

  /** The run of a service: the one that lives, or else the latest. */
  of(service: string): Run | undefined {
    let found: Run | undefined;
    for (const run of this.all.values()) {
      if (run.row.service !== service) continue;
      if (!run.row.end) return run;
      if (!found || run.row.startedAt >= found.row.startedAt) found = run;
    }
    return found;
  }

  /** Of `service`, or of all, once no start that was asked for before is under way: whoever looks may not miss its process. */
  async settled(service: string | null): Promise<RunRow[]> {
    const under = [...this.starting.values()].filter(
      (start) => service === null || start.service === service,
    );
    await Promise.allSettled(under.map(({ reply }) => reply));
    if (service === null) return [...this.all.values()].map(rowOf);
    const run = this.of(service);
    return run ? [rowOf(run)] : [];
  }

  /** Starts a process; the same run again gets the same answer. Rejects with start_failed, storage_full or already_running. */
  spawn(request: SpawnRequest): Promise<SpawnReply> {
    const { service, run } = request;
    const known = this.all.get(run);
    if (known && !known.row.end) return Promise.resolve(replyOf(known.row));
    const under = this.starting.get(run);
    if (under) return under.reply;
    const other = this.of(service);
    if (other && !other.row.end)
      return Promise.reject(fail('already_running', `${service} runs already, with pid ${other.row.pid}`));
    const reply = this.begin(request).finally(() => this.starting.delete(run));
    this.starting.set(run, { service, reply });
    return reply;
  }

  private async begin(request: SpawnRequest): Promise<SpawnReply> {
    const { clock, ledger, boot } = this.config;
    const { service, run, port, memo, pty } = request;
    checkPlace(request);
    const intent: LedgerRow = {
      ...{ service, run, port, memo, boot },
      ...{ pid: 0, startTicks: 0, startedAt: clock.now() },
      ...{ pty: pty !== null, stop: null, end: null },
    };
    // A host that is killed between the start and the next line must be missed by its successor: by mark, not by pid.
    if (!ledger.put(intent)) {
      ledger.drop(run);
      throw noRoom(service);
    }
    try {
      return await this.launch(request, intent);
    } catch (error) {
      ledger.drop(run);
      throw asFailure(service, error);
    }
  }

  private async launch(request: SpawnRequest, intent: LedgerRow): Promise<SpawnReply> {
    const { fifos, libc, start, terminals, journal, ledger, spare } = this.config;
    const { service, run } = request;
    const events: ChildEvents = {
      output: (stream, bytes) => journal.append(service, stream, run, bytes),
      ended: (exitCode, signal) => {
        const known = this.all.get(run);
        if (known) this.end(known, { exitCode, signal, exitUnknown: false, cause: 'exit' });
      },
    };
    let terminal: Terminal | null = null;
    let pid: number;
    if (request.pty) {
      if (!libc) throw startFailed(service, 'terminals need koffi, which does not load here');
      const spawnTerminal = await terminals().catch((error) => {
        throw startFailed(service, `terminals need node-pty, which does not load here: ${error}`);
      });
      terminal = spawnTerminal(request, libc, events);
      pid = terminal.pid;
    } else {
      const drained = () => journal.rest(service);
      pid = await spawnPiped(request, { fifos, libc, start, events, drained });
    }
    // Its end comes as an event, in another turn: nothing is missed until `keep`.
    const first = spare.lend(() => processRow(pid));
    const row = { ...intent, pid, startTicks: first?.startTicks ?? 0 };
    const known = this.keep(row, true, terminal);
    // What could not be written down must not run: nobody would know of it.
    if (!ledger.put(row)) {
      await this.config.stops.stop(known, { signal: 'SIGKILL', graceMs: 0, port: 0, sent: false });
      this.all.delete(run);
      throw noRoom(service);
    }
    return replyOf(row);
  }

  /** Takes a run in. */
  keep(row: LedgerRow, ours: boolean, terminal: Terminal | null): Run {
    const root: Root = { run: row.run, pid: row.pid, startTicks: row.startTicks, grouped: !row.end };
    const run: Run = {
      row,
      root,
      ours,
      terminal,
      pty: row.pty,
      end: () => run.row.end,
      gone: () => {
        if (!ours) this.end(run, UNKNOWN);
      },
    };
    this.all.set(row.run, run);
    return run;
  }

  /** Its process has ended: in the ledger, then told. Once. */
  end(run: Run, outcome: Outcome): void {
    if (run.row.end) return;
    const { service, run: id, pty } = run.row;
    const end: RunEnd = { service, run: id, ...outcome, at: this.config.clock.now() };
    run.row = { ...run.row, end };
    run.terminal = null;
    this.config.ledger.put(run.row);
    if (pty) this.config.journal.rest(service);
    this.config.journal.tell();
    this.config.ended(end);
    this.config.stops.poke();
  }

  /** Ends the tree of a run, or joins the stop under way. Of a run that has ended it ends what that has left behind. */
  async stop({ service, run: id, signal, graceMs, port }: StopRequest): Promise<StopReport> {
    if (!isSignal(signal)) throw fail('invalid_spec', `${signal} is no signal`);
    await this.starting.get(id)?.reply.catch(() => undefined);
    const known = this.all.get(id);
    if (known && !known.row.stop && !known.row.end) {
      known.row = { ...known.row, stop: { signal, graceMs, at: this.config.clock.now() } };
      this.config.ledger.put(known.row);
    }
    return this.config.stops.stop(known ?? forgotten(service, id), { signal, graceMs, port, sent: false });
  }

  note(run: string, memo: RunMemo): void {
    const known = this.all.get(run);
    if (!known) return;
    known.row = { ...known.row, memo };
    this.config.ledger.put(known.row);
  }

  acknowledge(run: string): void {
    if (!this.all.get(run)?.row.end) return;
    this.all.delete(run);
    this.config.ledger.drop(run);
  }

  /** Drops all that is kept of a service. Throws already_running while it has a process. */
  forget(service: string): void {
    const run = this.of(service);
    if (run && !run.row.end) throw fail('already_running', `${service} has a process: stop it first`);
    for (const { row } of [...this.all.values()]) if (row.service === service) this.acknowledge(row.run);
    this.config.journal.forget(service);
  }
}

const isSignal = (name: string): name is NodeJS.Signals => Object.hasOwn(constants.signals, name);

function rowOf({ row }: Run): RunRow {
  const { boot: _boot, stop, ...shown } = row;
  return { ...shown, stopping: stop !== null };
}

const replyOf = ({ pid, startTicks, startedAt }: LedgerRow): SpawnReply => ({
  pid,
  startTicks,
  startedAt,
  rssMB: Math.ceil(residentBytes(pid) / MIB),
});

/** A run that is not in the ledger any more: only what bears its mark can be found. */
function forgotten(service: string, run: string): Target {
  const end = { service, run, ...UNKNOWN, at: 0 };
  return { root: { run, pid: 0, startTicks: 0, grouped: false }, pty: false, end: () => end, gone: () => {} };
}
