// Every run of this host: alive, or ended and not yet acknowledged. The ledger comes first: it contains a run
// before its start is answered, and an end before it is reported.
import type { Libc } from '../adapters/process/libc.ts';
import { isRunning, processRow, processTable } from '../adapters/process/process_table.ts';
import { type RunRoot, STATE_ID_VARIABLE } from '../adapters/process/process_tree.ts';
import type { ReservedDescriptor } from '../adapters/process/reserved_descriptor.ts';
import type { LedgerRow, RunOrigin } from '../adapters/storage/ledger_file.ts';
import { fail } from '../protocol/errors.ts';
import type {
  ExecReport,
  HostProtocol,
  LedgerRun,
  RunMetadata,
  SpawnReply,
  SpawnRequest,
  StopReport,
  StopRequest,
} from '../protocol/host.ts';
import type { RunEnd } from '../protocol/service.ts';
import type { MessageOf } from '../runtime/actor.ts';
import {
  type ChildEvents,
  checkStartable,
  diskFull,
  type StartRequest,
  spawnFailure,
  startFailed,
} from './child.ts';
import type { Fifos } from './fifo.ts';
import {
  checkName,
  endMark,
  type HostRun,
  type HostRunOutcome,
  isSignalName,
  runRowOf,
  settingOfRun,
  spawnReplyOf,
  startMark,
  UNKNOWN_OUTCOME,
} from './host_run.ts';
import type { LogWriters } from './log_writers.ts';
import type { NoticeSockets } from './notice_sockets.ts';
import type { HostTerminal, SpawnTerminal } from './pty.ts';
import type { StartProgram } from './reap_children.ts';
import type { RunSetting } from './run_commands.ts';
import { RunStops, type RunStopsConfig } from './run_stops.ts';
import { signalGroup } from './signals.ts';
import { spawnPiped } from './spawn_piped.ts';
import type { TerminalWatch } from './terminal_watch.ts';

export interface HostRunsConfig extends RunStopsConfig {
  logWriters: LogWriters;
  notices: NoticeSockets;
  watch: TerminalWatch;
  origin: Required<RunOrigin>;
  fifos: Fifos;
  /** null if it does not load, and terminals are refused then. */
  libc: Libc | null;
  /** Starts processes without a terminal; null: Node starts them. */
  startProgram: StartProgram | null;
  /** Rejects when node-pty does not load. */
  loadTerminals: () => Promise<SpawnTerminal>;
  /** Called with an end once it is in the ledger. */
  onEnded: (end: RunEnd) => void;
  /** Used to read the start time of a new process, which identifies it, even when descriptors are short. */
  reservedDescriptor: ReservedDescriptor;
}

/** The runs of this host, with the operations on them. */
export class HostRuns {
  readonly all = new Map<string, HostRun>();
  private readonly config: HostRunsConfig;
  private readonly runStops: RunStops;
  /** Runs that are being started. */
  private readonly starting = new Map<string, { name: string; reply: Promise<SpawnReply> }>();

  constructor(config: HostRunsConfig) {
    this.config = config;
    this.runStops = new RunStops(config);
  }

  /** The number of processes that are alive or being started. */
  get liveCount(): number {
    let count = this.starting.size;
    for (const { row } of this.all.values()) if (!row.end) count += 1;
    return count;
  }

  /** The process trees of the live runs. */
  roots(): RunRoot[] {
    return [...this.all.values()].filter(({ row }) => !row.end).map(({ root }) => root);
  }

  /** The pids of children that libuv, node-pty or this host will reap. */
  childPids(): Set<number> {
    const services = [...this.all.values()].flatMap(({ origin, row }) =>
      origin === 'spawned' && !row.end ? [row.pid] : [],
    );
    return new Set([...services, ...this.config.commands.childPids()]);
  }

  /** Unacknowledged ends before `time`, in epoch milliseconds. */
  unacknowledged(time: number): RunEnd[] {
    return [...this.all.values()].flatMap(({ row }) => (row.end && row.end.at < time ? [row.end] : []));
  }

  /** The run of a service: the live one, or else the latest. */
  ofService(name: string): HostRun | undefined {
    let found: HostRun | undefined;
    for (const run of this.all.values()) {
      if (run.name !== name) continue;
      if (!run.row.end) return run;
      if (!found || run.row.startedAt >= found.row.startedAt) found = run;
    }
    return found;
  }

  /**
   * The run of a service (null: all runs), once every earlier requested start is done, so that none is
   * missed.
   */
  async settledRows(name: string | null): Promise<LedgerRun[]> {
    const starts = [...this.starting.values()].filter((start) => name === null || start.name === name);
    await Promise.allSettled(starts.map(({ reply }) => reply));
    if (name === null) return [...this.all.values()].map(runRowOf);
    const run = this.ofService(name);
    return run ? [runRowOf(run)] : [];
  }

  /**
   * Starts a process. A repeated request gets the same reply. Fails start_failed, storage_full or
   * already_running.
   */
  spawn(request: SpawnRequest): Promise<SpawnReply> {
    const { service: name, run } = request;
    const known = this.all.get(run);
    if (known && !known.row.end) return Promise.resolve(spawnReplyOf(known.row));
    const underWay = this.starting.get(run);
    if (underWay) return underWay.reply;
    const other = this.ofService(name);
    if (other && !other.row.end)
      return Promise.reject(fail('already_running', `${name} runs already, with pid ${other.row.pid}`));
    const reply = this.begin(request).finally(() => this.starting.delete(run));
    this.starting.set(run, { name, reply });
    return reply;
  }

  private async begin(request: SpawnRequest): Promise<SpawnReply> {
    const { clock, groups, ledger, origin, notices } = this.config;
    const { service: name, run, port, memo, pty, limits } = request;
    checkName(name);
    checkName(run);
    await checkStartable(request);
    const cgroup = limits ? groups.make(run, limits) : null;
    const intent: LedgerRow = {
      service: name,
      run,
      port,
      memo,
      ...origin,
      pid: 0,
      startTicks: 0,
      startedAt: clock.now(),
      pty: pty !== null,
      stop: null,
      end: null,
      ...(cgroup !== null && { cgroup }),
    };
    // Written before the start, so that if the host is killed before it knows the pid, the next one finds the
    // process by its mark.
    if (!ledger.put(intent)) {
      ledger.drop(run);
      void groups.end(intent.cgroup);
      throw diskFull(name);
    }
    try {
      return await this.launch({ ...this.withOwnVariables(request), cgroup }, intent);
    } catch (error) {
      ledger.drop(run);
      notices.close(run);
      void groups.end(intent.cgroup);
      throw spawnFailure(name, error);
    }
  }

  /** The request with the host's variables; opens its notification socket if it asks for one. Throws. */
  private withOwnVariables(request: SpawnRequest): SpawnRequest {
    const { env, notify, run } = request;
    const { notices, origin } = this.config;
    const added: [string, string][] = [[STATE_ID_VARIABLE, origin.stateId]];
    if (notify) added.push(['NOTIFY_SOCKET', notices.open(run, false)]);
    if (notify && notify.watchdogMs !== null)
      added.push(['WATCHDOG_USEC', String(notify.watchdogMs * 1_000)]);
    const names = new Set(added.map(([name]) => name));
    return { ...request, env: [...env.filter(([name]) => !names.has(name)), ...added] };
  }

  private async launch(request: StartRequest, intent: LedgerRow): Promise<SpawnReply> {
    const { clock, ledger, logWriters, reservedDescriptor, stops } = this.config;
    const { pid, terminal } = await this.startProcess(request);
    // Output arrives in a later turn, so the mark comes before it.
    logWriters.mark(intent.service, startMark(intent.run, pid, clock.now()), false);
    // The exit arrives as an event in a later turn, so it cannot be missed before `add`.
    const first = reservedDescriptor.lend(() => processRow(pid));
    const row = { ...intent, pid, startTicks: first?.startTicks ?? 0 };
    const { cwd, env, umask } = request;
    const started = this.add(row, 'spawned', terminal, { cwd, env, umask });
    // A run that cannot be recorded must not live, because a later host would not know it.
    if (!ledger.put(row)) {
      await stops.stop(started, { signal: 'SIGKILL', graceMs: 0, port: 0, isSent: false });
      this.all.delete(row.run);
      throw diskFull(started.name);
    }
    return spawnReplyOf(row);
  }

  private async startProcess(request: StartRequest): Promise<{ pid: number; terminal: HostTerminal | null }> {
    const { fifos, libc, startProgram, loadTerminals, logWriters, watch } = this.config;
    const { service: name, run } = request;
    const events: ChildEvents = {
      onOutput: (stream, bytes) => logWriters.append(name, stream, run, bytes),
      onExit: (exitCode, signal) => {
        const known = this.all.get(run);
        if (known) this.end(known, { exitCode, signal, exitUnknown: false, cause: this.causeOf(known) });
      },
    };
    if (!request.pty) {
      const onDrained = () => logWriters.closeFiles(name);
      const pid = await spawnPiped(request, { fifos, libc, startProgram, events, onDrained });
      return { pid, terminal: null };
    }
    if (!libc) throw startFailed(name, 'terminals need koffi, which does not load here');
    const spawnTerminal = await loadTerminals().catch((error) => {
      throw startFailed(name, `terminals need node-pty, which does not load here: ${error}`);
    });
    const onOutput: ChildEvents['onOutput'] = (stream, bytes) => {
      events.onOutput(stream, bytes);
      watch.onOutput(run, bytes);
    };
    const terminal = spawnTerminal(request, libc, { ...events, onOutput });
    watch.open(name, run);
    return { pid: terminal.pid, terminal };
  }

  /** Adds a run that is in the ledger. */
  add(
    row: LedgerRow,
    origin: HostRun['origin'],
    terminal: HostTerminal | null,
    setting: RunSetting | null,
  ): HostRun {
    const root: RunRoot = { run: row.run, pid: row.pid, startTicks: row.startTicks, grouped: !row.end };
    const run: HostRun = {
      name: row.service,
      row,
      root,
      origin,
      terminal,
      setting,
      stopping: null,
      hasTerminal: row.pty,
      end: () => run.row.end,
      onGone: () => {
        if (origin === 'adopted') this.end(run, { ...UNKNOWN_OUTCOME, cause: this.causeOf(run) });
      },
    };
    this.all.set(row.run, run);
    return run;
  }

  /** Records the end of a process, then reports it. Does nothing the second time. */
  end(run: HostRun, outcome: HostRunOutcome): void {
    if (run.row.end) return;
    const { clock, commands, groups, ledger, logWriters, notices, stops, watch, onEnded } = this.config;
    const end: RunEnd = { service: run.name, run: run.row.run, ...outcome, at: clock.now() };
    run.row = { ...run.row, end };
    run.terminal = null;
    ledger.put(run.row);
    logWriters.mark(run.name, endMark(end, run.row.pid), run.origin === 'adopted');
    logWriters.closeFiles(run.name);
    logWriters.notifyGrowth();
    onEnded(end);
    stops.checkSoon();
    notices.close(run.row.run);
    watch.close(run.row.run);
    // A stop under way may be a command that outlives the process.
    if (run.row.stop === null) void commands.end(run.row.run);
    if (run.row.stop === null && run.row.cgroup !== undefined) groups.removeEmpty(run.row.cgroup);
  }

  /** Why the process of a run has just ended without a stop. */
  private causeOf({ row: { cgroup, stop } }: HostRun): 'exit' | 'memory' {
    return stop === null && this.config.groups.isOutOfMemory(cgroup) ? 'memory' : 'exit';
  }

  /** Stops a run, once an earlier requested start of it is done: `RunStops.stop`. Fails invalid_spec. */
  async stop(request: StopRequest): Promise<StopReport> {
    const { run, signal } = request;
    if (!isSignalName(signal)) throw fail('invalid_spec', `${signal} is not a signal`);
    // The caller of the failed start already has its Failure.
    await this.starting.get(run)?.reply.catch(() => undefined);
    return this.runStops.stop(this.all.get(run), { ...request, signal });
  }

  /** See `HostProtocol.exec`. */
  exec({ service, run: id, cmd, timeoutMs }: MessageOf<HostProtocol, 'exec'>): Promise<ExecReport> {
    const run = this.liveRun(service, id);
    const setting = settingOfRun(run);
    if (!setting) throw startFailed(service, 'the environment of its process is not known any more');
    return this.config.commands.run({ service, run: id, setting, cmd, timeoutMs });
  }

  /** See `HostProtocol.signal`. */
  signal({ service, run: id, signal }: MessageOf<HostProtocol, 'signal'>): { processes: number } {
    if (!isSignalName(signal)) throw fail('invalid_spec', `${signal} is not a signal`);
    const { root } = this.liveRun(service, id);
    const { reservedDescriptor } = this.config;
    const table = reservedDescriptor.lend(processTable);
    const rows = [...table.values()].filter((row) => isRunning(row) && row.pgid === root.pid);
    if (!signalGroup(root, signal)) throw fail('not_running', `${service} has ended`);
    // Without a process table (macOS), at least the first process got it.
    return { processes: Math.max(rows.length, 1) };
  }

  /** Fails not_running. */
  private liveRun(service: string, id: string): HostRun {
    const run = this.all.get(id);
    if (run?.name === service && !run.row.end) return run;
    throw fail('not_running', `${service} has no process`);
  }

  /** Stores the daemon's own data about a run. */
  setRunMetadata(run: string, runMetadata: RunMetadata): void {
    const known = this.all.get(run);
    if (!known) return;
    known.row = { ...known.row, memo: runMetadata };
    this.config.ledger.put(known.row);
  }

  /** Drops a run whose end the daemon has stored. */
  acknowledge(run: string): void {
    if (!this.all.get(run)?.row.end) return;
    this.all.delete(run);
    this.config.ledger.drop(run);
  }

  /** Deletes all data of a service. Fails already_running while it has a process, invalid_spec, internal. */
  forget(name: string): void {
    checkName(name);
    const run = this.ofService(name);
    if (run && !run.row.end) throw fail('already_running', `${name} has a process: stop it first`);
    for (const { name: of, row } of [...this.all.values()]) if (of === name) this.acknowledge(row.run);
    this.config.logWriters.remove(name);
  }
}
