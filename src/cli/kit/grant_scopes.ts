// The options of the command line for the scope of a grant.
import type { Client } from '../../client/create_client.ts';
import type { NewGrant } from '../../client/records.ts';
import { ROLES } from '../../protocol/grants.ts';
import { listOption, textOption } from './command.ts';
import { UsageError } from './exit_codes.ts';
import { findCluster } from './k8s_lookup.ts';

/** The options of `grantTo`; `when` begins the description of each. */
export const scopeOptions = (when: string) => ({
  cluster: textOption('--cluster <cluster>', `${when}for this cluster alone; default: all`, 'cluster'),
  namespace: listOption('-n, --namespace <names>', `${when}for these namespaces alone; default: all`),
  selector: textOption('-l, --selector <selector>', `${when}for what has these labels, as app=web`),
});

interface GivenScope {
  cluster: string | undefined;
  namespace: readonly string[];
  selector: string | undefined;
}

/** The grantee that `name` denotes: a token, or `user:` or `group:` followed by the issuer's name. */
function granteeOf(name: string): Pick<NewGrant, 'token' | 'user' | 'group'> {
  const [, kind, rest = ''] = /^(user|group):(.*)$/.exec(name) ?? [];
  if (kind === 'user') return { user: rest };
  return kind === 'group' ? { group: rest } : { token: name };
}

/** The grants of `role` to `token` (see `granteeOf`), one per namespace. Throws UsageError, CommandError. */
export async function grantTo(
  client: Client,
  token: string,
  role: string,
  { cluster, namespace, selector }: GivenScope,
): Promise<NewGrant[]> {
  const known = ROLES.find((one) => one === role);
  if (!known) throw new UsageError(`${role} is none of ${ROLES.join(', ')}`);
  const cluster_id = cluster === undefined ? null : (await findCluster(client, cluster)).id;
  const namespaces = namespace.length > 0 ? [...new Set(namespace)] : [null];
  return namespaces.map((one) => ({
    ...granteeOf(token),
    ...{ role: known, cluster_id, namespace: one, selector: selector ?? null },
  }));
}
