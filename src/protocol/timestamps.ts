/**
 * RFC 3339 with milliseconds and the local offset from UTC, such as 2026-11-20T10:00:00.000+01:00:
 * docs/reference.md "Timestamps and durations".
 */
export function localTime(ms: number): string {
  const east = -new Date(ms).getTimezoneOffset();
  const shifted = new Date(ms + east * 60_000).toISOString().slice(0, -1);
  const minutes = Math.abs(east);
  const part = (value: number): string => String(Math.floor(value)).padStart(2, '0');
  return `${shifted}${east < 0 ? '-' : '+'}${part(minutes / 60)}:${part(minutes % 60)}`;
}

const RFC_3339 = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+ -]\d\d:\d\d)$/;
const DURATION = /^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d|w))+$/;
const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
};

/**
 * Parses a time as a person writes it into epoch milliseconds: RFC 3339, or a duration before `now` such as
 * `15m` or `1h30m`. null: neither.
 */
export function parseTime(text: string, now: number): number | null {
  if (DURATION.test(text)) {
    let back = 0;
    for (const [, count, unit = ''] of text.matchAll(/([\d.]+)([a-z]+)/g))
      back += Number(count) * (UNIT_MS[unit] ?? 0);
    return now - back;
  }
  // In a query, a plus sign that is not percent-encoded arrives as a space.
  const time = RFC_3339.test(text)
    ? Date.parse(text.replace(/^(.{10}) /, '$1T').replace(' ', '+'))
    : Number.NaN;
  return Number.isNaN(time) ? null : time;
}

const LAST_TIME = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** Whether RFC 3339 has a text for the time, in epoch milliseconds: from 1970 to 9999. */
export const isTime = (ms: number): boolean => ms >= 0 && ms <= LAST_TIME;

/** The last time and its text: all rows of a cluster may share one, and formatting it takes long. */
let last = { ms: 0, text: new Date(0).toISOString() };

/**
 * RFC 3339 with milliseconds, in UTC, the time format of the cloud API. `ms`: epoch milliseconds. null: none,
 * or one that has no text.
 */
export function utcTime(ms: number | null): string | null {
  if (ms === null || !isTime(ms)) return null;
  if (ms !== last.ms) last = { ms, text: new Date(ms).toISOString() };
  return last.text;
}
