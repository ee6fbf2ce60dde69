// What the daemon answers, as shapes: for the API's document only. Nothing is checked with them while it serves; a test
// checks every real answer against the document.
import { z } from '../../adapters/zod.ts';
import { ERRORS } from '../../protocol/errors.ts';
import { EVENT_TYPES } from '../../protocol/events.ts';
import { AGENTS_GROUP } from '../../protocol/names.ts';
import { AGENT_TYPES, RESTART_POLICIES, SERVICE_STATUSES } from '../../protocol/service.ts';

const name = z.string().meta({ description: 'Its unique name', example: 'web' });
const port = z.int().min(1).max(65_535);
const pid = z.int().min(1);
const time = z
  .string()
  .regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d\d:\d\d)$/)
  .meta({
    id: 'Time',
    format: 'date-time',
    description: 'RFC 3339, with the local offset; of the cloud API in UTC',
  });
const exitCode = z.int().nullable().meta({ description: 'null when a signal ended the process' });
const signal = z.string().nullable().meta({ example: 'SIGTERM' });
const ms = z.number().min(0).meta({ description: 'Milliseconds' });
const cpu = z
  .number()
  .min(0)
  .meta({ description: 'Cores over the whole process tree: 1.0 is one core busy' });
const rssMB = z.int().min(0).meta({ description: 'Resident memory of the whole process tree in megabytes' });
const agentType = z.enum(AGENT_TYPES).nullable();
const lines = z.array(z.string());

const Status = z
  .enum(SERVICE_STATUSES)
  .meta({ id: 'Status', description: 'starting: its ready-check has not passed yet' });

const serviceFields = {
  name,
  port,
  group: z.string().nullable(),
  status: Status,
  pid: pid.optional().meta({ description: 'While there is a process, as are startedAt, cpu and rssMB' }),
  url: z.string().meta({ example: 'http://localhost:3000' }),
  startedAt: time.optional(),
  cpu: cpu.optional(),
  rssMB: rssMB.optional(),
  exitCode: exitCode.optional(),
  signal: signal.optional(),
  exitUnknown: z.literal(true).optional().meta({ description: 'Nobody saw how it ended' }),
  restarts: z.int().min(0),
};
const Service = z.object(serviceFields).meta({ id: 'Service' });

const ServiceDetail = z
  .object({
    ...serviceFields,
    cmd: z.string(),
    cwd: z.string(),
    ready: z.string().nullable(),
    dependsOn: z.array(z.string()),
    restart: z.enum(RESTART_POLICIES),
    autostart: z.boolean(),
    stopSignal: z.string(),
    stopGrace: ms,
    startTimeout: ms,
    labels: z.array(z.string()),
    revision: z.int().min(1).meta({ description: 'Grows when the effective spec changes' }),
    stale: z.boolean().meta({ description: 'The process runs an older revision' }),
    envKeys: z.array(z.string()).meta({ description: 'The values are never returned' }),
    specHash: z
      .string()
      .meta({ description: 'Differs when anything in the spec differs, values of env too' }),
  })
  .meta({ id: 'ServiceDetail' });

const Started = z.object({ name, status: Status, pid: pid.nullable() }).meta({ id: 'Started' });

const Stopped = z
  .object({
    name,
    status: z.literal('stopped'),
    exitCode,
    signal,
    escalated: z.boolean().meta({ description: 'SIGKILL was needed' }),
    reaped: z.int().min(0).meta({ description: 'How many processes were ended' }),
    left: z.array(z.object({ pid, command: z.string(), reason: z.string() })),
    portFree: z.boolean(),
    ms,
  })
  .meta({ id: 'Stopped' });

const Explanation = z
  .object({
    status: Status,
    reason: z.string(),
    waitingFor: z.string().nullable(),
    lastCheck: z
      .object({ url: z.string(), at: time, status: z.int().nullable(), error: z.string().nullable() })
      .nullable(),
    portHolder: z.string().nullable(),
    backoff: z.object({ attempt: z.int(), delayMs: ms, nextAt: time }).nullable(),
    exit: z.object({ exitCode, signal, at: time }).nullable(),
    lastLines: lines,
    next: z.string(),
  })
  .meta({ id: 'Explanation' });

const Group = z.object({ name, services: z.int().min(1), running: z.int().min(0) }).meta({ id: 'Group' });

const Agent = z
  .object({
    port,
    name,
    active: z.boolean(),
    pid: pid.nullable(),
    hostname: z.string(),
    agent_type: agentType,
    group: z.literal(AGENTS_GROUP),
  })
  .meta({ id: 'Agent' });

const SpunUp = z
  .object({
    port,
    name,
    active: z.boolean(),
    hostname: z.string(),
    pid,
    url: z.string(),
    gatewayUrl: z.string().nullable(),
    agent_type: agentType,
  })
  .meta({ id: 'SpunUp' });

/** The data of each type of event, and what `detail` adds. */
const detail = { at: time.optional(), run: z.string().nullable().optional() };
const EVENT_DATA = {
  'service.registered': z.object({ name, port, group: z.string().nullable(), ...detail }),
  'service.started': z.object({ name, pid, url: z.string(), ...detail }),
  'service.stopped': z.object({ name, exitCode, signal: signal.optional(), ...detail }),
  'service.crashed': z.object({ name, exitCode, signal, ...detail }),
  'service.stats': z.object({ name, cpu, rssMB, ...detail }),
  'service.removed': z.object({ name, ...detail }),
  'port.conflict': z.object({ port, claimedBy: z.string(), holder: z.string(), ...detail }),
} satisfies Record<(typeof EVENT_TYPES)[number], z.ZodType>;

const Event = z
  .union(
    EVENT_TYPES.map((type) =>
      z.object({ id: z.int().min(1), type: z.literal(type), data: EVENT_DATA[type] }).meta({ title: type }),
    ),
  )
  .meta({ id: 'Event', description: 'On the stream: id and event lines, and data as JSON' });

const Health = z.object({ status: z.literal('ok') }).meta({ id: 'Health' });

/** The body of every error: docs/reference.md "Errors". */
export const ErrorBody = z
  .object({
    code: z.enum(Object.keys(ERRORS)),
    message: z.string(),
    hint: z.string(),
    details: z
      .array(z.object({ path: z.string(), message: z.string() }))
      .optional()
      .meta({ description: 'For invalid_spec: every wrong field' }),
  })
  .meta({ id: 'Error' });

/** The shape of each `reply` that a row of the route table names. */
export const ANSWERS = {
  Service,
  ServiceDetail,
  ServiceList: z.object({ services: z.array(Service) }),
  Started,
  Stopped,
  Removed: z.object({ removed: z.literal(true), name }),
  Explanation,
  Logs: z.object({ name, port, lines }),
  Resolution: z.object({ name, url: z.string(), port, status: Status }),
  GroupList: z.object({ groups: z.array(Group) }),
  GroupStarted: z.object({ name, services: z.array(Started) }),
  GroupStopped: z.object({ name, services: z.array(z.object({ name, status: Status, exitCode })) }),
  EventList: z.object({ events: z.array(Event) }),
  AgentList: z.object({ agents: z.array(Agent) }),
  SpunUp,
  AgentRemoved: z.object({ removed: z.literal(true), name, port }),
  Version: z.object({
    name: z.literal('berth'),
    version: z.string(),
    pid,
    startedAt: time,
    front: z.string(),
    stateDir: z.string(),
    gatewayPort: port.nullable(),
    apiLevel: z.int(),
  }),
  Health,
  OpenApi: z.object({ openapi: z.string() }).catchall(z.unknown()),
  EventStream: Event,
  LineStream: z.object({ line: z.string() }).meta({ description: 'The data of each event `line`' }),
} satisfies Record<string, z.ZodType>;
