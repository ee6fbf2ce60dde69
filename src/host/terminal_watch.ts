// Watches which terminals have output. The host sees all output anyway, so it can tell at no cost when one
// has paused. A daemon that watches a terminal gets at most a few notifications a second, however much is
// printed.
import type { TerminalReading } from '../protocol/agent_state.ts';
import type { Clock } from '../runtime/actor.ts';
import { AGENT_STATE } from '../settings/agent_limits.ts';
import { OscScanner } from './osc_scanner.ts';

interface WatchedTerminal {
  readonly service: string;
  readonly scanner: OscScanner;
  /** Epoch milliseconds; null: it has printed nothing yet. */
  lastOutputAt: number | null;
  /** The same as monotonic milliseconds, as all times below, because the wall clock may be set. */
  movedAt: number;
  /** The longest recent time between two outputs without a pause. */
  gapMs: number;
  isWatched: boolean;
  /** Since when notifications have said that there is output; null: the last one did not. */
  movingSince: number | null;
  /** When the last notification was sent. */
  toldAt: number;
}

const NOTHING_SEEN: TerminalReading = {
  lastOutputAt: null,
  isMoving: false,
  signals: { title: '', progress: null, notification: null },
};

/** How much of the longest gap counts after each output. */
const GAP_DECAY = 0.95;

/** The silence that counts as a pause. The time between two frames of a spinner does not. */
const pauseMsAfter = (gapMs: number): number =>
  Math.min(Math.max(AGENT_STATE.pauseMs, 1.5 * gapMs), AGENT_STATE.maxPauseMs);

/** A spinner that has turned for long rarely shows anything new, so it is reported less often. */
const movingIntervalMs = ({ movingSince }: WatchedTerminal, now: number): number =>
  now - (movingSince ?? now) < AGENT_STATE.steadyAfterMs
    ? AGENT_STATE.movingNoticeMs
    : AGENT_STATE.steadyNoticeMs;

/** Tells a service that the output of its `run` has started or paused. */
export type TellMovement = (service: string, run: string, reading: TerminalReading) => void;

export class TerminalWatch {
  private readonly clock: Clock;
  private readonly tell: TellMovement;
  private readonly terminals = new Map<string, WatchedTerminal>();
  /** Watched runs with output since the last notification of a pause. */
  private readonly moving = new Set<string>();
  private isLooking = false;

  constructor(clock: Clock, tell: TellMovement) {
    this.clock = clock;
    this.tell = tell;
  }

  open(service: string, run: string): void {
    this.terminals.set(run, {
      ...{ service, scanner: new OscScanner(), lastOutputAt: null, movedAt: 0, gapMs: 0 },
      ...{ isWatched: false, movingSince: null, toldAt: Number.NEGATIVE_INFINITY },
    });
  }

  /** The terminal has printed `bytes`, which are only valid during the call. */
  onOutput(run: string, bytes: Uint8Array): void {
    const terminal = this.terminals.get(run);
    if (!terminal) return;
    const now = this.clock.monotonic();
    const gapMs = terminal.lastOutputAt === null ? 0 : now - terminal.movedAt;
    terminal.gapMs = gapMs > AGENT_STATE.maxPauseMs ? 0 : Math.max(gapMs, terminal.gapMs * GAP_DECAY);
    terminal.movedAt = now;
    terminal.lastOutputAt = this.clock.now();
    const output = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    terminal.scanner.take(output, terminal.lastOutputAt);
    if (!terminal.isWatched) return;
    this.moving.add(run);
    if (terminal.movingSince === null && now - terminal.toldAt >= AGENT_STATE.noticeIntervalMs)
      this.notify(run, terminal, true);
    this.lookLater();
  }

  /**
   * Starts or stops calling `tell` for the run. Returns what is known; an empty reading without a terminal.
   */
  watch(run: string, isOn: boolean): TerminalReading {
    const terminal = this.terminals.get(run);
    if (!terminal) return NOTHING_SEEN;
    terminal.isWatched = isOn;
    const isMoving = isOn && this.isMoving(terminal);
    terminal.movingSince = isMoving ? this.clock.monotonic() : null;
    if (isMoving) this.moving.add(run);
    else this.moving.delete(run);
    this.lookLater();
    return this.readingOf(terminal, isMoving);
  }

  /** The daemon is gone. The next one watches what it needs. */
  unwatchAll(): void {
    for (const terminal of this.terminals.values()) terminal.isWatched = false;
    this.moving.clear();
  }

  close(run: string): void {
    this.terminals.delete(run);
    this.moving.delete(run);
  }

  private isMoving({ lastOutputAt, movedAt, gapMs }: WatchedTerminal): boolean {
    return lastOutputAt !== null && this.clock.monotonic() - movedAt < pauseMsAfter(gapMs);
  }

  /** One timer for all terminals, running only while there is output. */
  private lookLater(): void {
    if (this.isLooking || this.moving.size === 0) return;
    this.isLooking = true;
    this.clock.after(AGENT_STATE.lookIntervalMs, () => {
      this.isLooking = false;
      this.look();
      this.lookLater();
    });
  }

  private look(): void {
    const now = this.clock.monotonic();
    for (const run of this.moving) {
      const terminal = this.terminals.get(run);
      if (!terminal) continue;
      const isMoving = this.isMoving(terminal);
      const intervalMs = isMoving ? movingIntervalMs(terminal, now) : AGENT_STATE.noticeIntervalMs;
      if (now - terminal.toldAt < intervalMs) continue;
      this.notify(run, terminal, isMoving);
      if (!isMoving) this.moving.delete(run);
    }
  }

  private notify(run: string, terminal: WatchedTerminal, isMoving: boolean): void {
    terminal.toldAt = this.clock.monotonic();
    terminal.movingSince = isMoving ? (terminal.movingSince ?? terminal.toldAt) : null;
    this.tell(terminal.service, run, this.readingOf(terminal, isMoving));
  }

  private readingOf({ lastOutputAt, scanner }: WatchedTerminal, isMoving: boolean): TerminalReading {
    return { lastOutputAt, isMoving, signals: scanner.signals() };
  }
}
