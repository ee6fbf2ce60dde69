// The handlers of events.
import type { events } from '../../../api/events.ts';
import { LIFECYCLE_EVENT_TYPES } from '../../../protocol/events.ts';
import { HTTP } from '../../../settings/limits.ts';
import { detailedData } from '../../streams/event_hub.ts';
import type { HandlersOf } from '../handler.ts';

export const eventHandlers: HandlersOf<typeof events> = {
  follow: ({ app, query, lastEventId, open }) => {
    const { types, names, detail } = query;
    const stream = open();
    const after = lastEventId || (query.lastEventId ?? '');
    if (stream) app.hub.subscribe(stream, { types, names, detail: detail ?? false }, after);
  },

  // Concatenated as text, because an event's data is JSON text already.
  history: async ({ app, query }) => {
    const { types, names, since, limit } = query;
    const { events } = await app.ref('events').ask('history', {
      types: types ?? [...LIFECYCLE_EVENT_TYPES],
      names,
      since,
      limit: limit ?? HTTP.defaultHistoryEvents,
    });
    const rows = events.map(
      (event) => `{"id":${event.id},"type":"${event.type}","data":${detailedData(event)}}`,
    );
    return Buffer.from(`{"events":[${rows.join(',')}]}`);
  },
};
