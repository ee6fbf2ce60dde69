// The windows of policies over whole years, on the days on which clocks are set above all.
// docs/reference.md "Policies".
import { describe, expect, it } from 'vitest';
import { nextSwitches, SleepTimeline } from '../../../src/actors/cloud/sleep_timeline.ts';
import { timetableOf } from '../../../src/adapters/cron.ts';
import {
  dayNumber,
  parseSchedule,
  parseWindow,
  type SleepSchedule,
} from '../../../src/protocol/sleep_windows.ts';
import { ZoneCalendar } from '../../../src/protocol/zone_calendar.ts';

function schedule(text: string, more: Partial<SleepSchedule> = {}): SleepSchedule {
  const parsed = parseSchedule(text);
  if (typeof parsed === 'string') throw new Error(parsed);
  return { ...parsed, ...more };
}

const timelineOf = (spec: SleepSchedule): SleepTimeline =>
  new SleepTimeline(spec, new ZoneCalendar(spec.timezone));

const at = (text: string): number => Date.parse(text);
const shown = (timeline: SleepTimeline, from: string, count: number): string[] =>
  nextSwitches(timeline, at(from), null, count).map(
    (one) => `${new Date(one.at).toISOString().slice(0, 16)}Z ${one.to}`,
  );

describe('sleep windows', () => {
  it('apply on their days, and until the next morning', () => {
    const nights = timelineOf(schedule('Mon-Fri 20:00-07:00'));
    // 2026-11-20 is a Friday.
    expect(shown(nights, '2026-11-20T12:00Z', 5)).toEqual([
      '2026-11-20T20:00Z asleep',
      '2026-11-21T07:00Z awake',
      '2026-11-23T00:00Z asleep',
      '2026-11-23T07:00Z awake',
      '2026-11-23T20:00Z asleep',
    ]);
  });

  it('that touch are one, so that nothing wakes on Monday night after the weekend', () => {
    const all = timelineOf(schedule('Mon-Fri 20:00-07:00, weekends'));
    expect(shown(all, '2026-11-20T12:00Z', 3)).toEqual([
      '2026-11-20T20:00Z asleep',
      '2026-11-23T07:00Z awake',
      '2026-11-23T20:00Z asleep',
    ]);
  });

  it('do not apply on the days of exceptions', () => {
    const timeline = timelineOf(
      schedule('Mon-Fri 20:00-07:00, weekends', {
        exceptions: [
          { from: '2026-11-24', to: '2026-11-25', state: 'asleep' },
          { from: '2026-11-28', to: '2026-11-28', state: 'awake' },
        ],
      }),
    );
    expect(shown(timeline, '2026-11-23T12:00Z', 7)).toEqual([
      '2026-11-23T20:00Z asleep',
      '2026-11-26T07:00Z awake',
      '2026-11-26T20:00Z asleep',
      '2026-11-27T07:00Z awake',
      '2026-11-27T20:00Z asleep',
      '2026-11-28T00:00Z awake',
      '2026-11-29T00:00Z asleep',
    ]);
  });

  it('never end if they cover everything, except for distant exceptions', () => {
    const always = timelineOf(schedule('daily'));
    expect(always.phaseAt(at('2026-11-23T12:00Z'))).toEqual({ to: 'asleep', since: 0, until: null });
    const but = timelineOf(
      schedule('daily', { exceptions: [{ from: '2027-03-01', to: '2027-03-01', state: 'awake' }] }),
    );
    expect(shown(but, '2026-11-23T12:00Z', 10)).toEqual([
      '2027-03-01T00:00Z awake',
      '2027-03-02T00:00Z asleep',
    ]);
    expect(but.phaseAt(at('2027-06-01T00:00Z')).since).toBe(at('2027-03-02T00:00Z'));
  });

  it.each([
    ['', 'window'],
    ['Mon-Fri', null],
    ['fri-mon 22:00-6:00', null],
    ['22:00-24:00', null],
    ['0 20 * * 1-5', 'window'],
    ['* * * * *', 'window'],
    ['Funday 20:00-07:00', 'days'],
    ['Mon-Weekends 20:00-07:00', 'window'],
    ['Mon 25:00-26:00', 'times'],
    ['Mon 20:60-21:00', 'times'],
    ['Mon 20:00-20:00', 'another time'],
    ['\u0000Mon 20:00-21:00', 'window'],
    ['x'.repeat(1_000_000), 'window'],
  ])('of the text %.30j', (text, fault) => {
    const window = parseWindow(text);
    if (fault === null) expect(window).toBeTypeOf('object');
    else expect(window).toContain(fault);
  });

  it.each([
    ['Mon-Fri 20:00-07:00 Europe/Berlin, weekends Asia/Kolkata', 'several time zones'],
    ['weekends Mars/Olympus', 'not known'],
    ['Mon-Fri 20:00-07:00 EST5EDT', 'has EST5EDT where only a time zone'],
    ['weekends, 22:00-06:00 UTC+3', 'has UTC+3 where only a time zone'],
    ['22:00-06:00 +01:00', 'has +01:00 where only a time zone'],
    ['20:00-07:00 08:00-09:00', 'must be a window'],
    ['Funday 20:00-07:00 EST5EDT', 'must be a window'],
    ['weekends,'.repeat(40), 'more than 32'],
    [`${'a'.repeat(2_000_000)}`, 'more than 1000'],
  ])('of the annotation %.40j', (text, fault) => {
    expect(parseSchedule(text)).toContain(fault);
  });
});

describe('days on which clocks were set by odd numbers of seconds', () => {
  it.each([
    // 00:00 was skipped: clocks went on at 00:44:30, and at 00:06:32.
    ['1972-01-07', 'Africa/Monrovia', '1972-01-07T00:44:30Z'],
    ['1893-04-01', 'Europe/Berlin', '1893-03-31T23:06:32Z'],
  ])('%s in %s have a midnight', (day, timezone, midnight) => {
    expect(new ZoneCalendar(timezone).instant(dayNumber(day) ?? 0, 0)).toBe(at(midnight));
    const exceptions = [{ from: day, to: day, state: 'asleep' as const }];
    const timeline = timelineOf({ windows: [], exceptions, timezone });
    expect(timeline.phaseAt(at(midnight)).to).toBe('asleep');
  });
});

describe('a schedule of an untrusted author', () => {
  class CountingCalendar extends ZoneCalendar {
    asked = 0;
    override instant(day: number, minute: number): number {
      this.asked += 1;
      return super.instant(day, minute);
    }
  }
  const two = (count: number): string => String(count % 24).padStart(2, '0');

  it.each([
    ['asleep all the time', (hour: number) => `${two(hour)}:00-${two(hour + 1)}:01`],
    ['asleep and awake by turns', (hour: number) => `${two(hour)}:00-${two(hour)}:45`],
    ['within long exceptions', (hour: number) => `${two(hour)}:00-${two(hour)}:45`],
  ])('needs few calendar calculations if it is %s', (what, window) => {
    const text = Array.from({ length: 32 }, (_, hour) => window(hour)).join(',');
    const long = { from: '2020-01-01', to: '2040-01-01', state: 'asleep' as const };
    const exceptions = what.includes('exceptions') ? Array.from({ length: 50 }, () => long) : [];
    const calendar = new CountingCalendar('Europe/Berlin');
    const timeline = new SleepTimeline(schedule(`${text} Europe/Berlin`, { exceptions }), calendar);
    timeline.phaseAt(at('2026-11-23T12:00Z'));
    expect(calendar.asked).toBeLessThan(5_000);
  });
});

/** The local time of an instant, by the system's own calendar. */
const local = (timezone: string) => {
  const format = new Intl.DateTimeFormat('sv-SE', {
    timeZone: timezone,
    dateStyle: 'short',
    timeStyle: 'short',
  });
  return (instant: number): string => format.format(instant).slice(-5);
};

describe.each(['Europe/Berlin', 'America/New_York', 'Asia/Kolkata', 'Australia/Lord_Howe'])('%s', (zone) => {
  it('has every night of a year once, from 20:00 to 07:00 by its own clocks', () => {
    const timeline = timelineOf(schedule(`20:00-07:00 ${zone}`));
    const time = local(zone);
    const start = at('2026-01-01T12:00Z');
    const switches = nextSwitches(timeline, start, null, 730);
    expect(switches.filter((one) => time(one.at) !== (one.to === 'asleep' ? '20:00' : '07:00'))).toEqual([]);
    expect(switches.every((one, index) => index === 0 || one.to !== switches[index - 1]?.to)).toBe(true);
    const nights = switches.filter((one) => one.to === 'asleep').map((one) => one.at);
    expect(nights).toHaveLength(365);
    expect(Math.round(((nights.at(-1) ?? 0) - (nights[0] ?? 0)) / 86_400_000)).toBe(364);
  });

  it('handles a window that begins or ends during a clock change as schedules of services do', () => {
    // 01:45 and 02:15 are skipped or come twice in one of the zones.
    const timeline = timelineOf(schedule(`01:45-02:15 ${zone}`));
    const starts = timetableOf({ cron: '45 1 * * *', timezone: zone, catchUp: false });
    const ends = timetableOf({ cron: '15 2 * * *', timezone: zone, catchUp: false });
    const days = ['2026-03-08', '2026-03-29', '2026-04-05', '2026-10-04', '2026-10-25', '2026-11-01'];
    for (const day of days) {
      const before = at(`${day}T00:00Z`) - 24 * 3_600_000;
      const [first, second] = nextSwitches(timeline, before, null, 2);
      const [asleep, awake] = first?.to === 'asleep' ? [first, second] : [second, first];
      expect([asleep?.at, awake?.at]).toEqual([starts.next(before), ends.next(before)]);
    }
  });

  it('gives the same result for every hour of the year, whatever was asked before', () => {
    const spec = schedule(`Mon-Fri 20:00-07:00, weekends ${zone}`);
    const kept = timelineOf(spec);
    for (let hour = 0; hour < 365 * 24; hour += 7) {
      const instant = at('2026-01-01T00:30Z') + hour * 3_600_000;
      const { since, until, to } = kept.phaseAt(instant);
      expect(since <= instant && instant < (until ?? 0)).toBe(true);
      if (hour % 49 === 0) expect(timelineOf(spec).phaseAt(instant)).toEqual({ since, until, to });
    }
  });
});
