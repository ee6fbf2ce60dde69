// Policies: when workloads sleep by themselves. docs/reference.md "Policies".
import type { CloudSubject } from './cloud_events.ts';
import type { PlacedWorkloadsProtocol } from './grants.ts';
import type { SleepSchedule } from './sleep_windows.ts';
import type { WorkloadKind, WorkloadState } from './workload_kinds.ts';

/** The workloads a policy applies to; null: any. At least one field is given. */
export interface PolicySelector {
  clusterIds: readonly string[] | null;
  namespaces: readonly string[] | null;
  /** A label selector. */
  labels: string | null;
}

/** A policy whose shape has been checked. Times are epoch milliseconds. */
export interface PolicyInput {
  selector: PolicySelector;
  /** A workload is put to sleep after this many minutes without use; null: never for lack of use. */
  idleMinutes: number | null;
  /** null: neither windows nor exceptions. */
  schedule: SleepSchedule | null;
  /** The windows as the user wrote them. */
  windows: readonly string[];
  awakeUntil: number | null;
}

export interface StoredPolicy extends PolicyInput {
  name: string;
  updatedAt: number;
}

/**
 * The sleep annotations of a workload or a namespace. Absent fields are not annotated; null instead of the
 * object: there are no annotations at all.
 */
export interface SleepAnnotations {
  /** `berth/auto-sleep`; 0: off. */
  idleMinutes?: number;
  /** `berth/schedule`, as written. */
  schedule?: string;
  /** `berth/awake-until`. */
  awakeUntil?: number;
  /** `berth/exclude`. */
  isExcluded?: boolean;
  /** `berth/after`, on workloads only: names in the same namespace, each of which may be `kind/name`. */
  after?: readonly string[];
  /** The faults in the annotations. Everything else still applies. */
  faults?: readonly string[];
}

/** What decides: an annotation of the workload or of its namespace, its own setting, or a policy. */
export type PolicySource = 'workload' | 'namespace' | 'setting' | 'policy';

/** What decides, as `who` in the audit log and as clients see it. */
export const sourceName = (source: PolicySource, policy: string | null): string =>
  source === 'policy'
    ? `policy:${policy ?? ''}`
    : source === 'setting'
      ? 'auto-sleep'
      : `annotation:${source}`;

/** What decides on a workload's sleep, as clients see it. */
export interface WorkloadPolicy {
  /** What decides on the schedule, on idle sleep, and on exclusion from both; null: nothing. */
  schedule: string | null;
  idle: string | null;
  idleMinutes: number | null;
  excludedBy: string | null;
  awakeUntil: number | null;
  nextSwitch: { at: number; to: 'asleep' | 'awake' } | null;
  /** The faults in the annotations, and why it is left alone, if it is. */
  faults: readonly string[];
}

/** The workloads that a wake waits for, as clients see them. */
export interface WakeOrder {
  /** As named in the annotation. */
  workloads: readonly string[];
  /** The faults in the names. They do not hold up the wake. */
  faults: readonly string[];
}

/** The workload that an event is about. */
export type WorkloadSubject = Omit<CloudSubject, 'cluster' | 'tetherId'>;

/** A scheduled switch that is due. */
export interface DueSwitch {
  id: string;
  clusterId: string;
  subject: WorkloadSubject;
  to: 'asleep' | 'awake';
  /** Identifies the switch, also after a restart. */
  key: string;
  /** What decided. */
  who: string;
}

/** The last switch of a workload that was made, or was not needed. */
export interface SwitchRecord {
  to: 'asleep' | 'awake';
  /** When its phase began. Epoch milliseconds. */
  at: number;
  /** Identifies the schedule: times from another one do not apply. */
  schedule: string;
  /** Increases with each switch of the workload, also when its record begins anew. */
  count: number;
  /** The Berth whose schedule had put it to sleep before this one could; absent: none. */
  sleptBy?: string;
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
  /** The number of workloads that match its selector, and of those that it decides on. */
  selected: number;
  decided: number;
}

/** The part of `workloads` that deals with policies: which of them decides on a workload, and what is due. */
export interface GovernedWorkloadsProtocol extends PlacedWorkloadsProtocol {
  /**
   * From policies: all of them. `areNew`: a client has changed them; they were not just read. Fails
   * invalid_spec for an invalid selector.
   */
  setPolicies(message: { policies: StoredPolicy[]; areNew: boolean }): null;
  /** The switches that are due, and the time of the next one; null: there is no schedule. */
  dueSwitches(message: Record<string, never>): { due: DueSwitch[]; nextAt: number | null };
  /** A switch was made, or must not be tried again; `to` null: it was withdrawn. */
  switched(message: { id: string; to: SwitchRecord['to'] | null }): null;
  policyReports(message: Record<string, never>): PolicyReport[];
  /** Fails unknown_policy. */
  policyReport(message: { name: string }): PolicyReport;
  /** Fails unknown_policy. */
  previewPolicy(message: { name: string }): { report: PolicyReport; rows: PreviewRow[] };
}

/** Owns the policies, and makes all scheduled switches as operations. Asks operations and workloads. */
export interface PoliciesProtocol {
  list(message: Record<string, never>): PolicyReport[];
  /** Fails unknown_policy. */
  read(message: { name: string }): PolicyReport;
  /** Fails storage_full, invalid_spec (too many). */
  put(message: { name: string; input: PolicyInput }): PolicyReport;
  /** Fails unknown_policy, storage_full. */
  remove(message: { name: string }): { removed: true; name: string };
  /** The next ten switches of each workload it selects. Fails unknown_policy. */
  preview(message: { name: string }): { report: PolicyReport; rows: PreviewRow[] };
  /** From workloads: a schedule was added, changed or removed. */
  changed(message: Record<string, never>): null;
}
