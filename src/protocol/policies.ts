// Policies: when workloads sleep by themselves. docs/reference.md "Policies".
import type { CloudSubject } from './cloud_events.ts';
import type { PlacedWorkloadsProtocol } from './grants.ts';
import type { SleepSchedule } from './sleep_windows.ts';
import type { WorkloadKind, WorkloadState } from './workload_kinds.ts';

/** Which workloads a policy is for; null: any. At least one is given. */
export interface PolicySelector {
  clusterIds: readonly string[] | null;
  namespaces: readonly string[] | null;
  /** A label selector. */
  labels: string | null;
}

/** What a policy says, with its shape checked. Times are epoch milliseconds. */
export interface PolicyInput {
  selector: PolicySelector;
  /** Unused for so long, a workload is put to sleep; null: use does not matter. */
  idleMinutes: number | null;
  /** null: no windows and no exceptions. */
  schedule: SleepSchedule | null;
  /** The windows as they were given. */
  windows: readonly string[];
  awakeUntil: number | null;
}

export interface StoredPolicy extends PolicyInput {
  name: string;
  updatedAt: number;
}

/**
 * What the annotations of a workload or a namespace say of sleep. What is absent is not said. Null in place
 * of it: nothing at all.
 */
export interface SleepAnnotations {
  /** `berth/auto-sleep`; 0: off. */
  idleMinutes?: number;
  /** `berth/schedule`, as it was written. */
  schedule?: string;
  /** `berth/awake-until`. */
  awakeUntil?: number;
  /** `berth/exclude`. */
  isExcluded?: boolean;
  /** `berth/after`, of workloads alone: names of the same namespace, each of which may be `kind/name`. */
  after?: readonly string[];
  /** What is wrong with them; the rest holds. */
  faults?: readonly string[];
}

/** Who decides: an annotation of the workload or of its namespace, its own setting, or a policy. */
export type PolicySource = 'workload' | 'namespace' | 'setting' | 'policy';

/** Who decides, as `who` of the audit log and as clients see it. */
export const sourceName = (source: PolicySource, policy: string | null): string =>
  source === 'policy'
    ? `policy:${policy ?? ''}`
    : source === 'setting'
      ? 'auto-sleep'
      : `annotation:${source}`;

/** What governs a workload, as clients see it. */
export interface WorkloadPolicy {
  /** Who decides on the schedule, on sleep when unused, and that nothing of both happens; null: nobody. */
  schedule: string | null;
  idle: string | null;
  idleMinutes: number | null;
  excludedBy: string | null;
  awakeUntil: number | null;
  nextSwitch: { at: number; to: 'asleep' | 'awake' } | null;
  /** What is wrong with annotations. */
  faults: readonly string[];
}

/** What a workload is woken after, as clients see it. */
export interface WakeOrder {
  /** As they are named. */
  workloads: readonly string[];
  /** What is wrong with the names; it holds up nothing. */
  faults: readonly string[];
}

/** The workload that an event is about. */
export type WorkloadSubject = Omit<CloudSubject, 'cluster' | 'tetherId'>;

/** A switch of a workload that is due. */
export interface DueSwitch {
  id: string;
  clusterId: string;
  subject: WorkloadSubject;
  to: 'asleep' | 'awake';
  /** The same for the same switch, also after a restart. */
  key: string;
  /** Who decides. */
  who: string;
}

/** The last switch of a workload that was made, or that needed nothing. */
export interface SwitchRecord {
  to: 'asleep' | 'awake';
  /** When its phase began. Epoch milliseconds. */
  at: number;
  /** A mark of the schedule: of another one, times say nothing. */
  schedule: string;
  /** Grows with each switch of the workload. */
  count: number;
}

/** The next switches of a workload. */
export interface PreviewRow {
  id: string;
  clusterId: string;
  kind: WorkloadKind;
  namespace: string;
  name: string;
  state: WorkloadState;
  policy: WorkloadPolicy | null;
  switches: { at: number; to: 'asleep' | 'awake' }[];
}

export interface PolicyReport {
  policy: StoredPolicy;
  /** The workloads that its selector has, and those of them that it decides on. */
  selected: number;
  decided: number;
}

/** What `workloads` knows of policies: which of them decides on a workload, and what is due. */
export interface GovernedWorkloadsProtocol extends PlacedWorkloadsProtocol {
  /** From policies: all there are. Fails invalid_spec for a selector that is none. */
  setPolicies(message: { policies: StoredPolicy[] }): null;
  /** The switches that are due, and when the next one is; null: there is no schedule. */
  dueSwitches(message: Record<string, never>): { due: DueSwitch[]; nextAt: number | null };
  /** A switch was made, or is not to be tried again. */
  switched(message: { id: string; to: SwitchRecord['to'] }): null;
  policyReports(message: Record<string, never>): PolicyReport[];
  /** Fails unknown_policy. */
  policyReport(message: { name: string }): PolicyReport;
  /** Fails unknown_policy. */
  previewPolicy(message: { name: string }): { report: PolicyReport; rows: PreviewRow[] };
}

/** Owns the policies, and makes all switches, as operations. Asks operations and workloads. */
export interface PoliciesProtocol {
  list(message: Record<string, never>): PolicyReport[];
  /** Fails unknown_policy. */
  read(message: { name: string }): PolicyReport;
  /** Fails storage_full, invalid_spec (too many). */
  put(message: { name: string; input: PolicyInput }): PolicyReport;
  /** Fails unknown_policy, storage_full. */
  remove(message: { name: string }): { removed: true; name: string };
  /** The next ten switches of each workload that it selects. Fails unknown_policy. */
  preview(message: { name: string }): { report: PolicyReport; rows: PreviewRow[] };
  /** From workloads: a schedule may have come, changed or gone. */
  changed(message: Record<string, never>): null;
}
