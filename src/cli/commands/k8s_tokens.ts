// berth k8s tokens ls, create, revoke
import type { ApiToken } from '../../client/records.ts';
import { ROLES } from '../../protocol/grants.ts';
import { localTime } from '../../protocol/timestamps.ts';
import { actionIn, defineCommand, durationOption, textOption } from '../kit/command.ts';
import type { CommandContext } from '../kit/context.ts';
import { UsageError } from '../kit/exit_codes.ts';
import { grantTo, scopeOptions } from '../kit/grant_scopes.ts';
import type { Column } from '../kit/output.ts';

const ACTIONS = ['ls', 'create', 'revoke'] as const;

const shownTime = (at: string | null): string | null => at && localTime(Date.parse(at)).slice(0, 16);

const COLUMNS: readonly Column<ApiToken>[] = [
  { title: 'NAME', cell: ({ name }) => name },
  { title: 'MADE BY', cell: ({ created_by }) => created_by },
  { title: 'MADE', cell: ({ created_at }) => shownTime(created_at) },
  { title: 'EXPIRES', cell: ({ expires_at }) => shownTime(expires_at) },
  { title: 'LAST USED', cell: ({ last_used_at }) => shownTime(last_used_at) },
];

interface Given {
  expires: number | undefined;
  role: string | undefined;
  cluster: string | undefined;
  namespace: string[];
  selector: string | undefined;
}

async function create(context: CommandContext, name: string, { expires, ...scope }: Given): Promise<void> {
  const { out } = context;
  const client = await context.client();
  // Errors in the grants must surface before a token exists.
  const grants = scope.role === undefined ? [] : await grantTo(client, name, scope.role, scope);
  const expires_at = expires === undefined ? null : new Date(Date.now() + expires).toISOString();
  const made = await client.cloud.createToken({ name, expires_at });
  try {
    for (const grant of grants) await client.cloud.createGrant(grant);
  } catch (error) {
    // Nobody has seen it, and a part of its grants is not what was asked for.
    await client.cloud.revokeToken(name);
    throw error;
  }
  if (grants.length === 0) out.warn(`${name} may do nothing yet: berth k8s grants add ${name} <role>`);
  out.record(made, () => made.token);
}

export const tokensCommand = defineCommand({
  about:
    'An API token lets a person or a program use the clusters of this Berth with a role, and no more: viewer, ' +
    'waker, sleeper, operator or admin, of all clusters, one cluster, namespaces, or what has labels. ' +
    '`create` prints it, once. `revoke` ends it at once, and all that is open by it.',
  args: [
    { syntax: '<action>', about: ACTIONS.join(', '), completes: ACTIONS },
    { syntax: '[name]', about: 'of the token' },
  ],
  options: {
    expires: durationOption('--expires <time>', 'create: refused after so long, as 720h; default: never'),
    role: textOption('--role <role>', `create: give it this role: ${ROLES.join(', ')}`),
    ...scopeOptions('create: '),
  },
  examples: [
    [
      'berth k8s tokens create ci --role waker --cluster dev -n shop --expires 720h',
      'a token that may wake and tether in one namespace, for 30 days',
    ],
    ['berth k8s tokens revoke ci', 'from now on it is refused'],
  ],
  run: async (context, [word, name], given) => {
    const action = actionIn(ACTIONS, word);
    const client = await context.client();
    if (action === 'ls') {
      const all = await client.cloud.tokens();
      context.out.rows(all, COLUMNS, 'There are no API tokens. `berth k8s tokens create` makes one.');
      return;
    }
    if (name === undefined) throw new UsageError(`name the token: berth k8s tokens ${action} <name>`);
    if (action === 'create') await create(context, name, given);
    else context.out.record(await client.cloud.revokeToken(name), () => `${name} is revoked`);
  },
});
