// The days of a time zone as instants. Pure.
//
// A time of the day that clocks skip is the instant at which they go on; one that they show twice is the
// first of the two. Schedules of services have the same rule (cron.ts).

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

export class ZoneCalendar {
  private readonly format: Intl.DateTimeFormat;
  /** The offset of each instant that was asked for: the same few days are asked for again and again. */
  private readonly offsets = new Map<number, number>();

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

  /** The number of the day, counted from 1970-01-01, that it is here at `at`. */
  dayAt(at: number): number {
    return Math.floor((at + this.offsetAt(at)) / DAY_MS);
  }

  /** The day of the week of the day `day`; 0 is Sunday. */
  weekday(day: number): number {
    return (((day + 4) % 7) + 7) % 7;
  }

  /** The instant at which it is `minute` minutes past the midnight that begins the day `day`. */
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

  /** The instant between `low`, before the clocks go forward, and `high`, after that. */
  private firstAfterGap(low: number, high: number): number {
    const offset = this.offsetAt(low);
    let [from, to] = [low, high];
    while (to - from > MINUTE_MS) {
      const middle = from + Math.floor((to - from) / 2 / MINUTE_MS) * MINUTE_MS;
      if (this.offsetAt(middle) === offset) from = middle;
      else to = middle;
    }
    return to;
  }

  /** What has to be added to UTC, in milliseconds. */
  private offsetAt(at: number): number {
    const second = Math.floor(at / 1_000) * 1_000;
    const known = this.offsets.get(second);
    if (known !== undefined) return known;
    const fields = new Map(this.format.formatToParts(second).map(({ type, value }) => [type, value]));
    const field = (name: Intl.DateTimeFormatPartTypes): number => Number(fields.get(name));
    const wall = Date.UTC(field('year'), field('month') - 1, field('day'), field('hour'), field('minute'));
    const offset = wall + field('second') * 1_000 - second;
    if (this.offsets.size >= 4_096) this.offsets.clear();
    this.offsets.set(second, offset);
    return offset;
  }
}
