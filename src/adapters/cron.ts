// The times of a schedule: docs/reference.md "Schedules". The only file that imports croner.
import { Cron } from 'croner';
import type { ScheduleSpec } from '../protocol/schedules.ts';

/** The longest line that is read. */
const MAX_LENGTH = 256;
const EVERY = /^@every ((?:\d{1,9}(?:ms|s|m|h|d))+)$/;
const NICKNAME = /^@(?:yearly|annually|monthly|weekly|daily|midnight|hourly)$/;
const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 24 * 3_600_000 };
const MIN_EVERY_MS = 1_000;
const MAX_EVERY_MS = 366 * 24 * 3_600_000;

/** The interval of `@every 1h30m` in milliseconds; null for another line. */
function intervalOf(line: string): number | null {
  const text = EVERY.exec(line)?.[1];
  if (text === undefined) return null;
  let ms = 0;
  for (const [, count, unit] of text.matchAll(/(\d+)(ms|s|m|h|d)/g))
    ms += Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS];
  return ms;
}

const open = ({ cron, timezone }: Pick<ScheduleSpec, 'cron' | 'timezone'>): Cron =>
  new Cron(cron, { paused: true, ...(timezone !== null && { timezone }) });

/** Why `cron` is not a valid schedule line; null: it is valid. */
export function cronFault(cron: string): string | null {
  const every = intervalOf(cron);
  if (every !== null)
    return every >= MIN_EVERY_MS && every <= MAX_EVERY_MS ? null : 'must be @every 1s to @every 366d';
  const isLine = cron.length <= MAX_LENGTH && cron.trim().split(/\s+/).length === 5;
  if (!isLine && !NICKNAME.test(cron))
    return 'must be a cron line of five fields such as "0 3 * * *", @daily, or @every 5m';
  try {
    const next = open({ cron, timezone: 'UTC' }).nextRun();
    return next ? null : 'must be a cron line whose time comes';
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(/^CronPattern: /, '') : String(error);
    return `must be a cron line: ${why.slice(0, MAX_LENGTH)}`;
  }
}

/** Whether `timezone` is one that this machine knows, such as Europe/Berlin. */
export function isTimezone(timezone: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: timezone }) !== null;
  } catch {
    return false;
  }
}

/** The times of one schedule, in epoch milliseconds. */
export interface Timetable {
  /** The first time after `at`; null: there is none. */
  next(at: number): number | null;
  /** The last time that is not after `now`, and is after `at`; null: there is none. */
  lastDue(at: number, now: number): number | null;
}

/** The timetable of a schedule without a fault. `@every` counts from one time to the next. */
export function timetableOf(schedule: ScheduleSpec): Timetable {
  const every = intervalOf(schedule.cron);
  if (every !== null)
    return {
      next: (at) => at + every,
      lastDue: (at, now) => (now - at < every ? null : at + Math.floor((now - at) / every) * every),
    };
  const cron = open(schedule);
  return {
    next: (at) => cron.nextRun(new Date(at))?.getTime() ?? null,
    lastDue: (at, now) => {
      // The reference time itself and its milliseconds are ignored.
      const [last] = cron.previousRuns(1, new Date(now + 1_000));
      return last && last.getTime() > at && last.getTime() <= now ? last.getTime() : null;
    },
  };
}
