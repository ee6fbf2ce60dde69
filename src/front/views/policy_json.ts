// Policies as clients see them: docs/reference.md "Policies".
import type { Policy, PolicyPreview, WorkloadPolicyShape } from '../../api/policies_shapes.ts';
import type { PolicyReport, PreviewRow, WorkloadPolicy } from '../../protocol/policies.ts';
import { utcTime } from '../../protocol/timestamps.ts';

const time = (ms: number): string => new Date(ms).toISOString();

function warningOf({ selected, decided }: PolicyReport): string | null {
  if (selected === 0) return 'it selects no workload';
  return decided === 0
    ? "it decides on no workload: annotations, the workloads' own auto-sleep or other policies do"
    : null;
}

export function policyItem(report: PolicyReport): Policy {
  const { policy, selected, decided } = report;
  const { clusterIds, namespaces, labels } = policy.selector;
  const exceptions = policy.schedule?.exceptions ?? [];
  return {
    name: policy.name,
    selector: {
      ...(clusterIds && { cluster_ids: [...clusterIds] }),
      ...(namespaces && { namespaces: [...namespaces] }),
      ...(labels !== null && { labels }),
    },
    idle_timeout_minutes: policy.idleMinutes,
    ...(policy.windows.length > 0 && { windows: [...policy.windows] }),
    timezone: policy.schedule?.timezone ?? 'UTC',
    ...(exceptions.length > 0 && { exceptions: [...exceptions] }),
    awake_until: utcTime(policy.awakeUntil),
    updated_at: time(policy.updatedAt),
    selected,
    decided,
    warning: warningOf(report),
  };
}

const switchItem = ({ at, to }: PreviewRow['switches'][number]) => ({ at: time(at), to });

/** The policy of a workload, as clients see it. */
export const workloadPolicy = (policy: WorkloadPolicy): WorkloadPolicyShape => ({
  schedule: policy.schedule,
  idle: policy.idle,
  idle_timeout_minutes: policy.idleMinutes,
  excluded_by: policy.excludedBy,
  awake_until: utcTime(policy.awakeUntil),
  next_switch: policy.nextSwitch && switchItem(policy.nextSwitch),
  faults: [...policy.faults],
});

export const policyPreview = (report: PolicyReport, rows: readonly PreviewRow[]): PolicyPreview => ({
  name: report.policy.name,
  selected: report.selected,
  warning: warningOf(report),
  workloads: rows.map(({ id, clusterId, namespace, name, kind, state, policy, switches }) => ({
    ...{ id, cluster_id: clusterId, namespace, name, kind, state },
    policy: policy && workloadPolicy(policy),
    switches: switches.map(switchItem),
  })),
});
