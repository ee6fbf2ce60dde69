// The probes of a process-compose file as checks.
import type { YamlNode } from '../adapters/yaml.ts';
import { CHECK, HTTP } from '../settings/limits.ts';
import type { ImportedCheck, ImportedService } from './imported_project.ts';
import { nodeAt, scalarText } from './lenient_yaml.ts';
import type { ShellCommand } from './process_compose_commands.ts';
import { httpText, numberAt } from './process_compose_keys.ts';

/** The default of process-compose. */
const DEFAULT_PERIOD_S = 10;
/** The longest time of a project file. */
export const MAX_SECONDS = HTTP.maxQueryDurationMs / 1_000;

/** What the parts of a process need to know. */
export interface ProcessContext {
  /** Why it is a task; undefined for a service. */
  taskReason: string | undefined;
  inShell: ShellCommand;
  notes: string[];
}

/** The URL of an HTTP probe. */
function probeUrl(get: YamlNode | undefined): string | undefined {
  const port = httpText(get, 'port');
  if (port === undefined) return undefined;
  const host = httpText(get, 'host') ?? 'localhost';
  const path = scalarText(nodeAt(get, 'path')) ?? '/';
  const scheme = (httpText(get, 'scheme') ?? 'http').toLowerCase();
  return `${scheme}://${host}:${port}${path.startsWith('/') ? path : `/${path}`}`;
}

const milliseconds = (seconds: number): number =>
  Math.min(HTTP.maxQueryDurationMs, Math.max(CHECK.minIntervalMs, Math.round(seconds * 1_000)));

/** The check for a probe; undefined if the probe checks nothing. */
export function checkOf(
  probe: YamlNode | undefined,
  { isLive, inShell }: { isLive: boolean; inShell: ShellCommand },
): ImportedCheck | undefined {
  const http = probeUrl(nodeAt(probe, 'http_get'));
  const exec = scalarText(nodeAt(probe, 'exec', 'command')) || undefined;
  if (http === undefined && exec === undefined) return undefined;
  const period = numberAt(probe, 'period_seconds') || DEFAULT_PERIOD_S;
  const timeout = numberAt(probe, 'timeout_seconds');
  const status = numberAt(probe, 'http_get', 'status_code');
  // 0 is the default.
  const failures = (isLive && numberAt(probe, 'failure_threshold')) || undefined;
  return {
    ...(http === undefined ? { exec: inShell(exec ?? '') } : { http }),
    // 200 is the default, and here any success counts.
    ...(http === undefined || status === undefined || status === 200 ? {} : { status: [status, status] }),
    ...(isLive || period !== DEFAULT_PERIOD_S ? { interval: milliseconds(period) } : {}),
    ...(timeout === undefined ? {} : { timeout: milliseconds(timeout) }),
    ...(failures === undefined ? {} : { failures }),
  };
}

/** A line that contains a text, as a regular expression. */
const lineWith = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');

/** The ready-check. A task has none: its dependents wait for its end. */
export function readyOf(
  name: string,
  value: YamlNode,
  { taskReason, inShell, notes }: ProcessContext,
): ImportedService['ready'] {
  if (taskReason !== undefined) {
    const given = ['readiness_probe', 'ready_log_line'].filter((key) => nodeAt(value, key));
    for (const key of given) notes.push(`${name}: ${key} is left out, as ${taskReason}`);
    return undefined;
  }
  const line = scalarText(nodeAt(value, 'ready_log_line')) || undefined;
  const check = checkOf(nodeAt(value, 'readiness_probe'), { isLive: false, inShell });
  if (!check) return line === undefined ? undefined : { log: lineWith(line) };
  const { http, ...more } = check;
  return http !== undefined && Object.keys(more).length === 0 ? http : check;
}

/** Time for a probe that may fail so often before the process counts as failed. */
export function startTimeoutOf(probe: YamlNode | undefined): string | undefined {
  const failures = numberAt(probe, 'failure_threshold');
  const delay = numberAt(probe, 'initial_delay_seconds') ?? 0;
  if (failures === undefined && delay === 0) return undefined;
  const period = numberAt(probe, 'period_seconds') || DEFAULT_PERIOD_S;
  return `${Math.min(MAX_SECONDS, Math.max(30, delay + (failures ?? 3) * period))}s`;
}
