// When a schedule of a policy puts workloads to sleep and wakes them: docs/reference.md "Policies". Pure.
import {
  DAY_MINUTES,
  dayNumber,
  type SleepSchedule,
  type SleepWindow,
} from '../../protocol/sleep_windows.ts';
import type { ZoneCalendar } from '../../protocol/zone_calendar.ts';

/** The phase a schedule wants at some time. Epoch milliseconds. */
export interface SleepPhase {
  to: 'asleep' | 'awake';
  /** When it began; 0: before the range that is examined. */
  since: number;
  /** When it ends; null: not within the range that is examined. */
  until: number | null;
}

/** A period of sleep, in minutes after midnight or epoch milliseconds. */
type Interval = readonly [from: number, to: number];

/** How many days are searched in either direction for a change. */
const MAX_DAYS = 400;
/** The number of phases to cache: those of a preview, and a few more. */
const MAX_KNOWN = 16;

const WEEKDAYS: readonly number[] = [0, 1, 2, 3, 4, 5, 6];

/** The same periods, in order and without overlaps. */
function merged(intervals: readonly Interval[]): Interval[] {
  const result: [number, number][] = [];
  for (const [from, to] of [...intervals].sort(([one], [other]) => one - other)) {
    const last = result.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else if (from < to) result.push([from, to]);
  }
  return result;
}

/** The sleep periods of the windows on a day of the week, in minutes after midnight. */
function minutesOn(weekday: number, windows: readonly SleepWindow[]): Interval[] {
  const intervals = windows.flatMap(({ days, start, end }): Interval[] => {
    const isHere = days.includes(weekday);
    if (start < end) return isHere ? [[start, end]] : [];
    const isMorning = isHere || days.includes((weekday + 6) % 7);
    return [...(isMorning ? [[0, end] as const] : []), ...(isHere ? [[start, DAY_MINUTES] as const] : [])];
  });
  return merged(intervals);
}

/** The days `first` to `last` are asleep or awake as a whole. */
interface ExceptionalDays {
  first: number;
  last: number;
  state: SleepPhase['to'];
}

/**
 * Anyone who may annotate a workload can write schedules, so even the most expensive one must be cheap.
 * Windows are merged once per day of the week, and days are examined one by one, only until the next change.
 */
export class SleepTimeline {
  private readonly calendar: ZoneCalendar;
  private readonly week: readonly (readonly Interval[])[];
  /** The first exception that covers a day decides. */
  private readonly exceptions: readonly ExceptionalDays[];
  private readonly known: SleepPhase[] = [];

  /** `calendar`: of the time zone of the schedule. */
  constructor({ windows, exceptions }: SleepSchedule, calendar: ZoneCalendar) {
    this.calendar = calendar;
    this.week = WEEKDAYS.map((weekday) => minutesOn(weekday, windows));
    // Both have been validated as dates.
    this.exceptions = exceptions
      .map(({ from, to, state }) => ({ first: dayNumber(from) ?? 0, last: dayNumber(to) ?? 0, state }))
      .reverse();
  }

  /**
   * The phase at `at`. The last answers are cached, because nearly always the same ones are requested again.
   */
  phaseAt(at: number): SleepPhase {
    const known = this.known.find(({ since, until }) => since <= at && (until === null || at < until));
    if (known) return known;
    const phase = this.compute(at);
    this.known.unshift(phase);
    this.known.splice(MAX_KNOWN);
    return phase;
  }

  private compute(at: number): SleepPhase {
    const day = this.dayOf(at);
    const isAsleep = this.asleepOn(day).some(([from, to]) => from <= at && at < to);
    return isAsleep
      ? { to: 'asleep', since: this.asleepSince(at, day), until: this.asleepUntil(at, day) }
      : { to: 'awake', since: this.awakeSince(at, day), until: this.awakeUntil(at, day) };
  }

  private asleepUntil(at: number, today: number): number | null {
    let end = at;
    for (let day = today; day <= today + MAX_DAYS; day += 1) {
      for (const [from, to] of this.asleepOn(day)) {
        if (from > end) return end;
        end = Math.max(end, to);
      }
      if (end < this.midnight(day + 1)) return end;
    }
    return null;
  }

  private asleepSince(at: number, today: number): number {
    let start = at;
    for (let day = today; day >= today - MAX_DAYS; day -= 1) {
      for (const [from, to] of this.asleepOn(day).reverse()) {
        if (to < start) return start;
        start = Math.min(start, from);
      }
      if (start > this.midnight(day)) return start;
    }
    return 0;
  }

  private awakeUntil(at: number, today: number): number | null {
    for (let day = today; day <= today + MAX_DAYS; day += 1) {
      const next = this.asleepOn(day).find(([from]) => from > at);
      if (next) return next[0];
    }
    return null;
  }

  private awakeSince(at: number, today: number): number {
    for (let day = today; day >= today - MAX_DAYS; day -= 1) {
      const last = this.asleepOn(day).findLast(([, to]) => to <= at);
      if (last) return last[1];
    }
    return 0;
  }

  private midnight(day: number): number {
    return this.calendar.instant(day, 0);
  }

  /**
   * The day whose midnights enclose `at`. After clocks are set back, the calendar may show the day before.
   */
  private dayOf(at: number): number {
    let day = this.calendar.dayAt(at);
    while (this.midnight(day) > at) day -= 1;
    while (this.midnight(day + 1) <= at) day += 1;
    return day;
  }

  /** The sleep periods on a day, in order. */
  private asleepOn(day: number): Interval[] {
    const { calendar } = this;
    const exception = this.exceptions.find(({ first, last }) => first <= day && day <= last);
    if (exception) return exception.state === 'asleep' ? [[this.midnight(day), this.midnight(day + 1)]] : [];
    const minutes = this.week[calendar.weekday(day)] ?? [];
    return minutes.flatMap(([start, end]): Interval[] => {
      const [from, to] = [calendar.instant(day, start), calendar.instant(day, end)];
      // A window may lie within the hour that clocks skip.
      return from < to ? [[from, to]] : [];
    });
  }
}

/** A change of a workload by its schedule. */
export interface SleepSwitch {
  at: number;
  to: SleepPhase['to'];
}

/** The first `count` switches after `now`; until `awakeUntil` it stays awake. */
export function nextSwitches(
  timeline: SleepTimeline,
  now: number,
  awakeUntil: number | null,
  count: number,
): SleepSwitch[] {
  const switches: SleepSwitch[] = [];
  let at = Math.max(now, awakeUntil ?? now);
  if (at > now && timeline.phaseAt(at).to === 'asleep') switches.push({ at, to: 'asleep' });
  while (switches.length < count) {
    const { to, until } = timeline.phaseAt(at);
    if (until === null) break;
    switches.push({ at: until, to: to === 'asleep' ? 'awake' : 'asleep' });
    at = until;
  }
  return switches;
}
