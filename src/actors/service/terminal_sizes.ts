// The sizes that a terminal has had, each with the log offset from which it applied. Output only makes sense
// at the size it was printed for: docs/reference.md "Terminal repaint".
import type { SizeMark } from '../../protocol/terminal.ts';
import { AGENT } from '../../settings/agent_limits.ts';

/** The size of a terminal, and the sizes that it has had if it was resized. */
export interface TerminalSize {
  cols: number;
  rows: number;
  /** As reported by `TerminalSizes.marks`, in this daemon or an earlier one. */
  marks?: readonly SizeMark[] | undefined;
}

/** The sizes for a stretch of output: the initial one, and later ones by the byte at which they apply. */
export interface StretchSizes {
  cols: number;
  rows: number;
  resizes: readonly SizeMark[];
}

export class TerminalSizes {
  /** Ascending. The first applies from the beginning, wherever that is. */
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

  /** Sets the size from the log offset `at` on. Returns whether it differs. */
  change(at: number, cols: number, rows: number): boolean {
    const { current } = this;
    if (current.cols === cols && current.rows === rows) return false;
    const [first, ...rest] = [...this.list.filter((mark) => mark.at < at), { at, cols, rows }];
    this.list = first ? [first, ...rest] : this.list;
    // Output too old to be drawn again needs no size.
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
