// berth k8s grants ls, add, rm
import type { Grant } from '../../client/records.ts';
import { ROLES } from '../../protocol/grants.ts';
import { actionIn, defineCommand } from '../kit/command.ts';
import { UsageError } from '../kit/exit_codes.ts';
import { grantTo, scopeOptions } from '../kit/grant_scopes.ts';
import type { Column } from '../kit/output.ts';

const ACTIONS = ['ls', 'add', 'rm'] as const;

const grantee = ({ token, user, group }: Grant): string | null =>
  user !== null ? `user:${user}` : group !== null ? `group:${group}` : token;

const COLUMNS: readonly Column<Grant>[] = [
  { title: 'ID', cell: ({ id }) => id },
  { title: 'FOR', cell: grantee, canShrink: true },
  { title: 'ROLE', cell: ({ role }) => role },
  { title: 'CLUSTER', cell: ({ cluster, cluster_id }) => cluster ?? cluster_id ?? 'all' },
  { title: 'NAMESPACE', cell: ({ namespace }) => namespace ?? 'all' },
  { title: 'SELECTOR', cell: ({ selector }) => selector, canShrink: true },
];

export const grantsCommand = defineCommand({
  about:
    'A grant gives an API token, or a person or group of the issuer, a role: viewer (see), waker (also wake and tether), sleeper (also put to ' +
    'sleep), operator (both, and settings, policies and syncs) or admin (clusters, tokens and grants too). ' +
    'Without --cluster it is for all clusters, without -n for all namespaces.',
  args: [
    { syntax: '<action>', about: ACTIONS.join(', '), completes: ACTIONS },
    {
      syntax: '[name]',
      about: 'add: a token, or user:<name> or group:<name> of the issuer; rm: the id of the grant',
    },
    { syntax: '[role]', about: `add: ${ROLES.join(', ')}`, completes: ROLES },
  ],
  options: scopeOptions('add: '),
  examples: [
    ['berth k8s grants add ci sleeper --cluster dev -n shop,web', 'ci may put two namespaces to sleep'],
  ],
  run: async (context, [word, name, role], given) => {
    const action = actionIn(ACTIONS, word);
    const { out } = context;
    const client = await context.client();
    if (action === 'ls') {
      out.rows(await client.cloud.grants(), COLUMNS, 'There are no grants. `berth k8s grants add` adds one.');
      return;
    }
    if (action === 'add') {
      if (name === undefined || role === undefined)
        throw new UsageError('name whom and the role: berth k8s grants add <token> <role>');
      for (const wanted of await grantTo(client, name, role, given)) {
        const made = await client.cloud.createGrant(wanted);
        out.record(made, () => `${name} is ${role}: grant ${made.id}`);
      }
    } else {
      if (name === undefined) throw new UsageError('name the grant by its id: berth k8s grants rm <id>');
      out.record(await client.cloud.removeGrant(name), () => `${name} is removed`);
    }
  },
});
