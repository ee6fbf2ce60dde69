// The rules of a registration that need no actor: docs/reference.md "Registration".
import { createHmac } from 'node:crypto';
import type { AgentSpec, ServiceInput, ServiceSpec, StoredService } from '../../protocol/service.ts';
import type { SpecRow } from '../../protocol/views.ts';

/**
 * The record that follows `before` when `input` is registered; `key` is the key of its hash. An absent env
 * keeps the stored one. In the ready URL of an agent, which may not know its port beforehand, `$PORT` stands
 * for the port. The revision grows only when something changes.
 */
export function nextRecord(
  input: ServiceInput,
  port: number,
  before: StoredService | undefined,
  key: Uint8Array,
): StoredService {
  const ready = input.agent && input.ready ? input.ready.replaceAll('$PORT', String(port)) : input.ready;
  const spec = { ...input, port, ready, env: input.env ?? before?.spec.env ?? [] };
  const text = canonicalSpec(spec);
  if (before && text === canonicalSpec(before.spec)) return before;
  const sealedEnv = input.env ? undefined : before?.sealedEnv;
  const hash = specHashOf(text, key);
  return { spec, revision: (before?.revision ?? 0) + 1, hash, ...(sealedEnv && { sealedEnv }) };
}

type Canonical<T> = { readonly [K in keyof T]: (of: T) => unknown };

/**
 * The significant part of each field of an agent's spec. Stored hashes depend on the order; a new field goes
 * last.
 */
const CANONICAL_AGENT: Canonical<AgentSpec> = {
  agentType: ({ agentType }) => agentType,
  hostname: ({ hostname }) => hostname,
  cols: ({ cols }) => cols,
  rows: ({ rows }) => rows,
};

/** The significant part of each field of a spec. The order of its env has no meaning. */
const CANONICAL: Canonical<ServiceSpec> = {
  name: ({ name }) => name,
  port: ({ port }) => port,
  cmd: ({ cmd }) => cmd,
  cwd: ({ cwd }) => cwd,
  group: ({ group }) => group,
  ready: ({ ready }) => ready,
  env: ({ env }) => env.toSorted(([a], [b]) => (a < b ? -1 : 1)),
  dependsOn: ({ dependsOn }) => dependsOn,
  restart: ({ restart }) => restart,
  autostart: ({ autostart }) => autostart,
  stopSignal: ({ stopSignal }) => stopSignal,
  stopGrace: ({ stopGrace }) => stopGrace,
  startTimeout: ({ startTimeout }) => startTimeout,
  labels: ({ labels }) => labels,
  agent: ({ agent }) => agent && canonicalValues(CANONICAL_AGENT, agent),
};

function canonicalValues<T>(fields: Canonical<T>, of: T): unknown[] {
  return Object.values<(of: T) => unknown>(fields).map((part) => part(of));
}

/** A text that is equal for two specs exactly when they mean the same. */
export function canonicalSpec(spec: ServiceSpec): string {
  return JSON.stringify(canonicalValues(CANONICAL, spec));
}

const specHashOf = (text: string, key: Uint8Array): string =>
  createHmac('sha256', key).update(text).digest('hex');

/** A record as clients see it: without the values of env, but with the hash over all of it. */
export function specRow({ spec, revision, hash }: StoredService, key: Uint8Array): SpecRow {
  const { env, ...rest } = spec;
  const specHash = hash ?? specHashOf(canonicalSpec(spec), key);
  return { ...rest, revision, envKeys: env.map(([name]) => name), specHash };
}
