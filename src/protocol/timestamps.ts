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

/** RFC 3339 with milliseconds, in UTC, the time format of the cloud API. `ms`: epoch milliseconds. */
export const utcTime = (ms: number | null): string | null =>
  ms === null ? null : new Date(ms).toISOString();
