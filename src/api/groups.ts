// The operations of groups: docs/reference.md "Endpoints".
import { operationsOf } from './operation.ts';
import { grace, timeout, waitForEnd as wait } from './query_fields.ts';
import { START_ERRORS } from './start_errors.ts';

const operation = operationsOf('groups');

/** How the start of a member fails, also in a wake or a restart. */
const MEMBER_ERRORS = ['unknown_group', ...START_ERRORS] as const;

export const groups = {
  list: operation({
    id: 'listGroups',
    kind: 'read',
    method: 'GET',
    path: '/v1/groups',
    agentRight: 'part',
    summary: 'Every group with its members counted',
    answer: 'GroupList',
  }),
  start: operation({
    id: 'startGroup',
    kind: 'call',
    method: 'POST',
    path: '/v1/groups/{name}/start',
    agentRight: 'stack',
    summary: 'Start the members of a group in dependsOn order',
    query: { timeout, wait },
    otherStatus: 202,
    answer: 'GroupStarted',
    errors: MEMBER_ERRORS,
    keyKind: 'group',
  }),
  sleep: operation({
    id: 'sleepGroup',
    kind: 'call',
    method: 'POST',
    path: '/v1/groups/{name}/sleep',
    agentRight: 'stack',
    summary: 'Put the members that have `sleep` to sleep, in reverse order',
    query: { wait },
    otherStatus: 202,
    answer: 'GroupSlept',
    errors: ['unknown_group', 'storage_full'],
    keyKind: 'group',
  }),
  wake: operation({
    id: 'wakeGroup',
    kind: 'call',
    method: 'POST',
    path: '/v1/groups/{name}/wake',
    agentRight: 'stack',
    summary: 'Wake the members that have `sleep`, with their dependencies, in dependsOn order',
    query: { timeout, wait },
    otherStatus: 202,
    answer: 'GroupStarted',
    errors: MEMBER_ERRORS,
    keyKind: 'group',
  }),
  stop: operation({
    id: 'stopGroup',
    kind: 'call',
    method: 'POST',
    path: '/v1/groups/{name}/stop',
    agentRight: 'stack',
    summary: 'Stop the members of a group in reverse order',
    query: { grace, wait },
    otherStatus: 202,
    answer: 'GroupStopped',
    errors: ['unknown_group'],
    keyKind: 'group',
    isStored: false,
  }),
  restart: operation({
    id: 'restartGroup',
    kind: 'call',
    method: 'POST',
    path: '/v1/groups/{name}/restart',
    agentRight: 'stack',
    summary: 'Stop the members of a group in reverse order, then start them in dependsOn order',
    query: { timeout, grace, wait },
    otherStatus: 202,
    answer: 'GroupStarted',
    errors: MEMBER_ERRORS,
    keyKind: 'group',
  }),
};
