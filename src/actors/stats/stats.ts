// State: the last pass over the process table. Rebuilt from: nothing, the next pass counts from its own moment. What is
// tracked stands in the configuration: services tell it once, and it outlives a crash.
import { TICKS_PER_SECOND } from '../../adapters/process/process_table.ts';
import type { MeasureUsage } from '../../adapters/process/process_usage.ts';
import type { NewEvent } from '../../protocol/events.ts';
import type { StatsProtocol, StatsRow } from '../../protocol/stats.ts';
import { actor } from '../../runtime/actor.ts';
import { EVENTS, MIB } from '../../settings/limits.ts';
import { type CpuSample, coresOf, cpuSampleOf } from './cpu_share.ts';

export interface TrackedRun {
  name: string;
  run: string;
  pid: number;
  startTicks: number;
  /** Whether statistics events are due. */
  running: boolean;
  /** As the tree of processes wants it. */
  grouped: boolean;
}

export interface StatsConfig {
  usage: MeasureUsage;
  /** By run; empty at the start of the thread. */
  tracked: Map<string, TrackedRun>;
}

const INTERVAL_TICKS = (EVENTS.statsIntervalMs / 1_000) * TICKS_PER_SECOND;
/** Digits of `cpu` after the point. */
const CPU_DIGITS = 3;

const statsEvent = ({ name, run, cpu, rssMB }: StatsRow): NewEvent => ({
  type: 'service.stats',
  name,
  run,
  data: JSON.stringify({ name, cpu, rssMB }),
});

/**
 * Measures every process tree in one pass every 2 seconds, while there is one:
 * docs/reference.md "Statistics".
 */
export const statsActor = actor<StatsProtocol, StatsConfig>('stats', (context, { usage, tracked }) => {
  const events = context.ref('events');
  const views = context.ref('views');
  let before: CpuSample | undefined;
  let measuring = false;
  let stop: (() => void) | undefined;

  const measure = async (): Promise<void> => {
    const pass = await usage([...tracked.values()]);
    const { nowTicks, runs } = pass;
    const since = before ?? { nowTicks: nowTicks - INTERVAL_TICKS, processes: new Map() };
    const rows: StatsRow[] = [];
    const due: NewEvent[] = [];
    for (const [run, processes] of runs) {
      const one = tracked.get(run);
      // Forgotten while it was measured.
      if (!one) continue;
      const cpu = Number(coresOf(processes, nowTicks, since).toFixed(CPU_DIGITS));
      const bytes = processes.reduce((sum, { rssBytes }) => sum + rssBytes, 0);
      const row = { name: one.name, run, cpu, rssMB: Math.ceil(bytes / MIB) };
      rows.push(row);
      if (one.running) due.push(statsEvent(row));
    }
    before = cpuSampleOf(pass);
    if (rows.length > 0) views.tell('stats', { rows });
    if (due.length > 0) events.tell('append', { events: due });
  };

  const pass = async (): Promise<void> => {
    // A pass that takes longer than the time between two is not overtaken.
    if (measuring) return;
    measuring = true;
    await measure();
    measuring = false;
  };

  /** A timer runs exactly while something is tracked. */
  const keepTime = (): void => {
    if (tracked.size > 0) stop ??= context.clock.every(EVENTS.statsIntervalMs, pass);
    else if (stop) {
      stop();
      stop = undefined;
      before = undefined;
    }
  };

  keepTime();
  return {
    track(message) {
      const { run } = message;
      tracked.set(run, { grouped: true, ...tracked.get(run), ...message });
      keepTime();
      return null;
    },
    forget({ run }) {
      tracked.delete(run);
      keepTime();
      return null;
    },
  };
});
