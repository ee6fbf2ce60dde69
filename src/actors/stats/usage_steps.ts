// Combines measurements into points of history. Knows no actor.
import type { RangedPoint } from '../../adapters/usage_history.ts';
import { USAGE_RANGES, type UsageRange } from '../../protocol/stats.ts';

/** The measurements of an unfinished step. */
interface OpenStep {
  step: number;
  cpuSum: number;
  measurements: number;
  rssMB: number;
}

const RANGES = Object.keys(USAGE_RANGES) as UsageRange[];

/** The steps under way of all services. */
export class UsageSteps {
  /** By range and service. */
  private readonly open: Readonly<Record<UsageRange, Map<string, OpenStep>>> = {
    hour: new Map(),
    day: new Map(),
  };

  /** Adds what a service uses at `at` (milliseconds). Returns the points of the completed steps. */
  add(name: string, at: number, cpu: number, rssMB: number): RangedPoint[] {
    return RANGES.flatMap((range) => {
      const step = Math.floor(at / USAGE_RANGES[range].stepMs);
      const known = this.open[range].get(name);
      if (known?.step === step) {
        known.cpuSum += cpu;
        known.measurements += 1;
        known.rssMB = Math.max(known.rssMB, rssMB);
        return [];
      }
      this.open[range].set(name, { step, cpuSum: cpu, measurements: 1, rssMB });
      return known ? [pointOf(range, known)] : [];
    });
  }

  /** Ends the steps of a service that is no longer measured. Returns their points. */
  end(name: string): RangedPoint[] {
    return RANGES.flatMap((range) => {
      const known = this.open[range].get(name);
      this.open[range].delete(name);
      return known ? [pointOf(range, known)] : [];
    });
  }
}

/** The mean of the cores, and the peak memory. */
const pointOf = (range: UsageRange, { step, cpuSum, measurements, rssMB }: OpenStep): RangedPoint => ({
  range,
  at: step * USAGE_RANGES[range].stepMs,
  cpu: cpuSum / measurements,
  rssMB,
});
