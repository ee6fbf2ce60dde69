// GET /openapi.json: the route table as an OpenAPI 3.1 document (the one importer of zod-openapi). Made when it is first asked for.
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiPathsObject } from 'zod-openapi';
import { z } from '../../adapters/zod.ts';
import { ERRORS, type ErrorCode } from '../../protocol/errors.ts';
import { VERSION } from '../../settings/version.ts';
import { ANSWERS, ErrorBody } from './answers.ts';
import { isPublicPath } from './public_paths.ts';
import type { QueryField } from './query.ts';
import type { ApiRoute } from './route.ts';

/** Shapes of request bodies and of more answers, by the names the rows give. */
export interface Shapes {
  inputs: Readonly<Record<string, z.ZodType>>;
  answers: Readonly<Record<string, z.ZodType>>;
}

const DAEMON_ANSWERS: Readonly<Record<string, z.ZodType>> = ANSWERS;

/** What any request may meet; those with a body may meet more. */
const COMMON_ERRORS: readonly ErrorCode[] = ['forbidden_host', 'forbidden_origin', 'internal'];
const BODY_ERRORS: readonly ErrorCode[] = [
  'invalid_spec',
  'request_timeout',
  'payload_too_large',
  'unsupported_media_type',
];

function shapeOfQuery(field: QueryField): z.ZodType {
  if (field.kind === 'integer') {
    const from = z.int().min(field.least);
    return field.clamp ? from : from.max(field.most);
  }
  if (field.kind === 'flag') return z.boolean();
  const word = field.of ? z.enum([...field.of]) : z.string();
  return field.kind === 'list' ? z.array(word).min(1) : word;
}

/** The parameters of a row: `{name}` of the path, the query, and where events are replayed the header. */
function parametersOf(row: ApiRoute): ZodOpenApiOperationObject['requestParams'] {
  const inPath = [...row.path.matchAll(/\{(\w+)\}/g)].map(([, key = '']): [string, z.ZodType] => [
    key,
    z.string(),
  ]);
  const query = 'query' in row ? Object.entries(row.query) : [];
  const inQuery = query.map(([key, field]): [string, z.ZodType] => [
    key,
    shapeOfQuery(field)
      .optional()
      .meta({
        description: field.summary,
        ...(field.kind === 'list' ? { param: { style: 'form', explode: false } } : {}),
      }),
  ]);
  const lastId = z.string().optional().meta({ description: 'The id of the last event that was seen' });
  return {
    ...(inPath.length > 0 ? { path: z.object(Object.fromEntries(inPath)) } : {}),
    ...(inQuery.length > 0 ? { query: z.object(Object.fromEntries(inQuery)) } : {}),
    ...(row.kind === 'stream' ? { header: z.object({ 'Last-Event-ID': lastId }) } : {}),
  };
}

function codesOf(row: ApiRoute): ErrorCode[] {
  const isOpen = isPublicPath(row.path);
  const isChange = row.method !== 'GET';
  const hasBody = row.kind === 'call' && row.input !== null;
  const hasQuery = 'query' in row && Object.keys(row.query).length > 0;
  const all: ErrorCode[] = [
    ...row.errors,
    ...COMMON_ERRORS,
    ...(isOpen ? [] : (['unauthorized'] as const)),
    ...(isChange || row.path === '/readyz' || !row.always ? (['daemon_busy'] as const) : []),
    ...(isChange ? (['storage_full'] as const) : []),
    ...(hasBody ? BODY_ERRORS : []),
    ...(hasQuery || (isChange && row.nameKind) ? (['invalid_spec'] as const) : []),
  ];
  return [...new Set(all)];
}

function errorsOf(row: ApiRoute): ZodOpenApiOperationObject['responses'] {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of codesOf(row))
    byStatus.set(ERRORS[code].status, [...(byStatus.get(ERRORS[code].status) ?? []), code]);
  const rows = [...byStatus].sort(([a], [b]) => a - b);
  return Object.fromEntries(
    rows.map(([status, codes]) => [
      String(status),
      { description: codes.join(', '), content: { 'application/json': { schema: ErrorBody } } },
    ]),
  );
}

function successOf(row: ApiRoute, shape: z.ZodType | undefined): ZodOpenApiOperationObject['responses'] {
  const described = { description: row.summary };
  if (row.kind === 'socket') return { '101': { description: `A WebSocket that speaks ${row.protocol}` } };
  if (!shape) throw new Error(`${row.method} ${row.path}: the answer ${row.reply} has no shape`);
  const type = row.kind === 'stream' ? 'text/event-stream' : 'application/json';
  const answer = { ...described, content: { [type]: { schema: shape } } };
  // A start that is not to be waited for answers 202 with the same body.
  const isWaitless = 'query' in row && 'wait' in row.query && row.method === 'POST' && row.status === 200;
  return { [String(row.status)]: answer, ...(isWaitless ? { '202': answer } : {}) };
}

const operationId = ({ method, path }: ApiRoute): string =>
  method.toLowerCase() +
  path
    .replace(/[{}]/g, '')
    .split(/[/.-]/)
    .filter((part) => part !== '' && part !== 'v1')
    .map((part) => part[0]?.toUpperCase() + part.slice(1))
    .join('');

function operationOf(row: ApiRoute, shapes: Shapes): ZodOpenApiOperationObject {
  const input = row.kind === 'call' ? row.input : null;
  const body = input && shapes.inputs[input.schema];
  if (input && !body) throw new Error(`${row.method} ${row.path}: the body ${input.schema} has no shape`);
  const scheme = row.path.startsWith('/k8s') ? 'cloudToken' : 'daemonToken';
  const parameters = parametersOf(row);
  return {
    operationId: operationId(row),
    summary: row.summary,
    tags: [row.path.split('/').find((part) => part !== '' && part !== 'v1') ?? 'daemon'],
    security: isPublicPath(row.path) ? [] : [{ [scheme]: [] }],
    ...(parameters ? { requestParams: parameters } : {}),
    ...(body ? { requestBody: { required: true, content: { 'application/json': { schema: body } } } } : {}),
    responses: {
      ...successOf(row, shapes.answers[row.reply] ?? DAEMON_ANSWERS[row.reply]),
      ...errorsOf(row),
    },
  };
}

/** The document of `rows`. Throws when a row names a shape that is not there. */
export function buildDocument(rows: readonly ApiRoute[], shapes: Shapes) {
  const paths: ZodOpenApiPathsObject = {};
  for (const row of rows) {
    paths[row.path] = { ...paths[row.path], [row.method.toLowerCase()]: operationOf(row, shapes) };
  }
  return createDocument({
    openapi: '3.1.0',
    info: {
      title: 'Berth',
      version: VERSION,
      description: 'Local services, agents and Kubernetes workloads, by name. Durations are milliseconds.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    paths,
    components: {
      securitySchemes: {
        daemonToken: { type: 'http', scheme: 'bearer', description: 'auth.token, where one is set' },
        cloudToken: { type: 'http', scheme: 'bearer', description: 'The token of the cloud API, always' },
      },
    },
  });
}

/** The document as it is served; the shapes are loaded with it. */
export async function openapiJson(rows: readonly ApiRoute[]): Promise<Uint8Array> {
  const { ServiceShape, SpinupShape } = await import('./shapes.ts');
  const { CLOUD_SHAPES } = await import('./shapes_cloud.ts');
  const inputs = {
    ...CLOUD_SHAPES.inputs,
    ServiceInput: ServiceShape.meta({ id: 'ServiceInput' }),
    SpinupInput: SpinupShape.meta({ id: 'SpinupInput' }),
  };
  return Buffer.from(JSON.stringify(buildDocument(rows, { inputs, answers: CLOUD_SHAPES.answers })));
}
