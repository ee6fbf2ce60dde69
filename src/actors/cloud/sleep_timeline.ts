// When a schedule of a policy puts workloads to sleep and wakes them: docs/reference.md "Policies". Pure.
import { dayNumber, type SleepException, type SleepSchedule } from '../../protocol/sleep_windows.ts';
import { ZoneCalendar } from '../../protocol/zone_calendar.ts';

/** What a schedule wants at some time. Epoch milliseconds. */
export interface SleepPhase {
  to: 'asleep' | 'awake';
  /** When it began; 0: longer ago than anybody looks. */
  since: number;
  /** When it ends; null: no end is in sight. */
  until: number | null;
}

/** From, to: asleep. */
type Interval = readonly [from: number, to: number];

/** Days that are looked at, in either direction; more where nothing changes in fewer. */
const LOOKS: readonly number[] = [9, 60, 400];

/** What is left of `intervals` without `hole`. */
const without = (intervals: readonly Interval[], [from, to]: Interval): Interval[] =>
  intervals.flatMap(([start, end]): Interval[] => [
    ...(start < Math.min(end, from) ? [[start, Math.min(end, from)] as const] : []),
    ...(Math.max(start, to) < end ? [[Math.max(start, to), end] as const] : []),
  ]);

/** The same time in intervals that do not touch, in order. */
function merged(intervals: readonly Interval[]): Interval[] {
  const result: [number, number][] = [];
  for (const [from, to] of [...intervals].sort(([one], [other]) => one - other)) {
    const last = result.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else if (from < to) result.push([from, to]);
  }
  return result;
}

export class SleepTimeline {
  private readonly schedule: SleepSchedule;
  private readonly calendar: ZoneCalendar;
  private known: SleepPhase | null = null;

  /** Throws a RangeError for an unknown time zone. */
  constructor(schedule: SleepSchedule) {
    this.schedule = schedule;
    this.calendar = new ZoneCalendar(schedule.timezone);
  }

  /** The phase at `at`. The last answer is kept: nearly always it is asked for again. */
  phaseAt(at: number): SleepPhase {
    const { known } = this;
    if (known && known.since <= at && (known.until === null || at < known.until)) return known;
    this.known = this.compute(at);
    return this.known;
  }

  private compute(at: number): SleepPhase {
    const day = this.calendar.dayAt(at);
    let phase: SleepPhase = { to: 'awake', since: 0, until: null };
    for (const days of LOOKS) {
      phase = this.phaseWithin(at, this.asleepBetween(day - days, day + days), day - days, day + days);
      if (phase.since > 0 && phase.until !== null) break;
    }
    return phase;
  }

  /** The phase at `at` by the intervals of these days; what begins or ends at their border is not known. */
  private phaseWithin(at: number, asleep: readonly Interval[], first: number, last: number): SleepPhase {
    const [low, high] = [this.calendar.instant(first, 0), this.calendar.instant(last + 1, 0)];
    const current = asleep.find(([from, to]) => from <= at && at < to);
    if (current)
      return {
        to: 'asleep',
        since: current[0] <= low ? 0 : current[0],
        until: current[1] >= high ? null : current[1],
      };
    const since = asleep.filter(([, to]) => to <= at).at(-1)?.[1] ?? 0;
    return { to: 'awake', since, until: asleep.find(([from]) => from > at)?.[0] ?? null };
  }

  /** When it is asleep on the days `first` to `last`. */
  private asleepBetween(first: number, last: number): Interval[] {
    const { calendar } = this;
    const bounds: Interval = [calendar.instant(first, 0), calendar.instant(last + 1, 0)];
    let intervals: Interval[] = [];
    // A window of the day before may last until the first of them.
    for (let day = first - 1; day <= last; day += 1) intervals.push(...this.windowsOf(day));
    for (const exception of this.schedule.exceptions) {
      const span = this.spanOf(exception);
      intervals = without(intervals, span);
      if (exception.state === 'asleep') intervals.push(span);
    }
    return merged(intervals).flatMap(([from, to]): Interval[] => {
      const cut = [Math.max(from, bounds[0]), Math.min(to, bounds[1])] as const;
      return cut[0] < cut[1] ? [cut] : [];
    });
  }

  private windowsOf(day: number): Interval[] {
    const { calendar } = this;
    const weekday = calendar.weekday(day);
    return this.schedule.windows.flatMap(({ days, start, end }): Interval[] => {
      if (!days.includes(weekday)) return [];
      if (start < end) return [[calendar.instant(day, start), calendar.instant(day, end)]];
      return [
        [calendar.instant(day, 0), calendar.instant(day, end)],
        [calendar.instant(day, start), calendar.instant(day + 1, end)],
      ];
    });
  }

  private spanOf({ from, to }: SleepException): Interval {
    const { calendar } = this;
    // Both were checked to be dates.
    return [calendar.instant(dayNumber(from) ?? 0, 0), calendar.instant((dayNumber(to) ?? 0) + 1, 0)];
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
