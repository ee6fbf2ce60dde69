// The stops of runs: docs/reference.md "Stop". The command of a stop comes first, then the stop of the tree.
// The ledger has each stop, and what shortens it, before anything is done about it.
import type { StopReport, StopRequest } from '../protocol/host.ts';
import type { Clock } from '../runtime/actor.ts';
import {
  forgottenTarget,
  graceLeftMs,
  type HostRun,
  rowAfterCommand,
  settingOfRun,
  signalledRow,
} from './host_run.ts';
import type { RunCommands } from './run_commands.ts';
import type { RunGroups } from './run_groups.ts';
import type { RunLedger } from './run_ledger.ts';
import type { TreeStops } from './tree_stops.ts';

export interface RunStopsConfig {
  clock: Clock;
  ledger: RunLedger;
  stops: TreeStops;
  commands: RunCommands;
  groups: RunGroups;
}

type Request = StopRequest & { signal: NodeJS.Signals };

/** Stops runs. */
export class RunStops {
  private readonly config: RunStopsConfig;

  constructor(config: RunStopsConfig) {
    this.config = config;
  }

  /**
   * Stops the process tree of a run, or the leftovers of an ended run. Joins a stop under way, which it may
   * shorten. `known` undefined: the ledger does not contain the run. Never rejects.
   */
  async stop(known: HostRun | undefined, request: Request): Promise<StopReport> {
    const { clock, groups, ledger, stops } = this.config;
    const { service, run: id, signal, graceMs, port } = request;
    if (known?.row.stop) this.shorten(known, known.row.stop, graceMs);
    else if (known && !known.row.end) this.begin(known, request);
    const underWay = known?.stopping;
    const commandMs = (await underWay?.commandMs) ?? 0;
    const onSent = (): void => {
      if (!known || known.row.end) return;
      known.row = signalledRow(known.row);
      ledger.put(known.row);
    };
    const untilKillMs = Math.max(0, (underWay?.killAt ?? Number.POSITIVE_INFINITY) - clock.monotonic());
    const options = { signal, graceMs: Math.min(graceMs, untilKillMs), port, isSent: false, onSent };
    const report = await stops.stop(known ?? forgottenTarget(service, id), options);
    // A later stop ends what has been left, with a grace period of its own.
    if (known) known.stopping = null;
    await groups.end(known?.row.cgroup ?? groups.folderOf(id));
    return { ...report, ms: commandMs + report.ms };
  }

  private begin(known: HostRun, { run, signal, graceMs, command }: Request): void {
    const { clock, commands, ledger } = this.config;
    const isCommand = command !== undefined && graceMs > 0;
    const how = isCommand ? { isCommand } : { isSent: false as const };
    known.row = { ...known.row, stop: { signal, graceMs, at: clock.now(), ...how } };
    ledger.put(known.row);
    const commandMs = commands
      .end(run)
      .then(() => (isCommand ? this.runStopCommand(known, command, graceMs) : 0));
    known.stopping = { commandMs, killAt: Number.POSITIVE_INFINITY };
  }

  /** Makes `stop`, which is under way, kill what is left after `graceMs`, unless it does so earlier. */
  private shorten(known: HostRun, stop: NonNullable<HostRun['row']['stop']>, graceMs: number): void {
    const { clock, commands, ledger } = this.config;
    const now = clock.now();
    if (graceMs >= graceLeftMs(stop, now)) return;
    known.row = { ...known.row, stop: { ...stop, killAt: now + graceMs } };
    ledger.put(known.row);
    const { stopping } = known;
    if (!stopping) return;
    stopping.killAt = clock.monotonic() + graceMs;
    const cancel = clock.after(graceMs, () => void commands.end(known.row.run));
    void stopping.commandMs.then(cancel);
  }

  /** Runs the command that stops a run. Signals follow, whatever its result. Resolves with the ms it took. */
  private async runStopCommand(run: HostRun, cmd: string, graceMs: number): Promise<number> {
    const { clock, commands, ledger } = this.config;
    const began = clock.monotonic();
    const { name, row, stopping } = run;
    // The stop may have been shortened before its command begins.
    const timeoutMs = Math.min(graceMs, (stopping?.killAt ?? Number.POSITIVE_INFINITY) - began);
    const setting = timeoutMs > 0 && settingOfRun(run);
    // Its output, or a failure to start it, makes no difference to the stop.
    if (setting)
      await commands.run({ service: name, run: row.run, cmd, timeoutMs, setting }).catch(() => undefined);
    await commands.end(row.run);
    run.row = rowAfterCommand(run.row, clock.now());
    ledger.put(run.row);
    return Math.round(clock.monotonic() - began);
  }
}
