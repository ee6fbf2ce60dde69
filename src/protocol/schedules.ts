// When tasks run by themselves: docs/reference.md "Schedules".

/** The schedule of a task. */
export interface ScheduleSpec {
  /** A cron line of five fields, or `@every 5m`. */
  cron: string;
  /** Such as Europe/Berlin; null: that of the daemon. */
  timezone: string | null;
  /** Whether times that were missed are made good by one run. */
  catchUp: boolean;
}

/** What is known of a schedule, in the store. */
export interface StoredSchedule {
  /** The schedule as JSON: another one begins anew. */
  schedule: string;
  /** Epoch milliseconds: the last time that counts as had. */
  slot: number;
  /** The time after it whose run has been asked for, and not been answered; null: none. */
  asked: number | null;
  /** Times that came while a run was still going. */
  skipped: number;
}

/** A schedule as clients see it. */
export interface ScheduleRow {
  name: string;
  /** Epoch milliseconds; null: no time comes. */
  nextRunAt: number | null;
  skipped: number;
}

export interface SchedulesProtocol {
  /** The registration of a task has changed, or has been removed: `schedule` null. */
  changed(message: { name: string; schedule: ScheduleSpec | null }): null;
}
