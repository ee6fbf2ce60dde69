// The timelines of schedules, cached: many workloads have the same few.
import { createHash } from 'node:crypto';
import { parseSchedule, type SleepSchedule } from '../../protocol/sleep_windows.ts';
import { ZoneCalendar } from '../../protocol/zone_calendar.ts';
import { POLICY } from '../../settings/cloud_limits.ts';
import type { GivenSchedule } from './policy_decision.ts';
import { SleepTimeline } from './sleep_timeline.ts';

/** The number of time zones whose calendars are cached. */
const MAX_CALENDARS = 64;

interface KeyedTimeline {
  /** Identifies the schedule. */
  key: string;
  timeline: SleepTimeline;
}

export class Timelines {
  /** By the text of the schedule. */
  private readonly timelines = new Map<string, KeyedTimeline>();
  private readonly calendars = new Map<string, ZoneCalendar>();

  /** null for an invalid schedule, which is reported as a fault where it is read. */
  of({ schedule }: GivenSchedule): KeyedTimeline | null {
    const text = typeof schedule === 'string' ? schedule : JSON.stringify(schedule);
    const known = this.timelines.get(text);
    if (known) return known;
    const parsed: SleepSchedule | string = typeof schedule === 'string' ? parseSchedule(schedule) : schedule;
    if (typeof parsed === 'string') return null;
    const key = createHash('sha256').update(text).digest('base64url').slice(0, 12);
    const made = { key, timeline: new SleepTimeline(parsed, this.calendarOf(parsed.timezone)) };
    if (this.timelines.size >= POLICY.maxTimelines) this.timelines.clear();
    this.timelines.set(text, made);
    return made;
  }

  private calendarOf(timezone: string): ZoneCalendar {
    const known = this.calendars.get(timezone);
    if (known) return known;
    const made = new ZoneCalendar(timezone);
    if (this.calendars.size >= MAX_CALENDARS) this.calendars.clear();
    this.calendars.set(timezone, made);
    return made;
  }
}
