// The daemon's information about itself: docs/reference.md "System endpoints".
import type { system } from '../../../api/system.ts';
import { fail } from '../../../protocol/errors.ts';
import { localTime } from '../../../protocol/timestamps.ts';
import type { HandlersOf } from '../handler.ts';

export const systemHandlers: HandlersOf<typeof system> = {
  version: ({ app }) => {
    const { version, pid, startedAt, front, stateDir, gatewayPort } = app.daemonInfo;
    const startTime = localTime(startedAt);
    return { name: 'berth', version, pid, startedAt: startTime, front, stateDir, gatewayPort, apiLevel: 1 };
  },

  livez: () => ({ status: 'ok' }),

  readyz: ({ app }) => {
    if (app.phase !== 'ready') throw fail('daemon_busy', `the daemon is ${app.phase}`);
    const reason = app.unreadyReason();
    if (reason !== null) throw fail('daemon_busy', reason);
    return { status: 'ok' };
  },

  openapi: ({ app }) => app.openapi(),
};
