// The finding of `berth doctor` about one cluster.
import type { ClusterDetail } from '../../client/records.ts';
import { CLOUD } from '../../settings/cloud_limits.ts';
import type { DoctorFinding } from './doctor_finding.ts';

/** The current or imminent problem with access to a cluster; undefined if there is none. */
export function clusterFinding(cluster: ClusterDetail): DoctorFinding | undefined {
  const {
    name,
    authenticated,
    authenticated_since: since,
    reachable,
    reason,
    credentials_expire_at: end,
  } = cluster;
  const fix = `Log in again: berth k8s renew ${name}`;
  const renewalError = cluster.token_renewal?.last_error ?? null;
  if (authenticated === false)
    return { state: 'wrong', about: `the cluster ${name} refuses its account since ${since}`, fix };
  if (renewalError !== null)
    return {
      state: 'warning',
      about: `the token of the cluster ${name} is not renewed: ${renewalError}`,
      fix,
    };
  if (end !== null && !cluster.token_renewal && Date.parse(end) - Date.now() < CLOUD.expiryWarningMs)
    return { state: 'warning', about: `the credentials of the cluster ${name} end at ${end}`, fix };
  if (reachable === false)
    return {
      state: 'warning',
      about: `the cluster ${name} is unreachable${reason === null ? '' : `: ${reason}`}`,
    };
  return undefined;
}
