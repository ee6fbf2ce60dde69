// The handlers of clusters. Reads are answered from the views; everything else goes to the owner.
import type { clusters } from '../../../api/clusters.ts';
import { narrowed } from '../../../protocol/grants.ts';
import { CLOUD } from '../../../settings/cloud_limits.ts';
import { THREADS } from '../../../settings/limits.ts';
import { clusterRight, clusterWithin } from '../../views/cloud_json.ts';
import type { AppContext } from '../app_context.ts';
import type { HandlersOf } from '../handler.ts';

const clustersOf = (app: AppContext) => app.ref('clusters');

export const clusterHandlers: HandlersOf<typeof clusters> = {
  list: ({ cloud }, _key, _query, _reach, principal) => {
    const viewer = narrowed(principal);
    return viewer ? cloud.views.clustersWhere((id) => viewer.knowsCluster(id)) : cloud.views.clusters();
  },

  read: ({ cloud }, id, _query, _reach, principal) => {
    const json = cloud.views.cluster(id);
    if (json === null) return null;
    if (!principal || principal.mayInCluster('viewer', id)) return Buffer.from(json);
    return Buffer.from(clusterWithin(json, (name) => principal.mayInNamespace('viewer', id, name)));
  },

  register: ({ app, body, operationId: id }) =>
    clustersOf(app).ask('register', { input: body, ...(id && { id }) }),
  change: ({ app, key: id, body }) => clustersOf(app).ask('change', { id, change: body }),
  remove: ({ app, key: id }) => clustersOf(app).ask('remove', { id }),

  rights: async ({ app, key: id }) => {
    const deadlineMs = CLOUD.syncTimeoutMs + THREADS.askDeadlineMs;
    const rights = await clustersOf(app).ask('rights', { id }, { deadlineMs });
    return { rights: rights.map(clusterRight) };
  },

  sync: ({ app, key: id }) => {
    const deadlineMs = CLOUD.syncTimeoutMs + THREADS.askDeadlineMs;
    return clustersOf(app).ask('sync', { id }, { deadlineMs });
  },
};
