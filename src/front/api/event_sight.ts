// Which events a principal may see: docs/reference.md "Roles and grants".
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { EventPlace, EventScope } from '../../protocol/cloud_events.ts';
import type { GrantScope, Principal } from '../../protocol/grants.ts';
import { ALL_WORKLOADS } from '../../protocol/workload_selection.ts';
import type { CloudViews } from '../views/cloud_views.ts';
import { workloadSlices } from '../views/workload_pages.ts';

/** Whether `viewer` may see an event or operation, according to its workload's current labels. */
export function seesEvent(viewer: Principal, views: CloudViews, event: EventPlace): boolean {
  const { cluster_id: clusterId, namespace, workload_id: workloadId } = event;
  const place = workloadId === null ? null : views.placeOf(workloadId);
  if (place) return viewer.may('viewer', place);
  if (clusterId === null) return viewer.mayEverywhere('viewer');
  return namespace === null
    ? viewer.mayInCluster('viewer', clusterId)
    : viewer.mayInNamespace('viewer', clusterId, namespace);
}

/** Resolves with the scopes of events that `viewer` may see, for the owner of their history. */
export async function eventScopes(viewer: Principal, views: CloudViews): Promise<EventScope[]> {
  const scopeOf = async (scope: GrantScope): Promise<EventScope> => {
    const { clusterId, namespace, labels } = scope;
    if (labels === null) return { clusterId, namespace, workloadIds: null };
    const workloadIds: string[] = [];
    for (const slice of workloadSlices(views, { ...ALL_WORKLOADS, within: [scope] })) {
      for (const { id } of slice) workloadIds.push(id);
      await nextTurn();
    }
    return { clusterId, namespace, workloadIds };
  };
  return Promise.all(viewer.scopes('viewer').map(scopeOf));
}
