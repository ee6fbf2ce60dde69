// Renders the list as lines. Each column has a fixed width, so that nothing moves when a value changes.
import type { Workload } from '../../client/records.ts';
import { cpuText, memoryText, spanText } from '../../presentation/format.ts';
import { nextSwitchText, whoDecides } from '../../presentation/policy_text.ts';
import { listedName } from '../../presentation/sections.ts';
import { stateOf } from '../../presentation/state_tone.ts';
import { shownAddress } from '../../protocol/port_protocol.ts';
import { EVENTS } from '../../settings/limits.ts';
import { layoutOf, type Model, type UiRow } from './model.ts';
import { lookOf, shapeOf, stateText, workloadText } from './state_marks.ts';
import {
  cell,
  justify,
  type Look,
  type Piece,
  piece,
  type ScreenLine,
  space,
  wrapPieces,
} from './styled_line.ts';

type ServiceRow = Extract<UiRow, { kind: 'service' }>;
type WorkloadRow = Extract<UiRow, { kind: 'workload' }>;

interface ListColumn {
  title: string;
  /** In terminal columns; 0: the remaining width. */
  width: number;
  /** The least number of terminal columns at which this column is shown. */
  from: number;
  isRight?: boolean;
  service: (row: ServiceRow, model: Model) => readonly [text: string, look?: Look];
  workload: (row: WorkloadRow, model: Model) => readonly [text: string, look?: Look];
}

const sinceText = (time: string | null | undefined, now: number): string =>
  time ? spanText(now - Date.parse(time)) : '';

/** Whether the memory is meaningful: a first sample may be of the shell that starts the program. */
function isMeasured({ service }: ServiceRow, now: number): boolean {
  return service.startedAt !== undefined && now - Date.parse(service.startedAt) >= EVENTS.statsIntervalMs;
}

/** When the workload was last used, when it next switches, and what decides that. */
const workloadNote = (workload: Workload, now: number): string =>
  [
    workload.last_activity_at === null ? '' : `active ${sinceText(workload.last_activity_at, now)} ago`,
    nextSwitchText(workload, now),
    whoDecides(workload),
  ]
    .filter(Boolean)
    .join(' · ');

const WIDE = 120;
const NAME_WIDTH_WIDE = 36;
const NOTHING = [''] as const;

const COLUMNS: readonly ListColumn[] = [
  {
    title: 'STATE',
    width: 17,
    from: 30,
    service: ({ service, agent }) => [stateText(service, agent), lookOf(stateOf(service, agent))],
    workload: ({ workload }) => [workloadText(workload), lookOf(workload.state)],
  },
  {
    title: 'PORT',
    width: 5,
    from: 50,
    isRight: true,
    service: ({ service }) => [service.port === null ? '' : String(service.port)],
    workload: () => NOTHING,
  },
  {
    title: 'CPU',
    width: 7,
    from: 60,
    isRight: true,
    service: ({ service }, { usages }) => [cpuText(usages.get(service.name)?.cpu)],
    workload: () => NOTHING,
  },
  {
    title: 'MEMORY',
    width: 8,
    from: 60,
    isRight: true,
    service: (row, { usages, now }) => [
      isMeasured(row, now) ? memoryText(usages.get(row.service.name)?.rssMB) : '',
    ],
    workload: () => NOTHING,
  },
  {
    title: 'UP',
    width: 7,
    from: 70,
    isRight: true,
    service: ({ service }, { now }) => [service.pid === undefined ? '' : sinceText(service.startedAt, now)],
    workload: () => NOTHING,
  },
  {
    title: 'RESTARTS',
    width: 8,
    from: 90,
    isRight: true,
    service: ({ service: { restarts } }) => [restarts === 0 ? '' : String(restarts), 'busy'],
    workload: () => NOTHING,
  },
  {
    title: 'URL OR TITLE',
    width: 0,
    from: WIDE,
    service: ({ service, agent }) => [(agent?.title || shownAddress(service)) ?? '', 'dim'],
    workload: ({ workload }, { now }) => [workloadNote(workload, now), 'dim'],
  },
];

/** Width before the name: the sign of selection, the sign of a mark, the shape of the state, a space. */
const GUTTER = 4;
const GAP = 1;

/** The columns that fit the terminal, with their widths, and the width of the name. */
function widthsOf(columns: number): { name: number; shown: { column: ListColumn; width: number }[] } {
  const shown = COLUMNS.filter(({ from }) => columns >= from);
  const fixed = shown.reduce((sum, { width }) => sum + width + GAP, GUTTER);
  const rest = Math.max(0, columns - fixed);
  const name = columns >= WIDE ? Math.min(NAME_WIDTH_WIDE, rest) : rest;
  return { name, shown: shown.map((column) => ({ column, width: column.width || rest - name })) };
}

function rowPieces(row: ServiceRow | WorkloadRow, model: Model): Piece[] {
  const { name: nameWidth, shown } = widthsOf(model.size.columns);
  const isService = row.kind === 'service';
  const name = isService ? listedName(row.service) : row.workload.name;
  const state = isService ? stateOf(row.service, row.agent) : row.workload.state;
  const cells = shown.flatMap(({ column, width }) => {
    const [text, look] = isService ? column.service(row, model) : column.workload(row, model);
    return [space(GAP), ...cell(text, width, look, column.isRight)];
  });
  const mark = model.marked.has(row.key) ? piece('+', 'key') : piece(' ');
  return [mark, shapeOf(state), piece(' '), ...cell(name, nameWidth), ...cells];
}

function headPieces({ title, note, isFolded }: Extract<UiRow, { kind: 'head' }>, columns: number): Piece[] {
  const left = [piece(isFolded ? '▸ ' : '▾ ', 'dim'), piece(title, 'strong')];
  return justify(left, [piece(`${note} `, 'dim')], columns - 1);
}

const TITLE_LOOK: Look = 'dim';

/** The titles of the columns. */
export function titleLine({ size }: Model): ScreenLine {
  const { name, shown } = widthsOf(size.columns);
  const cells = shown.flatMap(({ column, width }) => [
    space(GAP),
    ...cell(column.title, width, TITLE_LOOK, column.isRight),
  ]);
  return { pieces: [space(GUTTER), ...cell('NAME', name, TITLE_LOOK), ...cells] };
}

function emptyText({ services, filter, connection }: Model): string {
  if (services === null) return 'detail' in connection ? connection.detail : 'Asking the daemon…';
  if (filter !== '') return `Nothing matches ${filter}. Esc ends the filter.`;
  return 'No service is registered. `berth up` starts those of a berth.yaml; `berth add` registers one.';
}

/** The lines of the list. */
export function listLines(model: Model): ScreenLine[] {
  const { rows, top, selected, size } = model;
  if (rows.length === 0)
    return wrapPieces([piece(emptyText(model), 'dim')], size.columns - 2).map((line) => ({
      pieces: [piece(' '), ...line],
    }));
  return rows.slice(top, top + layoutOf(size).bodyRows).map((row) => {
    const isSelected = row.key === selected;
    const mark = piece(isSelected ? '›' : ' ', 'strong');
    const own = row.kind === 'head' ? headPieces(row, size.columns) : rowPieces(row, model);
    return { pieces: [mark, ...own], isSelected };
  });
}
