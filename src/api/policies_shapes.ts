// Policies: the shape of a policy, and the answers of the operations. docs/reference.md "Policies".

import { selectorFault } from '../protocol/labels.ts';
import { isNamespace } from '../protocol/names.ts';
import type { PolicyInput } from '../protocol/policies.ts';
import {
  dayNumber,
  isTimeZone,
  parseWindow,
  type SleepException,
  type SleepWindow,
} from '../protocol/sleep_windows.ts';
import { WORKLOAD_KINDS, WORKLOAD_STATES } from '../protocol/workload_kinds.ts';
import { CLOUD, POLICY } from '../settings/cloud_limits.ts';
import { id, utcTimeShape } from './answer_fields.ts';
import {
  type InvalidField,
  integerField,
  objectShape,
  RequestBody,
  stringField,
  validate,
  z,
} from './validation.ts';

const { maxList } = POLICY;
const { min, max } = CLOUD.idleMinutes;

/** A list of 1 to POLICY.maxList elements. */
const listField = <T extends z.ZodType>(element: T, of: string) => {
  const rule = `must be a list of 1 to ${maxList} ${of}`;
  return z.array(element, rule).min(1, rule).max(maxList, rule).describe(rule);
};

const date = stringField('must be a date such as 2026-12-24', (value) => dayNumber(value) !== null);
const STATES = ['asleep', 'awake'] as const;

const ExceptionShape = objectShape({
  from: date,
  to: date.describe('The last day; default: the first').optional(),
  state: z.enum(STATES, 'must be asleep or awake').describe('All of these days'),
});

const PolicyShape = objectShape(
  {
    selector: objectShape({
      cluster_ids: listField(stringField('must be the id of a cluster'), 'ids of clusters').optional(),
      namespaces: listField(
        stringField('must be the name of a namespace', isNamespace),
        'names of namespaces',
      ).optional(),
      labels: z
        .string('must be a label selector, such as app=web')
        .describe('A label selector, as in Kubernetes')
        .optional(),
    }).describe('Which workloads: all that pass everything that is given, at least one of the three'),
    idle_timeout_minutes: integerField(min, max)
      .describe('Asleep when unused for so long')
      .nullable()
      .optional(),
    windows: listField(z.string('must be a text'), 'windows')
      .describe('When they are asleep, such as "Mon-Fri 20:00-07:00", "weekends" or "22:00-06:00"')
      .optional(),
    timezone: stringField('must be a time zone such as Europe/Berlin', isTimeZone)
      .describe('Of windows and exceptions; default UTC')
      .optional(),
    exceptions: listField(ExceptionShape, 'exceptions')
      .describe('Days on which the windows do not count')
      .optional(),
    awake_until: z.iso
      .datetime({ offset: true, error: 'must be a time such as 2026-12-24T18:00:00+01:00' })
      .describe('Until then nothing of this puts them to sleep')
      .nullable()
      .optional(),
  },
  ['name', 'updated_at', 'selected', 'decided', 'warning'],
).meta({ id: 'PolicyInput' });

/** A policy as a client sends it. */
export type PolicyBody = z.input<typeof PolicyShape>;

const fault = (path: string, must: string): InvalidField => ({ path, message: `${path} ${must}` });

function selectorFaults({ labels, cluster_ids, namespaces }: PolicyBody['selector']): InvalidField[] {
  if (labels === undefined)
    return cluster_ids || namespaces
      ? []
      : [fault('selector', 'must have cluster_ids, namespaces or labels: nothing else says which are meant')];
  const wrong = selectorFault(labels);
  return wrong === null ? [] : [fault('selector.labels', wrong)];
}

/** The parsed windows, and a fault for each text that is not a window. */
function windowsOf(texts: readonly string[]): { windows: SleepWindow[]; faults: InvalidField[] } {
  const windows: SleepWindow[] = [];
  const faults: InvalidField[] = [];
  for (const [index, text] of texts.entries()) {
    const window = parseWindow(text);
    if (typeof window === 'string') faults.push(fault(`windows.${index}`, `must ${window}`));
    else windows.push(window);
  }
  return { windows, faults };
}

function exceptionsOf(given: PolicyBody['exceptions'] = []): {
  exceptions: SleepException[];
  faults: InvalidField[];
} {
  const exceptions = given.map(({ from, to = from, state }) => ({ from, to, state }));
  const faults = exceptions.flatMap(({ from, to }, index) =>
    from > to ? [fault(`exceptions.${index}.to`, 'must not be before from')] : [],
  );
  return { exceptions, faults };
}

function parsePolicy(value: unknown): PolicyInput {
  const given = validate(PolicyShape, value);
  const { selector, idle_timeout_minutes: idleMinutes = null, timezone = 'UTC', awake_until } = given;
  const { windows, faults } = windowsOf(given.windows ?? []);
  const { exceptions, faults: dates } = exceptionsOf(given.exceptions);
  const awakeUntil = awake_until ? Date.parse(awake_until) : null;
  const isScheduled = windows.length > 0 || exceptions.length > 0;
  const isEmpty = !isScheduled && faults.length === 0 && idleMinutes === null && awakeUntil === null;
  const empty = isEmpty
    ? [
        fault(
          'windows',
          'must be given, or exceptions, idle_timeout_minutes or awake_until: this does nothing',
        ),
      ]
    : [];
  validate(PolicyShape, value, [...selectorFaults(selector), ...faults, ...dates, ...empty]);
  return {
    selector: {
      clusterIds: selector.cluster_ids ?? null,
      namespaces: selector.namespaces ?? null,
      labels: selector.labels ?? null,
    },
    idleMinutes,
    schedule: isScheduled ? { windows, exceptions, timezone } : null,
    windows: given.windows ?? [],
    awakeUntil,
  };
}

export const PolicyBody = new RequestBody(PolicyShape, parsePolicy);

const exception = z.object({ from: z.string(), to: z.string(), state: z.enum(STATES) });

export type Policy = z.infer<typeof Policy>;
export const Policy = z
  .object({
    name: z.string(),
    selector: z.object({
      cluster_ids: z.array(id).optional(),
      namespaces: z.array(z.string()).optional(),
      labels: z.string().optional(),
    }),
    idle_timeout_minutes: z.int().nullable(),
    windows: z.array(z.string()).optional().describe('Absent: none'),
    timezone: z.string(),
    exceptions: z.array(exception).optional().describe('Absent: none'),
    awake_until: utcTimeShape.nullable(),
    updated_at: utcTimeShape,
    selected: z.int().describe('Workloads that its selector has'),
    decided: z.int().describe('Those of them on which nothing nearer decides'),
    warning: z.string().nullable().describe('That it selects nothing, or decides on nothing'),
  })
  .meta({ id: 'Policy' });

export const PolicyList = z.array(Policy);
export const PolicyRemoved = z.object({ removed: z.literal(true), name: z.string() });

const sleepSwitch = z.object({ at: utcTimeShape, to: z.enum(STATES) });

export type WorkloadPolicyShape = z.infer<typeof WorkloadPolicyShape>;
export const WorkloadPolicyShape = z
  .object({
    schedule: z
      .string()
      .nullable()
      .describe('Who decides on its windows: policy:<name>, annotation:workload, annotation:namespace'),
    idle: z.string().nullable().describe('Who decides on its sleep when unused; also auto-sleep'),
    idle_timeout_minutes: z.int().nullable(),
    excluded_by: z.string().nullable().describe('The annotation that rules out both'),
    awake_until: utcTimeShape.nullable(),
    next_switch: sleepSwitch.nullable(),
    faults: z
      .array(z.string())
      .describe('What is wrong with annotations, which then do nothing; why it is left alone'),
  })
  .meta({ id: 'WorkloadPolicy' });

export type PolicyPreview = z.infer<typeof PolicyPreview>;
export const PolicyPreview = z
  .object({
    name: z.string(),
    selected: z.int(),
    warning: z.string().nullable(),
    workloads: z.array(
      z.object({
        id,
        cluster_id: id,
        namespace: z.string(),
        name: z.string(),
        kind: z.enum(WORKLOAD_KINDS),
        state: z.enum(WORKLOAD_STATES),
        policy: WorkloadPolicyShape.nullable(),
        switches: z.array(sleepSwitch),
      }),
    ),
  })
  .meta({ id: 'PolicyPreview' });
