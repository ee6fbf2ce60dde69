// The days of a time zone as instants. Pure.
//
// A time of day that the clocks skip means the instant at which they resume; one that occurs twice means the
// first occurrence. Schedules of services follow the same rule (cron.ts).

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;
const SECOND_MS = 1_000;

/** The number of UTC days whose offsets a calendar keeps. */
const MAX_DAYS = 4_096;

/** The offset from UTC, in ms, on one UTC day. No zone has ever changed it twice in a day. */
interface OffsetDay {
  before: number;
  /** When `after` replaces `before`; the end of the day if there is no change. */
  changeAt: number;
  after: number;
}

export class ZoneCalendar {
  private readonly format: Intl.DateTimeFormat;
  /** Looking up an offset is expensive, and the same days come up again and again. */
  private readonly days = new Map<number, OffsetDay>();

  /** Throws a RangeError for an unknown zone. */
  constructor(timezone: string) {
    this.format = new Intl.DateTimeFormat('en-US', {
      timeZone: timezone,
      hourCycle: 'h23',
      era: 'short',
      ...{ year: 'numeric', month: 'numeric', day: 'numeric' },
      ...{ hour: 'numeric', minute: 'numeric', second: 'numeric' },
    });
  }

  /** The local day at the instant `at`, as a number counted from 1970-01-01. */
  dayAt(at: number): number {
    return Math.floor((at + this.offsetAt(at)) / DAY_MS);
  }

  /** The day of the week of the day `day`; 0 is Sunday. */
  weekday(day: number): number {
    return (((day + 4) % 7) + 7) % 7;
  }

  /** The instant `minute` minutes after the midnight at which `day` begins. */
  instant(day: number, minute: number): number {
    const wall = day * DAY_MS + minute * MINUTE_MS;
    const before = this.offsetAt(wall - DAY_MS);
    const after = this.offsetAt(wall + DAY_MS);
    const early = wall - Math.max(before, after);
    const late = wall - Math.min(before, after);
    if (early + this.offsetAt(early) === wall) return early;
    if (late + this.offsetAt(late) === wall) return late;
    return this.firstAfterGap(early, late);
  }

  /** The instant at which the clocks go forward, between `low` and `high`. */
  private firstAfterGap(low: number, high: number): number {
    const offset = this.offsetAt(low);
    return firstSecond(low, high, (at) => this.offsetAt(at) !== offset);
  }

  /** The offset from UTC, in milliseconds. */
  private offsetAt(at: number): number {
    const day = Math.floor(at / DAY_MS);
    const { before, changeAt, after } = this.days.get(day) ?? this.readDay(day);
    return at < changeAt ? before : after;
  }

  private readDay(day: number): OffsetDay {
    const start = day * DAY_MS;
    const end = start + DAY_MS;
    const before = this.days.get(day - 1)?.after ?? this.readOffset(start);
    const after = this.days.get(day + 1)?.before ?? this.readOffset(end);
    const changeAt = before === after ? end : firstSecond(start, end, (at) => this.readOffset(at) !== before);
    const read = { before, changeAt, after };
    if (this.days.size >= MAX_DAYS) this.days.clear();
    this.days.set(day, read);
    return read;
  }

  private readOffset(second: number): number {
    const fields = new Map(this.format.formatToParts(second).map(({ type, value }) => [type, value]));
    const field = (name: Intl.DateTimeFormatPartTypes): number => Number(fields.get(name));
    const wall = Date.UTC(field('year'), field('month') - 1, field('day'), field('hour'), field('minute'));
    return wall + field('second') * SECOND_MS - second;
  }
}

/**
 * The first whole second after `low` at which `isPast` holds; it does not hold at `low` and does at `high`.
 * Whole seconds, because clocks were once changed by odd numbers of seconds.
 */
function firstSecond(low: number, high: number, isPast: (at: number) => boolean): number {
  let [from, to] = [low, high];
  while (to - from > SECOND_MS) {
    const middle = from + Math.floor((to - from) / 2 / SECOND_MS) * SECOND_MS;
    if (isPast(middle)) to = middle;
    else from = middle;
  }
  return to;
}
