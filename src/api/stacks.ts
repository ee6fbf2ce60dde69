// The operations of stacks: docs/reference.md "Endpoints".
import { operationsOf } from './operation.ts';

const operation = operationsOf('stacks');

export const stacks = {
  list: operation({
    id: 'listStacks',
    kind: 'call',
    method: 'GET',
    path: '/v1/stacks',
    agentRight: 'part',
    summary: 'Every stack with its services counted, ordered by name',
    answer: 'StackList',
  }),
  register: operation({
    id: 'registerStack',
    kind: 'call',
    method: 'POST',
    path: '/v1/stacks',
    agentRight: 'body',
    summary: 'The stack of a folder, which is registered if it is new',
    status: 201,
    body: 'NewStack',
    answer: 'Stack',
    errors: ['invalid_spec', 'name_in_use', 'storage_full'],
    isPrompt: true,
  }),
  read: operation({
    id: 'getStack',
    kind: 'call',
    method: 'GET',
    path: '/v1/stacks/{name}',
    agentRight: 'stack',
    summary: 'One stack',
    answer: 'Stack',
    errors: ['unknown_stack'],
    keyKind: 'stack',
  }),
  remove: operation({
    id: 'removeStack',
    kind: 'call',
    method: 'DELETE',
    path: '/v1/stacks/{name}',
    agentRight: 'stack',
    summary: 'Stop and remove all services of a stack and forget it',
    query: { force: { kind: 'flag', summary: 'true: forget it although its hook `remove` fails' } },
    answer: 'StackRemoved',
    errors: ['unknown_stack', 'ready_timeout', 'start_failed', 'storage_full'],
    keyKind: 'stack',
  }),
};
