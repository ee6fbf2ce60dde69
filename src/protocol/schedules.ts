// When tasks run automatically: docs/reference.md "Schedules".

/** The schedule of a task. */
export interface ScheduleSpec {
  /** A cron line of five fields, or `@every 5m`. */
  cron: string;
  /** Such as Europe/Berlin; null: the daemon's time zone. */
  timezone: string | null;
  /** Whether one run makes up for missed times. */
  catchUp: boolean;
}

/** The stored state of a schedule. */
export interface StoredSchedule {
  /** The schedule as JSON. A changed schedule starts afresh. */
  schedule: string;
  /** Epoch milliseconds: the last time that is settled. */
  slot: number;
  /** The following time, whose run was requested but not yet answered; null: none. */
  asked: number | null;
  /** The number of times skipped because a run was still going. */
  skipped: number;
}

/** A schedule as clients see it. */
export interface ScheduleRow {
  name: string;
  /** Epoch milliseconds; null: it never runs again. */
  nextRunAt: number | null;
  skipped: number;
}

export interface SchedulesProtocol {
  /** The registration of a task was changed or, with `schedule` null, removed. */
  changed(message: { name: string; schedule: ScheduleSpec | null }): null;
}
