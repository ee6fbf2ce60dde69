// What a registration and a spinup must look like, docs/reference.md "Registration", "Spinup", and what they
// become with every default filled in. The same shapes make the API's document.
import { constants, homedir } from 'node:os';
import type { SpinupInput } from '../../protocol/agents.ts';
import {
  AGENTS_GROUP,
  ENV_KEY_PATTERN,
  GROUP_NAME_PATTERN,
  hostLabel,
  SERVICE_NAME_PATTERN,
} from '../../protocol/names.ts';
import { AGENT_TYPES, RESTART_POLICIES, type ServiceInput } from '../../protocol/service.ts';
import { AGENT, HTTP, SERVICE } from '../../settings/limits.ts';
import {
  flagField,
  type InvalidField,
  integerField,
  objectShape,
  patternField,
  stringField,
  validate,
  z,
} from './validation.ts';

const NAME_RULE = 'must be 1 to 63 of a-z, 0-9, _ and -, and not begin with -';
const GROUP_RULE = 'must be 1 to 63 of A-Z, a-z, 0-9, _ and -, and begin with a letter or digit';
const CMD_RULE = 'must be a shell command of 1 byte to 64 KiB without NUL';
const CWD_RULE = 'must be an absolute path of up to 4 KiB without NUL';
const READY_RULE = 'must be a URL of up to 4 KiB with http://, https:// or tcp://host:port';
const AGENT_READY_RULE = `${READY_RULE}; $PORT in it is the port of the agent`;
const ENV_RULE = 'must be an object of up to 256 strings and 64 KiB';
const ENV_KEY_RULE = 'must have a key of letters, digits and _ that begins with no digit and not with BERTH_';
const ENV_VALUE_RULE = 'must be a string without NUL';
const LABELS_RULE = `must be an array of up to ${SERVICE.maxLabels} strings`;
const LABEL_RULE = `must be a string of up to ${SERVICE.maxLabelLength} characters without NUL`;
const NAMES_RULE = `must be an array of up to ${SERVICE.maxDependsOn} service names`;
const SIGNAL_RULE = 'must be the name of a signal such as SIGTERM';
const HOST_LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

function isReadyUrl(value: string): boolean {
  if (!URL.canParse(value)) return false;
  // What the URL parser forgives (spaces, a missing host) is a mistake here.
  if (/^https?:\/\/[^\s/?#]\S*$/i.test(value)) return true;
  return /^tcp:\/\/[^\s/?#@]+$/.test(value) && Number(new URL(value).port) > 0;
}

/** Which port it will be is not known yet: as the port itself, and behind the address, any number makes a URL. */
function isAgentReadyUrl(value: string): boolean {
  const filled = value.replace(/^([^/]*\/\/[^/?#$]*:)\$PORT(?![^/?#])/, (_, before) => `${before}1`);
  const isInAddress = /^[^/]*\/\/[^/?#]*\$PORT/.test(filled);
  return isReadyUrl(filled) && !isInAddress;
}

const envBytes = (env: Record<string, string>): number =>
  Object.entries(env).reduce(
    (sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value),
    0,
  );

const envKey = z
  .string()
  .refine((key) => ENV_KEY_PATTERN.test(key) && !key.startsWith('BERTH_'), ENV_KEY_RULE);
const name = patternField(NAME_RULE, SERVICE_NAME_PATTERN);
const cmd = stringField(CMD_RULE, (value) => value !== '' && Buffer.byteLength(value) <= SERVICE.maxCmdBytes);
const cwd = stringField(
  CWD_RULE,
  (value) => value.startsWith('/') && Buffer.byteLength(value) <= SERVICE.maxCwdBytes,
);
const isShort = (value: string): boolean => Buffer.byteLength(value) <= SERVICE.maxReadyUrlBytes;
const ready = stringField(READY_RULE, (value) => isShort(value) && isReadyUrl(value));
const agentReady = stringField(AGENT_READY_RULE, (value) => isShort(value) && isAgentReadyUrl(value));
const env = z
  .record(envKey, stringField(ENV_VALUE_RULE), {
    error: (issue) => (issue.code === 'invalid_key' ? ENV_KEY_RULE : ENV_RULE),
  })
  .refine(
    (value) => Object.keys(value).length <= SERVICE.maxEnvEntries && envBytes(value) <= SERVICE.maxEnvBytes,
    ENV_RULE,
  )
  .describe(ENV_RULE);
const milliseconds = integerField(
  0,
  HTTP.maxQueryDurationMs,
  `must be milliseconds from 0 to ${HTTP.maxQueryDurationMs}`,
);
const group = patternField(GROUP_RULE, GROUP_NAME_PATTERN).refine((value) => value !== AGENTS_GROUP, {
  error: 'must not be Agents, which is reserved',
});

export const ServiceShape = objectShape(
  {
    name,
    port: integerField(0, 65_535, 'must be an integer from 1 to 65535, or 0 for a free one'),
    cmd,
    cwd: cwd.nullable().optional(),
    group: group.nullable().optional(),
    ready: ready.nullable().optional(),
    env: env.optional(),
    dependsOn: z.array(name, NAMES_RULE).max(SERVICE.maxDependsOn, NAMES_RULE).optional(),
    restart: z.enum(RESTART_POLICIES, 'must be "no", "on-failure" or "always"').optional(),
    autostart: flagField().optional(),
    stopSignal: stringField(SIGNAL_RULE, (value) => Object.hasOwn(constants.signals, value)).optional(),
    stopGrace: milliseconds.optional(),
    startTimeout: milliseconds.optional(),
    labels: z
      .array(
        stringField(LABEL_RULE, (value) => value.length <= SERVICE.maxLabelLength),
        LABELS_RULE,
      )
      .max(SERVICE.maxLabels, LABELS_RULE)
      .optional(),
  },
  [
    ...['status', 'pid', 'url', 'startedAt', 'cpu', 'rssMB', 'exitCode', 'signal', 'exitUnknown'],
    ...['restarts', 'revision', 'stale', 'envKeys', 'specHash'],
  ],
);

export const SpinupShape = objectShape(
  {
    name: name.refine(
      (value) => HOST_LABEL.test(hostLabel(value)),
      'must be a host label when _ is written -',
    ),
    cmd: cmd.optional(),
    port: integerField(1, 65_535).optional(),
    agent_type: z
      .enum(AGENT_TYPES, `must be one of ${AGENT_TYPES.join(', ')}`)
      .nullable()
      .optional(),
    cwd: cwd.nullable().optional(),
    env: env.optional(),
    ready: agentReady.nullable().optional(),
    cols: integerField(1, AGENT.maxColsOrRows).optional(),
    rows: integerField(1, AGENT.maxColsOrRows).optional(),
  },
  ['active', 'pid', 'hostname', 'group', 'url', 'gatewayUrl'],
);

/** The fields of many entries: how many they may have, and what they must be. */
const MANY: readonly (readonly [field: string, most: number, rule: string])[] = [
  ['env', SERVICE.maxEnvEntries, ENV_RULE],
  ['dependsOn', SERVICE.maxDependsOn, NAMES_RULE],
  ['labels', SERVICE.maxLabels, LABELS_RULE],
];

const entriesIn = (value: object, field: string): number => {
  const inner: unknown = Object.hasOwn(value, field) ? Reflect.get(value, field) : null;
  return inner instanceof Object ? Object.keys(inner).length : 0;
};

/**
 * Faults of fields with too many entries, and the body without them: zod would look at each entry and name its faults, which
 * takes most of a second for the largest body.
 */
function withoutMany(value: unknown, shape: object): { rest: unknown; faults: InvalidField[] } {
  if (!(value instanceof Object)) return { rest: value, faults: [] };
  const many = MANY.filter(([field, most]) => field in shape && entriesIn(value, field) > most);
  if (many.length === 0) return { rest: value, faults: [] };
  const rest = Object.entries(value).filter(([key]) => !many.some(([field]) => field === key));
  const faults = many.map(([field, , rule]) => ({ path: field, message: `${field} ${rule}` }));
  return { rest: Object.fromEntries(rest), faults };
}

/** zod's records drop a key `__proto__` without a word. */
function hiddenKey(value: unknown): InvalidField[] {
  const inner: unknown = value instanceof Object && 'env' in value ? value.env : null;
  const hidden = inner instanceof Object && Object.hasOwn(inner, '__proto__');
  return hidden ? [{ path: 'env.__proto__', message: `env.__proto__ ${ENV_KEY_RULE}` }] : [];
}

const rows = (given: Record<string, string> | undefined): [string, string][] | null =>
  given ? Object.entries(given) : null;

/** A registration with its defaults. Throws invalid_spec. */
export function checkService(value: unknown): ServiceInput {
  const isAgent = value instanceof Object && 'group' in value && value.group === AGENTS_GROUP;
  const hint = isAgent ? 'POST /v1/agents/spinup makes an agent.' : undefined;
  const { rest, faults } = withoutMany(value, ServiceShape.shape);
  const given = validate(ServiceShape, rest, [...faults, ...hiddenKey(rest)], hint);
  return {
    name: given.name,
    port: given.port,
    cmd: given.cmd,
    cwd: given.cwd ?? homedir(),
    group: given.group ?? null,
    ready: given.ready ?? null,
    env: rows(given.env),
    dependsOn: [...new Set(given.dependsOn)],
    restart: given.restart ?? 'no',
    autostart: given.autostart ?? false,
    stopSignal: given.stopSignal ?? 'SIGTERM',
    stopGrace: given.stopGrace ?? SERVICE.defaultStopGraceMs,
    startTimeout: given.startTimeout ?? SERVICE.defaultStartTimeoutMs,
    labels: given.labels ?? [],
    agent: null,
  };
}

/** A spinup with its defaults; what its type brings is the agents' business. Throws invalid_spec. */
export function checkSpinup(value: unknown): SpinupInput {
  const { rest, faults } = withoutMany(value, SpinupShape.shape);
  const given = validate(SpinupShape, rest, [...faults, ...hiddenKey(rest), ...nothingToRun(rest)]);
  return {
    name: given.name,
    cmd: given.cmd ?? null,
    port: given.port ?? null,
    agentType: given.agent_type ?? null,
    cwd: given.cwd ?? null,
    env: rows(given.env),
    ready: given.ready ?? null,
    cols: given.cols ?? AGENT.defaultCols,
    rows: given.rows ?? AGENT.defaultRows,
  };
}

function nothingToRun(value: unknown): InvalidField[] {
  if (!(value instanceof Object) || Array.isArray(value)) return [];
  if ('cmd' in value || ('agent_type' in value && value.agent_type !== null)) return [];
  return [{ path: 'cmd', message: 'cmd must be given when agent_type is not' }];
}
