// Lines of the screen: pieces of safe text with a look each, and functions that fit and write them.
import { sanitizeLine } from '../kit/sanitize.ts';
import { cutText, displayWidth, truncateText } from '../kit/text_width.ts';

/** Text without control characters. Only `safeText` makes it. */
export type SafeText = string & { readonly safe: unique symbol };

/** The SGR parameters of each look: with colours, and without. */
const LOOKS = {
  plain: ['', ''],
  strong: ['1', '1'],
  dim: ['2', '2'],
  good: ['32', ''],
  busy: ['33', ''],
  bad: ['1;31', '1'],
  rest: ['2', '2'],
  calm: ['36', ''],
  key: ['36', '1'],
  match: ['7', '7'],
  cyan: ['36', ''],
  yellow: ['33', ''],
  green: ['32', ''],
  magenta: ['35', ''],
  blue: ['34', ''],
  red: ['31', ''],
} as const satisfies Record<string, readonly [coloured: string, plain: string]>;
export type Look = keyof typeof LOOKS;

/** A piece of text with one look. */
export interface Piece {
  text: SafeText;
  look: Look;
  /** For a program's own line: SGR parameters that replace the look if colours are shown. */
  sgr?: string;
}

/** A line of the screen. */
export interface ScreenLine {
  pieces: readonly Piece[];
  /** The selected line, shown in reverse over its whole width. */
  isSelected?: boolean;
}

const TAB = '    ';
/** Longer texts are cut before their width is measured. */
const MAX_CHARS = 4_096;

/** `text` on one line, with control characters replaced by visible ones. */
export const safeText = (text: string): SafeText =>
  sanitizeLine(text.slice(0, MAX_CHARS)).replaceAll('\t', TAB) as SafeText;

/** Makes a piece from any text, which it sanitizes. */
export const piece = (text: string, look: Look = 'plain'): Piece => ({ text: safeText(text), look });

const GAP: Piece = piece(' ');

/** Spaces that fill `width` columns. */
export const space = (width: number): Piece => piece(' '.repeat(Math.max(0, width)));

/** A cell: `text` in exactly `width` columns, with an ellipsis if it is cut. */
export function cell(text: string, width: number, look: Look = 'plain', isRight = false): Piece[] {
  if (width <= 0) return [];
  const shown = truncateText(safeText(text), width) as SafeText;
  const room = space(width - displayWidth(shown));
  return isRight ? [room, { text: shown, look }] : [{ text: shown, look }, room];
}

/** The width of pieces in columns. */
export const widthOf = (pieces: readonly Piece[]): number =>
  pieces.reduce((sum, { text }) => sum + displayWidth(text), 0);

/** The part of `pieces` that fits in `width` columns, after skipping the first `left` columns. */
export function fitPieces(pieces: readonly Piece[], width: number, left = 0): Piece[] {
  const fitted: Piece[] = [];
  let skip = left;
  let room = width;
  for (const one of pieces) {
    let text: string = one.text;
    if (skip > 0) {
      const skipped = cutText(text, skip);
      skip -= displayWidth(skipped);
      text = text.slice(skipped.length);
      if (text === '') continue;
      // Half of a wide character is dropped.
      skip = 0;
    }
    const kept = cutText(text, room);
    if (kept !== '') fitted.push({ ...one, text: kept as SafeText });
    room -= displayWidth(kept);
    if (kept.length < text.length) break;
  }
  return fitted;
}

/** A line with pieces at the left and at the right; if both do not fit, only the left ones. */
export function justify(left: readonly Piece[], right: readonly Piece[], width: number): Piece[] {
  const room = width - widthOf(left) - widthOf(right);
  return room < 0 ? fitPieces(left, width) : [...left, space(room), ...right];
}

/** `pieces` with a space between them. */
export const spaced = (pieces: readonly Piece[]): Piece[] =>
  pieces.flatMap((one, at) => (at === 0 ? [one] : [GAP, one]));

/** Breaks pieces into lines of at most `width` columns. */
export function wrapPieces(pieces: readonly Piece[], width: number): Piece[][] {
  const lines: Piece[][] = [];
  let rest: readonly Piece[] = pieces;
  while (rest.length > 0) {
    const line = fitPieces(rest, Math.max(1, width));
    const taken = line.reduce((sum, { text }) => sum + text.length, 0);
    // A wide character does not fit a single column.
    if (taken === 0) break;
    lines.push(line);
    rest = withoutChars(rest, taken);
  }
  return lines.length > 0 ? lines : [[]];
}

function withoutChars(pieces: readonly Piece[], count: number): Piece[] {
  const rest: Piece[] = [];
  let skip = count;
  for (const one of pieces) {
    const text = one.text.slice(skip) as SafeText;
    skip = Math.max(0, skip - one.text.length);
    if (text !== '') rest.push({ ...one, text });
  }
  return rest;
}

const ASCII = /^[ -~]*$/;

/**
 * The output for a line. Terminals disagree about the width of some texts: after such a text, sets the cursor
 * to its column, so that columns stay aligned.
 */
export function writtenLine(line: ScreenLine, columns: number, hasColours: boolean): string {
  const shown = fitPieces(line.pieces, columns);
  let written = '';
  let at = 0;
  for (const { text, look, sgr } of shown) {
    const own = hasColours ? (sgr ?? LOOKS[look][0]) : LOOKS[look][1];
    const parameters = line.isSelected ? '7' : own;
    written += parameters === '' ? text : `\x1b[${parameters}m${text}\x1b[0m`;
    at += displayWidth(text);
    if (!ASCII.test(text) && at < columns) written += `\x1b[${at + 1}G`;
  }
  if (at >= columns) return written;
  return line.isSelected ? `${written}\x1b[7m${' '.repeat(columns - at)}\x1b[0m` : `${written}\x1b[K`;
}

/** The text of a line, for tests and for searches. */
export const textOf = ({ pieces }: ScreenLine): string => pieces.map(({ text }) => text).join('');
