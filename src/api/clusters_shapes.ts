// Clusters: the shape of a registration, docs/reference.md "Clusters", and the answers of the operations.
import type { ClusterChange, ClusterInput } from '../protocol/clusters.ts';
import { isNamespace } from '../protocol/names.ts';
import { WORKLOAD_KINDS } from '../protocol/workload_kinds.ts';
import { CLOUD } from '../settings/cloud_limits.ts';
import { id, utcTimeShape } from './answer_fields.ts';
import { flagField, isPlainText, objectShape, RequestBody, stringField, validate, z } from './validation.ts';

const NAME_RULE = `must be a string of 1 to ${CLOUD.maxNameLength} characters without controls`;
const PROVIDER_RULE = `must be a string of up to ${CLOUD.maxProviderLength} characters without controls`;

const NAMESPACES_RULE = `must be a list of at most ${CLOUD.maxNamespaces} names of namespaces`;

const nameField = stringField(NAME_RULE, (value) => value !== '' && isPlainText(value, CLOUD.maxNameLength));
const providerField = stringField(PROVIDER_RULE, (value) => isPlainText(value, CLOUD.maxProviderLength));
const kubeconfigField = z
  .string('must be the text of a kubeconfig, raw or in base64')
  .describe('Raw or in base64; a new cluster needs it unless in_cluster is true');
const namespacesField = z
  .array(stringField('must be the name of a namespace', isNamespace), NAMESPACES_RULE)
  .max(CLOUD.maxNamespaces, NAMESPACES_RULE)
  .describe('The only namespaces that are listed and watched; empty: all that the account may list');

const renewTokenField = flagField().describe(
  "Berth renews the token of the kubeconfig, which is a ServiceAccount's, before it ends",
);

const ClusterShape = objectShape({
  name: nameField,
  provider: providerField.optional(),
  kubeconfig: kubeconfigField.optional(),
  in_cluster: flagField().optional(),
  namespaces: namespacesField.optional(),
  renew_token: renewTokenField.optional(),
}).meta({ id: 'ClusterInput' });

const ClusterChangeShape = objectShape({
  name: nameField.optional(),
  provider: providerField.optional(),
  kubeconfig: kubeconfigField.optional(),
  namespaces: namespacesField.optional(),
  renew_token: renewTokenField.optional(),
}).meta({ id: 'ClusterChangeInput' });

function parseCluster(value: unknown): ClusterInput {
  const given = validate(ClusterShape, value);
  return {
    name: given.name,
    provider: given.provider ?? 'other',
    kubeconfig: given.kubeconfig ?? null,
    inCluster: given.in_cluster ?? false,
    namespaces: [...new Set(given.namespaces)],
    renewToken: given.renew_token ?? false,
  };
}

function parseClusterChange(value: unknown): ClusterChange {
  const { name = null, provider = null, kubeconfig = null, ...more } = validate(ClusterChangeShape, value);
  const namespaces = more.namespaces ? [...new Set(more.namespaces)] : null;
  return { name, provider, kubeconfig, namespaces, renewToken: more.renew_token ?? false };
}

export type NewCluster = z.input<typeof ClusterShape>;
export const NewCluster = new RequestBody(ClusterShape, parseCluster);

/** The fields of a cluster to change; absent fields stay unchanged. */
export type ClusterUpdate = z.input<typeof ClusterChangeShape>;
export const ClusterUpdate = new RequestBody(ClusterChangeShape, parseClusterChange);

const cluster = {
  id,
  name: z.string(),
  provider: z.string(),
  in_cluster: z.boolean(),
  created_at: utcTimeShape,
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

const scope = z.object({
  kind: z.enum(WORKLOAD_KINDS),
  namespaces: z.array(z.string()).nullable().describe('null: all'),
});

const tokenRenewal = z.object({
  namespace: z.string(),
  service_account: z.string(),
  uid: z.string(),
  due_at: utcTimeShape.describe('When the token is renewed'),
  last_error: z.string().nullable().describe('Why the last attempt has failed'),
});

/** A cluster as the read of a single cluster returns it. */
export type ClusterDetail = z.infer<typeof ClusterDetail>;
export const ClusterDetail = z
  .object({
    ...cluster,
    version: z.string().nullable(),
    reachable: z.boolean().nullable().describe('null: not called since the start'),
    reason: z
      .string()
      .nullable()
      .describe(
        'Why it is unreachable or refuses the account; null: neither applies, or the token may not see it',
      ),
    last_sync_at: utcTimeShape.nullable(),
    capabilities: capabilities.nullable(),
    authenticated: z.boolean().nullable().describe('Whether the cluster accepts the account'),
    authenticated_since: utcTimeShape.nullable().describe('Since when that is so'),
    credentials_expire_at: utcTimeShape.nullable().describe('The end of the certificate or token, if known'),
    server: z
      .string()
      .nullable()
      .describe("Address of its API server; null: it is the pod's own cluster, or the token may not see it"),
    namespaces: z.array(z.string()).describe('As registered'),
    scope: z.array(scope).nullable().describe('What is listed and watched; null: never synced'),
    token_renewal: tokenRenewal.nullable().describe('null: its token is not renewed, or it has none'),
  })
  .meta({ id: 'ClusterDetail' });

export const ClusterAdded = z.object({ id, name: z.string() });
export const ClusterChanged = z.object({ id, name: z.string() });
export const ClusterRemoved = z.object({ removed: z.literal(true), id });
const clusterRight = z
  .object({
    namespace: z.string().nullable().describe('null: all namespaces'),
    verb: z.string(),
    resource: z.string().describe('As in deployments.apps or pods/portforward'),
    allowed: z.boolean(),
    optional: z.boolean().describe('Things go without it'),
    without: z.string().describe('What is lost without it'),
  })
  .meta({ id: 'ClusterRight' });

/** The rights that Berth uses, and whether the account has each. */
export type ClusterRights = z.infer<typeof ClusterRights>;
export const ClusterRights = z.object({ rights: z.array(clusterRight) });

export const Synced = z.object({ synced: z.int() });
