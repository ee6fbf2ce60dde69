// Terminal modes set by output that is too old to be drawn again, such as the alternate screen of a
// long-running program: docs/reference.md "Terminal repaint".

/** Modes that a drawn screen keeps: cursor keys, origin, wrapping, mouse, keypad, focus, screens, pasting. */
const KEPT_MODES: ReadonlySet<number> = new Set([
  1, 6, 7, 9, 45, 47, 66, 1000, 1002, 1003, 1004, 1047, 1049, 2004,
]);
/** Sets or resets modes, or resets the terminal. */
const CHANGE = /\x1b(?:\[\?([\d;]{1,64})([hl])|c)/g;

interface ModeChange {
  /** Log offset of its sequence. */
  at: number;
  final: string;
}

export class TerminalModes {
  private readonly changes = new Map<number, ModeChange>();
  /** The log offset up to which output has been examined. */
  private seenTo = 0;

  /** Examines output that ends at the log offset `end`, skipping what has been seen. */
  note(bytes: Uint8Array, end: number): void {
    if (end <= this.seenTo) return;
    const start = end - bytes.length;
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
    for (const { 1: modes, 2: final, index } of text.matchAll(CHANGE)) {
      if (start + index < this.seenTo) continue;
      if (modes === undefined || final === undefined) this.changes.clear();
      else for (const mode of modes.split(';').map(Number)) this.set(mode, { at: start + index, final });
    }
    this.seenTo = end;
  }

  /** The sequences for the modes last changed before the log offset `offset`. */
  before(offset: number): Uint8Array {
    const older = [...this.changes].filter(([, { at }]) => at < offset);
    return Buffer.from(older.map(([mode, { final }]) => `\x1b[?${mode}${final}`).join(''));
  }

  /** Whether `mode` was set last. */
  has(mode: number): boolean {
    return this.changes.get(mode)?.final === 'h';
  }

  private set(mode: number, change: ModeChange): void {
    if (!KEPT_MODES.has(mode)) return;
    // Kept in order of change, because some modes exclude each other.
    this.changes.delete(mode);
    this.changes.set(mode, change);
  }
}
