// The handlers of shared terminals: docs/reference.md "Shared terminals".

import type { agents } from '../../../api/agents.ts';
import type { AnswerOf } from '../../../api/operation.ts';
import { formatKey } from '../../../protocol/access_key.ts';
import { fail } from '../../../protocol/errors.ts';
import { localTime } from '../../../protocol/timestamps.ts';
import type { AppContext } from '../app_context.ts';
import type { Share } from '../share_tokens.ts';

const shareItem = ({ id, agent, mode, createdAt, expiresAt }: Share) => ({
  id,
  name: agent,
  mode,
  createdAt: localTime(createdAt),
  expiresAt: localTime(expiresAt),
});

/** Shares the terminal of `name` for `minutes`. */
export function createShare(app: AppContext, name: string, minutes: number): AnswerOf<typeof agents.share> {
  const { share, key } = app.keys.shares.create(name, minutes);
  return { ...shareItem(share), token: formatKey(key) };
}

/** The open shares of `name`. */
export const listShares = (
  { keys, terminals }: AppContext,
  name: string,
): AnswerOf<typeof agents.shares> => ({
  shares: keys.shares
    .of(name)
    .map((share) => ({ ...shareItem(share), viewers: terminals.viewersBy(share.id) })),
});

/** Ends the share `id` of `name`, or all of them. Throws invalid_spec for one that is not open. */
export function revokeShares(
  { keys }: AppContext,
  name: string,
  id: string | null,
): AnswerOf<typeof agents.endShares> {
  const open = keys.shares.of(name).map((share) => share.id);
  if (id !== null && !open.includes(id)) throw fail('invalid_spec', `${name} has no open share of that id`);
  const revoked = id === null ? open : [id];
  for (const one of revoked) keys.shares.end(one);
  return { name, revoked };
}
