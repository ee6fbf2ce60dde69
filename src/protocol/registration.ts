// The fields of a registration as data: docs/reference.md "Fields of a service".
import { SERVICE } from '../settings/limits.ts';
import { toldProtocol } from './port_protocol.ts';
import type { ServiceInput, ServiceSpec, StoredService } from './service.ts';

interface SpecField<V> {
  /** The value of an absent field; a field without a default is required. */
  readonly default?: V;
  /**
   * What a change of the field means to a project. `process`: the process was built from it, so it must be
   * restarted. `record`: it is registered, and the process stays. `apart`: compared separately.
   */
  readonly change: 'process' | 'record' | 'apart';
}

/**
 * Every field of a service in the order of its JSON. Defaults, hash, JSON and project comparison follow this
 * table. Hashes depend on the order, so a new field goes last.
 */
export const SPEC_FIELDS: { readonly [K in keyof ServiceSpec]: SpecField<ServiceInput[K]> } = {
  name: { change: 'apart' },
  port: { change: 'apart' },
  cmd: { change: 'process' },
  cwd: { change: 'process' },
  group: { default: null, change: 'record' },
  ready: { default: null, change: 'record' },
  env: { default: null, change: 'apart' },
  dependsOn: { default: [], change: 'record' },
  restart: { default: 'no', change: 'record' },
  autostart: { default: false, change: 'record' },
  stopSignal: { default: 'SIGTERM', change: 'record' },
  stopGrace: { default: SERVICE.defaultStopGraceMs, change: 'record' },
  startTimeout: { default: SERVICE.defaultStartTimeoutMs, change: 'record' },
  labels: { default: [], change: 'apart' },
  agent: { default: null, change: 'apart' },
  stack: { default: null, change: 'record' },
  watch: { default: null, change: 'record' },
  kind: { default: 'service', change: 'process' },
  inputs: { default: [], change: 'record' },
  sleep: { default: null, change: 'process' },
  live: { default: null, change: 'process' },
  limits: { default: null, change: 'process' },
  envFile: { default: [], change: 'process' },
  stop: { default: null, change: 'record' },
  schedule: { default: null, change: 'record' },
  protocol: { default: 'http', change: 'record' },
};

/** Why a service cannot have `sleep`, to follow the name of the field. */
export const NO_SLEEP = {
  task: 'is not for a task, which runs to its end',
  noPort: 'needs a port, as a connection to it wakes the service',
} as const;

export const SPEC_FIELD_NAMES = Object.keys(SPEC_FIELDS) as (keyof ServiceSpec)[];

/** `spec` with defaults for fields that an earlier version did not store. */
export function completeSpec(spec: ServiceSpec): ServiceSpec {
  const complete = SPEC_FIELD_NAMES.map((field) => [
    field,
    spec[field] ?? SPEC_FIELDS[field].default ?? null,
  ]);
  return Object.fromEntries(complete);
}

/** An object with the fields `names` of `of`, in that order. */
export function pickFields<T extends object, K extends keyof T>(of: T, names: readonly K[]): Pick<T, K> {
  const picked: Partial<Pick<T, K>> = {};
  for (const name of names) picked[name] = of[name];
  return picked as Pick<T, K>;
}

type Required = 'name' | 'port' | 'cmd' | 'cwd' | 'env' | 'agent';

/** A registration with optional fields; null means absent. */
export type PartialRegistration = Pick<ServiceInput, Required | 'baseEnv'> & {
  [K in Exclude<keyof ServiceInput, Required | 'baseEnv'>]?: ServiceInput[K] | null | undefined;
};

/** The registration with a default for every field left open. */
export function completeRegistration(registration: PartialRegistration): ServiceInput {
  const { cmd, protocol, ready = null } = registration;
  const given = { ...registration, protocol: protocol ?? toldProtocol(cmd, ready) };
  const complete = SPEC_FIELD_NAMES.map((field) => [
    field,
    given[field] ?? SPEC_FIELDS[field].default ?? null,
  ]);
  const { baseEnv } = given;
  return { ...Object.fromEntries(complete), ...(baseEnv === undefined ? {} : { baseEnv }) };
}

/** A record stored by an earlier version, with defaults for the fields that version did not know. */
export function completeRecord(stored: StoredService): StoredService {
  const missing = SPEC_FIELD_NAMES.filter((field) => stored.spec[field] === undefined);
  if (missing.length === 0) return stored;
  const added = Object.fromEntries(missing.map((field) => [field, SPEC_FIELDS[field].default]));
  return { ...stored, spec: { ...stored.spec, ...added } };
}
