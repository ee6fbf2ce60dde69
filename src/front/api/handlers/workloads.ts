// The handlers of workloads. Reads are answered from the views; everything else goes to the owner.
import { workloads } from '../../../api/workloads.ts';
import type { BulkAnswer, BulkInput } from '../../../api/workloads_shapes.ts';
import type { BulkChange, WorkloadSelection } from '../../../protocol/cloud.ts';
import { narrowed, type Role } from '../../../protocol/grants.ts';
import { CLOUD } from '../../../settings/cloud_limits.ts';
import { CLOUD_METRICS } from '../../metrics/cloud_metrics.ts';
import { answerMetrics, readCloud } from '../../metrics/read_metrics.ts';
import { AnswerParts } from '../../streams/answer_parts.ts';
import { arrayParts, readPageToken, workloadPage, workloadSlices } from '../../views/workload_pages.ts';
import type { AppContext } from '../app_context.ts';
import { assertCluster } from '../cloud_rights.ts';
import type { HandlersOf, RequestContext } from '../handler.ts';
import { withNextPage } from '../page_link.ts';
import { wakeWaitMs } from '../wake_wait.ts';

type ListRequest = Parameters<HandlersOf<typeof workloads>['list']>[0];

/** Answers with one page; the header Link names the next one. */
async function sendPage(request: ListRequest, selection: WorkloadSelection): Promise<Uint8Array> {
  const { query, principal } = request;
  const limit = query.limit ?? CLOUD.maxPage;
  const after = query.continue === null ? null : readPageToken(query.continue);
  const { views } = request.app.cloud;
  const { json, next } = await workloadPage(views, selection, limit, after, narrowed(principal));
  if (next !== null)
    request.headers = withNextPage(request.headers, workloads.list.path, { ...query, limit }, next);
  return Buffer.from(json);
}

async function changeMany(
  { app, body, principal, operationId: operation, who, from }: RequestContext<unknown, BulkInput>,
  to: BulkChange['to'],
  role: Role,
): Promise<BulkAnswer> {
  assertCluster(app.cloud.views, body.clusterId, principal);
  const limits = principal && { within: principal.scopes(role), subject: principal.subjects[0] };
  const results = await workloadsOf(app).ask(
    'changeMany',
    { to, ...body, ...limits, ...(operation && { operation, asker: { who, from } }) },
    { deadlineMs: CLOUD.bulkTimeoutMs },
  );
  return {
    dry_run: body.isDryRun,
    results: results.map(({ clusterId, ...rest }) => ({ cluster_id: clusterId, ...rest })),
  };
}

const workloadsOf = (app: AppContext) => app.ref('workloads');

export const workloadHandlers: HandlersOf<typeof workloads> = {
  list: (request) => {
    const { views } = request.app.cloud;
    const { cluster_id: clusterId, namespace, state, selector, limit, continue: token } = request.query;
    assertCluster(views, clusterId, request.principal);
    const viewer = narrowed(request.principal);
    const within = viewer && { within: viewer.scopes('viewer') };
    const selection = { clusterId, namespaces: namespace, states: state, selector, ...within };
    if (limit !== null || token !== null) return sendPage(request, selection);
    const isPlain = namespace === null && state === null && selector === null && !viewer;
    return isPlain && views.workloadCount(clusterId) <= CLOUD.maxWholeList
      ? views.workloads(clusterId)
      : new AnswerParts(arrayParts(workloadSlices(views, selection), viewer));
  },

  read: ({ cloud }, id, _query, _reach, principal) => {
    const json = cloud.views.workload(id, narrowed(principal));
    return json === null ? null : Buffer.from(json);
  },

  sleepMany: (request) => changeMany(request, 'asleep', 'sleeper'),

  wakeMany: (request) => changeMany(request, 'awake', 'waker'),

  sleep: async ({ app, key: id, query: { hold }, operationId: operation }) => {
    const message = { id, by: 'request', holdMs: hold, ...(operation && { operation }) } as const;
    const { replicas } = await workloadsOf(app).ask('sleep', message, { deadlineMs: CLOUD.scaleTimeoutMs });
    return { replicas };
  },

  wake: ({ app, key: id, query, principal, operationId: operation }) => {
    const waitMs = wakeWaitMs(query);
    const deadlineMs = CLOUD.scaleTimeoutMs + (waitMs ?? 0);
    return workloadsOf(app).ask(
      'wake',
      {
        ...{ id, by: 'request', waitMs },
        ...(operation && { operation }),
        ...(principal && { subject: principal.subjects[0] }),
      },
      { deadlineMs },
    );
  },

  autoSleep: ({ cloud }, id) => {
    const settings = cloud.views.autoSleep(id);
    return settings && Buffer.from(JSON.stringify(settings));
  },

  setAutoSleep: ({ app, key: id, body }) => workloadsOf(app).ask('autoSleep', { id, ...body }),

  metrics: async (request) =>
    answerMetrics(request, CLOUD_METRICS, await readCloud(request.app, request.principal)),
};
