// docs/reference.md "Schedules": lines and their times.
import { describe, expect, it } from 'vitest';
import { cronFault, isTimezone, timetableOf } from '../../src/adapters/cron.ts';

const times = (cron: string, timezone: string | null = 'UTC') =>
  timetableOf({ cron, timezone, catchUp: false });
const at = (text: string): number => Date.parse(text);
const shown = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());

describe('a cron expression', () => {
  it.each([
    '*/5 * * * *',
    '0 3 * * MON-FRI',
    '0 0 29 2 *',
    '@daily',
    '@every 5m',
    '@every 1h30m',
    '@every 1d12h',
    '@every 366d',
  ])('%s is accepted', (line) => expect(cronFault(line)).toBeNull());
  it.each([
    ...['', 'x', '* * * *', '* * * * * *', '61 * * * *', '0 0 30 2 *', '0 0 31 4,6 *', '2030-01-01T00:00:00'],
    ...[
      '@every',
      '@every 0s',
      '@every 367d',
      '@every 1w',
      '@every 5',
      '@every 1ms',
      '@never',
      `${'0,'.repeat(500)}0 * * * *`,
    ],
  ])('%s is refused', (line) => expect(cronFault(line)).toMatch(/^must be /));
  it('knows time zones', () => {
    expect([isTimezone('Europe/Berlin'), isTimezone('Europe/Nowhere'), isTimezone('')]).toEqual([
      true,
      false,
      false,
    ]);
  });
});

describe('the times of a cron expression', () => {
  it('are in order, and the last one that is due is found', () => {
    const table = times('*/5 * * * *');
    const noon = at('2030-01-01T12:00:00Z');
    expect(shown(table.next(noon))).toBe('2030-01-01T12:05:00.000Z');
    expect(table.lastDue(noon, at('2030-01-01T12:04:59Z'))).toBeNull();
    expect(shown(table.lastDue(noon, at('2030-01-01T12:05:00Z')))).toBe('2030-01-01T12:05:00.000Z');
    expect(shown(table.lastDue(noon, at('2030-01-03T00:03:00Z')))).toBe('2030-01-03T00:00:00.000Z');
  });

  it('follow a time zone across clock changes', () => {
    const table = times('30 2 * * *', 'Europe/Berlin');
    expect(shown(table.next(at('2030-03-30T12:00:00Z')))).toBe('2030-03-31T01:00:00.000Z');
    const october = table.next(at('2030-10-26T12:00:00Z')) ?? 0;
    expect(shown(october)).toBe('2030-10-27T00:30:00.000Z');
    expect(shown(table.next(october))).toBe('2030-10-28T01:30:00.000Z');
  });

  it('of @every keep their interval', () => {
    const table = times('@every 1m30s');
    expect([table.next(0), table.lastDue(0, 89_999), table.lastDue(0, 400_000)]).toEqual([
      90_000,
      null,
      360_000,
    ]);
  });
});
