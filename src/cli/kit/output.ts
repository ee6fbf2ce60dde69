// Prints data on stdout in the chosen format, and messages on stderr. A stream shows colours only if it is a
// terminal.
import { styleText } from 'node:util';
import { safeJson, sanitize, sanitizeColouredLines, sanitizeLine } from './sanitize.ts';
import { displayWidth, truncateMiddle, truncateText } from './text_width.ts';

export const FORMATS = ['table', 'wide', 'json', 'jsonl'] as const;
export type Format = (typeof FORMATS)[number];
type TextStyle = Parameters<typeof styleText>[0];

/** One column of a table over rows of `T`. */
export interface Column<T> {
  title: string;
  cell: (row: T) => string | number | null | undefined;
  style?: (row: T) => TextStyle | undefined;
  alignRight?: boolean;
  /** Only with `-o wide`. */
  wideOnly?: boolean;
  /** Cells may be cut so that a row fits the terminal. */
  canShrink?: boolean;
  /** A cut keeps the end of the cell too: names of one stack differ at the end. */
  keepsEnd?: boolean;
}

export interface Output {
  format: Format;
  /** The format is json or jsonl. */
  isData: boolean;
  /** Whether stderr is a terminal that can be redrawn. */
  isInteractive(): boolean;
  /** Prints text with a newline on stdout, sanitized for a terminal except for its colours. */
  line(text: string): void;
  /** Prints a record: as JSON, or as the text of `human`. */
  record(value: unknown, human: () => string): void;
  /** Prints a list: as JSON, one object per line, or as a table. `empty` is the message for an empty list. */
  rows<T>(rows: readonly T[], columns: readonly Column<T>[], empty: string): void;
  /** Prints a message on stderr. */
  note(text: string): void;
  warn(text: string): void;
  /** Like `line`, on stderr. */
  errorLine(text: string): void;
  /** Styles text for stdout or stderr if that stream shows colours. */
  style(style: TextStyle, text: string, stream?: 'out' | 'err'): string;
  /** Prints bytes on stdout unchanged. */
  raw(bytes: string | Uint8Array): void;
}

/** The least width of a cut column, in terminal columns. */
const MIN_SHRUNK_WIDTH = 12;
const COLUMN_GAP = 2;

function rowCells<T>(row: T, columns: readonly Column<T>[]): string[] {
  return columns.map(({ cell }) => {
    const value = cell(row);
    return value === null || value === undefined || value === '' ? '-' : sanitizeLine(String(value));
  });
}

/** The widths of columns: shrinks the widest shrinkable ones of `natural` until a row fits `maxWidth`. */
function fitWidths<T>(natural: readonly number[], columns: readonly Column<T>[], maxWidth: number): number[] {
  const widths = [...natural];
  const total = () => widths.reduce((sum, width) => sum + width + COLUMN_GAP, -COLUMN_GAP);
  for (;;) {
    const excess = total() - maxWidth;
    const spare = widths.map((width, at) => (columns[at]?.canShrink ? width - MIN_SHRUNK_WIDTH : 0));
    const most = Math.max(...spare);
    if (excess <= 0 || most <= 0) return widths;
    const at = spare.indexOf(most);
    widths[at] = (widths[at] ?? 0) - 1;
  }
}

/**
 * Formats a table: titles, then rows, with columns two spaces apart. If rows are wider than `maxWidth`
 * terminal columns, cuts the cells that may be cut.
 */
export function formatTable<T>(
  rows: readonly T[],
  columns: readonly Column<T>[],
  style: (style: TextStyle, text: string) => string,
  maxWidth = Number.POSITIVE_INFINITY,
): string {
  const grid = rows.map((row) => rowCells(row, columns));
  const natural = columns.map(({ title }, at) =>
    Math.max(displayWidth(title), ...grid.map((line) => displayWidth(line[at] ?? ''))),
  );
  const widths = fitWidths(natural, columns, maxWidth);
  const pad = (whole: string, at: number): string => {
    const cut = columns[at]?.keepsEnd ? truncateMiddle : truncateText;
    const text = cut(whole, widths[at] ?? 0);
    const space = ' '.repeat(Math.max(0, (widths[at] ?? 0) - displayWidth(text)));
    if (columns[at]?.alignRight) return space + text;
    return at === columns.length - 1 ? text : text + space;
  };
  const gap = ' '.repeat(COLUMN_GAP);
  const head = columns.map(({ title }, at) => style('dim', pad(title, at))).join(gap);
  const body = rows.map((row, index) =>
    columns
      .map((column, at) => {
        const padded = pad(grid[index]?.[at] ?? '', at);
        const chosen = column.style?.(row);
        return chosen ? style(chosen, padded) : padded;
      })
      .join(gap),
  );
  return [head, ...body].join('\n');
}

interface OutputStreams {
  stdout: () => NodeJS.WriteStream;
  stderr: () => NodeJS.WriteStream;
}

/** The output of one run of the command. */
export function createOutput(format: Format, { stdout, stderr }: OutputStreams): Output {
  const isData = format === 'json' || format === 'jsonl';
  const style: Output['style'] = (chosen, text, stream = 'out') =>
    styleText(chosen, text, { stream: stream === 'out' ? stdout() : stderr() });
  // Sanitizes here because all text passes through: any text may come from a daemon, log or project.
  const line = (text: string): void => void stdout().write(`${sanitizeColouredLines(text)}\n`);
  const json = (value: unknown): void => line(safeJson(value, format === 'json' ? 2 : 0));
  const say = (text: string): void => void stderr().write(`${text}\n`);
  return {
    format,
    isData,
    isInteractive: () => stderr().isTTY === true && process.env['TERM'] !== 'dumb' && !process.env['CI'],
    line,
    style,
    record: (value, human) => (isData ? json(value) : line(human())),
    rows: (rows, columns, empty) => {
      if (format === 'json') return json(rows);
      if (format === 'jsonl') return rows.forEach(json);
      if (rows.length === 0) return say(empty);
      const shown = columns.filter((column) => !column.wideOnly || format === 'wide');
      // `-o wide` shows cells in full.
      const maxWidth = format === 'wide' ? undefined : stdout().columns;
      line(formatTable(rows, shown, style, maxWidth));
    },
    note: (text) => say(sanitize(text)),
    warn: (text) => say(`${style('yellow', 'warning:', 'err')} ${sanitize(text)}`),
    errorLine: (text) => say(sanitizeColouredLines(text)),
    raw: (bytes) => void stdout().write(bytes),
  };
}
