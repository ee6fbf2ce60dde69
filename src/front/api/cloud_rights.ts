// Whether a principal may perform an operation: docs/reference.md "Roles and grants". Checked before anything
// else in a request, so that hidden objects answer exactly like missing ones.
import { type CloudRight, cloudRightOf } from '../../api/cloud_rights.ts';
import type { Operation } from '../../api/operation.ts';
import { type ErrorCode, fail } from '../../protocol/errors.ts';
import type { PlacedWorkload, Principal, Role } from '../../protocol/grants.ts';
import type { CloudViews } from '../views/cloud_views.ts';
import type { CloudGate } from './cloud_gate.ts';

/** Of what is not under /k8s: the metrics of a cloud server itself. They show nobody's data, only counts. */
const OF_SERVER: CloudRight = { role: 'viewer', scope: 'everything' };

/** `where`: where the role is missing. */
const refusal = ({ who }: Principal, role: Role, where: string) =>
  fail('forbidden', `${who} needs the role ${role} ${where}`);

const missing = (code: ErrorCode, key: string) =>
  fail(code, `there is no ${code.replace(/^unknown_/, '')} ${key}`);

function assertPlace(
  principal: Principal,
  role: Role,
  place: PlacedWorkload | null,
  unknown: () => Error,
): void {
  if (!place || !principal.may('viewer', place)) throw unknown();
  if (!principal.may(role, place)) throw refusal(principal, role, `in the namespace ${place.namespace}`);
}

/** Throws unknown_cluster, also for a cluster hidden from `principal`. */
export function assertCluster(views: CloudViews, id: string | null, principal: Principal | null): void {
  if (id === null) return;
  const isKnown = views.hasCluster(id) && (principal?.knowsCluster(id) ?? true);
  if (!isKnown) throw missing('unknown_cluster', id);
}

function assertRight(
  { role, scope }: CloudRight,
  key: string,
  principal: Principal,
  views: CloudViews,
): void {
  switch (scope) {
    case 'part':
      if (!principal.maySomewhere(role)) throw refusal(principal, role, 'for a cluster or a namespace');
      return;
    case 'everything':
      if (!principal.mayEverywhere(role)) throw refusal(principal, role, 'for all clusters');
      return;
    case 'cluster':
      assertCluster(views, key, principal);
      return;
    case 'whole cluster':
      assertCluster(views, key, principal);
      if (!principal.mayInCluster(role, key)) throw refusal(principal, role, 'for the whole cluster');
      return;
    case 'workload':
      assertPlace(principal, role, views.placeOf(key), () => missing('unknown_workload', key));
      return;
    case 'tether':
      assertPlace(principal, role, views.placeOf(views.workloadOfTether(key)), () =>
        missing('unknown_tether', key),
      );
      return;
    default:
      scope satisfies never;
  }
}

/**
 * Throws forbidden for what `principal` may see but not do, the path's own unknown-key error for what it may
 * not see, and daemon_busy until the cloud part is up.
 */
export function checkCloudRight(route: Operation, key: string, principal: Principal, cloud: CloudGate): void {
  if (route.isPublic) return;
  if (!cloud.isOpen) {
    cloud.openSoon();
    throw fail('daemon_busy', 'the cloud part is starting');
  }
  const needed = cloudRightOf(route) ?? OF_SERVER;
  assertRight(needed, key, principal, cloud.views);
}
