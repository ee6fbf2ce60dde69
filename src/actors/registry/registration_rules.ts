// The rules of a registration that need no actor: docs/reference.md "Registration".
import { createHmac } from 'node:crypto';
import { type EnvironmentRows, withoutSession } from '../../protocol/base_environment.ts';
import { dependencyName } from '../../protocol/dependency_order.ts';
import { fail } from '../../protocol/errors.ts';
import { isHook } from '../../protocol/hooks.ts';
import { completeSpec, SPEC_FIELD_NAMES, SPEC_FIELDS } from '../../protocol/registration.ts';
import type {
  AgentSpec,
  ServiceInput,
  ServiceSpec,
  StoredBaseEnv,
  StoredService,
} from '../../protocol/service.ts';
import { shortName } from '../../protocol/stacks.ts';
import type { SpecRow } from '../../protocol/views.ts';

/**
 * The record that follows `before` when `input` is registered; `key` is the key of its hash. An absent env
 * keeps the stored one. `$PORT` in the ready URL of an agent, whose port may be unknown beforehand, is
 * replaced by the port. The revision only increases when something changes.
 */
export function nextRecord(
  input: ServiceInput,
  port: number | null,
  before: StoredService | undefined,
  key: Uint8Array,
): StoredService {
  const { baseEnv: givenBase, ...given } = input;
  const { agent } = given;
  const ready =
    agent && typeof given.ready === 'string' ? given.ready.replaceAll('$PORT', String(port)) : given.ready;
  const spec = { ...given, port, ready, env: input.env ?? before?.spec.env ?? [] };
  const baseEnv = givenBase === undefined ? before?.baseEnv : baseEnvOf(givenBase, key);
  const text = canonicalSpec(spec);
  if (before && text === canonicalSpec(before.spec) && baseEnv?.hash === before.baseEnv?.hash) {
    // A new base environment replaces one that may be sealed with a lost key.
    return givenBase && baseEnv && before.baseEnv?.sealed !== undefined ? { ...before, baseEnv } : before;
  }
  const sealedEnv = input.env ? undefined : before?.sealedEnv;
  const hash = specHashOf(text, key);
  const processHash = spec.kind === 'task' ? specHashOf(processText(spec), key) : undefined;
  return {
    spec,
    revision: (before?.revision ?? 0) + 1,
    hash,
    ...(processHash && { processHash }),
    ...(sealedEnv && { sealedEnv }),
    ...(baseEnv && { baseEnv }),
  };
}

/**
 * Throws name_in_use when a group and a stack of different services would have the same name, so that a
 * request to one of them would reach the other. What was registered by hand may join any group.
 */
export function checkGroup({ stack, group }: ServiceInput, services: Iterable<StoredService>): void {
  if (!stack) return;
  for (const { spec: other } of services) {
    if (!other.stack || other.stack === stack) continue;
    const shared = other.stack === group ? other.stack : other.group === stack ? stack : null;
    if (shared === null) continue;
    const [of, its] = shared === stack ? [other.stack, stack] : [stack, other.stack];
    const hint = `Give the group of the project file another name, or remove a stack: \`berth rm --stack ${its}\`.`;
    throw fail('name_in_use', `${shared} is a stack, and also the name of a group of the stack ${of}`, {
      hint,
    });
  }
}

/**
 * Throws invalid_spec for what would have a hook started by others than its stack: a dependency on one, or a
 * hook with a group, a schedule or autostart. docs/reference.md "Hooks".
 */
export function checkHooks(input: ServiceInput, services: ReadonlyMap<string, StoredService>): void {
  const { autostart, dependsOn, group, name, schedule } = input;
  const isOne = (other: string, stack: string | null | undefined): boolean =>
    Boolean(stack) && isHook(shortName(other, stack ?? ''));
  const dependency = dependsOn
    .map(dependencyName)
    .find((other) => isOne(other, services.get(other)?.spec.stack ?? input.stack));
  if (dependency !== undefined)
    throw fail('invalid_spec', `${name} depends on ${dependency}, which is a hook: only its stack runs it`);
  if (isOne(name, input.stack) && (autostart || group || schedule))
    throw fail('invalid_spec', `${name} is a hook, and has no group, schedule or autostart`);
}

function baseEnvOf(given: EnvironmentRows | null, key: Uint8Array): StoredBaseEnv | undefined {
  if (given === null) return undefined;
  const rows = withoutSession(given).sort(([a], [b]) => (a < b ? -1 : 1));
  return { hash: specHashOf(JSON.stringify(rows), key), rows };
}

/** The significant fields of an agent. Stored hashes depend on the order: a new field goes last. */
const AGENT_FIELDS = {
  agentType: true,
  hostname: true,
  cols: true,
  rows: true,
} satisfies Record<keyof AgentSpec, true>;
const AGENT_FIELD_NAMES = Object.keys(AGENT_FIELDS) as (keyof AgentSpec)[];

/** For fields of which only a part is significant: returns that part. The order of env has no meaning. */
const SIGNIFICANT: { readonly [K in keyof ServiceSpec]?: (value: ServiceSpec[K]) => unknown } = {
  env: (env) => env.toSorted(([a], [b]) => (a < b ? -1 : 1)),
  agent: (agent) => agent && AGENT_FIELD_NAMES.map((field) => agent[field]),
};

function significantPart<K extends keyof ServiceSpec>(spec: ServiceSpec, field: K): unknown {
  const value = spec[field];
  return SIGNIFICANT[field]?.(value) ?? value ?? SPEC_FIELDS[field].default;
}

/**
 * The fields of the first version, which are part of every hash; later ones are included once they are used.
 */
const FIRST_FIELDS = SPEC_FIELD_NAMES.indexOf('agent') + 1;

/**
 * A text that is equal for two specs if and only if they mean the same. A record stored before a field
 * existed means the field's default, and has the same text.
 */
export function canonicalSpec(spec: ServiceSpec): string {
  const parts = SPEC_FIELD_NAMES.map((field) => significantPart(spec, field));
  const defaults = SPEC_FIELD_NAMES.map((field) => JSON.stringify(SPEC_FIELDS[field].default));
  const used = parts.findLastIndex((part, at) => at < FIRST_FIELDS || JSON.stringify(part) !== defaults[at]);
  return JSON.stringify(parts.slice(0, used + 1));
}

/** Whether the process of a task depends on the field: docs/reference.md "Tasks". */
const isOfProcess = (field: keyof ServiceSpec): boolean =>
  field === 'env' || field === 'port' || field === 'inputs' || SPEC_FIELDS[field].change === 'process';
const PROCESS_FIELDS = SPEC_FIELD_NAMES.filter(isOfProcess);

const processText = (spec: ServiceSpec): string =>
  JSON.stringify(PROCESS_FIELDS.map((field) => [field, significantPart(spec, field)]));

const specHashOf = (text: string, key: Uint8Array): string =>
  createHmac('sha256', key).update(text).digest('hex');

/** A record as clients see it: without the values of env, but with the hash of everything. */
export function specRow({ spec, revision, hash }: StoredService, key: Uint8Array): SpecRow {
  const { env, ...rest } = completeSpec(spec);
  const specHash = hash ?? specHashOf(canonicalSpec(spec), key);
  return { ...rest, revision, envKeys: env.map(([name]) => name), specHash };
}
