// The handlers of policies. Their owner is asked: it knows what they select now.
import type { policies } from '../../../api/policies.ts';
import { fail } from '../../../protocol/errors.ts';
import { narrowed, type Principal } from '../../../protocol/grants.ts';
import type { PolicyReport } from '../../../protocol/policies.ts';
import { policyItem, policyPreview } from '../../views/policy_json.ts';
import { assertCluster } from '../cloud_rights.ts';
import type { HandlersOf, RequestContext } from '../handler.ts';

/** Whether one grant has all that a policy may select: of others not even the name is known. */
function isKnown({ policy: { selector } }: PolicyReport, principal: Principal | null): boolean {
  const viewer = narrowed(principal);
  if (!viewer) return true;
  const { clusterIds, namespaces, labels } = selector;
  return viewer
    .scopes('viewer')
    .some(
      (scope) =>
        (scope.clusterId === null || clusterIds?.every((id) => id === scope.clusterId)) &&
        (scope.namespace === null || namespaces?.every((name) => name === scope.namespace)) &&
        (scope.labels === null || scope.labels === labels),
    );
}

/** The report of a policy. Throws unknown_policy, also for one that `principal` may not know. */
async function knownPolicy({ app, key: name, principal }: RequestContext): Promise<PolicyReport> {
  const report = await app.ref('policies').ask('read', { name });
  if (!isKnown(report, principal)) throw fail('unknown_policy', `there is no policy ${name}`);
  return report;
}

export const policyHandlers: HandlersOf<typeof policies> = {
  list: async ({ app, principal }) => {
    const reports = await app.ref('policies').ask('list', {});
    return reports.filter((report) => isKnown(report, principal)).map(policyItem);
  },

  read: async (request) => policyItem(await knownPolicy(request)),

  put: async ({ app, key: name, body: input }) => {
    for (const id of input.selector.clusterIds ?? []) assertCluster(app.cloud.views, id, null);
    return policyItem(await app.ref('policies').ask('put', { name, input }));
  },

  remove: ({ app, key: name }) => app.ref('policies').ask('remove', { name }),

  preview: async (request) => {
    const { app, key: name } = request;
    await knownPolicy(request);
    const { report, rows } = await app.ref('policies').ask('preview', { name });
    return policyPreview(report, rows);
  },
};
