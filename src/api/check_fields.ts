// The fields of a registration that say how a service is checked, restarted and limited.
// docs/reference.md "Checks", "Restart policy", "Resource limits".
import { regexFault } from '../adapters/linear_regex.ts';
import {
  isCheckCommand,
  isCheckHeader,
  isCheckHeaderValue,
  isHttpTarget,
  isPatternLength,
  isTcpTarget,
} from '../protocol/check_targets.ts';
import { RESTART_POLICIES } from '../protocol/service.ts';
import { textFault } from '../protocol/text_fault.ts';
import { CHECK, HTTP, RUN_LIMITS, SERVICE } from '../settings/limits.ts';
import * as field from './registration_fields.ts';
import { type InvalidField, integerField, stringField, z } from './validation.ts';

const PATTERN_RULE = `must be a regular expression of RE2 of 1 to ${CHECK.maxPatternBytes} bytes`;
const HTTP_RULE = 'must be a URL with http:// or https://, or a path on its own port such as /health';
const TCP_RULE = 'must be host:port, a port, or true for its own port';
const STATUS_RULE = 'must be the least and the greatest status, such as [200, 399]';
const HEADER_RULE = `must be an object of up to ${CHECK.maxHeaders} headers with texts`;
const EXEC_RULE = 'must be a shell command of 1 byte to 64 KiB without NUL';
const TIME_RULE = `must be milliseconds from ${CHECK.minIntervalMs} to ${HTTP.maxQueryDurationMs}`;
const CHECK_RULE =
  'must be a URL of up to 4 KiB with http://, https:// or tcp://host:port, or an object with one of http, tcp, ' +
  'exec, log and notify';
const FAILURES_RULE = `must be an integer from 1 to ${CHECK.maxFailures}`;
const RESTART_RULE = 'must be "no", "on-failure", "always", or an object with policy';
const LIMITS_RULE = 'must be an object with memoryMB, cpus or pids';
const ENV_FILE_RULE = `must be an array of up to ${SERVICE.maxEnvFiles} paths`;
const PATH_RULE = 'must be a path of up to 4 KiB without NUL';

const time = integerField(CHECK.minIntervalMs, HTTP.maxQueryDurationMs, TIME_RULE);
const times = { interval: time.optional(), timeout: time.optional() };

const pattern = stringField(PATTERN_RULE, isPatternLength);
const statusNumber = integerField(100, 599, STATUS_RULE);
const headerName = z
  .string()
  .refine(isCheckHeader, { error: 'must not be a header of the connection itself' });
const header = z
  .record(
    headerName,
    stringField('must be a text without control characters', isCheckHeaderValue),
    HEADER_RULE,
  )
  .refine((given) => Object.keys(given).length <= CHECK.maxHeaders, HEADER_RULE);

/** The kinds of checks, each with the additional fields `more`. */
const questions = <M extends z.core.$ZodLooseShape>(more: M) =>
  [
    z.strictObject({
      http: stringField(HTTP_RULE, isHttpTarget),
      status: z
        .tuple([statusNumber, statusNumber], STATUS_RULE)
        .refine(([least, greatest]) => least <= greatest, STATUS_RULE)
        .optional(),
      header: header.optional(),
      body: pattern.optional(),
      ...more,
    }),
    z.strictObject({
      tcp: z.union(
        [stringField(TCP_RULE, isTcpTarget), integerField(1, 65_535, TCP_RULE), z.literal(true)],
        TCP_RULE,
      ),
      ...more,
    }),
    z.strictObject({
      exec: stringField(EXEC_RULE, isCheckCommand),
      ...more,
    }),
    z.strictObject({ log: pattern, ...more }),
    z.strictObject({ notify: z.literal(true, 'must be true'), ...more }),
  ] as const;

export const ready = z.union([field.checkedUrl, ...questions(times)], CHECK_RULE);
export const live = z.union(
  [
    field.checkedUrl,
    ...questions({ ...times, failures: integerField(1, CHECK.maxFailures, FAILURES_RULE).optional() }),
  ],
  CHECK_RULE,
);

const policy = z.enum(RESTART_POLICIES, 'must be "no", "on-failure" or "always"');
const pause = integerField(SERVICE.minRestartPauseMs, HTTP.maxQueryDurationMs);

export const restart = z.union(
  [
    policy,
    z
      .strictObject({
        policy,
        minMs: pause.optional(),
        maxMs: pause.optional(),
        max: integerField(1, SERVICE.maxCountedRestarts).optional(),
        withinMs: integerField(1, 24 * HTTP.maxQueryDurationMs).optional(),
      })
      .refine(({ minMs, maxMs }) => minMs === undefined || maxMs === undefined || minMs <= maxMs, {
        error: 'must not be greater than maxMs',
        path: ['minMs'],
      })
      .refine(({ max, withinMs }) => withinMs === undefined || max !== undefined, {
        error: 'needs max',
        path: ['withinMs'],
      }),
  ],
  RESTART_RULE,
);

const { maxCpus, maxMemoryMB, maxPids, minCpus, minMemoryMB } = RUN_LIMITS;
const CPUS_RULE = `must be a number of processors from ${minCpus} to ${maxCpus}`;

export const limits = z
  .strictObject(
    {
      memoryMB: integerField(minMemoryMB, maxMemoryMB).optional(),
      cpus: z.number(CPUS_RULE).min(minCpus, CPUS_RULE).max(maxCpus, CPUS_RULE).optional(),
      pids: integerField(1, maxPids).optional(),
    },
    LIMITS_RULE,
  )
  .refine((given) => Object.values(given).some((value) => value !== undefined), LIMITS_RULE);

export const envFile = z
  .array(
    stringField(PATH_RULE, (value) => value !== '' && Buffer.byteLength(value) <= SERVICE.maxCwdBytes),
    ENV_FILE_RULE,
  )
  .max(SERVICE.maxEnvFiles, ENV_FILE_RULE);
export const ENV_FILE_LIMIT: field.LargeField = ['envFile', SERVICE.maxEnvFiles, ENV_FILE_RULE];

const memberOf = (value: unknown, name: string): unknown =>
  value instanceof Object && Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined;

/** The policy of a `restart` value; undefined: it has none. */
export const policyOf = (given: unknown): unknown =>
  typeof given === 'string' ? given : memberOf(given, 'policy');

/** The fields of a body that contain regular expressions. */
const PATTERN_FIELDS = [
  ['ready', 'body'],
  ['ready', 'log'],
  ['live', 'body'],
  ['live', 'log'],
] as const;

/** A fault for each check that asks the service's own port although the service has none. */
function portFaults(value: unknown): InvalidField[] {
  if (memberOf(value, 'port') !== null) return [];
  return ['ready', 'live'].flatMap((check) => {
    const given = memberOf(value, check);
    const http = memberOf(given, 'http');
    const isPath = typeof http === 'string' && http.startsWith('/');
    if (!isPath && memberOf(given, 'tcp') !== true) return [];
    const path = `${check}.${isPath ? 'http' : 'tcp'}`;
    return [{ path, message: `${path} must not ask its own port: it has none` }];
  });
}

/**
 * The faults in the checks of a body that zod cannot find. Loads the package for regular expressions only if
 * the body contains one.
 */
export async function checkFaults(value: unknown): Promise<InvalidField[]> {
  const faults = portFaults(value);
  for (const [check, name] of PATTERN_FIELDS) {
    const given = memberOf(memberOf(value, check), name);
    if (typeof given !== 'string' || textFault(given) !== null || !isPatternLength(given)) continue;
    const reason = await regexFault(given);
    const path = `${check}.${name}`;
    if (reason !== null) faults.push({ path, message: `${path} ${PATTERN_RULE}: ${reason}` });
  }
  return faults;
}
