// Services and agents as clients see them, docs/reference.md "A service in JSON", "An agent in JSON": the
// fields of the base API in its order, then the additions.
import type { Agent, AgentDetail, AgentStanding } from '../../api/agents_shapes.ts';
import type { Resolution, Service, ServiceDetail } from '../../api/services_shapes.ts';
import type { AgentStatus } from '../../protocol/agent_state.ts';
import {
  AGENTS_GROUP,
  gatewayUrlOf,
  localhostUrl,
  serviceHostname,
  serviceUrl,
} from '../../protocol/names.ts';
import { pickFields, SPEC_FIELD_NAMES } from '../../protocol/registration.ts';
import type { ScheduleRow } from '../../protocol/schedules.ts';
import {
  type AgentSpec,
  portOfAgent,
  type ServiceSpec,
  type ServiceState,
  type ServiceStatus,
} from '../../protocol/service.ts';
import { projectOfStack, shortName, slugOfStack } from '../../protocol/stacks.ts';
import type { StatsRow } from '../../protocol/stats.ts';
import { localTime } from '../../protocol/timestamps.ts';
import type { SpecRow } from '../../protocol/views.ts';

/** The parts from which the JSON of a service is composed. */
export interface ServiceParts {
  spec: SpecRow;
  /** null: none has arrived, so the service is stopped. */
  state: ServiceState | null;
  stats: StatsRow | null;
  schedule: ScheduleRow | null;
  /** null: not an agent, or its actor has not started. */
  agent: AgentStatus | null;
}

/** The effective port. A running process keeps the port it was started with. */
const effectivePort = ({ spec, state }: ServiceParts): number | null => (state?.process ?? spec).port;

/** The additional fields of a task with a schedule. */
function scheduleFields({ spec, schedule }: ServiceParts) {
  if (!spec.schedule) return {};
  const { nextRunAt = null, skipped = 0 } = schedule ?? {};
  return { nextRunAt: nextRunAt === null ? null : localTime(nextRunAt), skippedRuns: skipped };
}

const statusOf = ({ state }: ServiceParts): ServiceStatus => state?.status ?? 'stopped';

/** The project and stack of a service, and its name there; null if not registered by a project. */
function placeOf({ name, stack }: SpecRow): Pick<Service, 'project' | 'stack' | 'service'> {
  if (!stack) return { project: null, stack: null, service: null };
  return { project: projectOfStack(stack), stack, service: shortName(name, stack) };
}

/** The host name under which the gateway serves it: docs/reference.md "Host names". null: it has none. */
export function gatewayHostname({ name, agent, stack }: SpecRow): string | null {
  if (agent) return agent.hostname;
  if (!stack) return serviceHostname(name, []);
  const slug = slugOfStack(stack);
  return serviceHostname(shortName(name, stack) ?? name, [...(slug ? [slug] : []), projectOfStack(stack)]);
}

/** The URL of a service at the gateway on `gatewayPort`; null without a gateway, a host name or a port. */
function gatewayUrl(parts: ServiceParts, gatewayPort: number | null): string | null {
  const hostname = gatewayHostname(parts.spec);
  if (gatewayPort === null || hostname === null || effectivePort(parts) === null) return null;
  return gatewayUrlOf(hostname, gatewayPort);
}

/** A service in the list. `gatewayPort` null: there is no gateway. */
export function serviceItem(parts: ServiceParts, gatewayPort: number | null): Service {
  const { spec, state, stats } = parts;
  const port = effectivePort(parts);
  const start = { name: spec.name, port, group: spec.group, status: statusOf(parts) };
  const innerPort = state?.process?.innerPort ?? null;
  const more = {
    restarts: state?.restarts ?? 0,
    ...(innerPort === null ? {} : { innerPort }),
    ...scheduleFields(parts),
    protocol: spec.protocol,
    gatewayUrl: gatewayUrl(parts, gatewayPort),
    ...placeOf(spec),
  };
  const running = state?.process;
  if (running) {
    // Measurements of an earlier process do not apply to this one.
    const measured = stats?.run === running.run ? stats : { cpu: 0, rssMB: running.rssMB };
    const { cpu, rssMB } = measured;
    const startedAt = localTime(running.startedAt);
    return { ...start, pid: running.pid, url: serviceUrl(port), startedAt, cpu, rssMB, ...more };
  }
  const end = state?.end;
  if (!end) return { ...start, url: serviceUrl(port), ...more };
  const { cause, exitCode, signal } = end;
  const unknown = end.exitUnknown ? { exitUnknown: true as const } : {};
  return {
    ...start,
    url: serviceUrl(port),
    exitCode,
    signal,
    ...unknown,
    ...(cause && { cause }),
    ...more,
  };
}

type DetailField = Exclude<
  keyof ServiceSpec,
  'name' | 'port' | 'group' | 'env' | 'agent' | 'stack' | 'protocol'
>;
const IN_EVERY_ITEM: readonly string[] = ['name', 'port', 'group', 'stack', 'protocol'];
const NEVER_SHOWN: readonly string[] = ['env', 'agent'];
/** The fields shown only when a service is read on its own. */
const DETAIL_FIELDS = SPEC_FIELD_NAMES.filter(
  (field): field is DetailField => !IN_EVERY_ITEM.includes(field) && !NEVER_SHOWN.includes(field),
);

/** A service read on its own. The front never has the values of its environment. */
export function serviceDetail(parts: ServiceParts, gatewayPort: number | null): ServiceDetail {
  const { spec, state } = parts;
  return {
    ...serviceItem(parts, gatewayPort),
    ...pickFields(spec, DETAIL_FIELDS),
    revision: spec.revision,
    stale: state?.process ? state.process.revision < spec.revision : false,
    envKeys: spec.envKeys,
    specHash: spec.specHash,
  };
}

/** The address of a service. */
export function resolutionItem(parts: ServiceParts): Resolution {
  const port = effectivePort(parts);
  return { name: parts.spec.name, url: serviceUrl(port), port, status: statusOf(parts) };
}

/** The state of an agent with this status, as waits see it. */
export const standingOf = ({ name, question, reason, since, state }: AgentStatus): AgentStanding => ({
  name,
  state,
  stateSince: since === 0 ? null : localTime(since),
  stateReason: reason,
  question,
});

/** The state of the agent with these parts, as waits see it. */
export function agentStanding(parts: ServiceParts): AgentStanding {
  const { state: shown, stateSince, stateReason, question } = stateOfAgent(parts);
  // No wait may end with a state that changed while no daemon ran.
  const state = parts.agent?.isKept ? 'starting' : shown;
  return { name: parts.spec.name, state, stateSince, stateReason, question };
}

/** The state of an agent. One whose actor has not started has no process. */
function stateOfAgent({ agent, state }: ServiceParts) {
  if (!agent) {
    const end = state?.end ?? null;
    const reason = { authority: 'process', rule: state?.process ? 'not-ready' : 'exited' } as const;
    return {
      state: state?.process ? ('starting' as const) : ('exited' as const),
      stateSince: end && localTime(end.at),
      stateReason: reason,
      question: [],
      title: '',
      lastOutputAt: null,
      viewers: 0,
    };
  }
  const { lastOutputAt, question, reason, since, title, viewers } = agent;
  return {
    state: agent.state,
    stateSince: since === 0 ? null : localTime(since),
    stateReason: reason,
    question,
    title,
    lastOutputAt: lastOutputAt === null ? null : localTime(lastOutputAt),
    viewers,
  };
}

/** An agent in the list. */
export function agentItem(parts: ServiceParts, agent: AgentSpec): Agent {
  const pid = parts.state?.process?.pid ?? null;
  return {
    port: portOfAgent(effectivePort(parts)),
    name: parts.spec.name,
    active: pid !== null,
    pid,
    hostname: agent.hostname,
    agent_type: agent.agentType,
    group: AGENTS_GROUP,
    ...placeOf(parts.spec),
    ...stateOfAgent(parts),
    cwd: parts.spec.cwd,
    sessionId: parts.agent?.sessionId ?? null,
  };
}

/** An agent read on its own. */
export function agentDetail(parts: ServiceParts, agent: AgentSpec, gatewayPort: number | null): AgentDetail {
  const { spec, state } = parts;
  const { cols, rows } = agent;
  return {
    ...agentItem(parts, agent),
    status: statusOf(parts),
    startedAt: state?.process ? localTime(state.process.startedAt) : null,
    cmd: spec.cmd,
    url: localhostUrl(portOfAgent(effectivePort(parts))),
    gatewayUrl: gatewayUrl(parts, gatewayPort),
    cols,
    rows,
    envKeys: spec.envKeys,
  };
}
