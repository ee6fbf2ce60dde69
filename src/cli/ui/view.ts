// Renders the whole screen as lines: the bar, the view, the notice or dialog, and the keys.

import { countText } from '../../presentation/format.ts';
import { attentionOf, isOfAgents } from '../../presentation/sections.ts';
import { KEY_TABLE } from './key_table.ts';
import { selectedRow } from './list_steps.ts';
import { type Dialog, faultOf, layoutOf, type Model, viewOf } from './model.ts';
import { shapeOf } from './state_marks.ts';
import { fitPieces, justify, type Piece, piece, type ScreenLine, spaced, widthOf } from './styled_line.ts';
import { listLines, titleLine } from './view_list.ts';
import { logLines } from './view_log.ts';
import { textLines } from './view_text.ts';

/** The number of crashed services or blocked agents; shown even if it is 0, so that the bar stays stable. */
function countPieces(state: string, count: number): Piece[] {
  const word = piece(`${count} ${state}`, count > 0 ? 'bad' : 'dim');
  return [count > 0 ? shapeOf(state) : piece('·', 'dim'), piece(' '), word];
}

function connectionPiece({ connection, address }: Model): Piece {
  if ('detail' in connection) return piece(`${faultOf(connection)}, waiting `, 'bad');
  return piece(`${connection.state === 'connecting' ? 'connecting' : address} `, 'dim');
}

/** The bar at the top; it begins with what needs the user's attention. */
function barLine(model: Model): ScreenLine {
  const services = model.services ?? [];
  const { services: crashed, agents: blocked } = attentionOf(services, model.agents);
  const own = services.filter((one) => !isOfAgents(one));
  const running = own.filter(({ status }) => status === 'running').length;
  const left = [
    piece(' Berth  ', 'strong'),
    ...countPieces('crashed', crashed),
    piece('  '),
    ...countPieces('blocked', blocked),
    piece(`  ${running} of ${countText(own.length, 'service')} running`),
    piece(`  ${countText(model.agents.length, 'agent')}`),
  ];
  const right = connectionPiece(model);
  // If both do not fit, the lost connection is more important than old numbers.
  const isLost = 'detail' in model.connection;
  const room = isLost ? Math.max(0, model.size.columns - widthOf([right]) - 1) : model.size.columns;
  return { pieces: justify(fitPieces(left, room), [right], model.size.columns) };
}

const LABELS = {
  filter: 'filter',
  search: 'search',
  lines: 'only lines with',
  prompt: 'prompt for',
} as const;

function dialogPieces(dialog: Dialog, columns: number): Piece[] {
  if (dialog.kind === 'confirm') {
    const answers = [piece('y', 'key'), piece('yes'), piece(' n', 'key'), piece('no')];
    return [piece(' '), ...spaced([piece(dialog.question, 'strong'), ...answers])];
  }
  const { purpose, text } = dialog;
  const label = purpose.kind === 'prompt' ? `${LABELS.prompt} ${purpose.subject}` : LABELS[purpose.kind];
  const head = [piece(` ${label}: `, 'key')];
  // The cursor is at the end of the text, so a long text shows its end.
  const typed = piece(text.slice(-columns * 2));
  const left = Math.max(0, widthOf([...head, typed]) + 1 - columns);
  return [...head, ...fitPieces([typed], columns, left), piece(' ', 'match')];
}

/** The question of the selected agent; '' if it asks none. */
function selectedQuestion(model: Model): string {
  const row = viewOf(model).kind === 'list' ? selectedRow(model) : undefined;
  const agent = row?.kind === 'service' ? row.agent : null;
  return agent?.state === 'blocked' ? agent.question.join(' ').trim() : '';
}

function saidPieces(model: Model): Piece[] {
  const { notice, underWay, filter, connection, marked } = model;
  if (underWay.length > 0) return [piece(` ${underWay.join(', ')} …`, 'busy')];
  if (notice) return [piece(` ${notice.text}`, notice.tone === 'bad' ? 'bad' : 'plain')];
  if ('detail' in connection) return [piece(` ${connection.detail}`, 'dim')];
  if (marked.size > 0) return [piece(` ${marked.size} marked`, 'key'), piece('  Esc ends it', 'dim')];
  const question = selectedQuestion(model);
  if (question !== '') return [shapeOf('blocked'), piece(` ${question}`, 'plain')];
  return filter === '' ? [] : [piece(` filter: ${filter}`, 'key'), piece('  Esc ends it', 'dim')];
}

/** The most important keys; if not all fit, the last two hints stay: help and the way out. */
function keyPieces(model: Model): Piece[] {
  const hints = KEY_TABLE[viewOf(model).kind].filter(({ hint }) => hint !== undefined);
  const shown = hints.map(({ label, hint = '' }) => [
    piece(` ${label.split(',')[0]} `, 'key'),
    piece(`${hint} `, 'dim'),
  ]);
  const last = shown.splice(-2);
  let room = model.size.columns - widthOf(last.flat());
  const first = shown.filter((pieces) => {
    const isShown = widthOf(pieces) <= room;
    if (isShown) room -= widthOf(pieces);
    return isShown;
  });
  return justify(first.flat(), last.flat(), model.size.columns);
}

function bodyLines(model: Model): ScreenLine[] {
  const view = viewOf(model);
  if (view.kind === 'list') return listLines(model);
  if (view.kind === 'log') return logLines(view.log, model);
  return textLines(view, model).slice(view.top);
}

function titleOf(model: Model): ScreenLine {
  const view = viewOf(model);
  if (view.kind === 'list') return titleLine(model);
  const title = { details: 'DETAILS', workload: 'WORKLOAD', policies: 'POLICIES', log: 'LOG', help: 'KEYS' }[
    view.kind
  ];
  return { pieces: [piece(` ${title}`, 'dim')] };
}

/** The lines of the screen: exactly as many as the terminal has rows. */
export function frameLines(model: Model): ScreenLine[] {
  const { rows, columns } = model.size;
  const { hasTitles, hasKeys, bodyRows } = layoutOf(model.size);
  const said = { pieces: model.dialog ? dialogPieces(model.dialog, columns) : saidPieces(model) };
  const body = bodyLines(model).slice(0, bodyRows);
  const filled = [...body, ...Array.from({ length: bodyRows - body.length }, () => ({ pieces: [] }))];
  const lines = [
    barLine(model),
    ...(hasTitles ? [titleOf(model)] : []),
    ...filled,
    said,
    ...(hasKeys ? [{ pieces: keyPieces(model) }] : []),
  ];
  // A question must be visible even on the smallest terminal.
  return rows === 1 ? [model.dialog ? said : barLine(model)] : lines.slice(0, rows);
}
