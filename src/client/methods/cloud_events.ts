// The methods for cloud events and operations: docs/reference.md "Cloud events".
import { cloudEvents } from '../../api/cloud_events.ts';
import type { CloudEvent } from '../../api/cloud_events_shapes.ts';
import type { CloudEventType } from '../../protocol/cloud_events.ts';
import { CLOUD_EVENTS } from '../../settings/cloud_limits.ts';
import { type CallOptions, call, callForPage, type Endpoint, type Page, sendRequest } from '../api_call.ts';
import { type StreamOptions, sseFrames } from '../event_stream.ts';

/** Selects the events that pass every given filter. */
interface CloudEventSelection {
  types?: readonly CloudEventType[] | undefined;
  /** Id of a cluster. */
  cluster?: string | undefined;
  namespaces?: readonly string[] | undefined;
  /** Id of a workload. */
  workload?: string | undefined;
  who?: string | undefined;
  /** Id of an operation. */
  operation?: string | undefined;
}

export interface CloudEventsOptions extends CloudEventSelection, StreamOptions {
  /** Replays the events after this id; absent: no replay. */
  after?: number | undefined;
}

export interface CloudHistoryOptions extends CloudEventSelection, CallOptions {
  /** RFC 3339, or a duration back from now such as `15m`. */
  since?: string | undefined;
  until?: string | undefined;
  /** The most events on a page. */
  limit?: number | undefined;
}

/** Events before `oldest` are missing in the stream. */
export interface CloudEventsReset {
  type: 'stream.reset';
  oldest: number;
}

const selectionQuery = ({ types, cluster, namespaces, workload, who, operation }: CloudEventSelection) => ({
  ...{
    types,
    cluster_id: cluster,
    namespace: namespaces,
    workload_id: workload,
    who,
    operation_id: operation,
  },
});

async function* streamCloudEvents(
  endpoint: Endpoint,
  options: CloudEventsOptions,
): AsyncGenerator<CloudEvent | CloudEventsReset> {
  const query = selectionQuery(options);
  const open = (lastEventId: string | null, signal: AbortSignal) =>
    sendRequest(endpoint, cloudEvents.follow, { query, signal }, { lastEventId });
  const from = options.after === undefined ? null : String(options.after);
  for await (const { event, data } of sseFrames(open, from, options)) {
    const value = JSON.parse(data);
    yield event === 'stream.reset' ? { type: event, oldest: value.oldest } : value;
  }
}

async function* cloudHistoryPages(
  endpoint: Endpoint,
  { since, until, limit, signal, ...selection }: CloudHistoryOptions,
): AsyncGenerator<CloudEvent[], void> {
  const given = { ...selectionQuery(selection), since, until, limit: limit ?? CLOUD_EVENTS.defaultPage };
  let next: string | null = null;
  do {
    const request = { query: { ...given, continue: next }, signal };
    const answer: Page<CloudEvent[]> = await callForPage(endpoint, cloudEvents.history, request);
    yield answer.page;
    next = answer.next;
  } while (next !== null);
}

/** The methods of the cloud API at `endpoint`. */
export const cloudEventMethods = (endpoint: Endpoint) => ({
  /** Every event from now on, or after the id `after`. Reconnects after a disconnect. */
  events: (options: CloudEventsOptions = {}) => streamCloudEvents(endpoint, options),
  /** The audit log, newest first, a page at a time. */
  historyPages: (options: CloudHistoryOptions = {}) => cloudHistoryPages(endpoint, options),
  /** What was requested, and how it ended. */
  operation: (id: string, { signal }: CallOptions = {}) =>
    call(endpoint, cloudEvents.operation, { name: id, signal }),
});
