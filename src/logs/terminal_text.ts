// Restores what a person would have read of one line printed to a terminal: docs/reference.md "Agent logs".
// Each line is emulated separately; `\r`, `\b` and CSI C, D, G and K are applied, and every other sequence is
// removed. Linear in the length of the line, whatever its content.

/** A line without control characters other than tab and newline is already readable. */
const CONTROL = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/;
/** The sequences that are applied. In a line without them, removing all other sequences is enough. */
const CURSOR_MOVES = /[\r\b]|(?:\x1b\[|\x9b)[\d;]*[CDGK]/;
/** Any escape sequence: CSI; OSC, DCS, SOS, PM and APC with their text; two characters; charsets. */
const SEQUENCE =
  /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\x18\x1a]*(?:\x07|\x1b\\|\x9c|[\x18\x1a])?|\x1b[ -/]*[0-~]?/g;
const CONTROL_CHARACTERS = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;
/** The same without those that `emulate` applies, and without the escape of the sequences that were kept. */
const UNAPPLIED_CONTROLS = /[\x00-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9a\x9c-\x9f]/g;
const UNPRINTED_CONTROLS = /[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]/g;
/** A sequence to apply at `lastIndex`. */
const CURSOR_MOVE = /(?:\x1b\[|\x9b)(\d*)[\d;:]*([CDGKm])/y;
/** A character with its combining characters. */
const GRAPHEME = /[\s\S](?:[\p{M}\p{Cf}\p{EMod}]|(?<=\u200d)[\s\S])*/uy;
/** Every character below takes one column and does not combine. */
const FIRST_COMBINING = 0x300;
/** Two columns: East Asian wide and full-width characters, and emoji. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;

/** Cursor movements stop at this column: no terminal is wider. */
const MAX_COLUMNS = 1_024;
const BACKSPACE = 0x08;
const CARRIAGE_RETURN = 0x0d;
const ESCAPE = 0x1b;
const CSI = 0x9b;
/** A sequence that sets colours and styles. Longer ones are useless. */
const SGR = /^\x1b\[[\d;:]{0,64}m$/;
const SGR_RESET = /^\x1b\[[0;]*m$/;
const RESET = '\x1b[0m';
/** When a character's colour sequences exceed this length, only the newest one is kept. */
const MAX_PEN_LENGTH = 256;
/** Fills the second column of a wide character. */
const SECOND_HALF = '';

/**
 * The columns of a line. Each keeps the time of its last write, so that erasing is one entry and not a loop.
 */
class ColumnBuffer {
  private readonly text: string[] = [];
  private readonly written: number[] = [];
  /** When all columns from this one on, and all up to it, were last erased. */
  private readonly erasedFrom = new Map<number, number>();
  private readonly erasedTo = new Map<number, number>();
  /** The colour sequences that apply to each column. */
  private readonly pens: string[] = [];
  private pen = '';
  private time = 0;
  private column = 0;

  /** Later text also gets the colours of `sgr`. */
  paint(sgr: string): void {
    if (SGR_RESET.test(sgr)) this.pen = '';
    else this.pen = this.pen.length + sgr.length > MAX_PEN_LENGTH ? sgr : this.pen + sgr;
  }

  put(character: string): void {
    this.time += 1;
    this.set(this.column, character);
    this.column += 1;
    if (character < '\u1100' || !WIDE.test(character)) return;
    this.set(this.column, SECOND_HALF);
    this.column += 1;
  }

  moveTo(to: number): void {
    // In a line longer than the widest terminal, movements stay within the printed part.
    this.column = Math.max(0, Math.min(to, Math.max(MAX_COLUMNS - 1, this.column)));
  }

  moveBy(columns: number): void {
    this.moveTo(this.column + columns);
  }

  erase(mode: number): void {
    this.time += 1;
    if (mode === 0) this.erasedFrom.set(this.column, this.time);
    else if (mode === 1) this.erasedTo.set(this.column, this.time);
    else if (mode === 2) this.erasedFrom.set(0, this.time);
  }

  private set(column: number, text: string): void {
    while (this.text.length < column) {
      this.text.push(' ');
      this.written.push(0);
    }
    this.text[column] = text;
    this.written[column] = this.time;
    if (this.pen !== '' || this.pens.length > column) this.pens[column] = this.pen;
  }

  render(): string {
    const { text, written } = this;
    const shown = new Uint8Array(text.length);
    let erased = 0;
    for (let at = 0; at < text.length; at += 1) {
      erased = Math.max(erased, this.erasedFrom.get(at) ?? 0);
      shown[at] = (written[at] ?? 0) > erased ? 1 : 0;
    }
    erased = Math.max(0, ...[...this.erasedTo].filter(([at]) => at >= text.length).map(([, time]) => time));
    for (let at = text.length - 1; at >= 0; at -= 1) {
      erased = Math.max(erased, this.erasedTo.get(at) ?? 0);
      if ((written[at] ?? 0) <= erased) shown[at] = 0;
    }
    const end = shown.lastIndexOf(1) + 1;
    let line = '';
    let pen = '';
    for (let at = 0; at < end; at += 1) {
      const wanted = shown[at] ? (this.pens[at] ?? '') : '';
      if (wanted !== pen) line += (pen === '' ? '' : RESET) + wanted;
      pen = wanted;
      line += shown[at] ? this.shownAt(at, shown) : ' ';
    }
    return pen === '' ? line : line + RESET;
  }

  /** A wide character with one half overwritten or erased leaves a blank. */
  private shownAt(at: number, shown: Uint8Array): string {
    const { text, written } = this;
    const here = text[at] ?? ' ';
    const isWholeWith = (other: number) => shown[other] === 1 && written[other] === written[at];
    if (here === SECOND_HALF) return isWholeWith(at - 1) ? '' : ' ';
    if (text[at + 1] === SECOND_HALF && written[at + 1] === written[at])
      return isWholeWith(at + 1) ? here : ' ';
    return here >= '\u1100' && WIDE.test(here) ? ' ' : here;
  }
}

/** Applies the sequence at `at` of `line` and returns where it ends. */
function applySequence(line: string, at: number, row: ColumnBuffer): number {
  CURSOR_MOVE.lastIndex = at;
  const [sequence = ' ', count = '', final] = CURSOR_MOVE.exec(line) ?? [];
  const number = Math.min(Number(count), MAX_COLUMNS);
  if (final === 'C') row.moveBy(number || 1);
  else if (final === 'D') row.moveBy(-(number || 1));
  else if (final === 'G') row.moveTo((number || 1) - 1);
  else if (final === 'K') row.erase(number);
  else if (final === 'm') row.paint(sequence);
  return at + sequence.length;
}

/** A line without escapes, combining and wide characters takes a simpler path, several times as fast. */
const NEEDS_COLUMN_BUFFER = /[^\0-\x1a\x1c-\x9a\x9c-\u02ff]/;

function emulateNarrow(line: string): string {
  const row = new Uint16Array(line.length);
  let column = 0;
  let end = 0;
  for (let at = 0; at < line.length; at += 1) {
    const code = line.charCodeAt(at);
    if (code === CARRIAGE_RETURN) column = 0;
    else if (code === BACKSPACE) column = Math.max(0, column - 1);
    else {
      row[column] = code;
      column += 1;
      end = Math.max(end, column);
    }
  }
  return Buffer.from(row.buffer, 0, end * row.BYTES_PER_ELEMENT).toString('utf16le');
}

function emulate(line: string): string {
  const row = new ColumnBuffer();
  for (let at = 0; at < line.length; ) {
    const code = line.charCodeAt(at);
    if (code === ESCAPE || code === CSI) {
      at = applySequence(line, at, row);
    } else if (code === CARRIAGE_RETURN || code === BACKSPACE) {
      if (code === CARRIAGE_RETURN) row.moveTo(0);
      else row.moveBy(-1);
      at += 1;
    } else if (code < FIRST_COMBINING) {
      row.put(line.charAt(at));
      at += 1;
    } else {
      GRAPHEME.lastIndex = at;
      const cluster = GRAPHEME.exec(line)?.[0] ?? '';
      row.put(cluster);
      at += cluster.length;
    }
  }
  return row.render();
}

const APPLIED_SEQUENCE = /^(?:\x1b\[|\x9b)[\d;]*[CDGK]$/;
const keepApplied = (sequence: string): string => (APPLIED_SEQUENCE.test(sequence) ? sequence : '');

const keepColours = (sequence: string): string => (SGR.test(sequence) ? sequence : '');
const keepAppliedAndColours = (sequence: string): string => keepApplied(sequence) || keepColours(sequence);

/** Without the carriage returns at its end. Not by /\r+$/, which takes quadratic time over many returns. */
function withoutReturns(printed: string): string {
  let end = printed.length;
  while (end > 0 && printed.charCodeAt(end - 1) === CARRIAGE_RETURN) end -= 1;
  return printed.slice(0, end);
}

/** Ends the colours of a line, so that none reaches the next one. */
function endColours(line: string): string {
  const last = line.lastIndexOf('\x1b[');
  return last < 0 || /^\x1b\[[0;]*m/.test(line.slice(last, last + 8)) ? line : line + RESET;
}

/**
 * Like `readableLine`, but keeps the program's colours (SGR), which end with the line. Nothing else remains
 * that a terminal would interpret.
 */
export function colouredLine(printed: string): string {
  const line = withoutReturns(printed);
  if (!CONTROL.test(line)) return line;
  if (CURSOR_MOVES.test(line))
    return emulate(line.replace(SEQUENCE, keepAppliedAndColours).replace(UNAPPLIED_CONTROLS, ''));
  return endColours(line.replace(SEQUENCE, keepColours).replace(UNPRINTED_CONTROLS, ''));
}

/**
 * The readable text of one line, given without its newline. Carriage returns at its end count as part of the
 * newline. Printed trailing blanks stay.
 */
export function readableLine(printed: string): string {
  const line = withoutReturns(printed);
  if (!CONTROL.test(line)) return line;
  if (!CURSOR_MOVES.test(line)) return line.replace(SEQUENCE, '').replace(CONTROL_CHARACTERS, '');
  const applied = line.replace(SEQUENCE, keepApplied).replace(UNAPPLIED_CONTROLS, '');
  return NEEDS_COLUMN_BUFFER.test(applied) ? emulate(applied) : emulateNarrow(applied);
}
