// Looks for a line of a run that matches an expression: docs/reference.md "Checks". Reading resumes where the
// last look ended, in steps, with pauses as long as the steps, so that full-speed output takes at most half
// of the thread.

import type { LinearRegex } from '../../adapters/linear_regex.ts';
import type { ProbeResult } from '../../adapters/ready_probe.ts';
import { LineCutter } from '../../logs/line_cutter.ts';
import { type LineFormat, lineText } from '../../logs/line_text.ts';
import type { Clock } from '../../runtime/actor.ts';
import { CHECK } from '../../settings/limits.ts';
import type { ServiceLog } from './service_log.ts';

const READABLE: LineFormat = { raw: false, stamp: null };
const noTime = (): number => 0;

export interface LogProbeOptions {
  log: Pick<ServiceLog, 'read' | 'watch'>;
  run: string;
  /** At or before the start of the run's output. */
  from: number;
  regex: LinearRegex;
  clock: Clock;
  /** Whether a line once found satisfies every later probe. */
  isLasting: boolean;
}

/** Reads each line of a run once. */
export class LogProbe {
  private readonly options: LogProbeOptions;
  private readonly cutter = new LineCutter();
  private offset: number;
  private isFound = false;

  constructor(options: LogProbeOptions) {
    this.options = options;
    this.offset = options.from;
  }

  /** Waits at most `limitMs` for a match that no earlier probe has found, then calls `onDone` once. */
  ask(limitMs: number, onDone: (result: ProbeResult) => void): () => void {
    const { clock, log, isLasting } = this.options;
    let cancelStep = (): void => {};
    let isReading = false;
    let hasGrown = false;
    const giveUp = (): void => {
      cancelStep();
      cancelLimit();
      leave();
    };
    const finish = (error: string | null): void => {
      giveUp();
      onDone({ status: null, error });
    };
    const step = (): void => {
      const began = clock.monotonic();
      const isAtEnd = this.read();
      isReading = !isAtEnd || hasGrown;
      hasGrown = false;
      if (this.isFound) {
        this.isFound = isLasting;
        finish(null);
      } else if (isReading) cancelStep = clock.after(clock.monotonic() - began, step);
    };
    const look = (): void => {
      hasGrown = true;
      if (isReading) return;
      isReading = true;
      cancelStep = clock.after(0, step);
    };
    const leave = log.watch(look);
    const cancelLimit = clock.after(limitMs, () => finish('no line of its output matches yet'));
    look();
    return giveUp;
  }

  /** Reads one step. Returns true at the end of the log. */
  private read(): boolean {
    if (this.isFound) return true;
    const { log, regex, run } = this.options;
    const { bytes, end } = log.read(this.offset, Math.min(CHECK.logStepBytes, regex.reach), run);
    const isAtEnd = end <= this.offset;
    const lines = this.cutter.cut(Buffer.from(bytes), this.offset, noTime);
    this.offset = Math.max(end, this.offset);
    const { partial } = this.cutter;
    // A prompt has no newline, so the unfinished line counts too.
    const started = { bytes: partial.bytes, from: 0, to: partial.bytes.length, time: 0 };
    this.isFound = [...lines, ...(isAtEnd ? [started] : [])].some((line) =>
      regex.test(lineText(line, READABLE).slice(0, regex.reach)),
    );
    return isAtEnd;
  }
}
