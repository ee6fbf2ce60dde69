// The fields common to a registration and a spinup: docs/reference.md "Registration", "Spinup".
import { isCheckUrl, isReadyUrl } from '../protocol/check_targets.ts';
import { ENV_KEY_PATTERN, SERVICE_NAME_PATTERN } from '../protocol/names.ts';
import {
  lengthFault,
  MAX_STACK_NAME,
  nameInStack,
  PLACEHOLDER,
  STACK_NAME_PATTERN,
  shortName,
} from '../protocol/stacks.ts';
import { DOOR, SERVICE } from '../settings/limits.ts';
import { type InvalidField, patternField, stringField, z } from './validation.ts';

const NAME_RULE = 'must be 1 to 63 of a-z, 0-9, _ and -, and not begin with -';
const CMD_RULE = 'must be a shell command of 1 byte to 64 KiB without NUL';
const CWD_RULE = 'must be an absolute path of up to 4 KiB without NUL';
const READY_RULE = 'must be a URL of up to 4 KiB with http://, https:// or tcp://host:port';
const AGENT_READY_RULE = `${READY_RULE}; $PORT in it is the port of the agent`;
const SLEEP_RULE = 'must be {afterMinutes: a number of minutes}, or null';
const AFTER_RULE = `must be a number of minutes, from a second (1/60) to 30 days (${DOOR.maxIdleMinutes})`;
const ENV_RULE = 'must be an object of up to 256 strings and 64 KiB';
const ENV_KEY_RULE = 'must have a key of letters, digits and _ that begins with no digit and not with BERTH_';
const ENV_VALUE_RULE = 'must be a string without NUL';

/** Whether `value` is a URL whatever number replaces $PORT: it may be the port, or come after the address. */
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

const isShort = (value: string): boolean => Buffer.byteLength(value) <= SERVICE.maxReadyUrlBytes;
const envKey = z
  .string()
  .refine((key) => ENV_KEY_PATTERN.test(key) && !key.startsWith('BERTH_'), ENV_KEY_RULE);

export const sleep = z.strictObject(
  {
    afterMinutes: z
      .number(AFTER_RULE)
      .max(DOOR.maxIdleMinutes, AFTER_RULE)
      .refine((minutes) => Math.round(minutes * 60_000) >= DOOR.minIdleMs, AFTER_RULE),
  },
  SLEEP_RULE,
);
export const name = patternField(NAME_RULE, SERVICE_NAME_PATTERN);
export const cmd = stringField(
  CMD_RULE,
  (value) => value !== '' && Buffer.byteLength(value) <= SERVICE.maxCmdBytes,
);
export const cwd = stringField(
  CWD_RULE,
  (value) => value.startsWith('/') && Buffer.byteLength(value) <= SERVICE.maxCwdBytes,
);
export const checkedUrl = stringField(READY_RULE, isCheckUrl);
export const agentReady = stringField(AGENT_READY_RULE, (value) => isShort(value) && isAgentReadyUrl(value));
export const env = z
  .record(envKey, stringField(ENV_VALUE_RULE), {
    error: (issue) => (issue.code === 'invalid_key' ? ENV_KEY_RULE : ENV_RULE),
  })
  .refine(
    (value) => Object.keys(value).length <= SERVICE.maxEnvEntries && envBytes(value) <= SERVICE.maxEnvBytes,
    ENV_RULE,
  )
  .describe(ENV_RULE);

const STACK_RULE = `must be <project> or <project>--<slug>, each of a-z, 0-9 and single -, at most ${MAX_STACK_NAME} characters`;
export const stack = stringField(
  STACK_RULE,
  (value) => value.length <= MAX_STACK_NAME && STACK_NAME_PATTERN.test(value),
);

/** The faults that concern a service's stack: a name of another form, or placeholders without a stack. */
export function faultsOfStack(value: unknown): InvalidField[] {
  const tooLong = [...tooLongInStack(value, 'name'), ...tooLongInStack(value, 'group')];
  return [...tooLong, ...faultsOfStackName(value), ...faultsOfPlaceholder(value)];
}

/** A fault for each check with a placeholder if the service has no stack: nothing would fill it in. */
function faultsOfPlaceholder(value: unknown): InvalidField[] {
  if (!(value instanceof Object) || ('stack' in value && value.stack)) return [];
  const checks = ['ready', 'live'].filter((check) => {
    const given: unknown = Object.hasOwn(value, check) ? Reflect.get(value, check) : null;
    return (JSON.stringify(given) ?? '').search(PLACEHOLDER) >= 0;
  });
  const message = 'must have no placeholder, as the service is of no stack';
  return checks.map((check) => ({ path: check, message: `${check} ${message}` }));
}

/** That a name is too long because the prefix of its stack counts. */
function tooLongInStack(value: unknown, field: 'name' | 'group'): InvalidField[] {
  if (!(value instanceof Object && 'stack' in value && typeof value.stack === 'string')) return [];
  const given: unknown = Object.hasOwn(value, field) ? Reflect.get(value, field) : null;
  const short = typeof given === 'string' ? shortName(given, value.stack) : null;
  const fault = short === null ? null : lengthFault(value.stack, short);
  return fault === null ? [] : [{ path: field, message: `${field} ${fault}` }];
}

function faultsOfStackName(value: unknown): InvalidField[] {
  if (!(value instanceof Object && 'name' in value && 'stack' in value)) return [];
  if (typeof value.name !== 'string' || typeof value.stack !== 'string') return [];
  if (shortName(value.name, value.stack) !== null) return [];
  const must = `must be ${nameInStack(value.stack, '<service>')}, as it is of the stack ${value.stack}`;
  return [{ path: 'name', message: `name ${must}` }];
}

const BASE_ENV_RULE = 'must be null, or an object of up to 1024 strings and 256 KiB';
export const baseEnv = z
  .record(
    z.string().regex(/^[^=\0]+$/, 'must have a key without ='),
    stringField(ENV_VALUE_RULE),
    BASE_ENV_RULE,
  )
  .refine(
    (value) =>
      Object.keys(value).length <= SERVICE.maxBaseEnvEntries && envBytes(value) <= SERVICE.maxBaseEnvBytes,
    BASE_ENV_RULE,
  )
  .nullable()
  .describe(`${BASE_ENV_RULE}; what the service starts from in place of the environment of the daemon`);

/** A field with many entries: its name, the maximum number of entries, and the rule that its fault states. */
export type LargeField = readonly [field: string, maxEntries: number, rule: string];
export const ENV_LIMIT: LargeField = ['env', SERVICE.maxEnvEntries, ENV_RULE];
export const BASE_ENV_LIMIT: LargeField = ['baseEnv', SERVICE.maxBaseEnvEntries, BASE_ENV_RULE];

const entriesIn = (value: object, field: string): number => {
  const inner: unknown = Object.hasOwn(value, field) ? Reflect.get(value, field) : null;
  return inner instanceof Object ? Object.keys(inner).length : 0;
};

/**
 * Finds faults before zod does, and returns the body without the fields that have too many entries by
 * `limits`: zod would check each entry and report its faults, which takes most of a second for the largest
 * body. Also finds a key `__proto__`, which zod's records drop silently.
 */
export function checkBeforehand(
  value: unknown,
  limits: readonly LargeField[],
): { rest: unknown; faults: InvalidField[] } {
  if (!(value instanceof Object)) return { rest: value, faults: [] };
  const tooLarge = limits.filter(([field, maxEntries]) => entriesIn(value, field) > maxEntries);
  const faults = tooLarge.map(([field, , rule]) => ({ path: field, message: `${field} ${rule}` }));
  if (faults.length === 0) return { rest: value, faults: hiddenKey(value) };
  const rest = Object.fromEntries(
    Object.entries(value).filter(([key]) => !tooLarge.some(([field]) => field === key)),
  );
  return { rest, faults: [...faults, ...hiddenKey(rest)] };
}

function hiddenKey(value: object): InvalidField[] {
  const inner: unknown = 'env' in value ? value.env : null;
  const isHidden = inner instanceof Object && Object.hasOwn(inner, '__proto__');
  return isHidden ? [{ path: 'env.__proto__', message: `env.__proto__ ${ENV_KEY_RULE}` }] : [];
}

/** The field `baseEnv` with its entries as rows, like `envRows`; undefined: absent, null: none. */
export const baseEnvRows = (given: Record<string, string> | null | undefined) =>
  given === undefined ? {} : { baseEnv: given && Object.entries(given) };

/** The entries of `env` as rows, because strings from users are never keys of objects; null: absent. */
export const envRows = (given: Record<string, string> | undefined): [string, string][] | null =>
  given ? Object.entries(given) : null;
