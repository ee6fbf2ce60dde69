// The methods for events: docs/reference.md "Event stream".
import { events } from '../../api/events.ts';
import type { EventType } from '../../protocol/events.ts';
import { type CallOptions, call, type Endpoint, sendRequest } from '../api_call.ts';
import { type SseFrame, type StreamOptions, sseFrames } from '../event_stream.ts';
import type { DaemonEvent, PastEvent } from '../records.ts';

export interface EventOptions extends StreamOptions {
  types?: readonly EventType[];
  names?: readonly string[];
  /** Replays the events after this id; absent: nothing is replayed. */
  lastEventId?: number | undefined;
  /** Adds `at` and `run` to the data. */
  detail?: boolean;
}

export interface HistoryOptions extends CallOptions {
  types?: readonly EventType[];
  names?: readonly string[];
  /** Events with a greater id. */
  since?: number | undefined;
  limit?: number | undefined;
}

async function* streamEvents(endpoint: Endpoint, options: EventOptions): AsyncGenerator<DaemonEvent> {
  const { types, names, detail } = options;
  const open = (lastEventId: string | null, signal: AbortSignal) =>
    sendRequest(endpoint, events.follow, { query: { types, names, detail }, signal }, { lastEventId });
  const from = options.lastEventId === undefined ? null : String(options.lastEventId);
  for await (const frame of sseFrames(open, from, options)) yield parseEvent(frame);
}

function parseEvent(frame: SseFrame): DaemonEvent {
  // The one place where a frame gets its type: the daemon's event names are the keys of EventData.
  return {
    type: frame.event,
    id: frame.id === null ? null : Number(frame.id),
    data: JSON.parse(frame.data),
  } as DaemonEvent;
}

/** The methods of the daemon at `endpoint`. */
export const eventMethods = (endpoint: Endpoint) => ({
  /** Every event from now on, or after `lastEventId`. Reconnects after a disconnect. */
  events: (options: EventOptions = {}) => streamEvents(endpoint, options),
  history: async ({ types, names, since, limit, signal }: HistoryOptions = {}): Promise<PastEvent[]> => {
    const answer = await call(endpoint, events.history, { query: { types, names, since, limit }, signal });
    // The shape of a row does not tie its data to its type; the records do.
    return answer.events as PastEvent[];
  },
});
