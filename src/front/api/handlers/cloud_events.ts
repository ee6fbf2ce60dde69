// The handlers of cloud events and operations.
import { cloudEvents } from '../../../api/cloud_events.ts';
import type { QueryValues } from '../../../api/query.ts';
import type { CloudEventFilter, EventPlace } from '../../../protocol/cloud_events.ts';
import { resultCodeOf, type StoredOperation } from '../../../protocol/cloud_operations.ts';
import { fail } from '../../../protocol/errors.ts';
import { narrowed, type Principal } from '../../../protocol/grants.ts';
import { parseTime, utcTime } from '../../../protocol/timestamps.ts';
import { CLOUD_EVENTS } from '../../../settings/cloud_limits.ts';
import type { CloudViews } from '../../views/cloud_views.ts';
import { eventScopes, seesEvent } from '../event_sight.ts';
import type { HandlersOf } from '../handler.ts';
import { withNextPage } from '../page_link.ts';

type Selection = Omit<QueryValues<typeof cloudEvents.follow.query>, 'after'>;

const invalid = (path: string, must: string) => {
  const message = `${path} must be ${must}`;
  return fail('invalid_spec', message, { details: [{ path, message }] });
};

/** A time of the query. Throws invalid_spec. */
function timeOf(path: string, text: string | null): number | null {
  if (text === null) return null;
  const time = parseTime(text, Date.now());
  // JavaScript has no dates beyond this.
  if (time === null || Math.abs(time) > 8.64e15)
    throw invalid(path, 'a time (RFC 3339) or a duration such as 15m');
  return time;
}

const filterOf = (query: Selection, since: number | null, until: number | null): CloudEventFilter => ({
  types: query.types,
  clusterId: query.cluster_id,
  namespaces: query.namespace,
  workloadId: query.workload_id,
  who: query.who,
  operationId: query.operation_id,
  since,
  until,
});

const withinOf = async (viewer: Principal, views: CloudViews) => ({
  within: await eventScopes(viewer, views),
});

/** Whether `principal` may see an operation: its own, or one whose event it may see. */
function isKnown(
  { who, askedAt, subject }: StoredOperation,
  principal: Principal | null,
  views: CloudViews,
): boolean {
  const viewer = narrowed(principal);
  if (!viewer) return true;
  // Before `since`, the same name belonged to someone else.
  if (who === viewer.who && askedAt >= viewer.since) return true;
  const { clusterId, namespace, workloadId } = subject;
  return seesEvent(viewer, views, { cluster_id: clusterId, namespace, workload_id: workloadId });
}

const ID = /^(?:0|[1-9]\d{0,14})$/;

/** The event id before which a page ends. Throws invalid_spec for a token that no page returned. */
function pageEnd(token: string | null): number | null {
  if (token === null) return null;
  if (!ID.test(token)) throw invalid('continue', 'the value from the Link of the page before');
  return Number(token);
}

export const cloudEventHandlers: HandlersOf<typeof cloudEvents> = {
  follow: async ({ app, query, lastEventId, principal, open }) => {
    const { after: given, ...selection } = query;
    // An id that no daemon has assigned, such as one of an earlier state directory, replays everything.
    const after = lastEventId === '' ? given : ID.test(lastEventId) ? Number(lastEventId) : 0;
    const { views } = app.cloud;
    const viewer = narrowed(principal);
    const filter = { ...filterOf(selection, null, null), ...(viewer && (await withinOf(viewer, views))) };
    const seen = viewer && {
      key: String(viewer.version),
      sees: (event: EventPlace) => seesEvent(viewer, views, event),
    };
    // The lease may have been lost since the request was let through.
    views.assertAvailable();
    await app.cloudEvents.follow();
    const stream = open();
    if (stream) await app.cloudEvents.send(stream, filter, after, seen);
  },

  history: async (request) => {
    const { since, until, limit, continue: token, ...selection } = request.query;
    const viewer = narrowed(request.principal);
    const filter = {
      ...filterOf(selection, timeOf('since', since), timeOf('until', until)),
      ...(viewer && (await withinOf(viewer, request.app.cloud.views))),
    };
    const message = { filter, before: pageEnd(token), limit: limit ?? CLOUD_EVENTS.defaultPage };
    const { rows, next } = await request.app.ref('cloudevents').ask('page', message);
    if (next !== null) {
      const { path } = cloudEvents.history;
      // A duration counts from now; the next page must cover the same period.
      const query = { ...request.query, since: utcTime(filter.since), until: utcTime(filter.until) };
      request.headers = withNextPage(request.headers, path, query, String(next));
    }
    return Buffer.from(`[${rows.join(',')}]`);
  },

  operation: async ({ app, key: id, principal }) => {
    const { operation } = await app.ref('operations').ask('read', { id });
    if (!operation || !isKnown(operation, principal, app.cloud.views))
      throw fail('unknown_operation', `there is no operation ${id}`);
    const { action, state, who, from, subject, askedAt, settledAt, result } = operation;
    return {
      id,
      action,
      state,
      who,
      from,
      asked_at: new Date(askedAt).toISOString(),
      settled_at: utcTime(settledAt),
      result: resultCodeOf(operation),
      reason: result?.failure?.message ?? result?.reason ?? null,
      cluster_id: subject.clusterId,
      cluster: subject.cluster,
      namespace: subject.namespace,
      kind: subject.kind,
      workload: subject.workload,
      workload_id: subject.workloadId,
      tether_id: subject.tetherId,
    };
  },
};
