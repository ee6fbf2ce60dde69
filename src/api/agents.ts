// The operations of agents: docs/reference.md "Endpoints".
import { operationsOf } from './operation.ts';
import { followedLogs, logTail } from './query_fields.ts';

const operation = operationsOf('agents');

export const agents = {
  list: operation({
    id: 'listAgents',
    kind: 'read',
    method: 'GET',
    path: '/v1/agents',
    summary: 'Every agent, ordered by name',
    answer: 'AgentList',
  }),
  spinup: operation({
    id: 'spinUpAgent',
    kind: 'call',
    method: 'POST',
    path: '/v1/agents/spinup',
    summary: 'Register an agent and start its process',
    status: 201,
    body: 'SpinupRequest',
    answer: 'SpunUp',
    errors: ['invalid_spec', 'already_running', 'name_in_use', 'port_in_use', 'start_failed', 'storage_full'],
  }),
  remove: operation({
    id: 'removeAgent',
    kind: 'call',
    method: 'DELETE',
    path: '/v1/agents/{name}',
    summary: 'Stop an agent if need be and remove it',
    answer: 'AgentRemoved',
    errors: ['unknown_agent', 'storage_full'],
    keyKind: 'agent',
  }),
  logs: operation({
    id: 'getAgentLogs',
    kind: 'call',
    method: 'GET',
    path: '/v1/agents/{name}/logs',
    summary: 'The last lines an agent has printed',
    query: logTail,
    answer: 'Logs',
    errors: ['unknown_agent'],
    keyKind: 'agent',
  }),
  followLogs: operation({
    id: 'followAgentLogs',
    kind: 'stream',
    method: 'GET',
    path: '/v1/agents/{name}/logs/stream',
    summary: 'Every line an agent prints from now on',
    query: followedLogs,
    answer: 'LogLine',
    errors: ['unknown_agent'],
    keyKind: 'agent',
  }),
  attach: operation({
    id: 'attachToAgent',
    kind: 'socket',
    method: 'GET',
    path: '/v1/agents/{name}/attach',
    summary: 'The terminal of an agent, as a WebSocket',
    status: 101,
    protocol: 'berth.v1',
    answer: null,
    errors: ['unknown_agent', 'not_running'],
    keyKind: 'agent',
  }),
};
