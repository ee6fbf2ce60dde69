// The daemon's information about itself: docs/reference.md "System endpoints".

import { openFilesLimit } from '../../../adapters/process/open_files_limit.ts';
import type { system } from '../../../api/system.ts';
import { fail } from '../../../protocol/errors.ts';
import { localTime } from '../../../protocol/timestamps.ts';
import { NOTICE, THREADS } from '../../../settings/limits.ts';
import { DAEMON_METRICS } from '../../metrics/daemon_metrics.ts';
import { answerMetrics, readDaemon } from '../../metrics/read_metrics.ts';
import type { HandlersOf } from '../handler.ts';

/** The values for a thread that does not answer. */
const SILENT = {
  ...{ lagMs: null, busyMs: null, messages: null, openAsks: null, missedDeadlines: null, crashes: null },
  actors: [],
};

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

  system: async ({ app }) => {
    const { version, pid, startedAt } = app.daemonInfo;
    const { requests, openStreams, system } = await readDaemon(app);
    const { threads, host, storeBytes, journalBytes, rssBytes, notices } = system;
    return {
      ...{ version, pid, startedAt: localTime(startedAt), rssBytes, storeBytes, journalBytes },
      host: host && {
        runs: host.runs,
        logBytes: host.logs.reduce((sum, { bytes }) => sum + bytes, 0),
        droppedBytes: host.logs.reduce((sum, { dropped }) => sum + dropped, 0),
      },
      threads: threads.map(({ name, restarts, reading }) => ({
        ...{ name, up: reading !== null, restarts },
        ...(reading ?? SILENT),
      })),
      notices: [...notices],
      requests: requests.map(({ operation, status, count }) => ({ operation, code: status, count })),
      openStreams,
      openFilesLimit: openFilesLimit(),
    };
  },

  testNotices: ({ app }) => {
    const deadlineMs = NOTICE.timeoutMs + THREADS.askDeadlineMs;
    return app.ref('notices').ask('test', {}, { deadlineMs });
  },

  metrics: async (request) => answerMetrics(request, DAEMON_METRICS, await readDaemon(request.app)),

  openapi: ({ app }) => app.openapi(),
};
