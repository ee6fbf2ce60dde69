// Tethers: the shape of a new one, docs/reference.md "Tethers", and the answers of the operations.
import type { TetherInput } from '../protocol/tethers.ts';
import { TETHER } from '../settings/cloud_limits.ts';
import { id } from './answer_fields.ts';
import {
  flagField,
  integerField,
  isPlainText,
  objectShape,
  RequestBody,
  stringField,
  validate,
  z,
} from './validation.ts';

const LABEL_RULE = `must be a string of up to ${TETHER.maxLabelLength} characters without controls`;

const TetherShape = objectShape({
  container_port: integerField(1, 65_535),
  label: stringField(LABEL_RULE, (value) => isPlainText(value, TETHER.maxLabelLength))
    .nullable()
    .optional(),
  wake: flagField().optional(),
}).meta({ id: 'TetherInput' });

function parseTether(value: unknown): Omit<TetherInput, 'workloadId'> {
  const given = validate(TetherShape, value);
  return { containerPort: given.container_port, label: given.label ?? null, wake: given.wake ?? true };
}

/** `wake`: whether a connection may wake the workload; default true. */
export type NewTether = z.input<typeof TetherShape>;
export const NewTether = new RequestBody(TetherShape, parseTether);

export type Tether = z.infer<typeof Tether>;
export const Tether = z
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
    previous_port: z.int().nullable().describe('The local port that it had until somebody else took that'),
  })
  .meta({ id: 'Tether' });

export const TetherList = z.array(Tether);
export const TetherAdded = z.object({ tether_id: id, local_port: z.int() });
export const TetherActive = z.object({ tether_id: id, local_port: z.int(), state: z.literal('active') });
export const TetherIdle = z.object({ ok: z.literal(true) });
export const TetherRemoved = z.object({ removed: z.literal(true), id });
