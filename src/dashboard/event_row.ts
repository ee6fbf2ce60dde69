// One event as a line of text.
import type { DaemonEvent } from '../client/browser.ts';
import { createTextElement } from './dom.ts';

/** An event that is neither statistics nor a reset of the stream. */
export type LifecycleEvent = Exclude<DaemonEvent, { type: 'service.stats' | 'stream.reset' }>;

/** How a process ended. */
export const exitText = (exitCode: number | null, signal: string | null = null): string =>
  signal === null ? `exit code ${exitCode ?? 'unknown'}` : signal;

function describeEvent(event: LifecycleEvent): string {
  switch (event.type) {
    case 'service.registered':
      return event.data.port === null
        ? `${event.data.name} registered`
        : `${event.data.name} registered on port ${event.data.port}`;
    case 'service.started':
      return event.data.url === null
        ? `${event.data.name} started`
        : `${event.data.name} started at ${event.data.url}`;
    case 'service.stopped':
      return `${event.data.name} stopped (${exitText(event.data.exitCode, event.data.signal)})`;
    case 'service.crashed':
      return `${event.data.name} crashed (${exitText(event.data.exitCode, event.data.signal)})`;
    case 'service.changed':
      return `${event.data.name}: files changed (${event.data.paths.join(', ')})`;
    case 'service.completed':
      return `${event.data.name} completed in ${event.data.ms} ms`;
    case 'service.unhealthy':
      return `${event.data.name} fails its live-check ${event.data.check}: ${event.data.error}`;
    case 'service.removed':
      return `${event.data.name} removed`;
    case 'service.slept':
    case 'agent.slept':
      return `${event.data.name} sleeps`;
    case 'service.woke':
    case 'agent.woke':
      return `${event.data.name} was woken in ${event.data.ms} ms`;
    case 'agent.forced':
      return `a person did ${event.data.operation} to ${event.data.name} within ${event.data.agent}`;
    case 'agent.state':
      return `${event.data.name} is ${event.data.state} (was ${event.data.previous})`;
    case 'port.conflict':
      return `port ${event.data.port}: ${event.data.claimedBy} wants it, ${event.data.holder} has it`;
    case 'cluster.refused':
      return `the cluster ${event.data.name} does not accept its account any more`;
    case 'cluster.accepted':
      return `the cluster ${event.data.name} accepts its account again`;
    case 'cluster.expiring':
      return `the credentials of the cluster ${event.data.name} end at ${event.data.expiresAt}`;
  }
}

/** A list item with the time and the text of an event. */
export function createEventRow(event: LifecycleEvent): HTMLLIElement {
  const row = createTextElement('li');
  const { at } = event.data;
  if (at !== undefined) {
    const time = createTextElement('time', new Date(at).toLocaleTimeString());
    time.dateTime = at;
    row.append(time, ' ');
  }
  row.append(describeEvent(event));
  return row;
}
