// The time one turn of the event loop spends on clients: docs/reference.md "Connections". uWebSockets.js
// reads up to 512 KiB of each connection in a turn, which is thousands of requests or frames, and calls a
// handler for each before anything else runs.

/** After this much of a turn, floods are cut off. */
const TURN_MS = 20;

/** The number of calls between two readings of the clock, each of which costs as much as a small request. */
const CALLS_PER_LOOK = 16;

/** The current turn of one server. */
export class TurnBudget {
  /** Increases with each turn that serves clients. */
  number = 0;
  private isUnderWay = false;
  private begunAt = 0;
  private calls = 0;
  private answeredBytes = 0;
  private isSpent = false;

  /** Counts a request or a message. Returns whether the turn is over its time, so that the rest must wait. */
  count(): boolean {
    this.begin();
    this.calls += 1;
    if (!this.isSpent && this.calls % CALLS_PER_LOOK === 0)
      this.isSpent = performance.now() - this.begunAt > TURN_MS;
    return this.isSpent;
  }

  /** Counts bytes of an answer. Returns the total of this turn. */
  answer(bytes: number): number {
    this.begin();
    this.answeredBytes += bytes;
    return this.answeredBytes;
  }

  private begin(): void {
    if (this.isUnderWay) return;
    this.isUnderWay = true;
    this.number += 1;
    this.begunAt = performance.now();
    setImmediate(() => {
      this.isUnderWay = false;
      this.calls = 0;
      this.answeredBytes = 0;
      this.isSpent = false;
    });
  }
}
