// The operation of the relay: docs/reference.md "Relay".
import { operationsOf } from './operation.ts';

const operation = operationsOf('relay');

export const relay = {
  admit: operation({
    id: 'admitToRelay',
    kind: 'call',
    method: 'POST',
    path: '/k8s/relay',
    agentRight: 'never',
    summary: 'A ticket for a connection to the relay, through which other machines reach workloads',
    status: 201,
    answer: 'RelayTicket',
    errors: ['relay_off'],
    isPrompt: true,
    isStored: false,
  }),
};
