// The handlers of workloads. Reads are answered from the views; everything else goes to the owner.
import type { workloads } from '../../../api/workloads.ts';
import { fail } from '../../../protocol/errors.ts';
import { CLOUD } from '../../../settings/cloud_limits.ts';
import { CLOUD_METRICS } from '../../metrics/cloud_metrics.ts';
import { answerMetrics, readCloud } from '../../metrics/read_metrics.ts';
import type { AppContext } from '../app_context.ts';
import type { HandlersOf } from '../handler.ts';

const workloadsOf = (app: AppContext) => app.ref('workloads');

export const workloadHandlers: HandlersOf<typeof workloads> = {
  list: ({ app, query: { cluster_id: clusterId } }) => {
    const { views } = app.cloud;
    if (clusterId !== null && views.cluster(clusterId) === null)
      throw fail('unknown_cluster', `there is no cluster ${clusterId}`);
    return views.workloads(clusterId);
  },

  sleep: async ({ app, key: id, query: { hold } }) => {
    const message = { id, by: 'request', holdMs: hold } as const;
    const { replicas } = await workloadsOf(app).ask('sleep', message, { deadlineMs: CLOUD.scaleTimeoutMs });
    return { replicas };
  },

  wake: ({ app, key: id, query }) => {
    const waitMs = query.wait ? (query.timeout ?? CLOUD.defaultWakeWaitMs) : null;
    const deadlineMs = CLOUD.scaleTimeoutMs + (waitMs ?? 0);
    return workloadsOf(app).ask('wake', { id, by: 'request', waitMs }, { deadlineMs });
  },

  autoSleep: ({ cloud }, id) => {
    const settings = cloud.views.autoSleep(id);
    return settings && Buffer.from(JSON.stringify(settings));
  },

  setAutoSleep: ({ app, key: id, body }) => workloadsOf(app).ask('autoSleep', { id, ...body }),

  metrics: (request) => answerMetrics(request, CLOUD_METRICS, readCloud(request.app)),
};
