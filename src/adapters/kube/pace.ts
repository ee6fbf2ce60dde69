// Limits the share of a thread that one answer of a cluster may take.
import type { Clock } from '../../runtime/actor.ts';
import { abortablePause } from './abortable_pause.ts';

/** Work yields after this many ms. */
const SLICE_MS = 5;

/**
 * Reads an answer in slices of SLICE_MS, each followed by a pause of the same length. All clusters share a
 * thread, so one that never stops sending gets at most half of it. Meanwhile its bytes stay in its socket.
 */
export class Pace {
  private readonly clock: Clock;
  private readonly signal: AbortSignal;
  private workedMs = 0;

  /** `signal` ends a pause early. */
  constructor(clock: Clock, signal: AbortSignal) {
    this.clock = clock;
    this.signal = signal;
  }

  /** Runs one step, and pauses after it if the slice is used up. Rejects with whatever `step` throws. */
  async run<T>(step: () => T): Promise<T> {
    const startedAt = this.clock.monotonic();
    const result = step();
    this.workedMs += this.clock.monotonic() - startedAt;
    if (this.workedMs >= SLICE_MS) {
      const restMs = this.workedMs;
      this.workedMs = 0;
      await abortablePause(this.clock, restMs, this.signal);
    }
    return result;
  }
}
