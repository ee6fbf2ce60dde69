// The output that draws the screen of an emulator in another terminal, so that later output means the same
// there: docs/reference.md "Terminal repaint".
import type { Terminal } from '@xterm/headless';
import { type Charset, coreOf, type EmulatedScreen } from './emulator.ts';
import { prepareRows } from './screen_rows.ts';
import { styleOf } from './screen_text.ts';

/** Draws rows, the current style and most modes. */
interface Serializer {
  serialize(options: { scrollback: number }): string;
}

/** Resets a viewer's terminal, so that nothing of its earlier content remains. */
const RESET_SEQUENCE = '\x1bc';
const ALTERNATE_SCREEN = '\x1b[?1049h';
/** A viewer that has only one screen still has the main screen's style, region and text here. */
const EMPTY_SCREEN = '\x1b[m\x1b[r\x1b[2J';
/** The modes at the end of what is serialized. */
const MODES = /(?:\x1b\[(?:4|\?\d+)[hl])*$/;
/** Bold that goes on where dim ends, in this order, after colours: 22 ends both. */
const BOLD_AFTER_DIM =
  /(\x1b\[(?:[34]8;2;\d+;\d+;\d+;|[34]8;5;\d+;|(?:[349]|10)\d;)*(?:27;|7;)?)1;((?:\d+;)*)22(?=[;m])/g;
/** Designates the character sets G0 and G1, and shifts to each. */
const DESIGNATE = ['\x1b(', '\x1b)'] as const;
const SHIFT = ['\x0f', '\x0e'] as const;
const LATIN = 'B';
const LINE_DRAWING = '0';
const TAB_WIDTH = 8;
/** The mode of each mouse encoding but the first. */
const MOUSE_ENCODINGS: Readonly<Record<string, number>> = { SGR: 1006, SGR_PIXELS: 1016 };

const down = (rows: number): string => (rows === 0 ? '' : `\x1b[${Math.abs(rows)}${rows > 0 ? 'B' : 'A'}`);
const toColumn = (column: number): string => `\x1b[${column + 1}G`;
const sgr = (style: string): string => (style === '' ? '\x1b[m' : `\x1b[0;${style}m`);

/** Which of G0 and G1 draws lines. National character sets are not drawn. */
type LineSets = readonly [boolean, boolean];

const drawsLines = (charset: Charset): boolean => charset?.['q'] !== undefined;

/** The current character sets, and the index of the one in use. */
function charsetsOf(terminal: Terminal): { sets: LineSets; level: number } {
  const { _charsets, glevel, charset } = coreOf(terminal)._charsetService;
  const level = glevel === 1 ? 1 : 0;
  // A restored cursor has brought its own.
  const inUse = (index: number): boolean => drawsLines(index === level ? charset : _charsets[index]);
  return { sets: [inUse(0), inUse(1)], level };
}

/** Sets the character sets, in a terminal that has the initial ones. */
function charsetSequence(sets: LineSets, level: number): string {
  const designated = sets.map((isLines, index) => (isLines ? `${DESIGNATE[index]}${LINE_DRAWING}` : ''));
  return designated.join('') + (level === 0 ? '' : SHIFT[level]);
}

const INITIAL_CHARSETS = `${DESIGNATE[0]}${LATIN}${DESIGNATE[1]}${LATIN}${SHIFT[0]}`;

/** The row of the saved cursor. The emulator keeps it beside its text, which may have left the screen. */
const savedRow = ({ savedY, ybase }: EmulatedScreen, rows: number): number =>
  Math.min(Math.max(savedY - ybase, 0), rows - 1);

/** Puts the cursor where it was saved, with its style and character set. */
function toSavedCursor(terminal: Terminal, screen: EmulatedScreen): string {
  const { sets } = charsetsOf(terminal);
  const isLines = drawsLines(screen.savedCharset);
  const level = sets.indexOf(isLines);
  return [
    down(savedRow(screen, terminal.rows) - screen.y),
    toColumn(Math.min(screen.savedX, terminal.cols - 1)),
    sgr(styleOf(screen.savedCurAttrData)),
    level < 0 ? charsetSequence([isLines, sets[1]], 0) : charsetSequence(sets, level),
  ].join('');
}

const hasSavedCursor = (screen: EmulatedScreen, rows: number): boolean =>
  savedRow(screen, rows) > 0 ||
  screen.savedX > 0 ||
  styleOf(screen.savedCurAttrData) !== '' ||
  drawsLines(screen.savedCharset);

const hasRegion = ({ scrollTop, scrollBottom }: EmulatedScreen, rows: number): boolean =>
  scrollTop > 0 || scrollBottom < rows - 1;

/** Sets the scroll region, which moves the cursor to the first row and column. */
const regionSequence = ({ scrollTop, scrollBottom }: EmulatedScreen): string =>
  `\x1b[${scrollTop + 1};${scrollBottom + 1}r`;

/** What the main screen keeps while the alternate one is shown. The switch saves the cursor. */
function hiddenScreen(terminal: Terminal): string {
  const screen = coreOf(terminal).buffers.normal;
  const region = hasRegion(screen, terminal.rows) ? `\x1b7${regionSequence(screen)}\x1b8` : '';
  return toSavedCursor(terminal, screen) + region;
}

function tabStops({ tabs }: EmulatedScreen, cols: number): string {
  const columns = Array.from({ length: cols - 1 }, (_, index) => index + 1);
  if (columns.every((column) => (tabs[column] ?? false) === (column % TAB_WIDTH === 0))) return '';
  const stops = columns.filter((column) => tabs[column]).map((column) => `${toColumn(column)}\x1bH`);
  return `\x1b[3g${stops.join('')}`;
}

/** The modes that the serializer leaves out. */
function furtherModes(terminal: Terminal): string {
  const { coreMouseService, coreService } = coreOf(terminal);
  const encoding = MOUSE_ENCODINGS[coreMouseService.activeEncoding];
  return [
    terminal.options.convertEol ? '\x1b[20h' : '',
    encoding === undefined ? '' : `\x1b[?${encoding}h`,
    coreService.isCursorHidden ? '\x1b[?25l' : '',
  ].join('');
}

/** Puts the cursor into `column` of its row. Saved cursor, scroll region and modes have moved it. */
function toCell(terminal: Terminal, column: number): string {
  const { rows, modes } = terminal;
  const { cursorY } = terminal.buffer.active;
  const screen = coreOf(terminal).buffer;
  // Rows count from the region, in the emulator also where only the column is set.
  if (modes.originMode) return `\x1b[${cursorY - screen.scrollTop + 1};${column + 1}H`;
  if (hasRegion(screen, rows)) return `\x1b[${cursorY + 1};${column + 1}H`;
  // A viewer may have more rows.
  const back = hasSavedCursor(screen, rows) ? down(cursorY - savedRow(screen, rows)) : '';
  return back + toColumn(column);
}

/** Puts the cursor where it is. At the edge, prints the last cell again, so that the next character wraps. */
function toCursor(terminal: Terminal): string {
  const { buffer, cols } = terminal;
  const { cursorX, cursorY, baseY } = buffer.active;
  if (cursorX < cols) return toCell(terminal, cursorX);
  const line = buffer.active.getLine(baseY + cursorY);
  const column = line?.getCell(cols - 1)?.getWidth() === 0 ? cols - 2 : cols - 1;
  const cell = line?.getCell(column);
  const last = cell ? sgr(styleOf(cell)) + (cell.getChars() || ' ') : '';
  return toCell(terminal, column) + last;
}

/** What follows the rows: saved cursor, scroll region, tab stops and modes, then the cursor and its style. */
function screenState(terminal: Terminal, serializedModes: string): string {
  const { rows, cols } = terminal;
  const core = coreOf(terminal);
  const screen = core.buffer;
  const isSaved = hasSavedCursor(screen, rows);
  const { sets, level } = charsetsOf(terminal);
  return [
    isSaved ? `${toSavedCursor(terminal, screen)}\x1b7${INITIAL_CHARSETS}` : '',
    hasRegion(screen, rows) ? regionSequence(screen) : '',
    tabStops(screen, cols),
    serializedModes,
    furtherModes(terminal),
    toCursor(terminal),
    sgr(styleOf(core._inputHandler._curAttrData)),
    charsetSequence(sets, level),
  ].join('');
}

/** Draws the screen of `terminal`, with up to `lines` of scrollback, in another terminal. */
export function drawingOf(terminal: Terminal, serializer: Serializer, lines: number): string {
  prepareRows(terminal);
  const serialized = serializer
    .serialize({ scrollback: lines })
    .replace(BOLD_AFTER_DIM, (_, before, between) => `${before}22;${between}1`);
  const modesAt = serialized.search(MODES);
  const [main = '', alternate] = serialized.slice(0, modesAt).split(ALTERNATE_SCREEN);
  return [
    ...[RESET_SEQUENCE, main],
    ...(alternate === undefined
      ? []
      : [hiddenScreen(terminal), ALTERNATE_SCREEN, EMPTY_SCREEN, INITIAL_CHARSETS, alternate]),
    screenState(terminal, serialized.slice(modesAt)),
  ].join('');
}
