// The operations that read cloud events and the records of requested changes:
// docs/reference.md "Cloud events".
import { CLOUD_EVENT_TYPES } from '../protocol/cloud_events.ts';
import { CLOUD_EVENTS } from '../settings/cloud_limits.ts';
import { operationsOf } from './operation.ts';

const operation = operationsOf('cloudEvents');

/** The query fields that select events. */
const selection = {
  types: { kind: 'list', of: CLOUD_EVENT_TYPES, summary: 'Only events of these types' },
  cluster_id: { kind: 'word', summary: 'Only those of this cluster' },
  namespace: { kind: 'list', summary: 'Only those of these namespaces' },
  workload_id: { kind: 'word', summary: 'Only those of this workload' },
  who: { kind: 'word', summary: 'Only those of this actor: token, agent:<name>, berth' },
  operation_id: { kind: 'word', summary: 'Only those of this operation' },
} as const;

export const cloudEvents = {
  follow: operation({
    id: 'followCloudEvents',
    kind: 'stream',
    method: 'GET',
    path: '/k8s/events',
    agentRight: 'never',
    summary: 'Cloud events as they happen; the header Last-Event-ID replays missed ones',
    query: {
      ...selection,
      after: {
        kind: 'integer',
        least: 0,
        most: Number.MAX_SAFE_INTEGER,
        summary: 'As the header Last-Event-ID, which takes precedence',
      },
    },
    answer: 'CloudEvent',
    needs: 'cloud',
  }),
  history: operation({
    id: 'listCloudEvents',
    kind: 'call',
    method: 'GET',
    path: '/k8s/events/history',
    agentRight: 'never',
    summary: 'The audit log: past events of the cloud, newest first',
    query: {
      ...selection,
      since: {
        kind: 'word',
        summary: 'Not before this time: RFC 3339, or a duration back from now such as 15m',
      },
      until: { kind: 'word', summary: 'Not after this time, as since' },
      limit: {
        kind: 'integer',
        least: 1,
        most: CLOUD_EVENTS.maxPage,
        summary: `The most that one answer has; default ${CLOUD_EVENTS.defaultPage}. Its header Link names the next page`,
      },
      continue: {
        kind: 'word',
        summary: 'Where the page begins: the value from the Link of the page before',
      },
    },
    answer: 'CloudEventList',
    errors: ['invalid_spec'],
    needs: 'cloud',
  }),
  operation: operation({
    id: 'getCloudOperation',
    kind: 'call',
    method: 'GET',
    path: '/k8s/operations/{id}',
    agentRight: 'never',
    summary:
      'What was asked of the cloud, and how it ended; the header Berth-Operation of the answer has its id',
    answer: 'CloudOperation',
    errors: ['unknown_operation'],
    keyKind: 'id',
    needs: 'cloud',
  }),
};
