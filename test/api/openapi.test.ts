// The API's document contains every row, with what the row says.
import { describe, expect, it } from 'vitest';
import { z } from '../../src/adapters/zod.ts';
import { buildDocument, loadShapes } from '../../src/api/openapi.ts';
import { ALL_OPERATIONS } from '../../src/api/operations.ts';
import { REQUIRED_FIELDS } from '../../src/api/required_fields.ts';
import { docsHtml, docsPage } from '../../src/front/api/docs_page.ts';
import { schemaPage } from '../../src/front/api/schema_page.ts';
import { ERRORS } from '../../src/protocol/errors.ts';
import { checkAnswer, DOCUMENT } from '../kit/api_document.ts';

interface Operation {
  operationId: string;
  tags: string[];
  security: object[];
  parameters?: { name: string; in: string; required?: boolean; schema: object }[];
  requestBody?: { required: boolean; content: Record<string, { schema: { $ref: string } }> };
  responses: Record<string, { description: string }>;
}
const operations: [string, Operation][] = Object.entries(DOCUMENT.paths).flatMap(([path, item]) =>
  Object.entries(item as Record<string, Operation>).map(([method, operation]): [string, Operation] => [
    `${method.toUpperCase()} ${path}`,
    operation,
  ]),
);
const operation = (name: string): Operation => {
  const found = operations.find(([one]) => one === name);
  if (!found) throw new Error(`${name} is not in the document`);
  return found[1];
};

describe('the OpenAPI document', () => {
  it('has every operation of the route table, and no other', () => {
    expect(DOCUMENT.openapi).toBe('3.1.0');
    expect(operations.map(([name]) => name).sort()).toEqual(
      ALL_OPERATIONS.map(({ method, path }) => `${method} ${path}`).sort(),
    );
  });

  it('requires the fields by which clients recognize a response', async () => {
    const shapes = await loadShapes();
    const used = new Set<string>();
    const answers = ALL_OPERATIONS.flatMap((row) => [row, { ...row, answer: row.otherAnswer }]);
    for (const { resource, answer, kind, contentType } of answers) {
      if (answer === null || contentType !== null || kind === 'stream') continue;
      used.add(answer);
      const fields = REQUIRED_FIELDS[answer];
      if (!fields) throw new Error(`${answer} has no required fields`);
      const least = fields === 'list' ? [] : {};
      const shape = new Map(Object.entries<unknown>(shapes[resource])).get(answer);
      if (!(shape instanceof z.ZodType)) throw new Error(`${answer} is no shape`);
      const { error } = shape.safeParse(least);
      const missing = error?.issues.filter(({ path }) => path.length === 1).map(({ path }) => path[0]) ?? [];
      expect(missing).toEqual(expect.arrayContaining(fields === 'list' ? [] : [...fields]));
    }
    expect([...used].sort()).toEqual(Object.keys(REQUIRED_FIELDS).sort());
  });

  it('gives each operation a unique name', () => {
    const names = operations.map(([, { operationId }]) => operationId);
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(name).toMatch(/^[a-z]+([A-Z][a-z]+)*$/);
    expect(names).toEqual(expect.arrayContaining(['startService', 'listAgents', 'wakeWorkload']));
  });

  it('gives each operation the tag of its resource, and describes every tag', () => {
    expect(operation('POST /v1/services/{name}/start').tags).toEqual(['services']);
    expect(operation('GET /v1/resolve/{name}').tags).toEqual(['services']);
    const used = new Set(operations.flatMap(([, { tags }]) => tags));
    expect(DOCUMENT.tags.map(({ name }: { name: string }) => name).sort()).toEqual([...used].sort());
  });

  it('has the statuses that an operation can return, and no others', () => {
    const successes = (name: string) => Object.keys(operation(name).responses).filter((one) => one < '300');
    expect(successes('POST /v1/services/{name}/start')).toEqual(['200', '202']);
    const { '200': ended, '202': goesOn } = operation('POST /v1/services/{name}/stop').responses;
    expect(JSON.stringify(ended)).toContain('schemas/Stopped"');
    expect(JSON.stringify(goesOn)).toContain('schemas/Stopping"');
    expect(successes('POST /k8s/workloads/{id}/wake')).toEqual(['200']);
    // An undeclared query value and broken percent-encoding.
    for (const [, { responses }] of operations)
      expect(responses['400']?.description).toContain('invalid_spec');
    for (const [name, { responses }] of operations)
      expect(responses['415'] !== undefined).toBe(!name.startsWith('GET'));
  });

  it('lists the errors of the store only for operations that write to it', () => {
    const statusOf = (name: string) => operation(name).responses['503']?.description;
    expect(statusOf('POST /v1/services')).toContain('storage_full');
    // With cloud.remote, a tether is made here, for a workload of the other Berth.
    expect(operation('POST /k8s/workloads/{id}/tether').responses['502']?.description).toMatch(
      /remote_unreachable[\s\S]*remote_denied/,
    );
    expect(operation('POST /v1/services').responses['500']?.description).toContain('storage_lost');
    // A page for the browser may be written.
    expect(statusOf('POST /v1/page-codes')).toContain('storage_full');
    // A stop is answered whatever the disk takes, and sessions of the page are in memory.
    for (const name of [
      'POST /v1/services/{name}/stop',
      'POST /v1/groups/{name}/stop',
      'POST /v1/page-sessions',
    ])
      expect(statusOf(name), name).not.toContain('storage');
    for (const [name, { responses }] of operations)
      if (name.startsWith('GET')) expect(responses['503']?.description ?? '').not.toContain('storage');
  });

  it('has the parameters of path and query, and the header that replays events', () => {
    const named = (name: string) => operation(name).parameters?.map((one) => `${one.in} ${one.name}`);
    expect(named('POST /v1/services/{name}/start')).toEqual([
      'path name',
      'query timeout',
      'query wait',
      'query awake',
      'query ifChanged',
      'query join',
    ]);
    expect(named('GET /v1/events')).toContain('header Last-Event-ID');
    expect(operation('POST /v1/services/{name}/start').parameters?.[1]?.schema).toMatchObject({
      type: 'integer',
      minimum: 0,
      maximum: 3_600_000,
    });
  });

  it('has the required fields of a registration, and forbids unknown ones', () => {
    const body = operation('POST /v1/services').requestBody;
    expect(body?.required).toBe(true);
    expect(body?.content['application/json']?.schema.$ref).toBe('#/components/schemas/ServiceInput');
    expect(DOCUMENT.components.schemas.ServiceInput).toMatchObject({
      required: ['name', 'cmd'],
      additionalProperties: false,
      properties: { pid: { readOnly: true } },
    });
  });

  it('has the status of every error that an operation can return', () => {
    for (const row of ALL_OPERATIONS) {
      const { responses } = operation(`${row.method} ${row.path}`);
      for (const code of row.errors) {
        expect(responses[String(ERRORS[code].status)]?.description.split(', ')).toContain(code);
      }
      expect(responses[String(row.status)]).toBeDefined();
    }
  });

  it('requires a token for all operations except the public ones', () => {
    const open = operations.filter(([, { security }]) => security.length === 0).map(([name]) => name);
    expect(open.sort()).toEqual([
      ...[
        'GET /k8s/login',
        'GET /k8s/proof',
        'GET /livez',
        'GET /openapi.json',
        'GET /readyz',
        'GET /v1/proof',
      ],
      'POST /v1/page-sessions',
    ]);
    expect(operation('GET /v1/services').responses['401']).toBeDefined();
    expect(operation('GET /livez').responses['401']).toBeUndefined();
    expect(operation('GET /k8s/clusters').security).toEqual([{ cloudToken: [] }]);
    expect(operation('GET /v1/services').security).toEqual([{ daemonToken: [] }]);
  });

  it('cannot be built from an operation whose response has no schema', async () => {
    const wrong = ALL_OPERATIONS.map((one) => (one.path === '/livez' ? { ...one, answer: 'Nothing' } : one));
    const shapes = await loadShapes();
    expect(() => buildDocument(wrong, shapes)).toThrow('has no shape');
  });
});

describe('the check of responses', () => {
  const check = checkAnswer;
  const service = {
    name: 'web',
    port: 1,
    group: null,
    status: 'stopped',
    url: 'http://localhost:1',
    restarts: 0,
    protocol: 'http',
    gatewayUrl: null,
    project: null,
    stack: null,
    service: null,
  };

  it('accepts what the document specifies', () => {
    check('GET', '/v1/services?x=1', 200, { services: [service] });
    check('GET', '/v1/nothing', 404, { code: 'not_found', message: 'm', hint: 'h' });
  });

  it.each([
    ['a field too many', 'GET', '/v1/services', 200, { services: [{ ...service, env: {} }] }],
    ['a field too few', 'GET', '/v1/services', 200, { services: [{ name: 'web' }] }],
    ['an unknown status value', 'GET', '/v1/services', 200, { services: [{ ...service, status: 'odd' }] }],
    [
      'a time without an offset',
      'GET',
      '/v1/services',
      200,
      { services: [{ ...service, startedAt: '2026-01-01T00:00:00.000' }] },
    ],
    ['a status that is not there', 'GET', '/v1/services', 418, {}],
    ['an error without its hint', 'GET', '/v1/services/x', 404, { code: 'unknown_service', message: 'm' }],
    ['an error of no known code', 'GET', '/v1/services/x', 404, { code: 'odd', message: 'm', hint: 'h' }],
    ['a path that is not there', 'GET', '/v1/odd', 200, {}],
  ])('refuses %s', (_what, method, path, status, body) => {
    expect(() => check(method, path, status, body)).toThrow(path);
  });
});

it('serves the schema of the project file with an entity tag', async () => {
  const page = await schemaPage('/schema/berth.json');
  expect(JSON.parse(Buffer.from(page?.bytes ?? '').toString())).toMatchObject({ title: 'berth.yaml' });
  expect(page?.etag).toMatch(/^"[\w-]{43}"$/);
  expect(schemaPage('/schema/other.json')).toBeNull();
});

describe('the page /docs', () => {
  it('shows every operation and every schema, and contains no script', async () => {
    const page = await docsPage('/docs');
    const text = Buffer.from(page?.bytes ?? []).toString('utf8');
    for (const [, { operationId }] of operations) expect(text).toContain(`id="${operationId}"`);
    for (const name of Object.keys(DOCUMENT.components.schemas)) expect(text).toContain(`id="shape-${name}"`);
    // Every link leads somewhere.
    for (const [, target] of text.matchAll(/href="#([^"]+)"/g)) expect(text).toContain(`id="${target}"`);
    expect(text).not.toMatch(/<script|<img|style=|https?:/);
    expect(page?.headers?.join(' ')).toContain("default-src 'none'; style-src 'sha256-");
    expect(docsPage('/docs/')).toBeNull();
  });

  it('escapes text from the document', () => {
    const schemas = { Odd: { properties: { 'a<b': { description: '<b>&"' } } } };
    const info = { title: 'x', version: '1' };
    const text = docsHtml({ info, tags: [], paths: {}, components: { schemas } });
    expect(text).toContain('<code>a&lt;b?</code>'.replace('?', ''));
    expect(text).toContain('&lt;b&gt;&amp;&quot;');
  });
});
