// The rows of a terminal's emulator, behind its public interface: where they end, which go on in the next.
import type { IBufferCell, Terminal } from '@xterm/headless';

const NOTHING = 0;
const SPACE = 0x20;

interface Row {
  readonly length: number;
  /** Whether it continues the row above. */
  isWrapped: boolean;
  /** 0: the second half of a wide character. */
  getWidth(column: number): number;
  hasContent(column: number): number;
  /** Reads a cell into `cell`. */
  loadCell(column: number, cell: IBufferCell): IBufferCell;
  resize(cols: number, fill: IBufferCell): unknown;
  setCellFromCodepoint(column: number, code: number, width: number, style: IBufferCell): void;
}

interface Rows {
  readonly lines: { readonly length: number; get(index: number): Row | undefined };
}

/** The main and the alternate screen. */
function screensOf(terminal: Terminal): readonly Rows[] {
  const { buffers } = (terminal as unknown as { _core: { buffers: { normal: Rows; alt: Rows } } })._core;
  return [buffers.normal, buffers.alt];
}

/**
 * Resizes `terminal`. Its emulator keeps what rows of the alternate screen have beyond a nearer edge, and on
 * both screens the first half of a wide character at the edge. A serialized screen would contain them.
 */
export function resizeScreen(terminal: Terminal, cols: number, rows: number): void {
  const isNarrower = cols < terminal.cols;
  terminal.resize(cols, rows);
  if (!isNarrower) return;
  const last = terminal.cols - 1;
  const blank = terminal.buffer.active.getNullCell();
  for (const { lines } of screensOf(terminal))
    for (let index = 0; index < lines.length; index += 1) {
      const row = lines.get(index);
      row?.resize(terminal.cols, blank);
      if (row?.getWidth(last) === 2) row.setCellFromCodepoint(last, NOTHING, 1, blank);
    }
}

const isFilled = (row: Row, column: number): boolean =>
  row.hasContent(column) !== 0 || row.getWidth(column) === 0;

/** Whether what `row` shows can go on in `next`: printing it again would wrap there. */
function canWrap(row: Row, next: Row): boolean {
  if (!next.hasContent(0)) return false;
  const last = row.length - 1;
  return isFilled(row, last) || (next.getWidth(0) === 2 && last > 0 && isFilled(row, last - 1));
}

/** Separates rows where the end of one or the begin of the next has been erased. */
function separateErased({ lines }: Rows): void {
  for (let index = 1; index < lines.length; index += 1) {
    const [above, row] = [lines.get(index - 1), lines.get(index)];
    if (above && row?.isWrapped && !canWrap(above, row)) row.isWrapped = false;
  }
}

/** Prints a blank at the end of the last row if there is only a background. */
function printBackground({ lines }: Rows, cell: IBufferCell): void {
  const row = lines.get(lines.length - 1);
  if (!row || isFilled(row, row.length - 1)) return;
  const style = row.loadCell(row.length - 1, cell);
  if (!style.isBgDefault()) row.setCellFromCodepoint(row.length - 1, SPACE, 1, style);
}

/**
 * Makes rows ready for the serializer, without a change to what they show. It draws a wrap between two rows
 * at a wrong place if nothing wraps there, and leaves out last rows that have a background but no text.
 */
export function prepareRows(terminal: Terminal): void {
  for (const screen of screensOf(terminal)) {
    separateErased(screen);
    printBackground(screen, terminal.buffer.active.getNullCell());
  }
}
