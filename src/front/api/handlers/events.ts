// The handlers of events.
import type { events } from '../../../api/events.ts';
import { type EventRecord, LIFECYCLE_EVENT_TYPES } from '../../../protocol/events.ts';
import { HTTP } from '../../../settings/limits.ts';
import { detailedData, eventFilter } from '../../streams/event_filter.ts';
import type { HandlersOf } from '../handler.ts';
import type { Reach } from '../reach.ts';

/** Trims the events as the journal does: the newest ones, or the first ones after `since`. */
const pageOf = (
  events: readonly EventRecord[],
  since: number | null,
  limit: number,
): readonly EventRecord[] => (since === null ? events.slice(-limit) : events.slice(0, limit));

/** Throws forbidden_owner for the name of another stack: docs/reference.md "Agent tokens". */
function assertNames(reach: Reach | null, names: readonly string[] | null): void {
  for (const name of names ?? []) reach?.assertName(name);
}

export const eventHandlers: HandlersOf<typeof events> = {
  follow: ({ app, query, reach, lastEventId, open }) => {
    const { types, names, detail } = query;
    assertNames(reach, names);
    const stream = open();
    const after = lastEventId || (query.lastEventId ?? '');
    if (stream)
      app.hub.subscribe(stream, eventFilter({ types, names, detail: detail ?? false, reach }), after);
  },

  // Concatenated as text, because an event's data is already JSON.
  history: async ({ app, query, reach }) => {
    const { types, names, since, limit } = query;
    assertNames(reach, names);
    const wanted = limit ?? HTTP.defaultHistoryEvents;
    const { events } = await app.ref('events').ask('history', {
      types: types ?? [...LIFECYCLE_EVENT_TYPES],
      names,
      since,
      limit: reach ? Number.MAX_SAFE_INTEGER : wanted,
    });
    const seen = reach
      ? pageOf(
          events.filter((event) => reach.hasEvent(event)),
          since,
          wanted,
        )
      : events;
    const rows = seen.map(
      (event) => `{"id":${event.id},"type":"${event.type}","data":${detailedData(event)}}`,
    );
    return Buffer.from(`{"events":[${rows.join(',')}]}`);
  },
};
