// The handlers of commands.
import type { commands } from '../../../api/commands.ts';
import { serviceAddress } from '../../../protocol/address.ts';
import { COMMAND_ID_PATTERN } from '../../../protocol/commands.ts';
import { fail } from '../../../protocol/errors.ts';
import { newRunId } from '../../../protocol/names.ts';
import type { HandlersOf } from '../handler.ts';

export const commandHandlers: HandlersOf<typeof commands> = {
  prepare: async ({ app, body, reach }) => {
    const id = `run-${newRunId(Date.now())}`;
    await app.ref(serviceAddress(id)).ask('prepare', { input: body });
    if (reach) app.commandOwners.add(id, reach);
    return { id };
  },

  attach: ({ app, key: id, reach }) => {
    if (!COMMAND_ID_PATTERN.test(id)) throw fail('not_found', `there is no command ${id}`);
    if (reach && !app.commandOwners.has(id, reach)) throw reach.refusal(id);
    return (socket) => app.terminals.open(socket, app.ref(serviceAddress(id)));
  },
};
