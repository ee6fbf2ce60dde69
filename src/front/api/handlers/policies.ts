// The handlers of policies. Their owner is asked: it knows what they select now.
import type { policies } from '../../../api/policies.ts';
import { policyItem, policyPreview } from '../../views/policy_json.ts';
import type { HandlersOf } from '../handler.ts';
import { assertCluster } from './workloads.ts';

export const policyHandlers: HandlersOf<typeof policies> = {
  list: async ({ app }) => (await app.ref('policies').ask('list', {})).map(policyItem),

  read: async ({ app, key: name }) => policyItem(await app.ref('policies').ask('read', { name })),

  put: async ({ app, key: name, body: input }) => {
    for (const id of input.selector.clusterIds ?? []) assertCluster(app.cloud.views, id);
    return policyItem(await app.ref('policies').ask('put', { name, input }));
  },

  remove: ({ app, key: name }) => app.ref('policies').ask('remove', { name }),

  preview: async ({ app, key: name }) => {
    const { report, rows } = await app.ref('policies').ask('preview', { name });
    return policyPreview(report, rows);
  },
};
