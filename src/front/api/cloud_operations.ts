// A change of the cloud part as an operation: stored before it is made, and its end recorded in the audit log
// before it is answered. docs/reference.md "Operations and retries".
import { createHash } from 'node:crypto';
import type { BulkAnswer, BulkInput } from '../../api/workloads_shapes.ts';
import { type CloudSubject, NO_SUBJECT } from '../../protocol/cloud_events.ts';
import { CUT_OFF, type OperationResult } from '../../protocol/cloud_operations.ts';
import { PASSED_ON } from '../../protocol/cloud_views.ts';
import type { ClusterChange } from '../../protocol/clusters.ts';
import { fail } from '../../protocol/errors.ts';
import type { Principal } from '../../protocol/grants.ts';
import type { GrantInput } from '../../protocol/principals.ts';
import { CLOUD, CLOUD_OPERATIONS } from '../../settings/cloud_limits.ts';
import type { HttpExchange } from '../server/http_server.ts';
import type { CloudViews } from '../views/cloud_views.ts';
import type { AppContext } from './app_context.ts';
import type { RequestContext } from './handler.ts';
import { failureOfTable } from './reply.ts';
import type { RouteOf } from './routes.ts';
import { waitAfterWake } from './wake_wait.ts';

/** The header Idempotency-Key. */
interface OperationKey {
  /** null if absent. */
  key: string | null;
}

const KEY = new RegExp(`^[\\x21-\\x7e]{1,${CLOUD_OPERATIONS.maxKeyLength}}$`);

/** Who asks, as named in the audit log, and from where. Must be read before anything is awaited. */
export function askerOf(
  exchange: HttpExchange,
  principal: Principal | null,
  { views, cloudKeys }: AppContext,
): { who: string; from: string } {
  const from = cloudKeys?.signedClient(exchange.header(PASSED_ON)) ?? exchange.peerAddress();
  // An agent name that a client claims is only accepted from callers who may do everything anyway.
  if (principal) return { who: principal.who, from };
  const agent = exchange.header('berth-agent');
  return { who: agent !== '' && views.spec(agent)?.agent ? `agent:${agent}` : 'token', from };
}

/** Must be read before anything is awaited. Throws invalid_spec for an invalid key. */
export function operationKey(exchange: HttpExchange, principal: Principal | null): OperationKey {
  const key = exchange.header('idempotency-key');
  if (key !== '' && !KEY.test(key)) {
    const rule = `must be 1 to ${CLOUD_OPERATIONS.maxKeyLength} printable characters without blanks`;
    const message = `the header Idempotency-Key ${rule}`;
    throw fail('invalid_spec', message, { details: [{ path: 'Idempotency-Key', message }] });
  }
  // Keys are separate for each principal, so no one gets an answer meant for another. The blank separates:
  // neither names nor keys contain one.
  const of = principal ? `${principal.subjects[0]} ` : '';
  return { key: key === '' ? null : of + key };
}

/** A dry run changes nothing and is not recorded. */
const isDryRun = (body: unknown): boolean =>
  typeof body === 'object' && body !== null && 'isDryRun' in body && body.isDryRun === true;

/** Hashes the checked request, so that the same request written differently gets the same fingerprint. */
const fingerprintOf = ({ id }: RouteOf<'call'>, { key, query, body }: RequestContext): string =>
  createHash('sha256')
    .update(JSON.stringify([id, key, query, body]))
    .digest('base64url');

/** The fields that identify what a bulk change, or its answer, is about. */
interface Named {
  id?: string;
  tether_id?: string;
  clusterId?: string | null;
}

const namedIn = (value: unknown): Named => (typeof value === 'object' && value !== null ? value : {});

function subjectOf(
  views: CloudViews,
  { resource, keyKind, id: action }: RouteOf<'call'>,
  { key, body }: RequestContext,
  answer: unknown,
): CloudSubject {
  switch (resource) {
    case 'clusters':
      return views.subject({ clusterId: keyKind ? key : (namedIn(answer).id ?? null) });
    case 'tethers':
      if (action !== 'createTether') return views.subject({ tetherId: key });
      return views.subject({ workloadId: key, tetherId: namedIn(answer).tether_id ?? null });
    case 'policies':
    case 'principals':
      return NO_SUBJECT;
    default:
      return views.subject(keyKind ? { workloadId: key } : { clusterId: namedIn(body).clusterId ?? null });
  }
}

const namesOf = (fields: object): string =>
  Object.entries(fields)
    .flatMap(([name, value]) => (value === null || value === false ? [] : [name]))
    .join(', ');

function bulkReason({ selector, namespaces, holdMs }: BulkInput, answer: BulkAnswer | null): string {
  const counts = new Map<string, number>();
  for (const { outcome } of answer?.results ?? []) counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  const parts = [
    ...(selector === null ? [] : [`selector ${selector}`]),
    ...(namespaces === null ? [] : [`namespaces ${namespaces.join(', ')}`]),
    ...(holdMs === null ? [] : [`hold ${holdMs} ms`]),
    ...[...counts].map(([outcome, count]) => `${count} ${outcome}`),
  ];
  return parts.join('; ');
}

const grantText = ({ to, role }: GrantInput): string => `${to.kind} ${to.name}: ${role}`;

/**
 * What the audit log additionally says about a request: values that are not secret, and only the names of
 * others.
 */
const REASONS: Readonly<Record<string, (request: RequestContext, answer: unknown) => string>> = {
  updateCluster: ({ body }) => `changed: ${namesOf(body as ClusterChange)}`,
  sleepWorkloads: ({ body }, answer) => bulkReason(body as BulkInput, answer as BulkAnswer | null),
  wakeWorkloads: ({ body }, answer) => bulkReason(body as BulkInput, answer as BulkAnswer | null),
  changeAutoSleep: ({ body }) => {
    const { enabled, minutes } = body as { enabled: boolean | null; minutes: number | null };
    return [
      ...(enabled === null ? [] : [enabled ? 'on' : 'off']),
      ...(minutes === null ? [] : [`after ${minutes} min`]),
    ].join(', ');
  },
  putPolicy: ({ key }) => `policy ${key}`,
  removePolicy: ({ key }) => `policy ${key}`,
  revokeToken: ({ key }) => `token ${key}`,
  createGrant: ({ body }) => grantText(body as GrantInput),
  removeGrant: ({ key }) => `grant ${key}`,
  createTether: ({ body }) => `port ${(body as { containerPort: number }).containerPort}`,
};

/** Adds a header to the answer, even if it is an error. */
function addHeader(request: RequestContext, name: string, value: string): void {
  request.headers = request.headers.with(name, value);
  request.errorHeaders = [...request.errorHeaders, name, value];
}

/** What an operation still waits for if the daemon ended after the change and before the answer. */
const REMAINING_WAITS: Readonly<Record<string, (request: RequestContext) => Promise<void>>> = {
  wakeWorkload: ({ app, key, query }) =>
    waitAfterWake(app, key, query as Parameters<typeof waitAfterWake>[2]),
};

/** Repeats the earlier answer or error of an operation. */
function replay({ answer, failure }: OperationResult, request: RequestContext): Uint8Array {
  addHeader(request, 'Idempotent-Replayed', 'true');
  if (!failure) return Buffer.from(answer ?? 'null');
  const { code, message, ...detail } = failure;
  throw fail(code, message, detail);
}

/**
 * Runs `work`, the handler of a change, as an operation; a known key repeats the earlier answer instead. The
 * operation's id is in the answer's header Berth-Operation. Fails as `work` does, key_reused, storage_full.
 */
export async function runOperation(
  route: RouteOf<'call'>,
  request: RequestContext,
  { key }: OperationKey,
  work: () => unknown,
): Promise<unknown> {
  if (isDryRun(request.body)) return work();
  const { app, who, from } = request;
  const operations = app.ref('operations');
  const views = app.cloud.views;
  // The names of what is about to be removed are known only now.
  const before = subjectOf(views, route, request, null);
  const fingerprint = fingerprintOf(route, request);
  const { id, run, result } = await operations.ask(
    'begin',
    { request: { key, who, from, fingerprint, action: route.id, subject: before, target: request.key } },
    // An operation under way is waited for.
    { deadlineMs: CLOUD.bulkTimeoutMs },
  );
  addHeader(request, 'Berth-Operation', id);
  if (!run && result) {
    if (result.reason === CUT_OFF) await REMAINING_WAITS[route.id]?.(request);
    return replay(result, request);
  }
  request.operationId = id;
  const end = await endOf(route, request, work);
  // The names of what was created are known only now.
  const after = subjectOf(views, route, request, 'value' in end ? end.value : null);
  const subject = after.clusterId === null ? before : after;
  const settled = await operations.ask('settle', { id, subject, result: end.result });
  if ('value' in end) return end.value;
  // An earlier attempt has done it.
  if (!settled.result.failure) return Buffer.from(settled.result.answer ?? 'null');
  throw end.error;
}

type OperationEnd = { result: OperationResult } & ({ value: unknown } | { error: unknown });

async function endOf(
  { id: action }: RouteOf<'call'>,
  request: RequestContext,
  work: () => unknown,
): Promise<OperationEnd> {
  try {
    const value = await work();
    const reason = REASONS[action]?.(request, value) || null;
    return { value, result: { answer: JSON.stringify(value), failure: null, reason } };
  } catch (error) {
    return { error, result: { answer: null, failure: failureOfTable(error), reason: null } };
  }
}
