// The handlers of services, groups and agents: what is asked of whom, for how long, and what the answer is made of.

import type { SpinupInput } from '../../protocol/agents.ts';
import { type ErrorCode, fail } from '../../protocol/errors.ts';
import { hostLabel } from '../../protocol/names.ts';
import type { RegistryProtocol } from '../../protocol/registry.ts';
import type { LogsQuery, ServiceInput, ServiceProtocol } from '../../protocol/service.ts';
import { localTime } from '../../protocol/timestamps.ts';
import type { SpecRow } from '../../protocol/views.ts';
import type { Ref } from '../../runtime/actor.ts';
import { HTTP, LOGS, SERVICE, THREADS } from '../../settings/limits.ts';
import type { ServerWebSocket, WebSocketHandlers } from '../server/http_server.ts';
import { detailedData } from '../streams/event_hub.ts';
import type { AppContext, RequestContext, StreamRequestContext } from './route.ts';

/** How long a start of this service may take until its owner has answered, stop after a timeout included. */
const startMs = (spec: SpecRow, timeout: number | null): number =>
  (timeout ?? spec.startTimeout) + stopMs(spec, null);
const stopMs = (spec: SpecRow, grace: number | null): number =>
  (grace ?? spec.stopGrace) + SERVICE.killTimeoutMs + THREADS.askDeadlineMs;

const deadline = (...ms: number[]): { deadlineMs: number } => ({
  deadlineMs: ms.reduce((sum, part) => sum + part, 0),
});

/** The spec of a service that exists. An unknown name must not bring an actor to life. */
function known(desk: AppContext, name: string, code: ErrorCode = 'unknown_service'): SpecRow {
  const spec = desk.views.spec(name);
  if (!spec || (code === 'unknown_agent' && !spec.agent))
    throw fail(code, `there is no ${code === 'unknown_agent' ? 'agent' : 'service'} ${name}`);
  return spec;
}

const serviceOf = (desk: AppContext, name: string): Ref<ServiceProtocol> => desk.ref(`service:${name}`);

const registryOf = (desk: AppContext): Ref<RegistryProtocol> => desk.ref('registry');

type Timed = { timeout: number | null };
type Graced = { grace: number | null };

/** Registers it; the answer is the service as it is listed. Fails as that letter does. */
export async function register({
  desk,
  body,
}: {
  desk: AppContext;
  body: ServiceInput;
}): Promise<Uint8Array> {
  await registryOf(desk).ask('register', { input: body });
  const item = desk.views.item(body.name);
  if (!item) throw fail('unknown_service', `the service ${body.name} was removed meanwhile`);
  return item;
}

type StartCall = Pick<RequestContext, 'desk' | 'name' | 'status'> & {
  query: Timed & { wait: boolean | null };
};

/**
 * Starts it and, unless `wait` is false, waits until it is ready, at most `timeout` ms. Fails unknown_service, already_running,
 * port_in_use, ready_timeout, start_failed.
 */
export function start(call: StartCall) {
  const { desk, name, query } = call;
  const spec = known(desk, name);
  const wait = query.wait ?? true;
  if (!wait) call.status = 202;
  const message = { timeoutMs: query.timeout, wait };
  return serviceOf(desk, name).ask('start', message, deadline(startMs(spec, query.timeout)));
}

/** Stops it with all it has started; `grace` in ms. Fails unknown_service. */
export function stop({ desk, name, query }: { desk: AppContext; name: string; query: Graced }) {
  const spec = known(desk, name);
  const message = { graceMs: query.grace };
  return serviceOf(desk, name).ask('stop', message, deadline(stopMs(spec, query.grace)));
}

/** Stops it if it runs, starts it and waits until it is ready. Fails as `start`, but for already_running. */
export function restart({ desk, name, query }: { desk: AppContext; name: string; query: Timed & Graced }) {
  const spec = known(desk, name);
  const message = { timeoutMs: query.timeout, graceMs: query.grace };
  const limit = deadline(startMs(spec, query.timeout), stopMs(spec, query.grace));
  return serviceOf(desk, name).ask('restart', message, limit);
}

/** Stops it if need be and forgets it. Fails unknown_service, storage_full. */
export async function removeService({ desk, name }: { desk: AppContext; name: string }) {
  const spec = known(desk, name);
  const message = { name, agent: false, graceMs: null };
  await registryOf(desk).ask('remove', message, deadline(stopMs(spec, null)));
  return { removed: true, name };
}

const timeOrNull = (at: number | null): string | null => (at === null ? null : localTime(at));

/** Why it is as it is, with times as clients read them. Fails unknown_service. */
export async function explain({ desk, name }: { desk: AppContext; name: string }) {
  known(desk, name);
  const facts = await serviceOf(desk, name).ask('explain', {});
  const { lastCheck, backoff, exit } = facts;
  return {
    status: facts.status,
    reason: facts.reason,
    waitingFor: facts.waitingFor,
    lastCheck: lastCheck && { ...lastCheck, at: localTime(lastCheck.at) },
    portHolder: facts.portHolder,
    backoff: backoff && { ...backoff, nextAt: timeOrNull(backoff.nextAt) },
    exit: exit && { ...exit, at: localTime(exit.at) },
    lastLines: facts.lastLines,
    next: facts.next,
  };
}

interface LogsAsked {
  lines: number | null;
  stream: LogsQuery['stream'];
  timestamps: boolean | null;
  raw: boolean | null;
}

const queryOf = ({ lines, stream, timestamps, raw }: LogsAsked, usual: number): LogsQuery => ({
  lines: lines ?? usual,
  stream,
  timestamps: timestamps ?? false,
  raw: raw ?? false,
});

const CLOSE = Buffer.from('}');

async function logsOf(desk: AppContext, spec: SpecRow, query: LogsAsked) {
  const lines = await serviceOf(desk, spec.name).ask('logs', queryOf(query, LOGS.defaultLines));
  const port = desk.views.state(spec.name)?.process?.port ?? spec.port;
  const head = JSON.stringify({ name: spec.name, port }).slice(0, -1);
  return Buffer.concat([Buffer.from(`${head},"lines":`), lines, CLOSE]);
}

/** The last lines of its log, as JSON. Fails unknown_service. */
export const serviceLogs = ({ desk, name, query }: { desk: AppContext; name: string; query: LogsAsked }) =>
  logsOf(desk, known(desk, name), query);

/** The same of an agent. Fails unknown_agent. */
export const agentLogs = ({ desk, name, query }: { desk: AppContext; name: string; query: LogsAsked }) =>
  logsOf(desk, known(desk, name, 'unknown_agent'), query);

type FollowCall = Pick<StreamRequestContext, 'desk' | 'name' | 'lastEventId' | 'open'> & {
  query: LogsAsked;
};

/** Follows a log on a stream: rejects before it is opened, with `code` where there is no such service. */
const followOf =
  (code: 'unknown_service' | 'unknown_agent') =>
  ({ desk, name, query, lastEventId, open }: FollowCall): Promise<void> => {
    known(desk, name, code);
    return desk.logs.follow({
      name,
      service: serviceOf(desk, name),
      query: queryOf(query, 0),
      lastEventId,
      isRunning: () => desk.views.state(name)?.process != null,
      open,
    });
  };
export const followService = followOf('unknown_service');
export const followAgent = followOf('unknown_agent');

function membersOf(desk: AppContext, name: string): SpecRow[] {
  const members = desk.views.members(name);
  if (members.length === 0) throw fail('unknown_group', `there is no group ${name}`);
  return members;
}

/**
 * Starts its members in the order of their dependence and waits for all. Fails unknown_group, port_in_use, ready_timeout,
 * start_failed.
 */
export async function startGroup({ desk, name, query }: { desk: AppContext; name: string; query: Timed }) {
  const times = membersOf(desk, name).map((spec) => startMs(spec, query.timeout));
  const groups = desk.ref('groups');
  const { services } = await groups.ask('start', { name, timeoutMs: query.timeout }, deadline(...times));
  return { name, services };
}

/** Stops its members in reverse order; `grace` in ms for each. Fails unknown_group. */
export async function stopGroup({ desk, name, query }: { desk: AppContext; name: string; query: Graced }) {
  const times = membersOf(desk, name).map((spec) => stopMs(spec, query.grace));
  const groups = desk.ref('groups');
  const { services } = await groups.ask('stop', { name, graceMs: query.grace }, deadline(...times));
  return { name, services };
}

/**
 * Registers an agent and starts its process, without waiting until it is ready. Fails invalid_spec, already_running, name_in_use,
 * port_in_use, start_failed, storage_full.
 */
export async function spinup({ desk, body }: { desk: AppContext; body: SpinupInput }) {
  // With the first agent the gateway starts too, at the same time.
  const opening = desk.ensureGateway();
  const agents = desk.ref('agents');
  const { name, port, pid } = await agents.ask('spinup', { input: body });
  const gatewayPort = await opening;
  const hostname = `${hostLabel(name)}.${desk.daemonInfo.agentDomain}`;
  const gatewayUrl = gatewayPort === null ? null : `http://${hostname}:${gatewayPort}/`;
  const url = `http://localhost:${port}`;
  return { port, name, active: true, hostname, pid, url, gatewayUrl, agent_type: body.agentType };
}

/** Stops an agent and forgets it. Fails unknown_agent, storage_full. */
export async function removeAgent({ desk, name }: { desk: AppContext; name: string }) {
  const spec = known(desk, name, 'unknown_agent');
  const { port } = await desk.ref('agents').ask('remove', { name }, deadline(stopMs(spec, null)));
  return { removed: true, name, port };
}

/** Opens the terminal of an agent that has one: to know that, nobody need be asked. Fails unknown_agent, not_running. */
export function attach({
  desk,
  name,
}: {
  desk: AppContext;
  name: string;
}): (socket: ServerWebSocket) => WebSocketHandlers {
  known(desk, name, 'unknown_agent');
  if (!desk.views.state(name)?.process) throw fail('not_running', `the agent ${name} does not run`);
  return (socket) => desk.terminals.open(socket, desk.ref(`service:${name}`));
}

interface EventsAsked {
  types: string[] | null;
  names: string[] | null;
  detail: boolean | null;
  lastEventId: string | null;
}

type EventsCall = Pick<StreamRequestContext, 'desk' | 'lastEventId' | 'open'> & { query: EventsAsked };

/** Sends events as they come, those after the last id first. */
export function followEvents({ desk, query, lastEventId, open }: EventsCall): void {
  const { types, names, detail } = query;
  const stream = open();
  const after = lastEventId || (query.lastEventId ?? '');
  if (stream) desk.hub.subscribe(stream, { types, names, detail: detail ?? false }, after);
}

interface HistoryAsked {
  types: string[] | null;
  names: string[] | null;
  since: number | null;
  limit: number | null;
}

/** The kept events that fit, as JSON: put together as text, because an event's data is JSON text already. */
export async function history({
  desk,
  query,
}: {
  desk: AppContext;
  query: HistoryAsked;
}): Promise<Uint8Array> {
  const { types, names, since, limit } = query;
  const events = desk.ref('events');
  const answer = await events.ask('history', {
    types,
    names,
    since,
    limit: limit ?? HTTP.defaultHistoryEvents,
  });
  const rows = answer.events.map(
    (event) => `{"id":${event.id},"type":"${event.type}","data":${detailedData(event)}}`,
  );
  return Buffer.from(`{"events":[${rows.join(',')}]}`);
}
