// The shapes of the run settings in berth.yaml: checks, restarts, limits and stop. The file uses snake_case
// and durations; the result uses the fields of a registration.
import { z } from '../adapters/zod.ts';
import {
  isCheckCommand,
  isCheckHeader,
  isCheckHeaderValue,
  isCheckPath,
  isCheckUrl,
  isHttpTarget,
  isPatternLength,
  isTcpTarget,
} from '../protocol/check_targets.ts';
import type { LiveField, ReadyField } from '../protocol/checks.ts';
import {
  RESTART_POLICIES,
  type RestartPolicy,
  type RestartRule,
  type RunLimits,
} from '../protocol/service.ts';
import { CHECK, HTTP, RUN_LIMITS, SERVICE } from '../settings/limits.ts';
import { checkFromText } from './check_text.ts';
import { DURATION_PATTERN, parseDuration } from './duration.ts';

const withMessage = (error: string) => ({ error });

const DURATION_MESSAGE = 'must be a duration such as 30s or 500ms (a bare number is milliseconds)';
const anyDuration = z
  .union(
    [
      z.int(DURATION_MESSAGE).nonnegative(DURATION_MESSAGE),
      z.string().regex(DURATION_PATTERN, DURATION_MESSAGE),
    ],
    withMessage(DURATION_MESSAGE),
  )
  .transform((value) => (typeof value === 'number' ? value : (parseDuration(value) ?? 0)));

/** A duration of at most an hour; returned in milliseconds. */
export const duration = anyDuration.refine((ms) => ms <= HTTP.maxQueryDurationMs, 'must be at most 1h');

const SIGNAL_MESSAGE = 'must be a signal such as SIGTERM or SIGINT';
/** The name of a signal. */
export const signalShape = z.string(withMessage(SIGNAL_MESSAGE)).regex(/^SIG[A-Z][A-Z0-9]+$/, SIGNAL_MESSAGE);

const wholeNumber = (least: number, greatest: number) => {
  const message = `must be a whole number from ${least} to ${greatest}`;
  return z.int(message).min(least, message).max(greatest, message);
};
const text = (message: string) => z.string(withMessage(message)).min(1, message);

const KINDS = ['http', 'tcp', 'exec', 'log', 'notify'] as const;
const CHECK_MESSAGE =
  'must be an http://, https:// or tcp://host:port URL, a path such as /health, tcp, or a map with one of ' +
  'http, tcp, exec, log and notify';
const ONE_KIND_MESSAGE = `must have one of ${KINDS.join(', ')}`;
const HTTP_MESSAGE = 'must be an http:// or https:// URL, or a path such as /health';
const TCP_MESSAGE = 'must be host:port, a port, or true for its own port';
const STATUS_MESSAGE = 'must be the least and the greatest status, such as [200, 399]';
const HEADER_MESSAGE = `must be a map of at most ${CHECK.maxHeaders} names to texts`;
/** The message for an invalid expression in a check. */
export const PATTERN_MESSAGE = 'must be a regular expression of RE2';

const probeTime = duration.refine(
  (ms) => ms >= CHECK.minIntervalMs,
  `must be at least ${CHECK.minIntervalMs}ms`,
);
const status = wholeNumber(100, 599);

const headerName = z
  .string()
  .refine(isCheckHeader, 'must be the name of a header, and none of the connection itself');
const HEADER_VALUE_MESSAGE = 'must be a text without control characters';
const headerValue = z
  .string(withMessage(HEADER_VALUE_MESSAGE))
  .refine(isCheckHeaderValue, HEADER_VALUE_MESSAGE);

const checkKeys = {
  http: text(HTTP_MESSAGE)
    .refine(isHttpTarget, HTTP_MESSAGE)
    .meta({ description: 'A URL or a path on its own port, which is asked with GET.' })
    .optional(),
  status: z
    .tuple([status, status], withMessage(STATUS_MESSAGE))
    .refine(([least, greatest]) => least <= greatest, STATUS_MESSAGE)
    .meta({ description: 'With http: the least and the greatest status that pass; default [200, 399].' })
    .optional(),
  header: z
    .record(headerName, headerValue, withMessage(HEADER_MESSAGE))
    .refine((given) => Object.keys(given).length <= CHECK.maxHeaders, HEADER_MESSAGE)
    .meta({ description: 'With http: headers to send.' })
    .optional(),
  body: text(PATTERN_MESSAGE)
    .refine(isPatternLength, PATTERN_MESSAGE)
    .meta({ description: 'With http: a regular expression that the body must match.' })
    .optional(),
  tcp: z
    .union(
      [
        z.string().refine(isTcpTarget, TCP_MESSAGE),
        z.int(TCP_MESSAGE).min(1, TCP_MESSAGE).max(65_535, TCP_MESSAGE),
        z.literal(true),
      ],
      withMessage(TCP_MESSAGE),
    )
    .meta({ description: 'host:port, a port, or true: its own port takes connections.' })
    .optional(),
  exec: text('must be a shell command')
    .refine(isCheckCommand, 'must be a shell command of at most 64 KiB')
    .meta({ description: 'A shell command that ends with 0, in the environment and folder of the service.' })
    .optional(),
  log: text(PATTERN_MESSAGE)
    .refine(isPatternLength, PATTERN_MESSAGE)
    .meta({ description: 'A regular expression that a line of this run matches.' })
    .optional(),
  notify: z
    .literal(true, withMessage('must be true'))
    .meta({ description: 'The program says it by sd_notify to $NOTIFY_SOCKET.' })
    .optional(),
  interval: probeTime.meta({ description: 'The pause between two probes.' }).optional(),
  timeout: probeTime.meta({ description: 'How long one probe may take; default 2s.' }).optional(),
};
const liveKeys = {
  ...checkKeys,
  failures: wholeNumber(1, CHECK.maxFailures)
    .meta({ description: 'Failed probes in a row that end the process; default 3.' })
    .optional(),
};

const HTTP_KEYS = ['status', 'header', 'body'] as const;
type CheckKeys = { readonly [K in keyof typeof liveKeys]?: unknown };

/** The fault in the combination of a check's keys; undefined without one. */
function checkFault(given: CheckKeys): string | undefined {
  if (KINDS.filter((kind) => given[kind] !== undefined).length !== 1) return ONE_KIND_MESSAGE;
  const stray = HTTP_KEYS.find((key) => given.http === undefined && given[key] !== undefined);
  return stray && `must have ${stray} only with http`;
}

/** A map of a check; `keys` are the allowed ones. */
const checkMap = <K extends typeof checkKeys>(keys: K) =>
  z.strictObject(keys, withMessage(CHECK_MESSAGE)).superRefine((given: CheckKeys, context) => {
    const message = checkFault(given);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  });

const checkText = z
  .string(withMessage(CHECK_MESSAGE))
  .refine((value) => value === 'tcp' || isCheckPath(value) || isCheckUrl(value), CHECK_MESSAGE);

/** A check with its keys in a fixed order, as registered. */
const orderedCheck = (given: object): object => {
  const rows = Object.keys(liveKeys).map((key) => [key, Reflect.get(given, key)]);
  return Object.fromEntries(rows.filter(([, value]) => value !== undefined));
};

/** A check in the form of a registration. */
const registeredCheck = <C extends LiveField>(given: string | object): C =>
  (typeof given === 'string' ? checkFromText(given) : orderedCheck(given)) as C;

export const readyShape = z
  .union([checkText, checkMap(checkKeys)], withMessage(CHECK_MESSAGE))
  .transform(registeredCheck<ReadyField>);

export const liveShape = z
  .union([checkText, checkMap(liveKeys)], withMessage(CHECK_MESSAGE))
  .transform(registeredCheck<LiveField>);

const POLICY_MESSAGE = 'must be no, on-failure or always';
const policy = z.enum(RESTART_POLICIES, withMessage(POLICY_MESSAGE));
const pause = duration.refine((ms) => ms >= SERVICE.minRestartPauseMs, 'must be at least 10ms');
const restartMap = z
  .strictObject(
    {
      policy: policy.meta({ description: 'Whether it is started again when it ends by itself.' }),
      min_ms: pause.meta({ description: 'The first pause; default 100ms.' }).optional(),
      max_ms: pause.meta({ description: 'The longest pause; default 30s.' }).optional(),
      max: wholeNumber(1, SERVICE.maxCountedRestarts)
        .meta({ description: 'The most restarts; after that it stays crashed.' })
        .optional(),
      within_ms: anyDuration
        .refine((ms) => ms >= 1 && ms <= 24 * HTTP.maxQueryDurationMs, 'must be from 1ms to 24h')
        .meta({ description: 'The time within which restarts count for max.' })
        .optional(),
    },
    withMessage('must be a map with policy'),
  )
  .refine(({ min_ms: least, max_ms: most }) => least === undefined || most === undefined || least <= most, {
    error: 'must not be greater than max_ms',
    path: ['min_ms'],
  })
  .refine(({ max, within_ms: within }) => within === undefined || max !== undefined, {
    error: 'needs max',
    path: ['within_ms'],
  })
  .transform(({ policy: one, min_ms: minMs, max_ms: maxMs, max, within_ms: withinMs }): RestartRule => {
    return {
      policy: one,
      ...(minMs === undefined ? {} : { minMs }),
      ...(maxMs === undefined ? {} : { maxMs }),
      ...(max === undefined ? {} : { max }),
      ...(withinMs === undefined ? {} : { withinMs }),
    };
  });

/** The restart policy, or a rule with pauses and a limit. */
export const restartShape = z.union(
  [policy, restartMap],
  withMessage(`${POLICY_MESSAGE}, or a map with policy, min_ms, max_ms, max and within_ms`),
);

const { maxCpus, maxMemoryMB, maxPids, minCpus, minMemoryMB } = RUN_LIMITS;
const CPUS_MESSAGE = `must be a number of processors from ${minCpus} to ${maxCpus}`;
const LIMITS_MESSAGE = 'must be a map with memory_mb, cpus or pids';
const limitsMap = z.strictObject(
  {
    memory_mb: wholeNumber(minMemoryMB, maxMemoryMB)
      .meta({ description: 'Memory of the whole process tree, in MiB.' })
      .optional(),
    cpus: z
      .number(withMessage(CPUS_MESSAGE))
      .min(minCpus, CPUS_MESSAGE)
      .max(maxCpus, CPUS_MESSAGE)
      .meta({ description: 'Processors, such as 1.5.' })
      .optional(),
    pids: wholeNumber(1, maxPids).meta({ description: 'Processes and threads.' }).optional(),
  },
  withMessage(LIMITS_MESSAGE),
);

/** The resource limits of a run. */
export const limitsShape = limitsMap
  .refine((given) => Object.values(given).some((value) => value !== undefined), LIMITS_MESSAGE)
  .transform(({ memory_mb: memoryMB, cpus, pids }): RunLimits => {
    return {
      ...(memoryMB === undefined ? {} : { memoryMB }),
      ...(cpus === undefined ? {} : { cpus }),
      ...(pids === undefined ? {} : { pids }),
    };
  });

const COMMAND_MESSAGE = 'must be a shell command';
const stopCommand = text(COMMAND_MESSAGE).max(SERVICE.maxCmdBytes, 'must be at most 64 KiB');
const stopMap = z.strictObject(
  {
    command: stopCommand
      .meta({ description: 'A shell command that is run first; then the signal follows.' })
      .optional(),
    signal: signalShape.meta({ description: 'The signal that ends it; default SIGTERM.' }).optional(),
    grace: duration
      .meta({ description: 'How long it may take to end before it is killed; default 5s.' })
      .optional(),
  },
  withMessage('must be a map with command, signal and grace'),
);

/** How a service is stopped; text is the command. */
export const stopShape = z
  .union([stopCommand, stopMap], withMessage('must be a command, or a map with command, signal and grace'))
  .transform((given) => (typeof given === 'string' ? { command: given } : given));

/** The keys of the maps above, by the field that contains them, for hints about unknown ones. */
export const RUN_KEYS: Readonly<Record<string, readonly string[]>> = {
  ready: Object.keys(checkKeys),
  live: Object.keys(liveKeys),
  restart: Object.keys(restartMap.in.shape),
  limits: Object.keys(limitsMap.shape),
  stop: Object.keys(stopMap.shape),
};

const hasValue = (entry: [string, unknown]): boolean => entry[1] !== undefined;

/** `restart` in the form of the file. */
export function restartEntry(given: RestartPolicy | RestartRule | undefined): unknown {
  if (typeof given !== 'object') return given;
  const { policy: one, minMs, maxMs, max, withinMs } = given;
  const rows = Object.entries({ policy: one, min_ms: minMs, max_ms: maxMs, max, within_ms: withinMs });
  return Object.fromEntries(rows.filter(hasValue));
}

/** `limits` in the form of the file. */
export const limitsEntry = ({ memoryMB, cpus, pids }: RunLimits): object =>
  Object.fromEntries(Object.entries({ memory_mb: memoryMB, cpus, pids }).filter(hasValue));
