// The handlers of policies. They ask the owner, which knows what each policy currently selects.
import type { policies } from '../../../api/policies.ts';
import { fail } from '../../../protocol/errors.ts';
import { narrowed, type Principal } from '../../../protocol/grants.ts';
import type { PolicyReport } from '../../../protocol/policies.ts';
import { policyItem, policyPreview } from '../../views/policy_json.ts';
import { assertCluster } from '../cloud_rights.ts';
import type { HandlersOf, RequestContext } from '../handler.ts';

/** Whether a single grant covers everything a policy may select. Otherwise even its name is hidden. */
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

/** The report of a policy. Throws unknown_policy, also for one hidden from `principal`. */
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
