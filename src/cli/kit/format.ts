// Formats records for people: words, units and colours.
import { isAbsolute, relative } from 'node:path';
import type { Service, ServiceStatus, StopResult } from '../../client/records.ts';
import { endText, howEnded, memoryText, spanText, tookText } from '../../presentation/format.ts';
import { type Tone, toneOf } from '../../presentation/state_tone.ts';
import type { AgentStateName } from '../../protocol/agent_state.ts';
import { shownAddress } from '../../protocol/port_protocol.ts';
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

/** How a service last ended: `exit 3`, `SIGKILL`; '' if it has not ended. */
export const lastEnd = (service: Service): string =>
  service.exitUnknown ? howEnded(service) : endText(service);

/** The status, with its reason if it crashed: `crashed (exit 3)`. */
export function describeStatus(service: Service): string {
  const end = service.status === 'crashed' ? lastEnd(service) : '';
  return end ? `${service.status} (${end})` : service.status;
}

/** The result of a stop, with the processes that it could not end. */
export function describeStop(answer: StopResult): string {
  const facts = [
    endText(answer),
    answer.reaped > 1 ? `${answer.reaped} processes` : '',
    answer.escalated ? 'had to be killed' : '',
    tookText(answer.ms),
  ].filter(Boolean);
  const left = answer.left
    .map(({ pid, command: line, reason }) => `\n    left: pid ${pid} (${line}): ${reason}`)
    .join('');
  const port = answer.portFree ? '' : '\n    its port is still in use';
  return `is stopped (${facts.join(', ')})${left}${port}`;
}

/** ` at URL`; '' for a service without a port. */
export function atUrl(service: Pick<Service, 'protocol' | 'url'>): string {
  const address = shownAddress(service);
  return address === null ? '' : ` at ${address}`;
}

/** Time since an RFC 3339 time; '' for none. */
export const formatElapsed = (time: string | null | undefined): string =>
  time ? spanText(Date.now() - Date.parse(time)) : '';

/** The memory of a service; empty at first, when the sample may be of the shell that starts the program. */
export const formatServiceMemory = ({ rssMB, startedAt }: Partial<Service>): string =>
  startedAt !== undefined && Date.now() - Date.parse(startedAt) < EVENTS.statsIntervalMs
    ? ''
    : memoryText(rssMB);

/** A path relative to the current folder if it is below it; else unchanged. */
export function relativePath(path: string): string {
  const below = relative(process.cwd(), path);
  return below === '' || below.startsWith('..') || isAbsolute(below) ? path : below;
}
