// Events as text.
import type { DaemonEvent } from '../client/records.ts';
import { shownAddress } from '../protocol/port_protocol.ts';
import { countText, cpuText, howEnded, memoryText, tookText } from './format.ts';
import { toneOf } from './state_tone.ts';

/** An event that is neither statistics nor a reset of the stream. */
export type LifecycleEvent = Exclude<DaemonEvent, { type: 'service.stats' | 'stream.reset' }>;

type Texts = {
  [T in DaemonEvent['type']]: (data: Extract<DaemonEvent, { type: T }>['data']) => string;
};

const TEXTS: Texts = {
  'service.registered': ({ port, group }) =>
    ['registered', port === null ? '' : ` on port ${port}`, group === null ? '' : ` in group ${group}`].join(
      '',
    ),
  'service.started': ({ pid, url, protocol }) =>
    url === null
      ? `started, pid ${pid}`
      : `started at ${shownAddress({ protocol: protocol ?? 'http', url })}, pid ${pid}`,
  'service.stopped': (end) => `stopped (${howEnded(end)})`,
  'service.crashed': (end) => `crashed (${howEnded(end)})`,
  'service.completed': ({ ms }) => `completed in ${tookText(ms)}`,
  'service.unhealthy': ({ check, error }) => `fails its live-check ${check}: ${error}`,
  'service.stats': ({ cpu, rssMB }) => `uses ${cpuText(cpu)} CPU, ${memoryText(rssMB)}`,
  'service.removed': () => 'removed',
  'service.changed': ({ paths }) => `${countText(paths.length, 'file')} changed: ${paths.join(', ')}`,
  'service.slept': () => 'put to sleep',
  'service.woke': ({ ms }) => `woken in ${tookText(ms)}`,
  'service.wake_failed': ({ reason }) => `could not be woken: ${reason}`,
  'agent.slept': () => 'put to sleep',
  'agent.woke': ({ ms }) => `woken in ${tookText(ms)}`,
  'agent.forced': ({ operation, agent }) => `a person did ${operation} to it within ${agent}`,
  'agent.state': ({ state, previous }) => `${state} (was ${previous})`,
  'port.conflict': ({ port, holder }) => `wants port ${port}, which ${holder} has`,
  'cluster.refused': () => 'does not accept its account any more',
  'cluster.accepted': () => 'accepts its account again',
  'cluster.expiring': ({ expiresAt }) => `its credentials end at ${expiresAt}`,
  'stream.reset': ({ oldest }) => `events before ${oldest} are no longer kept`,
};

const STATES: Readonly<Record<string, string>> = {
  'service.started': 'running',
  'service.stopped': 'stopped',
  'service.crashed': 'crashed',
  'service.unhealthy': 'crashed',
  'service.completed': 'completed',
  'service.slept': 'sleeping',
  'service.woke': 'running',
  'service.wake_failed': 'crashed',
  'port.conflict': 'crashed',
  'cluster.refused': 'crashed',
  'cluster.accepted': 'running',
  'cluster.expiring': 'starting',
};

/** What has happened, without its subject. */
export const eventText = (event: DaemonEvent): string =>
  // A newer daemon may send types that this program does not know.
  Object.hasOwn(TEXTS, event.type) ? TEXTS[event.type](event.data as never) : JSON.stringify(event.data);

/** The state that an event stands for, for its mark; '' for none. */
export const eventState = (event: LifecycleEvent): string =>
  event.type === 'agent.state' ? event.data.state : (STATES[event.type] ?? '');

/** The name that an event is about; '' without one. */
export function eventSubject({ data }: DaemonEvent): string {
  if ('name' in data) return data.name;
  return 'claimedBy' in data ? data.claimedBy : '';
}

/** Whether a person should look at it. */
export const isAlarming = (event: DaemonEvent): boolean =>
  event.type === 'agent.forced' ||
  event.type === 'stream.reset' ||
  toneOf(STATES[event.type] ?? '') === 'bad';
