// The schedule of a process of process-compose.
import { cronFault, isTimezone } from '../adapters/cron.ts';
import type { YamlNode } from '../adapters/yaml.ts';
import type { KnownKeys } from './dropped_keys.ts';
import { parseDuration } from './duration.ts';
import type { ImportedService } from './imported_project.ts';
import { nodeAt, scalarText } from './lenient_yaml.ts';

const isLine = (line: string): boolean => cronFault(line) === null;

/** The line for an interval of Go, such as `1h30m` or `1.5h`. */
function everyLine(interval: string): string {
  const line = `@every ${interval}`;
  const ms = /[a-z]/.test(interval) ? parseDuration(interval) : undefined;
  return isLine(line) || ms === undefined ? line : `@every ${ms}ms`;
}

/** The keys of a schedule that are carried over, except for `run_on_start`. Runs never overlap. */
export const SCHEDULE_KEYS: KnownKeys = {
  cron: isLine,
  interval: (text) => isLine(everyLine(text)),
  timezone: isTimezone,
  max_concurrent: (text) => text === '0' || text === '1',
};

/** Whether the process `value` has a schedule, perhaps one that cannot be carried over. */
export const isScheduled = (value: YamlNode): boolean =>
  ['cron', 'interval'].some((key) => scalarText(nodeAt(value, 'schedule', key)));

/** The schedule of the process `value`; undefined for none. A cron line wins over an interval. */
export function scheduleOf(value: YamlNode): ImportedService['schedule'] {
  const textAt = (key: string) => scalarText(nodeAt(value, 'schedule', key)) || undefined;
  const interval = textAt('interval');
  const cron = textAt('cron') ?? (interval === undefined ? undefined : everyLine(interval));
  if (cron === undefined || !isLine(cron)) return undefined;
  const timezone = textAt('timezone');
  return timezone !== undefined && isTimezone(timezone) ? { cron, timezone } : cron;
}
