import { describe, expect, it } from 'vitest';
import { type RoutePattern, Router } from '../../../src/front/api/router.ts';

const ROWS: RoutePattern[] = [
  { method: 'GET', path: '/v1/services' },
  { method: 'POST', path: '/v1/services' },
  { method: 'GET', path: '/v1/services/{name}' },
  { method: 'DELETE', path: '/v1/services/{name}' },
  { method: 'POST', path: '/v1/services/{name}/start' },
  { method: 'GET', path: '/v1/services/{name}/logs' },
  { method: 'GET', path: '/v1/services/{name}/logs/stream' },
  { method: 'POST', path: '/v1/agents/spinup' },
  { method: 'DELETE', path: '/v1/agents/{name}' },
  { method: 'GET', path: '/livez' },
];
const router = new Router(ROWS);
const at = (path: string) => {
  const found = router.find(path);
  return found && [found.entry.allow, found.key];
};

describe('a path', () => {
  it.each([
    ['/v1/services', ['GET, HEAD, OPTIONS, POST', '']],
    ['/v1/services/web', ['DELETE, GET, HEAD, OPTIONS', 'web']],
    ['/v1/services/a%2Fb', ['DELETE, GET, HEAD, OPTIONS', 'a%2Fb']],
    ['/v1/services/start', ['DELETE, GET, HEAD, OPTIONS', 'start']],
    ['/v1/services/__proto__', ['DELETE, GET, HEAD, OPTIONS', '__proto__']],
    ['/v1/services/web/start', ['OPTIONS, POST', 'web']],
    ['/v1/services/web/logs', ['GET, HEAD, OPTIONS', 'web']],
    ['/v1/services/web/logs/stream', ['GET, HEAD, OPTIONS', 'web']],
    ['/v1/agents/web', ['DELETE, OPTIONS', 'web']],
    ['/livez', ['GET, HEAD, OPTIONS', '']],
  ])('%s', (path, expected) => expect(at(path)).toEqual(expected));

  it('that is fixed works as well as a pattern that matches it', () => {
    expect(at('/v1/agents/spinup')).toEqual(['DELETE, OPTIONS, POST', 'spinup']);
    expect(router.find('/v1/agents/spinup')?.entry.rows.get('DELETE')?.path).toBe('/v1/agents/{name}');
    expect(router.find('/v1/agents/spinup')?.entry.rows.get('POST')?.path).toBe('/v1/agents/spinup');
  });

  it.each([
    '',
    '/',
    '//',
    '///',
    '/v1',
    '/v1/',
    '/v1//',
    '/v1/services/',
    '/v1/services//',
    '/v1/services//start',
    '/v1/services/web/',
    '/v1/services/web/start/',
    '/v1/services/web/nothing',
    '/v1/services/web/logs/stream/x',
    '/V1/services',
    '/v1/Services',
    '/v1/%73ervices',
    '/v1/services/web%2Fstart/x',
    '/livez/',
    '/__proto__',
    '/v1/agents',
    'livez',
    '/v1/services/a/b/c/d/e',
  ])('%s is unknown', (path) => expect(router.find(path)).toBeUndefined());
});

it('the router refuses duplicate rows, and parameters outside the third segment', () => {
  const row: RoutePattern = { method: 'DELETE', path: '/k8s/clusters/{id}' };
  expect(() => new Router([row, row])).toThrow('two rows');
  expect(() => new Router<RoutePattern>([{ method: 'GET', path: '/x/{id}' }])).toThrow('third segment');
});
