// Schedules the drawing of screens from which agents' states are read. Together they get a small part of a
// processor: terminals that have paused come first, and those in constant motion get what is left.
import type { ReadStateTask, StateReading } from '../../protocol/screen_rules.ts';
import type { Clock } from '../../runtime/actor.ts';
import { AGENT_STATE } from '../../settings/agent_limits.ts';

/** Draws a screen and tries rules on it. `prepare` is called when the job's turn comes. */
export type ReadState = (prepare: () => ReadStateTask) => Promise<StateReading>;

/** A drawing that is due. Resolves with the milliseconds it took. Never rejects. */
export type Drawing = () => Promise<number>;

/** A drawing never counts for more than this, so that a slow one does not delay all others for long. */
const MAX_COUNTED_MS = 250;

/** Shared by all agents of a thread. */
export class StateDrawings {
  private readonly clock: Clock;
  /** In order of arrival. */
  private readonly paused = new Map<object, Drawing>();
  private readonly moving = new Map<object, Drawing>();
  /** The drawing time in ms that may be spent now. Negative after overspending. */
  private leftMs: number = AGENT_STATE.drawAheadMs;
  private countedAt: number;
  private isDrawing = false;
  private cancelWait: (() => void) | null = null;

  constructor(clock: Clock) {
    this.clock = clock;
    this.countedAt = clock.monotonic();
  }

  /** Requests a drawing for `key`, replacing one that is waiting. */
  request(key: object, isMoving: boolean, drawing: Drawing): void {
    if (isMoving && !this.paused.has(key)) this.moving.set(key, drawing);
    else {
      this.moving.delete(key);
      this.paused.set(key, drawing);
    }
    this.next();
  }

  cancel(key: object): void {
    this.paused.delete(key);
    this.moving.delete(key);
  }

  private next(): void {
    if (this.isDrawing || this.cancelWait) return;
    const queue = this.paused.size > 0 ? this.paused : this.moving;
    const [first] = queue;
    if (!first) return;
    this.count(0);
    if (this.leftMs <= 0) {
      const ms = Math.ceil(-this.leftMs / AGENT_STATE.drawShare) + 1;
      this.cancelWait = this.clock.after(ms, () => {
        this.cancelWait = null;
        this.next();
      });
      return;
    }
    const [key, drawing] = first;
    queue.delete(key);
    this.isDrawing = true;
    void drawing().then((ms) => {
      this.isDrawing = false;
      this.count(Math.min(MAX_COUNTED_MS, ms));
      this.next();
    });
  }

  /** Adds the time earned since the last call, and subtracts `usedMs`. */
  private count(usedMs: number): void {
    const now = this.clock.monotonic();
    const given = (now - this.countedAt) * AGENT_STATE.drawShare;
    this.countedAt = now;
    this.leftMs = Math.min(AGENT_STATE.drawAheadMs, this.leftMs + given) - usedMs;
  }
}
