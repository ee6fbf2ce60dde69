// The annotations by which users schedule the sleep of workloads: docs/reference.md "Policies". Anyone may
// have written them. Faulty ones are reported, and have no effect. Pure.

import type { SleepAnnotations } from '../../protocol/policies.ts';
import { parseSchedule } from '../../protocol/sleep_windows.ts';
import { parseTime } from '../../protocol/timestamps.ts';
import { CLOUD, WAKE_ORDER } from '../../settings/cloud_limits.ts';
import { oneLine } from './untrusted_values.ts';

/** The number of characters of a value shown in a fault. */
const SHOWN_LENGTH = 60;
const MAX_LENGTH = 1_000;
/** The last time that RFC 3339 can express in UTC. */
const LAST_TIME = Date.parse('9999-12-31T23:59:59.999Z');
const UNIT_MINUTES: Readonly<Record<string, number>> = { m: 1, h: 60, d: 1_440 };

/** Parses a value to its part of the annotations, or to what is wrong with it. */
type Read = (text: string) => SleepAnnotations | string;

const { min, max } = CLOUD.idleMinutes;

function readIdle(text: string): SleepAnnotations | string {
  if (text === 'off') return { idleMinutes: 0 };
  const [, count, unit = ''] = /^(\d{1,6})([mhd])$/.exec(text) ?? [];
  const minutes = Number(count) * (UNIT_MINUTES[unit] ?? Number.NaN);
  return minutes >= min && minutes <= max
    ? { idleMinutes: minutes }
    : `must be off or a time such as 45m or 2h, at most ${max / 1_440}d`;
}

function readTime(text: string): SleepAnnotations | string {
  const at = /^\d{4}-/.test(text) ? parseTime(text, 0) : null;
  return at === null || at > LAST_TIME
    ? 'must be a time such as 2026-12-24T18:00:00+01:00'
    : { awakeUntil: at };
}

function readSchedule(text: string): SleepAnnotations | string {
  const parsed = parseSchedule(text);
  return typeof parsed === 'string' ? parsed : { schedule: text };
}

const readFlag: Read = (text) =>
  text === 'true' || text === 'false' ? { isExcluded: text === 'true' } : 'must be "true" or "false"';

const NAME = /^(?:(?:deployment|statefulset)\/)?(?=.{1,253}$)[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/i;

function readAfter(text: string): SleepAnnotations | string {
  const names = [...new Set(text.split(',').map((name) => name.trim()))].filter((name) => name !== '');
  const isGood =
    names.length > 0 && names.length <= WAKE_ORDER.maxNames && names.every((name) => NAME.test(name));
  return isGood
    ? { after: names }
    : `must be 1 to ${WAKE_ORDER.maxNames} names of workloads, as db, statefulset/cache`;
}

const READERS: Readonly<Record<string, Read>> = {
  'berth/auto-sleep': readIdle,
  'berth/schedule': readSchedule,
  'berth/awake-until': readTime,
  'berth/exclude': readFlag,
  'berth/after': readAfter,
};

/** The sleep annotations of an object; null if none. */
export function readSleepAnnotations(annotations: unknown): SleepAnnotations | null {
  if (typeof annotations !== 'object' || annotations === null) return null;
  const found: SleepAnnotations[] = [];
  const faults: string[] = [];
  for (const [name, read] of Object.entries(READERS)) {
    if (!Object.hasOwn(annotations, name)) continue;
    const value: unknown = Object.getOwnPropertyDescriptor(annotations, name)?.value;
    const isText = typeof value === 'string' && value.length <= MAX_LENGTH;
    const result = isText ? read(value.trim()) : `must be a text of at most ${MAX_LENGTH} characters`;
    if (typeof result === 'string') faults.push(`${name} ${result}${shown(value)}`);
    else found.push(result);
  }
  if (found.length === 0 && faults.length === 0) return null;
  return Object.assign({}, ...found, faults.length === 0 ? {} : { faults });
}

const shown = (value: unknown): string => {
  const text = oneLine(
    typeof value === 'string' ? value.slice(0, MAX_LENGTH).replace(/\p{C}/gu, ' ') : '',
    SHOWN_LENGTH,
  );
  return text === '' ? '' : `: ${text}`;
};
