// Formats records for people: words, units and colours.
import { isAbsolute, relative } from 'node:path';
import type { Service, ServiceStatus, StopResult } from '../../client/records.ts';
import { type Tone, toneOf } from '../../presentation/state_tone.ts';
import { formatDuration } from '../../project/duration.ts';
import type { AgentStateName } from '../../protocol/agent_state.ts';
import { EVENTS } from '../../settings/limits.ts';
import type { Output } from './output.ts';

type Style = Parameters<Output['style']>[0];

const TONE_STYLES: Record<Tone, Style> = {
  good: 'green',
  busy: 'yellow',
  bad: 'red',
  rest: 'dim',
  calm: 'cyan',
};

export const agentStateStyle = ({ state }: { state: AgentStateName }): Style => TONE_STYLES[toneOf(state)];

export const statusStyle = ({ status }: { status: ServiceStatus }): Style => TONE_STYLES[toneOf(status)];

/** How a process ended: `exit 3`, `SIGKILL`; '' if it has not. */
export function describeExit(end: {
  exitCode?: number | null;
  signal?: string | null;
  exitUnknown?: boolean;
}): string {
  if (end.exitUnknown) return 'not known how';
  if (end.signal) return end.signal;
  return typeof end.exitCode === 'number' ? `exit ${end.exitCode}` : '';
}

/** The status, with its reason if it crashed: `crashed (exit 3)`. */
export function describeStatus(service: Service): string {
  const end = service.status === 'crashed' ? describeExit(service) : '';
  return end ? `${service.status} (${end})` : service.status;
}

/** The result of a stop, with what it could not end. */
export function describeStop(answer: StopResult): string {
  const facts = [
    describeExit(answer),
    answer.reaped > 1 ? `${answer.reaped} processes` : '',
    answer.escalated ? 'had to be killed' : '',
    formatDuration(answer.ms),
  ].filter(Boolean);
  const left = answer.left
    .map(({ pid, command: line, reason }) => `\n    left: pid ${pid} (${line}): ${reason}`)
    .join('');
  const port = answer.portFree ? '' : '\n    its port is still in use';
  return `is stopped (${facts.join(', ')})${left}${port}`;
}

/** ` at URL`; '' for a service without a port. */
export const atUrl = (url: string | null): string => (url === null ? '' : ` at ${url}`);

/** Time since an RFC 3339 time; '' for none. */
export const formatElapsed = (time: string | null | undefined): string =>
  time ? formatDuration(Math.max(0, Date.now() - Date.parse(time))) : '';

/** Hours, minutes and seconds of an RFC 3339 time, in its own time zone. */
export const formatClockTime = (time: string | undefined): string => time?.slice(11, 19) ?? '';

export const formatCpu = (cpu: number | undefined): string =>
  cpu === undefined ? '' : `${(cpu * 100).toFixed(1)}%`;

export const formatMemory = (rssMB: number | undefined): string =>
  rssMB === undefined ? '' : rssMB >= 10_240 ? `${(rssMB / 1024).toFixed(1)} GB` : `${rssMB} MB`;

/** The memory of a service; empty until its program, and not the shell before it, was measured. */
export const formatServiceMemory = ({ rssMB, startedAt }: Partial<Service>): string =>
  startedAt !== undefined && Date.now() - Date.parse(startedAt) < EVENTS.statsIntervalMs
    ? ''
    : formatMemory(rssMB);

/** `1 service`, `3 services`. */
export const pluralize = (number: number, one: string): string =>
  `${number} ${one}${number === 1 ? '' : 's'}`;

/** A path relative to the current folder if it is below it; else unchanged. */
export function relativePath(path: string): string {
  const below = relative(process.cwd(), path);
  return below === '' || below.startsWith('..') || isAbsolute(below) ? path : below;
}
