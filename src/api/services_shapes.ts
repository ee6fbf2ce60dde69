// Services: the shape of a registration, docs/reference.md "Registration", and the answers of the operations.
import { constants, homedir } from 'node:os';
import { cronFault, isTimezone } from '../adapters/cron.ts';
import {
  DEPENDENCY_CONDITIONS,
  type Dependency,
  dependencyName,
  dependencyText,
} from '../protocol/dependency_order.ts';
import { fail } from '../protocol/errors.ts';
import { globFault } from '../protocol/globs.ts';
import { AGENTS_GROUP, GROUP_NAME_PATTERN } from '../protocol/names.ts';
import { PORT_PROTOCOLS } from '../protocol/port_protocol.ts';
import { completeRegistration, NO_SLEEP } from '../protocol/registration.ts';
import type { ScheduleSpec } from '../protocol/schedules.ts';
import { SERVICE_KINDS, type ServiceInput, type ServiceSpec } from '../protocol/service.ts';
import { HTTP, SERVICE, TASK } from '../settings/limits.ts';
import {
  cpu,
  endCause,
  exitCode,
  milliseconds,
  nameShape,
  pid,
  place,
  port,
  removed,
  rssMB,
  signal,
  status,
  time,
} from './answer_fields.ts';
import * as check from './check_fields.ts';
import * as field from './registration_fields.ts';
import {
  flagField,
  type InvalidField,
  integerField,
  objectShape,
  patternField,
  RequestBody,
  stringField,
  validate,
  z,
} from './validation.ts';
import { completeWatch, watch, watchInput } from './watch_fields.ts';

const GROUP_RULE = 'must be 1 to 63 of A-Z, a-z, 0-9, _ and -, and begin with a letter or digit';
const PORT_RULE = 'must be an integer from 1 to 65535, 0 for a free one, or null for none';
const LABELS_RULE = `must be an array of up to ${SERVICE.maxLabels} strings`;
const LABEL_RULE = `must be a string of up to ${SERVICE.maxLabelLength} characters without NUL`;
const NAMES_RULE = `must be an array of up to ${SERVICE.maxDependsOn} service names, or of {name, condition}`;
const CONDITION_RULE = 'must be "started", "ready" or "completed"';
const SIGNAL_RULE = 'must be the name of a signal such as SIGTERM';
const DURATION_RULE = `must be milliseconds from 0 to ${HTTP.maxQueryDurationMs}`;

const duration = integerField(0, HTTP.maxQueryDurationMs, DURATION_RULE);
const group = patternField(GROUP_RULE, GROUP_NAME_PATTERN).refine((value) => value !== AGENTS_GROUP, {
  error: 'must not be Agents, which is reserved',
});

const INPUTS_RULE = `must be an array of up to ${TASK.maxInputGlobs} globs, relative to cwd`;
const inputGlob = z.string('must be a glob such as src/**').superRefine((value, context) => {
  const message = globFault(value);
  if (message !== null) context.addIssue({ code: 'custom', message });
});
const cronLine = z.string('must be a cron line, or @every 5m').superRefine((value, context) => {
  const message = cronFault(value);
  if (message !== null) context.addIssue({ code: 'custom', message });
});
const timezone = stringField('must be a time zone such as Europe/Berlin', isTimezone);
const scheduleInput = z.union(
  [
    cronLine,
    objectShape({
      cron: cronLine,
      timezone: timezone.nullable().optional(),
      catchUp: flagField().optional(),
    }),
  ],
  'must be a cron line, "@every 5m", or {cron, timezone, catchUp}',
);

function completeSchedule(given: z.infer<typeof scheduleInput> | null | undefined): ScheduleSpec | null {
  if (!given) return null;
  if (typeof given === 'string') return { cron: given, timezone: null, catchUp: false };
  return { cron: given.cron, timezone: given.timezone ?? null, catchUp: given.catchUp ?? false };
}

const conditionShape = z.enum(DEPENDENCY_CONDITIONS, CONDITION_RULE);
const dependency = z.union(
  [field.name, objectShape({ name: field.name, condition: conditionShape.optional() })],
  'must be the name of a service, or {name, condition}',
);

const RegistrationShape = objectShape(
  {
    name: field.name,
    port: integerField(0, 65_535, PORT_RULE).nullable().optional(),
    cmd: field.cmd,
    cwd: field.cwd.nullable().optional(),
    group: group.nullable().optional(),
    ready: check.ready.nullable().optional(),
    env: field.env.optional(),
    dependsOn: z.array(dependency, NAMES_RULE).max(SERVICE.maxDependsOn, NAMES_RULE).optional(),
    restart: check.restart.optional(),
    autostart: flagField().optional(),
    stopSignal: stringField(SIGNAL_RULE, (value) => Object.hasOwn(constants.signals, value)).optional(),
    stopGrace: duration.optional(),
    startTimeout: duration.optional(),
    labels: z
      .array(
        stringField(LABEL_RULE, (value) => value.length <= SERVICE.maxLabelLength),
        LABELS_RULE,
      )
      .max(SERVICE.maxLabels, LABELS_RULE)
      .optional(),
    sleep: field.sleep.nullable().optional(),
    stack: field.stack.nullable().optional(),
    baseEnv: field.baseEnv.optional(),
    watch: watchInput.nullable().optional(),
    kind: z.enum(SERVICE_KINDS, 'must be "service" or "task"').optional(),
    schedule: scheduleInput.nullable().optional(),
    protocol: z.enum(PORT_PROTOCOLS, 'must be "http" or "tcp"').nullable().optional(),
    inputs: z.array(inputGlob, INPUTS_RULE).max(TASK.maxInputGlobs, INPUTS_RULE).optional(),
    live: check.live.nullable().optional(),
    limits: check.limits.nullable().optional(),
    envFile: check.envFile.optional(),
    stop: field.cmd.nullable().optional(),
  } satisfies Record<Exclude<keyof ServiceInput, 'agent'>, z.ZodType>,
  [
    ...['status', 'pid', 'url', 'startedAt', 'cpu', 'rssMB', 'exitCode', 'signal', 'exitUnknown', 'cause'],
    'innerPort',
    ...['nextRunAt', 'skippedRuns'],
    ...['restarts', 'gatewayUrl', 'project', 'service', 'revision', 'stale', 'envKeys', 'specHash'],
  ],
).meta({ id: 'ServiceInput' });

const LARGE_FIELDS: readonly field.LargeField[] = [
  field.ENV_LIMIT,
  field.BASE_ENV_LIMIT,
  ['dependsOn', SERVICE.maxDependsOn, NAMES_RULE],
  ['labels', SERVICE.maxLabels, LABELS_RULE],
  ['inputs', TASK.maxInputGlobs, INPUTS_RULE],
  check.ENV_FILE_LIMIT,
];

const isFilled = (value: unknown): boolean => Array.isArray(value) && value.length > 0;

/** A fault for each field that contradicts the kind of the registration, which zod has not validated yet. */
function faultsOfKind(value: unknown): InvalidField[] {
  const given: Record<string, unknown> = value instanceof Object ? { ...value } : {};
  const isTask = given['kind'] === 'task';
  const sleeps = (given['sleep'] ?? null) !== null;
  const refusals: [path: string, isWrong: boolean, rule: string][] = [
    ['port', !isTask && given['port'] === undefined, PORT_RULE],
    ['inputs', !isTask && isFilled(given['inputs']), 'are for tasks alone'],
    ['schedule', !isTask && (given['schedule'] ?? null) !== null, 'is for tasks alone'],
    ['ready', isTask && (given['ready'] ?? null) !== null, 'is not for a task, which is done when it ends'],
    ['sleep', sleeps && isTask, NO_SLEEP.task],
    ['sleep', sleeps && !isTask && given['port'] === null, NO_SLEEP.noPort],
    [
      'restart',
      isTask && check.policyOf(given['restart']) === 'always',
      'must not be "always" for a task, which runs to its end',
    ],
  ];
  return refusals.flatMap(([path, isWrong, rule]) => (isWrong ? [{ path, message: `${path} ${rule}` }] : []));
}

/** Each dependency once; a name if it has no condition. Throws invalid_spec if a name has two conditions. */
function uniqueDependencies(given: readonly z.infer<typeof dependency>[]): Dependency[] {
  const unique = new Map<string, Dependency>();
  for (const one of given) {
    const found = dependencyOf(one);
    const name = dependencyName(found);
    const before = unique.get(name) ?? found;
    if (dependencyText(before) !== dependencyText(found)) {
      const message = `dependsOn has two conditions for ${name}`;
      throw fail('invalid_spec', message, { details: [{ path: 'dependsOn', message }] });
    }
    unique.set(name, found);
  }
  return [...unique.values()];
}

const dependencyOf = (one: z.infer<typeof dependency>): Dependency => {
  if (typeof one === 'string') return one;
  const { name, condition } = one;
  return condition === undefined ? name : { name, condition };
};

function parseRegistration(value: unknown, extraFaults: readonly InvalidField[] = []): ServiceInput {
  const isAgent = value instanceof Object && 'group' in value && value.group === AGENTS_GROUP;
  const hint = isAgent ? 'POST /v1/agents/spinup makes an agent.' : undefined;
  const { rest, faults } = field.checkBeforehand(value, LARGE_FIELDS);
  const wrong = [...faults, ...extraFaults, ...field.faultsOfStack(rest), ...faultsOfKind(rest)];
  const valid = validate(RegistrationShape, rest, wrong, hint);
  const { cwd, env, baseEnv, port = null, dependsOn = [], watch: watching, schedule, ...given } = valid;
  return completeRegistration({
    ...given,
    cwd: cwd ?? homedir(),
    env: field.envRows(env),
    ...field.baseEnvRows(baseEnv),
    port,
    dependsOn: uniqueDependencies(dependsOn),
    schedule: completeSchedule(schedule),
    watch: completeWatch(watching),
    agent: null,
  });
}

/** The body of `register`. An absent field takes its default, except `env`, which keeps its stored value. */
export type Registration = z.input<typeof RegistrationShape>;
export const Registration = new RequestBody(RegistrationShape, parseRegistration, check.checkFaults);

const servicePort = port.nullable().meta({ description: 'null: it has none' });
const serviceUrl = z.string().nullable().meta({ example: 'http://localhost:3000' });

const servedProtocol = z
  .enum(PORT_PROTOCOLS)
  .meta({ description: 'What it speaks on its port; tcp: no HTTP, whatever its url says' });

const serviceFields = {
  name: nameShape,
  port: servicePort,
  group: z.string().nullable(),
  status,
  pid: pid.exactOptional().meta({ description: 'While there is a process, as are startedAt, cpu and rssMB' }),
  url: serviceUrl,
  protocol: servedProtocol,
  startedAt: time.exactOptional(),
  cpu: cpu.exactOptional(),
  rssMB: rssMB.exactOptional(),
  exitCode: exitCode.exactOptional(),
  signal: signal.exactOptional(),
  exitUnknown: z.literal(true).exactOptional().meta({ description: 'Its end was not observed' }),
  cause: endCause.exactOptional(),
  restarts: z.int().min(0),
  innerPort: port
    .exactOptional()
    .meta({ description: 'Behind a door: the port of the process itself, while there is one' }),
  nextRunAt: time
    .nullable()
    .exactOptional()
    .meta({ description: 'Of a task with a schedule: its next time; null: none comes' }),
  skippedRuns: z
    .int()
    .min(0)
    .exactOptional()
    .meta({ description: 'Times skipped because it was still running' }),
  gatewayUrl: z.string().nullable().meta({
    example: 'http://web.localhost:11612/',
    description: 'null: it has no host name, or there is no gateway',
  }),
  ...place,
};

/** A service in the list. */
export type Service = z.infer<typeof Service>;
export const Service = z.object(serviceFields).meta({ id: 'Service' });

const specFields = {
  cmd: z.string(),
  cwd: z.string(),
  ready: check.ready.nullable(),
  dependsOn: z.array(z.union([z.string(), z.object({ name: nameShape, condition: conditionShape })])),
  restart: check.restart,
  autostart: z.boolean(),
  stopSignal: z.string(),
  stopGrace: milliseconds,
  startTimeout: milliseconds,
  labels: z.array(z.string()),
  watch: watch.nullable(),
  kind: z.enum(SERVICE_KINDS),
  inputs: z.array(z.string()),
  sleep: z
    .object({ afterMinutes: z.number() })
    .nullable()
    .meta({ description: 'When it is put to sleep; null: never' }),
  live: check.live.nullable(),
  limits: check.limits.nullable(),
  envFile: z.array(z.string()),
  stop: z.string().nullable(),
  schedule: z.object({ cron: z.string(), timezone: z.string().nullable(), catchUp: z.boolean() }).nullable(),
} satisfies Record<Exclude<keyof ServiceSpec, keyof typeof serviceFields | 'env' | 'agent'>, z.ZodType>;

/** A service with its spec, but without the values of `env`, as the read of a single service returns it. */
export type ServiceDetail = z.infer<typeof ServiceDetail>;
export const ServiceDetail = z
  .object({
    ...serviceFields,
    ...specFields,
    revision: z.int().min(1).meta({ description: 'Grows when the effective spec changes' }),
    stale: z.boolean().meta({ description: 'The process runs an older revision' }),
    envKeys: z.array(z.string()).meta({ description: 'The values are never returned' }),
    specHash: z
      .string()
      .meta({ description: 'Differs when anything in the spec differs, values of env too' }),
  })
  .meta({ id: 'ServiceDetail' });

export const ServiceList = z.object({ services: z.array(Service) });

export type StartResult = z.infer<typeof StartResult>;
export const StartResult = z
  .object({
    name: nameShape,
    status,
    pid: pid.nullable().meta({ description: 'null: a task has completed' }),
    ms: milliseconds.exactOptional().meta({ description: 'How long a task ran that has completed' }),
    unchanged: z.literal(true).exactOptional().meta({
      description: 'The task was not run: it has completed with the same content before',
    }),
  })
  .meta({ id: 'Started' });

export type SleepResult = z.infer<typeof SleepResult>;
export const SleepResult = z.object({ name: nameShape, status }).meta({ id: 'Slept' });

export type StopResult = z.infer<typeof StopResult>;
export const StopResult = z
  .object({
    name: nameShape,
    status: z.literal('stopped'),
    exitCode,
    signal,
    escalated: z.boolean().meta({ description: 'SIGKILL was needed' }),
    reaped: z.int().min(0).meta({ description: 'How many processes were ended' }),
    left: z.array(z.object({ pid, command: z.string(), reason: z.string() })),
    portFree: z.boolean(),
    ms: milliseconds,
  })
  .meta({ id: 'Stopped' });

/** The answer to a stop that is not awaited and goes on. */
export type StopUnderWay = z.infer<typeof StopUnderWay>;
export const StopUnderWay = z.object({ name: nameShape, status }).meta({ id: 'Stopping' });

export type SignalResult = z.infer<typeof SignalResult>;
export const SignalResult = z
  .object({ name: nameShape, signal: z.string(), processes: z.int().min(0) })
  .meta({ id: 'Signalled' });

const SignalShape = objectShape({
  signal: stringField(SIGNAL_RULE, (value) => Object.hasOwn(constants.signals, value)),
}).meta({ id: 'SignalInput' });
/** The body of `signal`. */
export type SignalInput = z.input<typeof SignalShape>;
export const SignalInput = new RequestBody(SignalShape, (value) => validate(SignalShape, value));

export type Removed = z.infer<typeof Removed>;
export const Removed = z.object({ removed, name: nameShape });

/** The explanation of a service's state. */
export type Explanation = z.infer<typeof Explanation>;
export const Explanation = z
  .object({
    status,
    reason: z.string(),
    waitingFor: z.string().nullable(),
    lastCheck: z
      .object({ url: z.string(), at: time, status: z.int().nullable(), error: z.string().nullable() })
      .nullable(),
    portHolder: z.string().nullable(),
    backoff: z.object({ attempt: z.int(), delayMs: milliseconds, nextAt: time }).nullable(),
    exit: z.object({ exitCode, signal, at: time, cause: endCause.exactOptional() }).nullable(),
    watching: z
      .object({ folders: z.int().min(0), trouble: z.string().nullable() })
      .nullable()
      .meta({ description: 'What is watched for it: folders, and why changes may go unnoticed' }),
    lastLines: z.array(z.string()),
    next: z.string(),
  })
  .meta({ id: 'Explanation' });

/** The past CPU and memory use of a service. */
export type StatsHistory = z.infer<typeof StatsHistory>;
export const StatsHistory = z
  .object({
    name: nameShape,
    stepMs: milliseconds.meta({ description: 'How long the step of a point is' }),
    points: z.array(z.object({ at: time, cpu, rssMB })).meta({
      description: 'The oldest first: the mean of cpu, the most rssMB; steps without a process have none',
    }),
  })
  .meta({ id: 'StatsHistory' });

export type Logs = z.infer<typeof Logs>;
export const Logs = z.object({ name: nameShape, port: servicePort, lines: z.array(z.string()) });

export const LogLine = z.object({ line: z.string() }).meta({ description: 'The data of each event `line`' });

export type Resolution = z.infer<typeof Resolution>;
export const Resolution = z.object({ name: nameShape, url: serviceUrl, port: servicePort, status });
