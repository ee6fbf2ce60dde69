// Whether a program has bracketed paste on (DEC mode 2004). A program may set it once and then print for
// days, so all stored output of its run is searched, once.
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { LogChunk } from './service_log.ts';

const BRACKETED_PASTE = 2004;
const SLICE_BYTES = 256 * 1024;
/** The longest sequence to recognise across two slices. */
const OVERLAP_BYTES = 80;
/** Sets or resets modes, or resets the terminal. */
const CHANGE = /\x1b(?:\[\?([\d;]{1,64})([hl])|c|\[!p)/g;

export interface PasteModeOptions {
  /** Reads this run's log from `offset` on. */
  read(offset: number, limit: number): LogChunk;
  /** The logical end offset of the log. */
  end(): number;
}

export class PasteMode {
  private readonly options: PasteModeOptions;
  private isOn = false;
  /** The log offset up to which output was searched, and the last characters before it. */
  private seenTo: number;
  private rest = '';

  /** `from`: the log offset from which the output of the run begins. */
  constructor(options: PasteModeOptions, from: number) {
    this.options = options;
    this.seenTo = from;
  }

  /** Whether it is on after all output so far. */
  async read(): Promise<boolean> {
    while (this.seenTo < this.options.end()) {
      const { bytes, end } = this.options.read(this.seenTo, SLICE_BYTES);
      if (end <= this.seenTo) break;
      this.look(bytes);
      this.seenTo = end;
      if (this.seenTo < this.options.end()) await nextTurn();
    }
    return this.isOn;
  }

  private look(bytes: Uint8Array): void {
    const text = this.rest + Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
    for (const { 1: modes, 2: final } of text.matchAll(CHANGE))
      if (modes === undefined) this.isOn = false;
      else if (modes.split(';').map(Number).includes(BRACKETED_PASTE)) this.isOn = final === 'h';
    // A change that is seen twice is harmless, because the last one counts.
    this.rest = text.slice(-OVERLAP_BYTES);
  }
}
