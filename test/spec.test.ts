// docs/reference.md "Endpoints": the base API and its additions against the rows that are served, in both
// directions.
import { describe, expect, it } from 'vitest';
import { isCloudPath } from '../src/front/api/guard.ts';
import { isPublicPath } from '../src/front/api/public_paths.ts';
import { ROUTES } from '../src/front/api/routes.ts';
import { ERRORS } from '../src/protocol/errors.ts';

/** docs/reference.md "Base API and additions": the base API. */
const SPECIFIED: readonly [method: string, path: string, status: number][] = [
  ['GET', '/v1/services', 200],
  ['GET', '/v1/services/{name}', 200],
  ['POST', '/v1/services', 201],
  ['POST', '/v1/services/{name}/start', 200],
  ['POST', '/v1/services/{name}/stop', 200],
  ['DELETE', '/v1/services/{name}', 200],
  ['GET', '/v1/resolve/{name}', 200],
  ['GET', '/v1/groups', 200],
  ['POST', '/v1/groups/{name}/start', 200],
  ['POST', '/v1/groups/{name}/stop', 200],
  ['GET', '/v1/events', 200],
  ['GET', '/v1/agents', 200],
  ['POST', '/v1/agents/spinup', 201],
  ['DELETE', '/v1/agents/{name}', 200],
  ['GET', '/v1/agents/{name}/logs', 200],
  ['GET', '/k8s/clusters', 200],
  ['POST', '/k8s/clusters', 201],
  ['POST', '/k8s/clusters/{id}/sync', 200],
  ['GET', '/k8s/workloads', 200],
  ['POST', '/k8s/workloads/{id}/sleep', 200],
  ['POST', '/k8s/workloads/{id}/wake', 200],
  ['POST', '/k8s/workloads/{id}/tether', 201],
  ['POST', '/k8s/tethers/{id}/deactivate', 200],
  ['GET', '/k8s/workloads/{id}/auto-sleep', 200],
  ['PATCH', '/k8s/workloads/{id}/auto-sleep', 200],
];

/** The additions. */
const ADDED: readonly [method: string, path: string, status: number][] = [
  ['POST', '/v1/services/{name}/restart', 200],
  ['POST', '/v1/services/{name}/sleep', 200],
  ['POST', '/v1/services/{name}/wake', 200],
  ['POST', '/v1/groups/{name}/restart', 200],
  ['POST', '/v1/groups/{name}/sleep', 200],
  ['POST', '/v1/groups/{name}/wake', 200],
  ['POST', '/v1/services/{name}/signal', 200],
  ['GET', '/v1/services/{name}/explain', 200],
  ['GET', '/v1/services/{name}/stats/history', 200],
  ['GET', '/v1/services/{name}/logs', 200],
  ['GET', '/v1/services/{name}/logs/stream', 200],
  ['GET', '/v1/stacks', 200],
  ['POST', '/v1/stacks', 201],
  ['GET', '/v1/stacks/{name}', 200],
  ['DELETE', '/v1/stacks/{name}', 200],
  ['GET', '/v1/events/history', 200],
  ['GET', '/v1/logs', 200],
  ['GET', '/v1/logs/stream', 200],
  ['GET', '/v1/agents/{name}', 200],
  ['GET', '/v1/agents/{name}/explain', 200],
  ['POST', '/v1/agents/{name}/state', 200],
  ['GET', '/v1/agents/{name}/logs/stream', 200],
  ['GET', '/v1/agents/{name}/attach', 101],
  ['GET', '/v1/agents/{name}/screen', 200],
  ['GET', '/v1/agents/{name}/wait', 200],
  ['GET', '/v1/agents/wait', 200],
  ['POST', '/v1/agents/{name}/prompt', 200],
  ['POST', '/v1/agents/{name}/share', 201],
  ['GET', '/v1/agents/{name}/share', 200],
  ['DELETE', '/v1/agents/{name}/share', 200],
  ['POST', '/v1/agents/{name}/keys', 200],
  ['POST', '/v1/agents/{name}/sleep', 200],
  ['POST', '/v1/agents/{name}/wake', 200],
  ['POST', '/v1/commands', 201],
  ['GET', '/k8s/workloads/{id}', 200],
  ['POST', '/k8s/workloads/sleep', 200],
  ['POST', '/k8s/workloads/wake', 200],
  ['GET', '/k8s/policies', 200],
  ['GET', '/k8s/policies/{name}', 200],
  ['PUT', '/k8s/policies/{name}', 200],
  ['DELETE', '/k8s/policies/{name}', 200],
  ['GET', '/k8s/policies/{name}/preview', 200],
  ['GET', '/k8s/tokens', 200],
  ['POST', '/k8s/tokens', 201],
  ['DELETE', '/k8s/tokens/{name}', 200],
  ['GET', '/k8s/grants', 200],
  ['POST', '/k8s/grants', 201],
  ['DELETE', '/k8s/grants/{id}', 200],
  ['POST', '/k8s/relay', 201],
  ['GET', '/k8s/savings', 200],
  ['GET', '/k8s/events', 200],
  ['GET', '/k8s/events/history', 200],
  ['GET', '/k8s/operations/{id}', 200],
  ['GET', '/v1/commands/{id}/attach', 101],
  ['GET', '/v1/proof', 200],
  ['GET', '/k8s/proof', 200],
  ['GET', '/k8s/login', 200],
  ['POST', '/v1/page-codes', 201],
  ['POST', '/v1/page-sessions', 201],
  ['GET', '/v1/version', 200],
  ['GET', '/livez', 200],
  ['GET', '/readyz', 200],
  ['GET', '/openapi.json', 200],
  ['GET', '/v1/system', 200],
  ['POST', '/v1/notices/test', 200],
  ['POST', '/mcp', 200],
  ['GET', '/metrics', 200],
  ['GET', '/k8s/metrics', 200],
  ['GET', '/k8s/clusters/{id}', 200],
  ['GET', '/k8s/clusters/{id}/rights', 200],
  ['PATCH', '/k8s/clusters/{id}', 200],
  ['DELETE', '/k8s/clusters/{id}', 200],
  ['GET', '/k8s/tethers', 200],
  ['POST', '/k8s/tethers/{id}/activate', 200],
  ['DELETE', '/k8s/tethers/{id}', 200],
];

/** The codes of the base API with their statuses: docs/reference.md "Errors". */
const CODES: readonly [code: string, status: number][] = [
  ['invalid_spec', 400],
  ['unauthorized', 401],
  ['unknown_service', 404],
  ['port_in_use', 409],
  ['already_running', 409],
  ['ready_timeout', 502],
  ['daemon_busy', 503],
];

const served = ROUTES.map(({ method, path, status }) => `${method} ${path} ${status}`);
const expected = [...SPECIFIED, ...ADDED].map((row) => row.join(' '));

describe('the endpoints', () => {
  it('of the base API and its additions are all served', () => {
    expect(expected.filter((row) => !served.includes(row))).toEqual([]);
  });

  it('that are served all belong to the base API or its additions', () => {
    expect(served.filter((row) => !expected.includes(row))).toEqual([]);
    expect(new Set(served).size).toBe(served.length);
  });

  it('require the token of their path', () => {
    const open = ROUTES.filter(({ path }) => isPublicPath(path)).map(({ path }) => path);
    expect(open.sort()).toEqual([
      ...['/k8s/login', '/k8s/proof', '/livez', '/openapi.json', '/readyz', '/v1/page-sessions'],
      '/v1/proof',
    ]);
    expect(ROUTES.filter(({ path }) => isCloudPath(path)).every(({ path }) => path.startsWith('/k8s/'))).toBe(
      true,
    );
    // Responses that need no token, or come in every phase, reveal nothing about services.
    expect(
      ROUTES.filter(({ isAlways }) => isAlways)
        .map(({ path }) => path)
        .sort(),
    ).toEqual([
      ...['/k8s/login', '/k8s/proof', '/livez', '/openapi.json', '/readyz', '/v1/proof'],
      '/v1/version',
    ]);
  });

  it('use GET exactly if they change nothing', () => {
    for (const { kind, method } of ROUTES)
      if (kind !== 'call' && kind !== 'relay') expect(method).toBe('GET');
  });

  it('name only errors of the error table', () => {
    for (const { errors } of ROUTES) for (const code of errors) expect(ERRORS).toHaveProperty(code);
  });
});

it('the errors of the base API have its statuses', () => {
  for (const [code, status] of CODES)
    expect(Object.entries(ERRORS).find(([known]) => known === code)?.[1].status).toBe(status);
});
