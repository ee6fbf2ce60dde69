// The daemon's information about itself: docs/reference.md "System endpoints".
import { OPEN_METRICS_TYPE, operationsOf } from './operation.ts';

const operation = operationsOf('system');

export const system = {
  version: operation({
    id: 'getVersion',
    kind: 'call',
    method: 'GET',
    path: '/v1/version',
    agentRight: 'any',
    summary: 'Which daemon this is',
    answer: 'Version',
    isAlways: true,
  }),
  livez: operation({
    id: 'checkLiveness',
    kind: 'call',
    method: 'GET',
    path: '/livez',
    agentRight: 'any',
    summary: 'Whether the daemon lives',
    answer: 'Health',
    isAlways: true,
    isPublic: true,
  }),
  readyz: operation({
    id: 'checkReadiness',
    kind: 'call',
    method: 'GET',
    path: '/readyz',
    agentRight: 'any',
    summary: 'Whether the daemon serves: not while it starts or shuts down',
    answer: 'Health',
    isAlways: true,
    isPublic: true,
  }),
  system: operation({
    id: 'getSystem',
    kind: 'call',
    method: 'GET',
    path: '/v1/system',
    agentRight: 'never',
    summary: 'What the daemon is doing: threads, actors, process host, sizes on disk, requests',
    answer: 'System',
  }),
  metrics: operation({
    id: 'getMetrics',
    kind: 'call',
    method: 'GET',
    path: '/metrics',
    agentRight: 'never',
    summary: 'Metrics of the services and of the daemon for Prometheus',
    contentType: OPEN_METRICS_TYPE,
    answer: 'MetricsText',
  }),
  openapi: operation({
    id: 'getOpenApi',
    kind: 'call',
    method: 'GET',
    path: '/openapi.json',
    agentRight: 'any',
    summary: 'This API as an OpenAPI 3.1 document',
    answer: 'OpenApi',
    isAlways: true,
    isPublic: true,
  }),
};
