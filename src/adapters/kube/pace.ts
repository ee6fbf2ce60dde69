// The share of a thread that one answer of a cluster may have.
import type { Clock } from '../../runtime/actor.ts';
import { abortablePause } from './abortable_pause.ts';

/** Work after which others have their turn, in ms. */
const SLICE_MS = 5;

/**
 * Reads an answer in slices of SLICE_MS, each followed by a pause as long as it took. All clusters share a
 * thread: one that never stops sending gets half of it at most. Meanwhile its bytes stay in its socket.
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

  /** Runs one step, and pauses after it if the slice is over. Rejects with what `step` throws. */
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
