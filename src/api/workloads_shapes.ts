// Workloads: the shape of an auto-sleep change, docs/reference.md "Auto-sleep", and the answers of the
// operations.
import { BULK_OUTCOMES, type BulkChange } from '../protocol/cloud.ts';
import { fail } from '../protocol/errors.ts';
import { isNamespace } from '../protocol/names.ts';
import { WORKLOAD_KINDS, WORKLOAD_STATES } from '../protocol/workload_kinds.ts';
import { CLOUD } from '../settings/cloud_limits.ts';
import { HTTP } from '../settings/limits.ts';
import { id, utcTimeShape } from './answer_fields.ts';
import { WorkloadPolicyShape } from './policies_shapes.ts';
import { flagField, integerField, objectShape, RequestBody, stringField, validate, z } from './validation.ts';

const { default: defaultMinutes, min, max } = CLOUD.idleMinutes;

const AutoSleepShape = objectShape({
  auto_sleep_enabled: flagField().optional(),
  idle_timeout_minutes: integerField(min, max).optional(),
}).meta({ id: 'AutoSleepInput' });

function parseAutoSleep(value: unknown): { enabled: boolean | null; minutes: number | null } {
  const given = validate(AutoSleepShape, value);
  return { enabled: given.auto_sleep_enabled ?? null, minutes: given.idle_timeout_minutes ?? null };
}

/** The auto-sleep settings to change; absent settings stay unchanged. */
export type AutoSleepChange = z.input<typeof AutoSleepShape>;
export const AutoSleepChange = new RequestBody(AutoSleepShape, parseAutoSleep);

const NAMESPACES_RULE = `must be a list of 1 to ${CLOUD.maxNamespaces} names of namespaces`;

/** The fields that a bulk sleep and a bulk wake share: they select the workloads. */
const selection = {
  selector: z
    .string('must be a label selector, such as app=web')
    .describe('A label selector, as in Kubernetes')
    .optional(),
  cluster_id: z.string('must be the id of a cluster').describe('Only those of this cluster').optional(),
  namespaces: z
    .array(stringField('must be the name of a namespace', isNamespace), NAMESPACES_RULE)
    .min(1, NAMESPACES_RULE)
    .max(CLOUD.maxNamespaces, NAMESPACES_RULE)
    .describe('Only those of these namespaces')
    .optional(),
  dry_run: flagField().describe('true: nothing is changed; default false').optional(),
};

const hold = integerField(0, HTTP.maxQueryDurationMs)
  .describe('For so long (ms) no connection through a tether wakes them; default 0')
  .optional();

const BulkWakeShape = objectShape(selection).meta({ id: 'BulkWakeInput' });
const BulkSleepShape = objectShape({ ...selection, hold }).meta({ id: 'BulkSleepInput' });

/** An empty body is refused, because it would put every workload of every cluster to sleep. */
const UNSELECTED = 'must be given, or cluster_id, or namespaces: nothing else says which workloads are meant';

const isUnselected = ({ selector, cluster_id, namespaces }: BulkWake): boolean =>
  selector === undefined && cluster_id === undefined && namespaces === undefined;

function parseBulk(given: BulkSleep): BulkInput {
  if (isUnselected(given))
    throw fail('invalid_spec', `selector ${UNSELECTED}`, {
      details: [{ path: 'selector', message: `selector ${UNSELECTED}` }],
    });
  return {
    clusterId: given.cluster_id ?? null,
    namespaces: given.namespaces ?? null,
    states: null,
    selector: given.selector ?? null,
    holdMs: given.hold ?? null,
    isDryRun: given.dry_run ?? false,
  };
}

/** A requested sleep or wake of many workloads. */
export type BulkInput = Omit<BulkChange, 'to'>;
export type BulkSleep = z.input<typeof BulkSleepShape>;
export type BulkWake = z.input<typeof BulkWakeShape>;
export const BulkSleep = new RequestBody(BulkSleepShape, (value) =>
  parseBulk(validate(BulkSleepShape, value)),
);
export const BulkWake = new RequestBody(BulkWakeShape, (value) => parseBulk(validate(BulkWakeShape, value)));

const autoSleep = {
  auto_sleep_enabled: z.boolean().describe('Default false'),
  idle_timeout_minutes: z.int().describe(`Default ${defaultMinutes}`),
};

export type AutoSleepSettings = z.infer<typeof AutoSleepSettings>;
export const AutoSleepSettings = z.object(autoSleep).meta({ id: 'AutoSleep' });

export type Workload = z.infer<typeof Workload>;
export const Workload = z
  .object({
    id,
    name: z.string(),
    namespace: z.string(),
    kind: z.enum(WORKLOAD_KINDS),
    replicas: z.int(),
    desired_replicas: z.int().nullable().describe('null until a count to wake it with is known'),
    ...autoSleep,
    last_activity_at: utcTimeShape.nullable(),
    cluster_id: id,
    ready_replicas: z.int(),
    state: z.enum(WORKLOAD_STATES),
    sleep_reason: z.string().nullable(),
    wake_reason: z.string().nullable().describe('Who woke it; null: nobody through Berth'),
    stale_since: utcTimeShape.nullable().describe('From when on changes may be missing; null: it is current'),
    policy: WorkloadPolicyShape.nullable().describe('What governs its sleep; null: its own auto-sleep alone'),
    after: z
      .object({
        workloads: z.array(z.string()).readonly().describe('As the annotation berth/after names them'),
        faults: z.array(z.string()).readonly().describe('What is wrong with the names; it holds up nothing'),
      })
      .nullable()
      .describe('What it is woken after; null: nothing'),
    managed_by: z
      .array(
        z.object({
          tool: z.string().describe('Such as Argo CD, or HorizontalPodAutoscaler web'),
          settings: z.string().describe('With which it leaves a sleep alone'),
        }),
      )
      .readonly()
      .describe('Other tools that give it replicas'),
  })
  .meta({ id: 'Workload' });

export type WorkloadDetail = z.infer<typeof WorkloadDetail>;
export const WorkloadDetail = Workload.extend({
  labels: z.record(z.string(), z.string()),
}).meta({ id: 'WorkloadDetail' });

export type BulkAnswer = z.infer<typeof BulkAnswer>;
export const BulkAnswer = z
  .object({
    dry_run: z.boolean(),
    results: z.array(
      z.object({
        id,
        cluster_id: id,
        namespace: z.string(),
        name: z.string(),
        kind: z.enum(WORKLOAD_KINDS),
        outcome: z.enum(BULK_OUTCOMES),
        replicas: z.int().nullable().describe('Afterwards; null where the change failed'),
        code: z.string().nullable().describe('Of what failed'),
        message: z.string().nullable(),
      }),
    ),
  })
  .meta({ id: 'BulkAnswer' });

export const WorkloadList = z.array(Workload);
export const Replicas = z.object({ replicas: z.int() }).meta({ id: 'Replicas' });
export const CloudMetricsText = z.string();
