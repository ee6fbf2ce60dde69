// Events as words.
import type { DaemonEvent } from '../client/records.ts';
import { countText, endText, spanText } from './format.ts';

/** An event that is neither statistics nor a reset of the stream. */
export type LifecycleEvent = Exclude<DaemonEvent, { type: 'service.stats' | 'stream.reset' }>;

type Texts = {
  [T in LifecycleEvent['type']]: (data: Extract<LifecycleEvent, { type: T }>['data']) => string;
};

const ended = (end: { exitCode: number | null; signal?: string | null; cause?: string }): string =>
  endText(end) || 'nobody saw how';

const TEXTS: Texts = {
  'service.registered': ({ port }) => (port === null ? 'registered' : `registered on port ${port}`),
  'service.started': ({ pid, url }) =>
    url === null ? `started, pid ${pid}` : `started at ${url}, pid ${pid}`,
  'service.stopped': (end) => `stopped (${ended(end)})`,
  'service.crashed': (end) => `crashed (${ended(end)})`,
  'service.completed': ({ ms }) => `completed in ${ms < 1_000 ? `${ms} ms` : spanText(ms)}`,
  'service.unhealthy': ({ check, error }) => `fails its live-check ${check}: ${error}`,
  'service.removed': () => 'removed',
  'service.changed': ({ paths }) => `${countText(paths.length, 'file')} changed: ${paths.join(', ')}`,
  'service.slept': () => 'put to sleep',
  'service.woke': ({ ms }) => `woken in ${ms} ms`,
  'agent.slept': () => 'put to sleep',
  'agent.woke': () => 'woken',
  'agent.forced': ({ operation, agent }) => `a person did ${operation} to it within ${agent}`,
  'agent.state': ({ state, previous }) => `${state} (was ${previous})`,
  'port.conflict': ({ port, claimedBy, holder }) => `${claimedBy} wants port ${port}, which ${holder} has`,
  'cluster.refused': () => 'does not accept its account any more',
  'cluster.accepted': () => 'accepts its account again',
  'cluster.expiring': ({ expiresAt }) => `its credentials end at ${expiresAt}`,
};

const STATES: Readonly<Record<string, string>> = {
  'service.started': 'running',
  'service.stopped': 'stopped',
  'service.crashed': 'crashed',
  'service.unhealthy': 'crashed',
  'service.completed': 'completed',
  'service.slept': 'sleeping',
  'service.woke': 'running',
  'port.conflict': 'crashed',
  'cluster.refused': 'crashed',
  'cluster.accepted': 'running',
  'cluster.expiring': 'starting',
};

/** What has happened, without whom it has happened to. */
export const eventText = (event: LifecycleEvent): string =>
  // A newer daemon may send types that this program does not know.
  Object.hasOwn(TEXTS, event.type) ? TEXTS[event.type](event.data as never) : JSON.stringify(event.data);

/** The state that an event stands for, for its mark; '' for none. */
export const eventState = (event: LifecycleEvent): string =>
  event.type === 'agent.state' ? event.data.state : (STATES[event.type] ?? '');

/** Whom it has happened to. */
export const eventSubject = ({ data }: LifecycleEvent): string =>
  'name' in data ? data.name : data.claimedBy;
