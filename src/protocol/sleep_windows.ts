// The windows in which a policy keeps workloads asleep, as text and as data: docs/reference.md "Policies".
// Pure.

/** 0 is Sunday. */
const DAY_NAMES = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const;
const DAY_GROUPS: Readonly<Record<string, readonly number[]>> = {
  daily: [0, 1, 2, 3, 4, 5, 6],
  weekdays: [1, 2, 3, 4, 5],
  weekends: [6, 0],
};

/** Minutes of a day. */
export const DAY_MINUTES = 1_440;
/** The highest number of windows in one schedule, and the longest text of all of them. */
const MAX_WINDOWS = 32;
const MAX_LENGTH = 1_000;

/**
 * On `days`, asleep from `start` to `end`, in minutes after midnight. If `end` is not after `start`, asleep
 * on these days before `end` and from `start` on, and on the day after the last of them until `end`.
 */
export interface SleepWindow {
  days: readonly number[];
  start: number;
  end: number;
}

/** A day or a range of days to which the windows do not apply. */
export interface SleepException {
  /** The first and the last day, such as 2026-12-24. */
  from: string;
  to: string;
  state: 'asleep' | 'awake';
}

/** When workloads should be asleep. */
export interface SleepSchedule {
  windows: readonly SleepWindow[];
  exceptions: readonly SleepException[];
  /** Such as Europe/Berlin. */
  timezone: string;
}

const WINDOW = /^(?:([a-z]{3,8})(?:-([a-z]{3}))?)?(?:(?:^|\s+)(\d{1,2}):(\d\d)\s*-\s*(\d{1,2}):(\d\d))?$/;

/** The days of `mon`, `mon-fri`, `weekends`; null for any other text. */
function daysOf(first: string, last: string | undefined): readonly number[] | null {
  if (last === undefined && Object.hasOwn(DAY_GROUPS, first)) return DAY_GROUPS[first] ?? null;
  const names: readonly string[] = DAY_NAMES;
  const from = names.indexOf(first);
  const to = names.indexOf(last ?? first);
  if (from < 0 || to < 0) return null;
  return Array.from({ length: ((to - from + 7) % 7) + 1 }, (_, index) => (from + index) % 7);
}

const EXAMPLES = 'such as "Mon-Fri 20:00-07:00", "weekends" or "22:00-06:00"';

/** Parses a window such as `Mon-Fri 20:00-07:00`, or returns what is wrong with it, to follow "must". */
export function parseWindow(text: string): SleepWindow | string {
  if (text.length > MAX_LENGTH) return `be a window ${EXAMPLES}`;
  const match = WINDOW.exec(text.trim().toLowerCase());
  const [, first, last, ...clock] = match ?? [];
  const [startHour, startMinute, endHour, endMinute] = clock.map(Number);
  if (!match || (first === undefined && clock[0] === undefined)) return `be a window ${EXAMPLES}`;
  const days = daysOf(first ?? 'daily', last);
  if (days === null) return `begin with days: Sun to Sat, a range as Mon-Fri, weekdays, weekends or daily`;
  if (clock[0] === undefined) return { days, start: 0, end: DAY_MINUTES };
  const start = (startHour ?? 0) * 60 + (startMinute ?? 0);
  const end = (endHour ?? 0) * 60 + (endMinute ?? 0);
  const areMinutes = (startMinute ?? 60) < 60 && (endMinute ?? 60) < 60;
  if (!areMinutes || start >= DAY_MINUTES || end > DAY_MINUTES) return 'have times from 00:00 to 24:00';
  if (start === end) return 'end at another time than it begins';
  return { days, start, end };
}

/** Whether this machine knows the time zone. */
export function isTimeZone(name: string): boolean {
  // Offsets such as +01:00 are refused: they have no daylight saving time, which users expect.
  if (!/^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/.test(name)) return false;
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }) !== null;
  } catch {
    return false;
  }
}

/** A time zone at the end of a part of an annotation: a word with a slash, or UTC. */
const ZONE = /^(.*?)\s*\b([A-Za-z]+\/[A-Za-z0-9_+/-]+|UTC)$/;

/** A word after a window. */
const LAST_WORD = /^(.*\S)\s+([A-Za-z+-][A-Za-z0-9_+/:-]{0,63})$/;

/** What is wrong with a part whose window is valid without its last word; null: something else is. */
function zoneFault(part: string): string | null {
  const [, before, word] = LAST_WORD.exec(part.trim()) ?? [];
  if (before === undefined || typeof parseWindow(before) === 'string') return null;
  return `has ${word} where only a time zone may be, such as Europe/Berlin or UTC`;
}

/**
 * Parses the schedule of an annotation, such as `Mon-Fri 20:00-07:00, weekends Europe/Berlin`, or returns
 * what is wrong with it. Without a zone, times are UTC.
 */
export function parseSchedule(text: string): SleepSchedule | string {
  if (text.length > MAX_LENGTH) return `has more than ${MAX_LENGTH} characters`;
  const windows: SleepWindow[] = [];
  const zones = new Set<string>();
  const parts = text.split(',');
  if (parts.length > MAX_WINDOWS) return `has more than ${MAX_WINDOWS} windows`;
  for (const part of parts) {
    const [, before, zone] = ZONE.exec(part.trim()) ?? [];
    if (zone !== undefined) zones.add(zone);
    const window = parseWindow(before ?? part);
    if (typeof window === 'string') return zoneFault(part) ?? `must ${window}`;
    windows.push(window);
  }
  const [timezone = 'UTC', another] = zones;
  if (another !== undefined) return 'names several time zones';
  if (!isTimeZone(timezone)) return 'names a time zone that is not known';
  return { windows, exceptions: [], timezone };
}

const DATE = /^(\d{4})-(\d\d)-(\d\d)$/;
const DAY_MS = 86_400_000;

/** The number of a day, counted from 1970-01-01; null if `text` is not a date. */
export function dayNumber(text: string): number | null {
  const [, year, month, day] = (DATE.exec(text) ?? []).map(Number);
  if (year === undefined || month === undefined || day === undefined) return null;
  const at = new Date(Date.UTC(year, month - 1, day));
  return at.toISOString().startsWith(text) ? at.getTime() / DAY_MS : null;
}
