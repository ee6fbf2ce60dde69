// State: the last pass over the process table. Rebuilt from: nothing; the next pass starts a new measurement.
// The configuration holds the tracked runs: services report each once, so they must outlive a crash.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { TICKS_PER_SECOND } from '../../adapters/process/process_table.ts';
import type { MeasureUsage } from '../../adapters/process/process_usage.ts';
import type { UsageHistory } from '../../adapters/usage_history.ts';
import { serviceAddress } from '../../protocol/address.ts';
import type { NewEvent } from '../../protocol/events.ts';
import type { StatsProtocol, StatsRow } from '../../protocol/stats.ts';
import { actor, type Context, type MessageOf } from '../../runtime/actor.ts';
import { EVENTS, MIB } from '../../settings/limits.ts';
import { type CpuSample, cpuSampleOf, cpuUseOf } from './cpu_share.ts';
import { UsageSteps } from './usage_steps.ts';

export interface TrackedRun {
  name: string;
  run: string;
  pid: number;
  startTicks: number;
  /** Whether to emit statistics events. */
  running: boolean;
  /** Megabytes of memory above which the service is notified. */
  limitMB?: number;
  /** Grouped as the process tree needs them. */
  grouped: boolean;
}

export interface StatsConfig {
  usage: MeasureUsage;
  /** By run; empty at the start of the thread. */
  tracked: Map<string, TrackedRun>;
  history: UsageHistory;
}

const INTERVAL_TICKS = (EVENTS.statsIntervalMs / 1_000) * TICKS_PER_SECOND;
/** The services whose points are stored in one turn of the thread. */
const STORED_PER_TURN = 25;
/** Decimal places of `cpu`. */
const CPU_DIGITS = 3;

const statsEvent = ({ name, run, cpu, rssMB }: StatsRow): NewEvent => ({
  type: 'service.stats',
  name,
  run,
  data: JSON.stringify({ name, cpu, rssMB }),
});

class StatsSampler {
  private readonly context: Context;
  private readonly config: StatsConfig;
  private before: CpuSample | undefined;
  private readonly steps = new UsageSteps();
  private isMeasuring = false;
  private stopTimer: (() => void) | undefined;

  constructor(context: Context, config: StatsConfig) {
    this.context = context;
    this.config = config;
    this.updateTimer();
  }

  track(message: MessageOf<StatsProtocol, 'track'>): null {
    const { tracked } = this.config;
    tracked.set(message.run, { grouped: true, ...tracked.get(message.run), ...message });
    this.updateTimer();
    return null;
  }

  forget({ name, run }: MessageOf<StatsProtocol, 'forget'>): null {
    const { tracked, history } = this.config;
    tracked.delete(run);
    this.updateTimer();
    const points = this.steps.end(name);
    if (points.length > 0) history.append(name, points);
    return null;
  }

  async history({ name, range }: MessageOf<StatsProtocol, 'history'>) {
    return { points: await this.config.history.read(name, range, this.context.clock.now()) };
  }

  /** Runs the timer exactly while something is tracked. */
  private updateTimer(): void {
    if (this.config.tracked.size > 0) {
      this.stopTimer ??= this.context.clock.every(EVENTS.statsIntervalMs, () => this.pass());
    } else if (this.stopTimer) {
      this.stopTimer();
      this.stopTimer = undefined;
      this.before = undefined;
    }
  }

  private async pass(): Promise<void> {
    // A pass that takes longer than the interval must not overlap the next.
    if (this.isMeasuring) return;
    this.isMeasuring = true;
    const rows = await this.measure();
    this.isMeasuring = false;
    await this.keep(rows);
  }

  private async measure(): Promise<readonly StatsRow[]> {
    const { usage, tracked } = this.config;
    const pass = await usage([...tracked.values()]);
    const { nowTicks, runs } = pass;
    const since = this.before ?? { nowTicks: nowTicks - INTERVAL_TICKS, processes: new Map() };
    const rows: StatsRow[] = [];
    const due: NewEvent[] = [];
    for (const [run, processes] of runs) {
      const one = tracked.get(run);
      // Untracked during the pass.
      if (!one) continue;
      const { cores, usedTicks } = cpuUseOf(processes, nowTicks, since);
      const cpu = Number(cores.toFixed(CPU_DIGITS));
      const bytes = processes.reduce((sum, { rssBytes }) => sum + rssBytes, 0);
      const usedSeconds = usedTicks / TICKS_PER_SECOND;
      const row = { name: one.name, run, cpu, rssMB: Math.ceil(bytes / MIB), usedSeconds };
      rows.push(row);
      if (one.running) due.push(statsEvent(row));
      if (one.limitMB !== undefined && row.rssMB > one.limitMB)
        this.context.ref(serviceAddress(row.name)).tell('overMemory', { run, rssMB: row.rssMB });
    }
    this.before = cpuSampleOf(pass);
    if (rows.length > 0) this.context.ref('views').tell('stats', { rows });
    if (due.length > 0) this.context.ref('events').tell('append', { events: due });
    return rows;
  }

  /** Stores the completed steps, a few services in each turn of the thread. */
  private async keep(rows: readonly StatsRow[]): Promise<void> {
    const now = this.context.clock.now();
    let stored = 0;
    for (const { name, cpu, rssMB } of rows) {
      const points = this.steps.add(name, now, cpu, rssMB);
      if (points.length === 0) continue;
      this.config.history.append(name, points);
      stored += 1;
      if (stored % STORED_PER_TURN === 0) await nextTurn();
    }
  }
}

/** Measures every process tree in one pass every 2 s, while there are any: docs/reference.md "Statistics". */
export const statsActor = actor<StatsProtocol, StatsConfig>('stats', (context, config) => {
  const sampler = new StatsSampler(context, config);
  return {
    track: (message) => sampler.track(message),
    forget: (message) => sampler.forget(message),
    history: (message) => sampler.history(message),
  };
});
