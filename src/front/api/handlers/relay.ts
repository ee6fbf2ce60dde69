// The handler of the relay. Its owner makes the tickets.
import type { relay } from '../../../api/relay.ts';
import { fail } from '../../../protocol/errors.ts';
import type { HandlersOf } from '../handler.ts';

export const relayHandlers: HandlersOf<typeof relay> = {
  // Not recorded as an operation: it changes nothing in the cloud part, and its answer is a secret.
  admit: async ({ app, principal, who, from }) => {
    if (!app.cloud.hasRelay) throw fail('relay_off', 'this Berth has no relay');
    const holder = principal && {
      subjects: principal.subjects,
      expiresAt: principal.until,
      opener: { who, from },
    };
    const { ticket, until, port } = await app.cloud.pass(() => app.ref('relay').ask('admit', { holder }));
    const ends_in = holder?.expiresAt == null ? null : Math.max(0, holder.expiresAt - Date.now()) / 1_000;
    return { ticket, expires_at: new Date(until).toISOString(), ends_in, port };
  },
};
