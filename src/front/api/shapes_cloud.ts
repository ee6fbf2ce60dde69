// What requests to the cloud API must look like, and what they become with every default filled in; and the shapes of its
// answers for the API's document: docs/reference.md "Cloud".

import { type ClusterInput, WORKLOAD_KINDS, WORKLOAD_STATES } from '../../protocol/cloud.ts';
import type { TetherInput } from '../../protocol/tethers.ts';
import { CLOUD, TETHER } from '../../settings/limits.ts';
import { flagField, integerField, objectShape, stringField, validate, z } from './validation.ts';

const CONTROLS = /[\0-\x1f\x7f-\x9f]/;
const plain = (most: number) => (value: string) => value.length <= most && !CONTROLS.test(value);

const NAME_RULE = `must be a string of 1 to ${CLOUD.maxNameLength} characters without controls`;
const PROVIDER_RULE = `must be a string of up to ${CLOUD.maxProviderLength} characters without controls`;
const LABEL_RULE = `must be a string of up to ${TETHER.maxLabelLength} characters without controls`;
const { default: fallback, min, max } = CLOUD.idleMinutes;

const ClusterShape = objectShape({
  name: stringField(NAME_RULE, (value) => value !== '' && plain(CLOUD.maxNameLength)(value)),
  provider: stringField(PROVIDER_RULE, plain(CLOUD.maxProviderLength)).optional(),
  kubeconfig: z
    .string('must be the text of a kubeconfig, raw or in base64')
    .describe('Raw or in strict base64; required unless in_cluster is true')
    .optional(),
  in_cluster: flagField().optional(),
});

const AutoSleepShape = objectShape({
  auto_sleep_enabled: flagField().optional(),
  idle_timeout_minutes: integerField(min, max).optional(),
});

const TetherShape = objectShape({
  container_port: integerField(1, 65_535),
  label: stringField(LABEL_RULE, plain(TETHER.maxLabelLength)).nullable().optional(),
  wake: flagField().optional(),
});

/** Throws invalid_spec, as all of these. */
export function checkCluster(value: unknown): ClusterInput {
  const given = validate(ClusterShape, value);
  return {
    name: given.name,
    provider: given.provider ?? 'other',
    kubeconfig: given.kubeconfig ?? null,
    inCluster: given.in_cluster ?? false,
  };
}

export function checkAutoSleep(value: unknown): { enabled: boolean | null; minutes: number | null } {
  const given = validate(AutoSleepShape, value);
  return { enabled: given.auto_sleep_enabled ?? null, minutes: given.idle_timeout_minutes ?? null };
}

export function checkTether(value: unknown): Omit<TetherInput, 'workloadId'> {
  const given = validate(TetherShape, value);
  return { containerPort: given.container_port, label: given.label ?? null, wake: given.wake ?? true };
}

const id = z.string().describe('A ULID');
const time = z.iso.datetime().describe('RFC 3339, UTC');
const cluster = {
  id,
  name: z.string(),
  provider: z.string(),
  in_cluster: z.boolean(),
  created_at: time,
};
const Cluster = z.object(cluster).meta({ id: 'Cluster' });
const capabilities = z.object({
  sync: z.boolean(),
  watch: z.boolean(),
  sleep: z.boolean(),
  tether: z.boolean(),
  denied: z.array(z.string()).describe('The rights that are missing'),
});
const ClusterDetail = z
  .object({
    ...cluster,
    version: z.string().nullable(),
    reachable: z.boolean().nullable().describe('null: not called since the start'),
    last_sync_at: time.nullable(),
    capabilities: capabilities.nullable(),
  })
  .meta({ id: 'ClusterDetail' });
const autoSleep = {
  auto_sleep_enabled: z.boolean().describe('Default false'),
  idle_timeout_minutes: z.int().describe(`Default ${fallback}`),
};
const Workload = z
  .object({
    id,
    name: z.string(),
    namespace: z.string(),
    kind: z.enum(WORKLOAD_KINDS),
    replicas: z.int(),
    desired_replicas: z.int().nullable().describe('null until a sleep saved one'),
    ...autoSleep,
    last_activity_at: time.nullable(),
    cluster_id: id,
    ready_replicas: z.int(),
    state: z.enum(WORKLOAD_STATES),
    sleep_reason: z.string().nullable(),
  })
  .meta({ id: 'Workload' });
const Tether = z
  .object({
    tether_id: id,
    workload_id: id,
    container_port: z.int(),
    label: z.string().nullable(),
    local_port: z.int().nullable().describe('null after a deactivate'),
    state: z.enum(['idle', 'active']),
    connections: z.int().describe('Open now'),
    bytes_in: z.int().describe('From clients to pods, since the daemon began'),
    bytes_out: z.int().describe('From pods to clients, since the daemon began'),
    last_error: z.string().nullable().describe('Why the last connection that could not be carried was reset'),
  })
  .meta({ id: 'Tether' });
const Replicas = z.object({ replicas: z.int() }).meta({ id: 'Replicas' });

/** By the names that the rows of routes_cloud.ts give. */
export const CLOUD_SHAPES = {
  inputs: {
    ClusterInput: ClusterShape.meta({ id: 'ClusterInput' }),
    AutoSleepInput: AutoSleepShape.meta({ id: 'AutoSleepInput' }),
    TetherInput: TetherShape.meta({ id: 'TetherInput' }),
  },
  answers: {
    ClusterList: z.array(Cluster),
    ClusterDetail,
    ClusterAdded: z.object({ id, name: z.string() }),
    Synced: z.object({ synced: z.int() }),
    RemovedById: z.object({ removed: z.literal(true), id }),
    WorkloadList: z.array(Workload),
    Replicas,
    AutoSleep: z.object(autoSleep).meta({ id: 'AutoSleep' }),
    TetherList: z.array(Tether),
    TetherAdded: z.object({ tether_id: id, local_port: z.int() }),
    TetherActive: z.object({ tether_id: id, local_port: z.int(), state: z.literal('active') }),
    Done: z.object({ ok: z.literal(true) }),
  },
};
