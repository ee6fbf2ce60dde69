// The time that a check has waited. While the daemon stood still, because it was stopped by SIGSTOP or the
// machine was suspended, no probe could be made, so that time does not count.
import type { Clock } from '../../runtime/actor.ts';

/** How often the time is counted. */
const TICK_MS = 250;
/** The daemon stood still if nothing was counted for longer than this. */
const STANDSTILL_MS = 1_000;

export class CheckTime {
  private readonly clock: Clock;
  private counted = 0;
  private isInterrupted = false;
  /** Up to when it is counted, in monotonic milliseconds. */
  private upTo: number;
  private cancelTick = (): void => {};

  constructor(clock: Clock) {
    this.clock = clock;
    this.upTo = clock.monotonic();
  }

  /** Starts at 0, and calls `onOver` after `limitMs` milliseconds; null: never. */
  start(limitMs: number | null, onOver: () => void): void {
    this.upTo = this.clock.monotonic();
    this.counted = 0;
    this.isInterrupted = false;
    const tick = (): void => {
      const { ms } = this;
      const left = limitMs === null ? TICK_MS : limitMs - ms;
      if (left <= 0) onOver();
      else this.cancelTick = this.clock.after(Math.min(left, TICK_MS), tick);
    };
    tick();
  }

  /** Milliseconds since the start in which the daemon ran. */
  get ms(): number {
    const now = this.clock.monotonic();
    const gap = now - this.upTo;
    this.upTo = now;
    if (gap <= STANDSTILL_MS) this.counted += gap;
    else this.isInterrupted = true;
    return this.counted;
  }

  /** Ends the ticks. Returns whether the daemon stood still since the start. */
  stop(): boolean {
    this.cancelTick();
    void this.ms;
    return this.isInterrupted;
  }
}
