// The rules of a registration that need no actor: docs/reference.md "Registration".
import { createHmac } from 'node:crypto';
import type { ServiceInput, ServiceSpec, StoredService } from '../../protocol/service.ts';
import type { SpecRow } from '../../protocol/views.ts';

/**
 * The shortest cycle that `name` would close by depending on `dependsOn`, from `name` to `name`; undefined when there
 * is none. `of` gives what another service depends on; it may name services that do not exist.
 */
export function dependencyCycle(
  name: string,
  dependsOn: readonly string[],
  dependenciesOf: (name: string) => readonly string[],
): string[] | undefined {
  const reachedFrom = new Map<string, string>();
  const reached = [name];
  for (const at of reached) {
    for (const next of at === name ? dependsOn : dependenciesOf(at)) {
      if (next === name) return [...pathTo(at, reachedFrom), name];
      if (reachedFrom.has(next)) continue;
      reachedFrom.set(next, at);
      reached.push(next);
    }
  }
  return undefined;
}

function pathTo(end: string, reachedFrom: ReadonlyMap<string, string>): string[] {
  const path: string[] = [];
  for (let at: string | undefined = end; at !== undefined; at = reachedFrom.get(at)) path.unshift(at);
  return path;
}

/**
 * The record that `input` makes of `before`; `key` is that of its hash. An absent env keeps the stored one; in the ready URL
 * of an agent, which may not know its port beforehand, `$PORT` is the port. The revision grows only when something changes.
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
  return { spec, revision: (before?.revision ?? 0) + 1, hash: specHashOf(text, key) };
}

/** A text that is the same for two specs exactly when they mean the same: the order of env means nothing. */
export function canonicalSpec(spec: ServiceSpec): string {
  const { agent } = spec;
  return JSON.stringify([
    spec.name,
    spec.port,
    spec.cmd,
    spec.cwd,
    spec.group,
    spec.ready,
    spec.env.toSorted(([a], [b]) => (a < b ? -1 : 1)),
    spec.dependsOn,
    spec.restart,
    spec.autostart,
    spec.stopSignal,
    spec.stopGrace,
    spec.startTimeout,
    spec.labels,
    agent && [agent.agentType, agent.hostname, agent.cols, agent.rows],
  ]);
}

const specHashOf = (text: string, key: Uint8Array): string =>
  createHmac('sha256', key).update(text).digest('hex');

/** What clients may see of a record: no values of env, but the hash over all of it. */
export function specRow({ spec, revision, hash }: StoredService, key: Uint8Array): SpecRow {
  const { env, ...rest } = spec;
  const specHash = hash ?? specHashOf(canonicalSpec(spec), key);
  return { ...rest, revision, envKeys: env.map(([name]) => name), specHash };
}
