// The sizes that a terminal has had, by the offset in its log from which on it had each. Output means what it
// meant at the size for which it was printed: docs/reference.md "Screens of terminals".
import type { SizeMark } from '../../protocol/terminal.ts';
import { AGENT } from '../../settings/limits.ts';

/** The size of a terminal that nobody has resized, or the sizes that it has had. */
export interface TerminalSize {
  cols: number;
  rows: number;
  /** As `TerminalSizes.marks` has told them, in this daemon's life or an earlier one's. */
  marks?: readonly SizeMark[] | undefined;
}

/** Sizes for a stretch of output: at its first byte, then by the byte before which they change. */
export interface StretchSizes {
  cols: number;
  rows: number;
  resizes: readonly SizeMark[];
}

export class TerminalSizes {
  /** Ascending. The first holds from the beginning, wherever it is. */
  private list: readonly [SizeMark, ...SizeMark[]];

  constructor({ cols, rows, marks = [] }: TerminalSize) {
    const [first = { at: 0, cols, rows }, ...rest] = marks;
    this.list = [first, ...rest];
  }

  get marks(): readonly SizeMark[] {
    return this.list;
  }

  get current(): { cols: number; rows: number } {
    const { cols, rows } = this.list.at(-1) ?? this.list[0];
    return { cols, rows };
  }

  /** From the log offset `at` on it has this size. Returns whether that is another one. */
  change(at: number, cols: number, rows: number): boolean {
    const { current } = this;
    if (current.cols === cols && current.rows === rows) return false;
    const [first, ...rest] = [...this.list.filter((mark) => mark.at < at), { at, cols, rows }];
    this.list = first ? [first, ...rest] : this.list;
    // What is too old to be drawn again needs no size.
    while ((this.list[1]?.at ?? at) <= at - AGENT.replayBytes || this.list.length > AGENT.maxSizeMarks) {
      const [, second, ...later] = this.list;
      if (!second) break;
      this.list = [second, ...later];
    }
    return true;
  }

  /** The sizes for the output between two log offsets. The last one is the current size. */
  between(start: number, end: number): StretchSizes {
    const base = this.list.findLast(({ at }) => at <= start) ?? this.list[0];
    const resizes = this.list
      .filter((mark) => mark !== base && mark.at > start)
      .map(({ at, cols, rows }) => ({ at: Math.min(at, end) - start, cols, rows }));
    return { cols: base.cols, rows: base.rows, resizes };
  }
}
