// The events of a service, with their fields in the order of docs/reference.md "Event types".
import type { AgentStateName, StateReason } from '../../protocol/agent_state.ts';
import type { EventType, NewEvent } from '../../protocol/events.ts';
import { serviceUrl } from '../../protocol/names.ts';
import type { PortProtocol } from '../../protocol/port_protocol.ts';
import type { LastCheck, LastEnd } from '../../protocol/service.ts';
import type { Clock } from '../../runtime/actor.ts';
import { type LiveRun, publicPort } from './run.ts';

/** One event per run and type, however often it is appended. */
function runEvent(type: NewEvent['type'], name: string, run: string, fields: object): NewEvent {
  return { type, name, run, data: JSON.stringify(fields), once: true };
}

/** `protocol`: undefined if the service has been removed meanwhile. */
export function startedEvent(name: string, run: LiveRun, protocol: PortProtocol | undefined): NewEvent {
  const url = serviceUrl(publicPort(run.metadata));
  const isTcp = url !== null && protocol === 'tcp';
  return runEvent('service.started', name, run.id, { name, pid: run.pid, url, ...(isTcp && { protocol }) });
}

export const unhealthyEvent = (name: string, run: LiveRun, { url, error }: LastCheck): NewEvent =>
  runEvent('service.unhealthy', name, run.id, { name, check: url, error });

/** What the journal says about an end after which the service or agent sleeps. */
export interface Slept {
  type: 'service.slept' | 'agent.slept';
  fields: object;
}

/** `slept` null: it does not sleep afterwards. */
export function endedEvent(name: string, end: LastEnd, slept: Slept | null): NewEvent {
  const { run, exitCode, signal, cause, completed } = end;
  if (completed) return runEvent('service.completed', name, run, { name, ms: completed.ms });
  if (end.status === 'crashed')
    return runEvent('service.crashed', name, run, { name, exitCode, signal, ...(cause && { cause }) });
  if (slept) return runEvent(slept.type, name, run, slept.fields);
  return runEvent('service.stopped', name, run, { name, exitCode, ...(exitCode === null && { signal }) });
}

/** A service without a process was put to sleep. `id` stands for a run, so that the event is kept once. */
export const sleptEvent = (name: string, id: string): NewEvent =>
  runEvent('service.slept', name, id, { name });

/** The run is up after a wake that was requested at `wokeAt`, epoch milliseconds. */
export function wokeEvent(
  name: string,
  { id, wokeSince }: Pick<LiveRun, 'id' | 'wokeSince'>,
  wokeAt: number,
  clock: Clock,
): NewEvent {
  // Only a wake by an earlier daemon is measured by the wall clock, which may have been set meanwhile.
  const ms = wokeSince === undefined ? clock.now() - wokeAt : clock.monotonic() - wokeSince;
  return runEvent('service.woke', name, id, { name, ms: Math.max(0, Math.round(ms)) });
}

/** The service could not be woken for a waiting client. */
export const wakeFailedEvent = (name: string, reason: string): NewEvent => ({
  type: 'service.wake_failed',
  name,
  run: null,
  data: JSON.stringify({ name, reason }),
});

/** An agent was woken in `ms` milliseconds and continues its conversation. */
export const agentWokeEvent = (name: string, run: string, sessionId: string, ms: number): NewEvent =>
  runEvent('agent.woke', name, run, { name, sessionId, ms });

/** The agent's state has changed from `previous` to `state`. */
export const agentStateEvent = (
  name: string,
  run: string | null,
  state: AgentStateName,
  previous: AgentStateName,
  reason: StateReason,
): NewEvent => ({
  type: 'agent.state',
  name,
  run,
  data: JSON.stringify({ name, state, previous, reason }),
});

const STATUS_OF_EVENT: { readonly [T in EventType]?: LastEnd['status'] } = {
  'service.crashed': 'crashed',
  'service.completed': 'completed',
};

/**
 * `end` as clients saw it in an event of `type`. A stop and an exit may coincide, and the daemon may be
 * killed between journal and store: the next daemon then sees an unrequested exit. Clients have seen a stop,
 * so no restart follows.
 */
export function endAsTold(end: LastEnd, type: EventType): LastEnd {
  const status = STATUS_OF_EVENT[type] ?? 'stopped';
  if (status === end.status) return end;
  const { restart: _restart, completed: _completed, ...rest } = end;
  return { ...rest, status };
}

/** An event of the service rather than of a run. */
export const changedEvent = (name: string, paths: string[]): NewEvent => ({
  type: 'service.changed',
  name,
  run: null,
  data: JSON.stringify({ name, paths }),
});
