// Workloads: the shape of an auto-sleep change, docs/reference.md "Auto-sleep", and the answers of the
// operations.
import { WORKLOAD_KINDS, WORKLOAD_STATES } from '../protocol/cloud.ts';
import { CLOUD } from '../settings/cloud_limits.ts';
import { id, utcTimeShape } from './answer_fields.ts';
import { flagField, integerField, objectShape, RequestBody, validate, z } from './validation.ts';

const { default: defaultMinutes, min, max } = CLOUD.idleMinutes;

const AutoSleepShape = objectShape({
  auto_sleep_enabled: flagField().optional(),
  idle_timeout_minutes: integerField(min, max).optional(),
}).meta({ id: 'AutoSleepInput' });

function parseAutoSleep(value: unknown): { enabled: boolean | null; minutes: number | null } {
  const given = validate(AutoSleepShape, value);
  return { enabled: given.auto_sleep_enabled ?? null, minutes: given.idle_timeout_minutes ?? null };
}

/** Settings of auto-sleep to change; absent ones stay unchanged. */
export type AutoSleepChange = z.input<typeof AutoSleepShape>;
export const AutoSleepChange = new RequestBody(AutoSleepShape, parseAutoSleep);

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
    desired_replicas: z.int().nullable().describe('null until a sleep saved one'),
    ...autoSleep,
    last_activity_at: utcTimeShape.nullable(),
    cluster_id: id,
    ready_replicas: z.int(),
    state: z.enum(WORKLOAD_STATES),
    sleep_reason: z.string().nullable(),
    wake_reason: z.string().nullable().describe('Who woke it; null: nobody through Berth'),
    stale_since: utcTimeShape.nullable().describe('From when on changes may be missing; null: it is current'),
  })
  .meta({ id: 'Workload' });

export type WorkloadDetail = z.infer<typeof WorkloadDetail>;
export const WorkloadDetail = Workload.extend({
  labels: z.record(z.string(), z.string()),
}).meta({ id: 'WorkloadDetail' });

export const WorkloadList = z.array(Workload);
export const Replicas = z.object({ replicas: z.int() }).meta({ id: 'Replicas' });
export const CloudMetricsText = z.string();
