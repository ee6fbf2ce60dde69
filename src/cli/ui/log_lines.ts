// Formats log entries as pieces of lines: names, times, marks of runs, and the colours of programs.
import type { LogEntry } from '../../client/records.ts';
import { clockText, endText } from '../../presentation/format.ts';
import { LOG_COLOURS } from '../kit/print_logs.ts';
import type { OpenLog } from './model.ts';
import { cell, type Look, type Piece, piece, safeText } from './styled_line.ts';

/** Lines above the entries. */
export const LOG_HEAD_ROWS = 1;
const MAX_NAME_WIDTH = 20;

const SGR = /\x1b\[([0-9;:]{0,64})m/g;
/** The most characters of accumulated colour parameters in one line. */
const MAX_SGR_CHARS = 256;

/** The pieces of a program's own line. Of its control sequences, only colours have an effect. */
export function colouredPieces(line: string, look: Look): Piece[] {
  if (!line.includes('\x1b')) return [piece(line, look)];
  const pieces: Piece[] = [];
  let sgr = '';
  let from = 0;
  const add = (to: number): void => {
    if (to > from) pieces.push({ ...piece(line.slice(from, to), look), ...(sgr === '' ? {} : { sgr }) });
  };
  for (const found of line.matchAll(SGR)) {
    add(found.index);
    const parameters = found[1] ?? '';
    // Colours add up until a reset.
    const isReset = /^0*$/.test(parameters);
    sgr = isReset || sgr.length > MAX_SGR_CHARS ? '' : [sgr, parameters].filter(Boolean).join(';');
    from = found.index + found[0].length;
  }
  add(line.length);
  return pieces;
}

/** The shown text of an entry, without colours. */
export const plainTextOf = (entry: LogEntry): string =>
  safeText('text' in entry ? entry.text.replace(SGR, '') : markOf(entry));

function markOf(entry: Exclude<LogEntry, { text: string }>): string {
  if (entry.event === 'started') return entry.pid === null ? 'started' : `started, pid ${entry.pid}`;
  return `ended (${endText(entry) || 'nobody saw how'})`;
}

/** `pieces` with every match of `search` highlighted; the match ignores case. */
function withMatches(pieces: readonly Piece[], search: string): Piece[] {
  const wanted = search.toLowerCase();
  return pieces.flatMap((one) => {
    const parts: Piece[] = [];
    const lower = one.text.toLowerCase();
    let from = 0;
    // Some letters change their length with their case: positions in `lower` would then be wrong.
    for (let at = lower.indexOf(wanted); at >= 0 && lower.length === one.text.length; ) {
      const end = at + wanted.length;
      if (at > from) parts.push({ ...one, text: safeText(one.text.slice(from, at)) });
      parts.push(piece(one.text.slice(at, end), 'match'));
      from = end;
      at = lower.indexOf(wanted, from);
    }
    if (from < one.text.length) parts.push({ ...one, text: safeText(one.text.slice(from)) });
    return parts;
  });
}

/** The colour of a name, which is always the same. */
function colourOf(name: string): Look {
  let sum = 0;
  for (const character of name) sum = (sum * 31 + (character.codePointAt(0) ?? 0)) % 65_521;
  return LOG_COLOURS[sum % LOG_COLOURS.length] ?? 'cyan';
}

/** The pieces of an entry. `nameWidth`: the columns for the name; null hides it. */
export function entryPieces(
  entry: LogEntry,
  { hasTimes, search }: Pick<OpenLog, 'hasTimes' | 'search'>,
  nameWidth: number | null,
): Piece[] {
  const { name, at } = entry;
  const head = [
    ...(hasTimes ? [piece(`${clockText(at)} `, 'dim')] : []),
    ...(nameWidth === null ? [] : [...cell(name, nameWidth, colourOf(name)), piece(' ')]),
  ];
  if (!('text' in entry)) return [...head, piece(`── ${markOf(entry)} ──`, 'dim')];
  const mark = entry.stream === 'stderr' ? piece('! ', 'bad') : piece('  ');
  const own = colouredPieces(entry.text, 'plain');
  return [...head, mark, ...(search === '' ? own : withMatches(own, search))];
}

/** The columns for the names in a log; null if the log is of one service. */
export function nameWidthOf({ selection, entries }: OpenLog): number | null {
  if (selection.names?.length === 1) return null;
  const lengths = new Set(entries.map(({ name }) => name.length));
  return Math.min(MAX_NAME_WIDTH, Math.max(8, ...lengths));
}
