// berth agent share

import type { AgentShare } from '../../client/records.ts';
import { SHARE } from '../../settings/agent_limits.ts';
import { defineCommand, durationOption, flagOption, textOption } from '../kit/command.ts';
import { UsageError } from '../kit/exit_codes.ts';
import type { Column } from '../kit/output.ts';
import { SCOPE_OPTIONS, stackScope } from '../kit/stack_scope.ts';

const MINUTE_MS = 60_000;
const DEFAULT_MINUTES = 60;

const COLUMNS: readonly Column<AgentShare>[] = [
  { title: 'ID', cell: ({ id }) => id },
  { title: 'MODE', cell: ({ mode }) => mode },
  { title: 'EXPIRES', cell: ({ expiresAt }) => expiresAt },
  { title: 'VIEWERS', cell: ({ viewers }) => viewers, alignRight: true },
];

/** The duration of a share in whole minutes. Throws a UsageError if it is out of range. */
function minutesOf(ms: number | undefined): number {
  const minutes = ms === undefined ? DEFAULT_MINUTES : Math.ceil(ms / MINUTE_MS);
  if (minutes >= 1 && minutes <= SHARE.maxMinutes) return minutes;
  throw new UsageError(`--for must be from 1m to ${SHARE.maxMinutes / 60}h`);
}

export const agentShareCommand = defineCommand({
  about:
    'Prints a token with which others on this machine may watch the terminal of the agent: they cannot type, ' +
    'and can do nothing else. It ends by itself, and with the daemon. They attach with BERTH_AUTH_TOKEN set ' +
    'to it.',
  args: [{ syntax: '<name>', about: 'the agent', completes: 'agent' }],
  options: {
    for: durationOption('--for <duration>', 'how long it is good, such as 30m; default 1h'),
    list: flagOption('-l, --list', 'list the open shares instead'),
    revoke: textOption('--revoke <id>', 'end a share, or all with `all`, instead'),
    ...SCOPE_OPTIONS,
  },
  examples: [
    ['berth agent share bot --for 30m', 'a token for half an hour'],
    ['BERTH_AUTH_TOKEN=share-... berth agent attach bot --observe', 'what somebody does with it'],
  ],
  run: async (context, [given = ''], { for: ms, list, revoke, ...choice }) => {
    const client = await context.client();
    const name = (await stackScope(client, choice)).full(given);
    if (revoke !== undefined) {
      const ended = await client.revokeAgentShares(name, revoke === 'all' ? null : revoke);
      context.out.record(ended, () => `ended: ${ended.revoked.join(', ') || 'none was open'}`);
    } else if (list) {
      context.out.rows(await client.agentShares(name), COLUMNS, `No share of ${given} is open.`);
    } else {
      const share = await client.shareAgent(name, minutesOf(ms));
      context.out.record(share, () => share.token);
      context.out.note(`Whoever has this token may watch ${given} until ${share.expiresAt}.`);
    }
    return undefined;
  },
});
