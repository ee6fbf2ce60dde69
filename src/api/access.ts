// The operations that prove the server and open sessions of the page:
// docs/reference.md "Server authentication", "Dashboard sessions".
import { operationsOf } from './operation.ts';
import { proof } from './query_fields.ts';

const operation = operationsOf('access');

export const access = {
  prove: operation({
    id: 'proveDaemon',
    kind: 'call',
    method: 'GET',
    path: '/v1/proof',
    agentRight: 'any',
    summary: 'The proof that the daemon knows its token, or another key',
    query: proof,
    answer: 'ServerProof',
    errors: ['invalid_spec', 'unauthorized'],
    isAlways: true,
    isPublic: true,
  }),
  proveCloud: operation({
    id: 'proveCloud',
    kind: 'call',
    method: 'GET',
    path: '/k8s/proof',
    agentRight: 'any',
    summary: 'The proof that the daemon knows the cloud token',
    query: proof,
    answer: 'ServerProof',
    errors: ['invalid_spec', 'unauthorized'],
    isAlways: true,
    isPublic: true,
  }),
  readLogin: operation({
    id: 'readLogin',
    kind: 'call',
    method: 'GET',
    path: '/k8s/login',
    agentRight: 'any',
    summary: 'How users log in: the issuer of their tokens, and what to request from it',
    answer: 'LoginSettings',
    isAlways: true,
    isPublic: true,
  }),
  createPageCode: operation({
    id: 'createPageCode',
    kind: 'call',
    method: 'POST',
    path: '/v1/page-codes',
    agentRight: 'never',
    summary: 'A single-use code that opens the dashboard in a browser',
    status: 201,
    query: {
      file: { kind: 'flag', summary: 'true: also write a page that takes a browser there' },
    },
    answer: 'PageCode',
    errors: ['storage_full'],
    isPrompt: true,
    isStored: false,
  }),
  openPageSession: operation({
    id: 'openPageSession',
    kind: 'call',
    method: 'POST',
    path: '/v1/page-sessions',
    agentRight: 'never',
    summary: 'A key for the dashboard; takes the bearer of a code, of the token or of an earlier key',
    status: 201,
    answer: 'PageKey',
    errors: ['unauthorized'],
    isPublic: true,
    isPrompt: true,
    isStored: false,
  }),
};
