// GET /openapi.json: the operations as an OpenAPI 3.1 document.
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiPathsObject } from 'zod-openapi';
import { z } from '../adapters/zod.ts';
import { ERRORS, type ErrorCode } from '../protocol/errors.ts';
import { CLOUD_OPERATIONS } from '../settings/cloud_limits.ts';
import { VERSION } from '../settings/version.ts';
import { cloudRightOf } from './cloud_rights.ts';
import { isCloudChange, isOfRemote, type Operation, type ResourceName } from './operation.ts';
import type { QueryField } from './query.ts';
import { SHAPES } from './shapes.ts';
import { ErrorBody } from './system_shapes.ts';
import { RequestBody } from './validation.ts';

/** The shape modules of all resources. */
type Shapes = Readonly<Record<ResourceName, Readonly<Record<string, unknown>>>>;

function namedShape({ method, path, resource }: Operation, name: string, shapes: Shapes): z.ZodType {
  const found = shapes[resource][name];
  if (found instanceof z.ZodType) return found;
  if (found instanceof RequestBody) return found.shape;
  throw new Error(`${method} ${path}: ${resource} has no shape ${name}`);
}

/** The description of each resource's tag. */
const TAGS: Readonly<Record<ResourceName, string>> = {
  services: 'Commands with a port, which Berth starts, watches and stops',
  groups: 'Services that are started and stopped together',
  stacks: 'Projects at one branch, each with services of its own',
  events: 'What happens, as it happens and afterwards',
  logs: 'Lines of many services, by time',
  agents: 'Services that run in a terminal',
  commands: 'Commands that are run once, in the environment of a service',
  access: 'Proof of the server, and sessions of the page',
  system: 'The daemon itself',
  clusters: 'Kubernetes clusters',
  workloads: 'Deployments and StatefulSets, put to sleep and woken',
  tethers: 'Local ports that lead to workloads',
  relay: 'Connections to workloads for other machines',
  policies: 'When workloads of Kubernetes sleep by themselves',
  savings: 'What workloads of Kubernetes have saved while they slept',
  principals: 'API tokens of the cloud part, and what each may do',
  cloudEvents: 'What happens in the clusters and who asked for it: the audit log',
  mcp: 'The Model Context Protocol, for agents',
};

/**
 * The errors that any request may get: `invalid_spec` for an undeclared query value or broken
 * percent-encoding. A change may get more, because it may have a body.
 */
const COMMON_ERRORS: readonly ErrorCode[] = [
  'invalid_spec',
  'forbidden_host',
  'forbidden_origin',
  'forbidden_owner',
  'internal',
];
const CHANGE_ERRORS: readonly ErrorCode[] = [
  'request_timeout',
  'payload_too_large',
  'unsupported_media_type',
];
/** The errors of a shared database. */
const CLOUD_ERRORS: readonly ErrorCode[] = ['standing_by', 'database_unusable'];
const STORE_ERRORS: readonly ErrorCode[] = ['storage_full', 'storage_lost', 'key_unusable'];

function shapeOfQuery(field: QueryField): z.ZodType {
  if (field.kind === 'integer') {
    const from = z.int().min(field.least);
    return field.clamp ? from : from.max(field.most);
  }
  if (field.kind === 'flag') return z.boolean();
  const word = field.of ? z.enum([...field.of]) : z.string();
  return field.kind === 'list' ? z.array(word).min(1) : word;
}

/** The parameters of an operation: of its path, its query, and the header of a stream or a cloud change. */
function parametersOf(row: Operation): ZodOpenApiOperationObject['requestParams'] {
  const inPath = [...row.path.matchAll(/\{(\w+)\}/g)].map(([, key = '']): [string, z.ZodType] => [
    key,
    z.string(),
  ]);
  const inQuery = Object.entries(row.query).map(([key, field]): [string, z.ZodType] => [
    key,
    shapeOfQuery(field)
      .optional()
      .meta({
        description: field.summary,
        ...(field.kind === 'list' ? { param: { style: 'form', explode: false } } : {}),
      }),
  ]);
  const key = z.string().max(CLOUD_OPERATIONS.maxKeyLength).optional().meta({
    description: 'A request with a known key returns the earlier response and is not done again',
  });
  const lastId = z.string().optional().meta({ description: 'The id of the last event that was seen' });
  return {
    ...(inPath.length > 0 ? { path: z.object(Object.fromEntries(inPath)) } : {}),
    ...(inQuery.length > 0 ? { query: z.object(Object.fromEntries(inQuery)) } : {}),
    ...(row.kind === 'stream' ? { header: z.object({ 'Last-Event-ID': lastId }) } : {}),
    ...(isCloudChange(row) ? { header: z.object({ 'Idempotency-Key': key }) } : {}),
  };
}

function codesOf(row: Operation): ErrorCode[] {
  const isChange = row.method !== 'GET';
  const all: ErrorCode[] = [
    ...row.errors,
    ...COMMON_ERRORS,
    ...(isCloudChange(row) ? (['key_reused'] as const) : []),
    ...(isOfRemote(row) ? (['remote_unreachable', 'remote_denied'] as const) : []),
    ...(row.isPublic ? [] : (['unauthorized', 'forbidden_token'] as const)),
    ...(cloudRightOf(row) ? (['forbidden'] as const) : []),
    ...(isChange || row.path === '/readyz' || !row.isAlways ? (['daemon_busy'] as const) : []),
    ...(isChange ? CHANGE_ERRORS : []),
    ...(row.needs === 'cloud' ? CLOUD_ERRORS : []),
    ...(row.isStored ? STORE_ERRORS : []),
  ];
  return [...new Set(all)];
}

function errorsOf(row: Operation): ZodOpenApiOperationObject['responses'] {
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

function successOf(row: Operation, shapes: Shapes): ZodOpenApiOperationObject['responses'] {
  const described = { description: row.summary };
  if (row.answer === null) return { '101': { description: `A WebSocket that speaks ${row.protocol}` } };
  const type = row.contentType ?? (row.kind === 'stream' ? 'text/event-stream' : 'application/json');
  const answers: [number, string][] = [[row.status, row.answer]];
  if (row.otherStatus !== null) answers.push([row.otherStatus, row.otherAnswer ?? row.answer]);
  const answerOf = (name: string) => ({
    ...described,
    content: { [type]: { schema: namedShape(row, name, shapes) } },
  });
  return Object.fromEntries(answers.map(([status, name]) => [String(status), answerOf(name)]));
}

function operationOf(row: Operation, shapes: Shapes): ZodOpenApiOperationObject {
  const body = row.body === null ? null : namedShape(row, row.body, shapes);
  const scheme = row.path.startsWith('/k8s') ? 'cloudToken' : 'daemonToken';
  const parameters = parametersOf(row);
  const needed = cloudRightOf(row);
  return {
    operationId: row.id,
    summary: row.summary,
    ...(needed && { description: `Needs the role ${needed.role} (${needed.scope})` }),
    tags: [row.resource],
    security: row.isPublic ? [] : [{ [scheme]: [] }],
    ...(parameters ? { requestParams: parameters } : {}),
    ...(body ? { requestBody: { required: true, content: { 'application/json': { schema: body } } } } : {}),
    responses: { ...successOf(row, shapes), ...errorsOf(row) },
  };
}

/** The OpenAPI document of the operations `rows`. Throws an Error if an operation names a missing shape. */
export function buildDocument(rows: readonly Operation[], shapes: Shapes): ReturnType<typeof createDocument> {
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
    tags: [...new Set(rows.map(({ resource }) => resource))].map((name) => ({
      name,
      description: TAGS[name],
    })),
    paths,
    components: {
      securitySchemes: {
        daemonToken: { type: 'http', scheme: 'bearer', description: 'auth.token, where one is set' },
        cloudToken: {
          type: 'http',
          scheme: 'bearer',
          description: 'The token of the cloud API, or an API token',
        },
      },
    },
  });
}

/** Loads the shape modules of all resources. */
export async function loadShapes(): Promise<Shapes> {
  const loaded = Object.entries(SHAPES).map(async ([resource, load]) => [resource, await load()]);
  return Object.fromEntries(await Promise.all(loaded));
}

/** The document as the daemon serves it: JSON in UTF-8. */
export const documentJson = async (rows: readonly Operation[]): Promise<Uint8Array> =>
  Buffer.from(JSON.stringify(buildDocument(rows, await loadShapes())));
