// The record of a registration and its hash: docs/reference.md "Registration".
import { createHmac } from 'node:crypto';
import { type EnvironmentRows, withoutSession } from '../../protocol/base_environment.ts';
import { completeSpec, SPEC_FIELD_NAMES, SPEC_FIELDS } from '../../protocol/registration.ts';
import type {
  AgentSpec,
  ServiceInput,
  ServiceSpec,
  StoredBaseEnv,
  StoredService,
} from '../../protocol/service.ts';
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
