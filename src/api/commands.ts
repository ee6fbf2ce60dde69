// The operations of commands: docs/reference.md "Commands".
import { operationsOf } from './operation.ts';

const operation = operationsOf('commands');

export const commands = {
  prepare: operation({
    id: 'prepareCommand',
    kind: 'call',
    method: 'POST',
    path: '/v1/commands',
    agentRight: 'body',
    summary: 'Prepare a command in the environment of a service; attaching to its terminal runs it',
    status: 201,
    body: 'CommandRequest',
    answer: 'PreparedCommand',
    errors: ['invalid_spec', 'unknown_service', 'key_unusable'],
    isPrompt: true,
  }),
  attach: operation({
    id: 'attachToCommand',
    kind: 'socket',
    method: 'GET',
    path: '/v1/commands/{id}/attach',
    agentRight: 'part',
    summary: 'Run a prepared command in the terminal of this WebSocket',
    status: 101,
    protocol: 'berth.v1',
    answer: null,
    errors: ['not_found'],
    keyKind: 'id',
  }),
};
