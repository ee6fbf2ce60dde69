// Clusters: the shape of a registration, docs/reference.md "Clusters", and the answers of the operations.
import type { ClusterInput } from '../protocol/cloud.ts';
import { CLOUD } from '../settings/limits.ts';
import { id, utcTime } from './answer_fields.ts';
import { flagField, isPlainText, objectShape, RequestBody, stringField, validate, z } from './validation.ts';

const NAME_RULE = `must be a string of 1 to ${CLOUD.maxNameLength} characters without controls`;
const PROVIDER_RULE = `must be a string of up to ${CLOUD.maxProviderLength} characters without controls`;

const ClusterShape = objectShape({
  name: stringField(NAME_RULE, (value) => value !== '' && isPlainText(value, CLOUD.maxNameLength)),
  provider: stringField(PROVIDER_RULE, (value) => isPlainText(value, CLOUD.maxProviderLength)).optional(),
  kubeconfig: z
    .string('must be the text of a kubeconfig, raw or in base64')
    .describe('Raw or in strict base64; required unless in_cluster is true')
    .optional(),
  in_cluster: flagField().optional(),
}).meta({ id: 'ClusterInput' });

function parseCluster(value: unknown): ClusterInput {
  const given = validate(ClusterShape, value);
  return {
    name: given.name,
    provider: given.provider ?? 'other',
    kubeconfig: given.kubeconfig ?? null,
    inCluster: given.in_cluster ?? false,
  };
}

export type NewCluster = z.input<typeof ClusterShape>;
export const NewCluster = new RequestBody(ClusterShape, parseCluster);

const cluster = {
  id,
  name: z.string(),
  provider: z.string(),
  in_cluster: z.boolean(),
  created_at: utcTime,
};

/** A cluster in the list. */
export type Cluster = z.infer<typeof Cluster>;
export const Cluster = z.object(cluster).meta({ id: 'Cluster' });

export const ClusterList = z.array(Cluster);

const capabilities = z.object({
  sync: z.boolean(),
  watch: z.boolean(),
  sleep: z.boolean(),
  tether: z.boolean(),
  denied: z.array(z.string()).describe('The rights that are missing'),
});

/** A cluster read on its own. */
export type ClusterDetail = z.infer<typeof ClusterDetail>;
export const ClusterDetail = z
  .object({
    ...cluster,
    version: z.string().nullable(),
    reachable: z.boolean().nullable().describe('null: not called since the start'),
    last_sync_at: utcTime.nullable(),
    capabilities: capabilities.nullable(),
  })
  .meta({ id: 'ClusterDetail' });

export const ClusterAdded = z.object({ id, name: z.string() });
export const ClusterRemoved = z.object({ removed: z.literal(true), id });
export const Synced = z.object({ synced: z.int() });
