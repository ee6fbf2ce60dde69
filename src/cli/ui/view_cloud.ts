// Renders workloads and policies as lines.
import type { Policy, Workload } from '../../client/records.ts';
import { spanText } from '../../presentation/format.ts';
import { nextSwitchText, policySelects, policyWindows, whoDecides } from '../../presentation/policy_text.ts';
import type { Model, View } from './model.ts';
import { shapeOf, workloadText } from './state_marks.ts';
import { cell, type Piece, piece, type ScreenLine, spaced, widthOf, wrapPieces } from './styled_line.ts';

const TITLE_WIDTH = 14;
/** The number of next switches shown for each policy. */
const SWITCHES_SHOWN = 10;

type Fact = readonly [title: string, text: string];

/** `head` followed by `pieces`, wrapped; continuation lines are indented to the width of `head`. */
export function wrapped(head: readonly Piece[], pieces: readonly Piece[], columns: number): ScreenLine[] {
  const indent = Math.min(widthOf(head), Math.floor(columns / 2));
  return wrapPieces(pieces, columns - indent).map((line, at) => ({
    pieces: [...(at === 0 ? head : cell('', indent)), ...line],
  }));
}

const factLines = (facts: readonly Fact[], columns: number): ScreenLine[] =>
  facts
    .filter(([, text]) => text !== '')
    .flatMap(([title, text]) =>
      wrapped([piece(' '), ...cell(title, TITLE_WIDTH, 'dim'), piece(' ')], [piece(text)], columns),
    );

function workloadFacts(workload: Workload, now: number): Fact[] {
  const { policy, last_activity_at: usedAt, desired_replicas: saved } = workload;
  return [
    ['kind', workload.kind],
    ['cluster', workload.cluster_id],
    ['replicas', `${workload.ready_replicas} of ${workload.replicas} ready`],
    ['wakes with', saved === null ? '' : String(saved)],
    ['last used', usedAt === null ? 'never seen' : `${spanText(now - Date.parse(usedAt))} ago`],
    ['auto-sleep', workload.auto_sleep_enabled ? `after ${workload.idle_timeout_minutes} min` : 'off'],
    ['decides', whoDecides(workload)],
    ['next', nextSwitchText(workload, now)],
    ['awake until', policy?.awake_until ?? ''],
    ['warnings', policy?.faults.join('; ') ?? ''],
    ['asleep by', workload.sleep_reason ?? ''],
    ['woken by', workload.wake_reason ?? ''],
    ...workload.managed_by.map(
      ({ tool, settings }): Fact => ['managed by', `${tool}. To let it sleep: ${settings}`],
    ),
    ['stale since', workload.stale_since ?? ''],
  ];
}

/** The lines of a workload. */
export function workloadLines({ id }: Extract<View, { kind: 'workload' }>, model: Model): ScreenLine[] {
  const workload = model.workloads.find((one) => one.id === id);
  if (!workload) return [{ pieces: [piece(' It is not in the cluster any more.', 'bad')] }];
  const { name, namespace, state } = workload;
  return [
    {
      pieces: [
        piece(' '),
        ...spaced([shapeOf(state), piece(`${namespace}/${name}`, 'strong'), piece(workloadText(workload))]),
      ],
    },
    { pieces: [] },
    ...factLines(workloadFacts(workload, model.now), model.size.columns),
  ];
}

/** The workloads whose sleep windows a policy decides, in the order of their next switches. */
function nextOf({ name }: Policy, { workloads }: Model): Workload[] {
  const timeOf = ({ policy }: Workload): number =>
    policy?.next_switch ? Date.parse(policy.next_switch.at) : Number.POSITIVE_INFINITY;
  return workloads
    .filter((workload) => whoDecides(workload) === `policy:${name}`)
    .sort((one, other) => timeOf(one) - timeOf(other) || 0);
}

function policyLines(policy: Policy, model: Model): ScreenLine[] {
  const { name, selected, decided, warning, idle_timeout_minutes: minutes } = policy;
  const { columns } = model.size;
  const own = nextOf(policy, model);
  const more = own.length - SWITCHES_SHOWN;
  return [
    { pieces: [piece(` ${name}`, 'strong')] },
    ...(warning === null ? [] : wrapped([piece(' ')], [piece(warning, 'bad')], columns)),
    ...factLines(
      [
        ['selects', policySelects(policy)],
        ['asleep', policyWindows(policy)],
        ['when unused', minutes === null ? '' : `${minutes} min`],
        ['decides on', `${decided} of ${selected}`],
      ],
      columns,
    ),
    ...own.slice(0, SWITCHES_SHOWN).map(
      (workload): ScreenLine => ({
        pieces: [
          piece('   '),
          ...spaced([
            shapeOf(workload.state),
            piece(`${workload.namespace}/${workload.name}`),
            piece(nextSwitchText(workload, model.now), 'dim'),
          ]),
        ],
      }),
    ),
    ...(more > 0 ? [{ pieces: [piece(`   and ${more} more`, 'dim')] }] : []),
    { pieces: [] },
  ];
}

/** The lines of all policies. */
export function policiesLines(
  { policies, trouble }: Extract<View, { kind: 'policies' }>,
  model: Model,
): ScreenLine[] {
  const { columns } = model.size;
  if (trouble !== '') return wrapped([piece(' ')], [piece(trouble, 'bad')], columns);
  if (policies === null) return [{ pieces: [piece(' Reading…', 'dim')] }];
  const none = 'No policy. `berth k8s policy set` makes one: it says when workloads sleep by themselves.';
  if (policies.length === 0) return wrapped([piece(' ')], [piece(none, 'dim')], columns);
  return policies.flatMap((policy) => policyLines(policy, model));
}
