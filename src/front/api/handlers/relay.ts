// The handler of the relay. Its owner makes the tickets.
import type { relay } from '../../../api/relay.ts';
import { fail } from '../../../protocol/errors.ts';
import type { HandlersOf } from '../handler.ts';

export const relayHandlers: HandlersOf<typeof relay> = {
  // It is no change of the cloud part, and its answer is a secret: it is not recorded as an operation.
  admit: async ({ app }) => {
    if (!app.cloud.hasRelay) throw fail('relay_off', 'this Berth has no relay');
    const { ticket, until, port } = await app.cloud.pass(() => app.ref('relay').ask('admit', {}));
    return { ticket, expires_at: new Date(until).toISOString(), port };
  },
};
