// Renders scrollable texts as lines: the details of a service or a workload, the policies, and the keys.

import type { Service } from '../../client/records.ts';
import { eventText } from '../../presentation/event_text.ts';
import { clockText, dayText } from '../../presentation/format.ts';
import { stateOf } from '../../presentation/state_tone.ts';
import { factRows } from '../kit/service_facts.ts';
import { colouredPieces } from './log_lines.ts';
import type { Details, Model, View } from './model.ts';
import { lookOf, shapeOf, stateText } from './state_marks.ts';
import { cell, piece, type ScreenLine, spaced } from './styled_line.ts';
import { policiesLines, workloadLines, wrapped } from './view_cloud.ts';

type TextView = Exclude<View, { kind: 'list' | 'log' }>;

const TITLE_WIDTH = 12;
const EMPTY: ScreenLine = { pieces: [] };

const paragraph = (text: string, columns: number): ScreenLine[] =>
  text.split('\n').flatMap((line) => wrapped([piece(' ')], [piece(line)], columns));

function heading(title: string): ScreenLine[] {
  return [EMPTY, { pieces: [piece(` ${title}`, 'strong')] }];
}

function eventLines({ events }: Details, columns: number): ScreenLine[] {
  if (events.length === 0) return [];
  const today = dayText(Date.now());
  const lines = [...events].reverse().flatMap((event) => {
    const { at } = event.data;
    const day = at === undefined || dayText(at) === today ? '' : `${dayText(at)} `;
    const time = at === undefined ? '' : `${day}${clockText(at)} `;
    return wrapped([piece(` ${time}`, 'dim')], [piece(eventText(event))], columns);
  });
  return [...heading('Last events'), ...lines];
}

function logLines({ explanation: { lastLines } }: Details, columns: number): ScreenLine[] {
  if (lastLines.length === 0) return [];
  const lines = lastLines.flatMap((line) =>
    wrapped([piece(' │ ', 'dim')], colouredPieces(line, 'plain'), columns),
  );
  return [...heading('The last lines of its log'), ...lines];
}

function agentFacts(name: string, { agents }: Model): [title: string, text: string][] {
  const agent = agents.find((one) => one.name === name);
  if (!agent) return [];
  const { agent_type: type, title, hostname, sessionId, viewers, question } = agent;
  const rows: [string, string][] = [
    ['agent', [type ?? '', title].filter(Boolean).join(': ')],
    ['host name', hostname],
    ['conversation', sessionId ?? ''],
    ['viewers', viewers > 0 ? String(viewers) : ''],
    ['question', question.join(' / ')],
  ];
  return rows.filter(([, text]) => text !== '');
}

/** The last measured usage of a run. */
const usageOfRun = ({ name, pid }: Service, { usages }: Model): Partial<Service> =>
  (pid === undefined ? null : usages.get(name)) ?? {};

function detailsLines(
  { name, details, trouble }: Extract<View, { kind: 'details' }>,
  model: Model,
): ScreenLine[] {
  const { columns } = model.size;
  const gone = trouble === '' ? [] : [...wrapped([piece(' ')], [piece(trouble, 'bad')], columns), EMPTY];
  if (!details)
    return [...gone, ...(trouble === '' ? [{ pieces: [piece(` Asking about ${name}…`, 'dim')] }] : [])];
  const { explanation } = details;
  // The list is newer than the details.
  const service = model.services?.find((one) => one.name === name) ?? details.service;
  const agent = model.agents.find((one) => one.name === name) ?? null;
  const facts = [
    ...factRows({ ...details.service, ...service, ...usageOfRun(service, model) }, explanation),
    ...agentFacts(name, model),
  ];
  const state = piece(stateText(service, agent), lookOf(stateOf(service, agent)));
  return [
    ...gone,
    { pieces: [piece(' '), ...spaced([shapeOf(stateOf(service, agent)), piece(name, 'strong'), state])] },
    EMPTY,
    ...paragraph(explanation.reason, columns),
    ...(explanation.waitingFor ? paragraph(`It waits for ${explanation.waitingFor}.`, columns) : []),
    ...paragraph(explanation.next, columns),
    ...(details.service.stale
      ? paragraph('It runs an older registration; r applies the new one.', columns)
      : []),
    EMPTY,
    ...facts.flatMap(([title, text]) =>
      wrapped([piece(' '), ...cell(title, TITLE_WIDTH, 'dim'), piece(' ')], [piece(text)], columns),
    ),
    ...logLines(details, columns),
    ...eventLines(details, columns),
  ];
}

const KEY_WIDTH = 12;

/** All lines of a text. */
export function textLines(view: TextView, model: Model): ScreenLine[] {
  if (view.kind === 'details') return detailsLines(view, model);
  if (view.kind === 'workload') return workloadLines(view, model);
  if (view.kind === 'policies') return policiesLines(view, model);
  return view.keys.map(({ label, about }) => ({
    pieces: [piece(' '), ...cell(label, KEY_WIDTH, 'key'), piece(about)],
  }));
}
