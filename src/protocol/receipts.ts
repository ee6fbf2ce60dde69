// The annotations that Berth writes on a workload: docs/reference.md "Sleep", "Wake", "Auto-sleep".

/** The receipt of a sleep, kept in the annotation `berth/sleep` of the workload itself. */
export interface SleepReceipt {
  replicas: number;
  at: number;
  by: SleepCause;
  /** The name of the Berth that did it; null: an earlier version of Berth. */
  from: string | null;
  /** Until when connections through tethers do not wake it; null: they wake it at once. */
  holdUntil: number | null;
  /** The id of the operation that requested it. Absent without one, and in receipts of earlier versions. */
  operation?: string;
  /** The policy or annotation that decided. Absent if a person did. */
  policy?: string;
  /**
   * metadata.uid, and metadata.generation before the sleep, which is one change. Both absent in receipts of
   * earlier versions. A recreated workload may carry the receipt of the one before.
   */
  uid?: string;
  generation?: number;
}
export type SleepCause = 'request' | 'idle' | 'schedule';

/** Who woke a workload, kept in the annotation `berth/wake` of the workload itself. */
export interface WakeReceipt {
  at: number;
  by: WakeCause;
  from: string;
  /** The requested count. Absent in receipts of earlier versions. */
  replicas?: number;
  /** As in SleepReceipt. */
  operation?: string;
  policy?: string;
  uid?: string;
  generation?: number;
}
export type WakeCause = 'request' | 'connection' | 'schedule';

/**
 * The latest use of a workload that some Berth may put to sleep, kept in the annotation `berth/activity` of
 * the workload itself. Every Berth through which it is used updates it from time to time.
 */
export interface WorkloadActivity {
  at: number;
  from: string;
  /** The shortest idle timeout set for it in any Berth. */
  minutes: number;
}
