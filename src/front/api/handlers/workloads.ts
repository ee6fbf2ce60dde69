// The handlers of workloads. Reads are answered from the views; everything else is asked of the owner.
import type { workloads } from '../../../api/workloads.ts';
import type { AutoSleepSettings, WorkloadsProtocol } from '../../../protocol/cloud.ts';
import { CLOUD } from '../../../settings/limits.ts';
import type { AppContext } from '../app_context.ts';
import type { HandlersOf } from '../handler.ts';

const workloadsOf = (app: AppContext) => app.ref<WorkloadsProtocol>('workloads');

export const workloadHandlers: HandlersOf<typeof workloads> = {
  list: ({ app, query }) => app.cloud.views.workloads(query.cluster_id),

  sleep: async ({ app, name }) => {
    const message = { id: name, by: 'request' } as const;
    const { replicas } = await workloadsOf(app).ask('sleep', message, { deadlineMs: CLOUD.scaleTimeoutMs });
    return { replicas };
  },

  wake: ({ app, name, query }) => {
    const waitMs = query.wait ? (query.timeout ?? CLOUD.defaultWakeWaitMs) : null;
    const deadlineMs = CLOUD.scaleTimeoutMs + (waitMs ?? 0);
    return workloadsOf(app).ask('wake', { id: name, waitMs }, { deadlineMs });
  },

  autoSleep: ({ cloud }, id) => {
    const json = cloud.views.workload(id);
    if (json === null) return null;
    // The text is our own, of workload_record.ts.
    const { auto_sleep_enabled, idle_timeout_minutes } = JSON.parse(json) as AutoSleepSettings;
    return Buffer.from(JSON.stringify({ auto_sleep_enabled, idle_timeout_minutes }));
  },

  setAutoSleep: ({ app, name, body }) => workloadsOf(app).ask('autoSleep', { id: name, ...body }),
};
