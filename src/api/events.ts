// The operations of events: docs/reference.md "Endpoints".
import { EVENT_TYPES } from '../protocol/events.ts';
import { EVENTS, HTTP } from '../settings/limits.ts';
import { operationsOf } from './operation.ts';

const operation = operationsOf('events');

const types = { kind: 'list', of: EVENT_TYPES, summary: 'Only events of these types' } as const;
const names = { kind: 'list', summary: 'Only events of these services' } as const;
const limitSummary =
  'How many: the newest, or with since the first after it; ' +
  `default ${HTTP.defaultHistoryEvents}, at most ${EVENTS.retained}`;

export const events = {
  follow: operation({
    id: 'followEvents',
    kind: 'stream',
    method: 'GET',
    path: '/v1/events',
    agentRight: 'part',
    summary: 'Events as they happen; the header Last-Event-ID replays missed ones',
    query: {
      types,
      names,
      detail: { kind: 'flag', summary: 'true: the data has at and run besides' },
      lastEventId: { kind: 'word', summary: 'As the header, which takes precedence' },
    },
    answer: 'Event',
  }),
  history: operation({
    id: 'listPastEvents',
    kind: 'call',
    method: 'GET',
    path: '/v1/events/history',
    agentRight: 'part',
    summary: 'Past events of the journal',
    query: {
      types: { ...types, summary: `${types.summary}; without it, all but service.stats` },
      names,
      since: {
        kind: 'integer',
        least: 0,
        most: Number.MAX_SAFE_INTEGER,
        summary: 'Only events with a greater id',
      },
      limit: { kind: 'integer', least: 1, most: EVENTS.retained, clamp: true, summary: limitSummary },
    },
    answer: 'EventList',
  }),
};
