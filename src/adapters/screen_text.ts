// The lines of a terminal's screen as text, with or without colours.
import type { IBufferCell, IBufferLine, Terminal } from '@xterm/headless';

/** The attributes of a cell, and the SGR parameter that sets each. */
const ATTRIBUTES: readonly (readonly [isSet: (cell: IBufferCell) => number, parameter: number])[] = [
  [(cell) => cell.isBold(), 1],
  [(cell) => cell.isDim(), 2],
  [(cell) => cell.isItalic(), 3],
  [(cell) => cell.isUnderline(), 4],
  [(cell) => cell.isBlink(), 5],
  [(cell) => cell.isInverse(), 7],
  [(cell) => cell.isInvisible(), 8],
  [(cell) => cell.isStrikethrough(), 9],
  [(cell) => cell.isOverline(), 53],
];

/** SGR parameters of the 16 basic colours, of foreground and background. */
const BASIC = { fg: [30, 90], bg: [40, 100] } as const;

function colourOf(cell: IBufferCell, ground: keyof typeof BASIC): string[] {
  const isForeground = ground === 'fg';
  if (isForeground ? cell.isFgDefault() : cell.isBgDefault()) return [];
  const colour = isForeground ? cell.getFgColor() : cell.getBgColor();
  const extended = isForeground ? 38 : 48;
  if (isForeground ? cell.isFgRGB() : cell.isBgRGB())
    return [`${extended};2;${(colour >> 16) & 255};${(colour >> 8) & 255};${colour & 255}`];
  const [dark, bright] = BASIC[ground];
  if (colour < 8) return [String(dark + colour)];
  return colour < 16 ? [String(bright + colour - 8)] : [`${extended};5;${colour}`];
}

/** The SGR parameters that give a cell its style after a reset; empty: the default style. */
export function styleOf(cell: IBufferCell): string {
  const attributes = ATTRIBUTES.flatMap(([isSet, parameter]) => (isSet(cell) ? [String(parameter)] : []));
  return [...attributes, ...colourOf(cell, 'fg'), ...colourOf(cell, 'bg')].join(';');
}

/** A line with its colours, without trailing blanks in the default style. */
function colouredLine(line: IBufferLine, cols: number): string {
  let text = '';
  let style = '';
  let blanks = '';
  for (let column = 0; column < cols; column += 1) {
    const cell = line.getCell(column);
    // The second half of a wide character, or the first half of one that is cut.
    if (!cell || cell.getWidth() === 0 || column + cell.getWidth() > cols) continue;
    const cellStyle = styleOf(cell);
    const characters = cell.getChars() || ' ';
    if (cellStyle !== style) {
      text += `${blanks}\x1b[0${cellStyle === '' ? '' : `;${cellStyle}`}m`;
      blanks = '';
      style = cellStyle;
    }
    if (style === '' && characters === ' ') blanks += ' ';
    else {
      text += blanks + characters;
      blanks = '';
    }
  }
  return style === '' ? text : `${text}\x1b[0m`;
}

/** Which lines of a terminal, counted from the beginning of its scrollback, and how much of each. */
export interface LinesShown {
  first: number;
  count: number;
  /** Further columns are left out. */
  cols: number;
  /** Whether lines keep their colours, as SGR sequences. */
  ansi: boolean;
}

/** What a terminal has in these lines, without trailing blanks. */
export function screenLines({ buffer }: Terminal, { first, count, cols, ansi }: LinesShown): string[] {
  return Array.from({ length: count }, (_, row) => {
    const line = buffer.active.getLine(first + row);
    if (!line) return '';
    return ansi ? colouredLine(line, cols) : line.translateToString(true, 0, cols).replace(/ +$/, '');
  });
}
