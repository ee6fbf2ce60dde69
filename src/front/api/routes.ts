// The routes of the daemon: every operation of the API with its handler. docs/reference.md "Endpoints".
import type { Operation, OperationKind, ResourceName } from '../../api/operation.ts';
import { OPERATIONS } from '../../api/operations.ts';
import type { RequestBody } from '../../api/validation.ts';
import { loadPart } from '../../settings/load_part.ts';
import type { ResponseHeaders } from '../server/http_server.ts';
import type { AnyHandler, HandlersOf } from './handler.ts';
import { accessHandlers } from './handlers/access.ts';
import { agentHandlers } from './handlers/agents.ts';
import { cloudEventHandlers } from './handlers/cloud_events.ts';
import { clusterHandlers } from './handlers/clusters.ts';
import { commandHandlers } from './handlers/commands.ts';
import { eventHandlers } from './handlers/events.ts';
import { groupHandlers } from './handlers/groups.ts';
import { logHandlers } from './handlers/log_search.ts';
import { mcpHandlers } from './handlers/mcp.ts';
import { policyHandlers } from './handlers/policies.ts';
import { principalHandlers } from './handlers/principals.ts';
import { relayHandlers } from './handlers/relay.ts';
import { savingsHandlers } from './handlers/savings.ts';
import { serviceHandlers } from './handlers/services.ts';
import { stackHandlers } from './handlers/stacks.ts';
import { systemHandlers } from './handlers/system.ts';
import { tetherHandlers } from './handlers/tethers.ts';
import { workloadHandlers } from './handlers/workloads.ts';
import { EVENT_STREAM_HEADERS, headersOf, JSON_HEADERS } from './reply.ts';

/** An operation of one kind with its handler. */
export interface RouteOf<K extends OperationKind> extends Operation<ResourceName, K> {
  readonly run: AnyHandler<K>;
  /** The headers of a successful answer. */
  readonly headers: ResponseHeaders;
  /**
   * Checks a body and fills in its defaults; for an operation without a body, checks that there is none. The
   * schema is loaded with the first body. Rejects with invalid_spec. null: the body is ignored.
   */
  readonly parseBody: ((value: unknown) => Promise<unknown>) | null;
}

export type Route = { [K in OperationKind]: RouteOf<K> }[OperationKind];

const HANDLERS: { readonly [R in ResourceName]: HandlersOf<(typeof OPERATIONS)[R]> } = {
  services: serviceHandlers,
  groups: groupHandlers,
  stacks: stackHandlers,
  events: eventHandlers,
  logs: logHandlers,
  agents: agentHandlers,
  commands: commandHandlers,
  access: accessHandlers,
  system: systemHandlers,
  clusters: clusterHandlers,
  workloads: workloadHandlers,
  tethers: tetherHandlers,
  relay: relayHandlers,
  policies: policyHandlers,
  savings: savingsHandlers,
  principals: principalHandlers,
  cloudEvents: cloudEventHandlers,
  mcp: mcpHandlers,
};

function bodyParser(operation: Operation): Route['parseBody'] {
  if (operation.method === 'GET') return null;
  let body: RequestBody | null = null;
  return async (value) => {
    if (!body) {
      const { requestBodyOf } = await loadPart(() => import('../../api/schemas.ts'));
      body = await requestBodyOf(operation);
    }
    const { findFaults } = body;
    return body.parse(value, await loadPart(() => findFaults(value)));
  };
}

function headersFor({ contentType, kind }: Operation): ResponseHeaders {
  if (contentType !== null) return headersOf(contentType);
  return kind === 'stream' ? EVENT_STREAM_HEADERS : JSON_HEADERS;
}

function routesOf(
  operations: Readonly<Record<string, Operation>>,
  handlers: Readonly<Record<string, unknown>>,
): Route[] {
  return Object.entries(operations).map(([name, operation]) => {
    const parseBody = bodyParser(operation);
    const headers = headersFor(operation);
    // HANDLERS has a handler of the operation's kind under its name. It receives only that operation's query
    // and body.
    return { ...operation, run: handlers[name], headers, parseBody } as Route;
  });
}

/** In the order of the API's document. */
export const ROUTES: readonly Route[] = Object.entries(OPERATIONS).flatMap(([resource, operations]) =>
  routesOf(operations, HANDLERS[resource as ResourceName]),
);
