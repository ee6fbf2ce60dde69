// Renders a log as lines.
import { countText } from '../../presentation/format.ts';
import { entryPieces, nameWidthOf } from './log_lines.ts';
import { firstShown, logRows } from './log_steps.ts';
import type { Model, OpenLog } from './model.ts';
import { fitPieces, justify, type Piece, piece, type ScreenLine, spaced, wrapPieces } from './styled_line.ts';

const READING = {
  older: 'reading older lines…',
  newer: 'reading newer lines…',
  find: 'searching…',
} as const;

function statePiece({ trouble, reading, isFollowing, isLive }: OpenLog): Piece {
  if (trouble !== '') return piece(trouble, 'bad');
  if (reading !== null) return piece(READING[reading], 'busy');
  if (isFollowing) return piece('● following', 'good');
  return piece(isLive ? '‖ paused' : '‖ in the past; G follows', 'busy');
}

function headLine(log: OpenLog, columns: number): ScreenLine {
  const { selection, entries, search } = log;
  const shown = [
    ...(selection.level === undefined ? [] : [piece(`${selection.level} and worse`, 'key')]),
    ...(selection.q === undefined ? [] : [piece(`only ${selection.q}`, 'key')]),
    ...(search === '' ? [] : [piece(`/${search}`, 'match')]),
  ];
  const left = [piece(` log of ${selection.title} `, 'strong'), ...spaced([statePiece(log), ...shown])];
  return { pieces: justify(left, [piece(`${countText(entries.length, 'line')} `, 'dim')], columns) };
}

/** The lines of a log: its head, then entries. */
export function logLines(log: OpenLog, model: Model): ScreenLine[] {
  const { columns } = model.size;
  const rows = logRows(model);
  const nameWidth = nameWidthOf(log);
  const first = firstShown(log, model);
  const lines: ScreenLine[] = [];
  for (let at = first; at < log.entries.length && lines.length < rows; at += 1) {
    const entry = log.entries[at];
    if (!entry) break;
    const pieces = entryPieces(entry, log, nameWidth);
    const isSelected = at === log.found;
    const shown = log.isWrapped ? wrapPieces(pieces, columns) : [fitPieces(pieces, columns, log.left)];
    for (const line of shown) lines.push({ pieces: isSelected ? [piece('›', 'strong'), ...line] : line });
  }
  const empty: ScreenLine[] =
    log.entries.length === 0 ? [{ pieces: [piece(' Nothing is logged yet.', 'dim')] }] : [];
  return [headLine(log, columns), ...empty, ...lines.slice(0, rows)];
}
