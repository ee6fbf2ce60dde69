// Tethers: the shape of a new tether, docs/reference.md "Tethers", and the answers of the operations.
import { DNS_SUBDOMAIN } from '../adapters/kube/parse_objects.ts';
import type { TetherInput } from '../protocol/tethers.ts';
import { WORKLOAD_KINDS } from '../protocol/workload_kinds.ts';
import { TETHER } from '../settings/cloud_limits.ts';
import { id, milliseconds } from './answer_fields.ts';
import {
  flagField,
  integerField,
  isPlainText,
  objectShape,
  patternField,
  RequestBody,
  stringField,
  validate,
  z,
} from './validation.ts';

const HALF_CLOSED_RULE = `must be milliseconds from 0 to ${TETHER.maxHalfClosedTimeoutMs}`;
const LABEL_RULE = `must be a string of up to ${TETHER.maxLabelLength} characters without controls`;

const TetherShape = objectShape({
  container_port: integerField(1, 65_535),
  label: stringField(LABEL_RULE, (value) => isPlainText(value, TETHER.maxLabelLength))
    .nullable()
    .optional(),
  wake: flagField().optional(),
  pod: patternField('must be the name of a pod', DNS_SUBDOMAIN).nullable().optional(),
  allow_not_ready: flagField().optional(),
  half_closed_timeout: integerField(0, TETHER.maxHalfClosedTimeoutMs, HALF_CLOSED_RULE).optional(),
}).meta({ id: 'TetherInput' });

function parseTether(value: unknown): Omit<TetherInput, 'workloadId'> {
  const given = validate(TetherShape, value);
  return {
    containerPort: given.container_port,
    label: given.label ?? null,
    wake: given.wake ?? true,
    pod: given.pod ?? null,
    allowNotReady: given.allow_not_ready ?? false,
    halfClosedTimeoutMs: given.half_closed_timeout ?? TETHER.halfClosedTimeoutMs,
  };
}

/**
 * `wake`: whether a connection may wake the workload; default true. `pod`: the only pod of a StatefulSet that
 * gets connections. `allow_not_ready`: whether a running pod gets connections while no pod is Ready.
 * `half_closed_timeout`: how long the pod may be silent on a connection that its client has half-closed,
 * until the connection ends (ms).
 */
export type NewTether = z.input<typeof TetherShape>;
export const NewTether = new RequestBody(TetherShape, parseTether);

export type Tether = z.infer<typeof Tether>;
export const Tether = z
  .object({
    tether_id: id,
    workload_id: id,
    workload: z
      .object({ kind: z.enum(WORKLOAD_KINDS), namespace: z.string(), name: z.string() })
      .nullable()
      .describe('null if an earlier version created the tether'),
    container_port: z.int(),
    label: z.string().nullable(),
    local_port: z.int().nullable().describe('null after a deactivate'),
    state: z.enum(['idle', 'active']),
    connections: z.int().describe('Open now'),
    bytes_in: z.int().describe('From clients to pods, since the daemon began'),
    bytes_out: z.int().describe('From pods to clients, since the daemon began'),
    last_error: z
      .string()
      .nullable()
      .describe('Why the last connection was reset; null once a pod has answered another'),
    previous_port: z.int().nullable().describe('The local port that it had until somebody else took that'),
    wake: z.boolean().describe('Whether a connection may wake the workload'),
    pod: z.string().nullable().describe('The only pod that gets connections'),
    allow_not_ready: z.boolean().describe('Whether a running pod will do while none is Ready'),
    half_closed_timeout: milliseconds.describe(
      'Silence of the pod that ends a connection whose client has half-closed (ms)',
    ),
  })
  .meta({ id: 'Tether' });

export const TetherList = z.array(Tether);
export const TetherAdded = z.object({ tether_id: id, local_port: z.int() });
export const TetherActive = z.object({ tether_id: id, local_port: z.int(), state: z.literal('active') });
export const TetherIdle = z.object({ ok: z.literal(true) });
export const TetherRemoved = z.object({ removed: z.literal(true), id });
