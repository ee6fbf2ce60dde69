// What a registration must not be beside the others: docs/reference.md "Registration".
import { dependencyCycle, dependencyName } from '../../protocol/dependency_order.ts';
import { fail } from '../../protocol/errors.ts';
import type { ServiceInput, StoredService } from '../../protocol/service.ts';
import { isHookOf } from '../../protocol/stacks.ts';

interface KnownServices {
  services: ReadonlyMap<string, StoredService>;
  /** Registrations under way, by name. */
  registering: ReadonlyMap<string, ServiceInput>;
}

function checkKind({ name, agent }: ServiceInput, { services }: KnownServices): void {
  const before = services.get(name);
  if (!before || (before.spec.agent !== null) === (agent !== null)) return;
  throw fail('name_in_use', agent ? `${name} is a service already` : `${name} is the name of an agent`);
}

function checkHostname({ name, agent }: ServiceInput, { services, registering }: KnownServices): void {
  if (!agent) return;
  const stored = [...services.values()].map(({ spec }) => spec);
  for (const other of [...stored, ...registering.values()]) {
    if (other.name !== name && other.agent?.hostname === agent.hostname)
      throw fail('name_in_use', `${agent.hostname} is the host name of the agent ${other.name}`);
  }
}

/**
 * Throws name_in_use when a group and a stack of different services would have the same name, so that a
 * request to one of them would reach the other. What was registered by hand may join any group.
 */
function checkGroup({ stack, group }: ServiceInput, { services }: KnownServices): void {
  if (!stack) return;
  for (const { spec: other } of services.values()) {
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
function checkHooks(input: ServiceInput, { services }: KnownServices): void {
  const { autostart, dependsOn, group, name, schedule } = input;
  const dependency = dependsOn
    .map(dependencyName)
    .find((other) => isHookOf(services.get(other)?.spec.stack ?? input.stack, other));
  if (dependency !== undefined)
    throw fail('invalid_spec', `${name} depends on ${dependency}, which is a hook: only its stack runs it`);
  if (isHookOf(input.stack, name) && (autostart || group || schedule))
    throw fail('invalid_spec', `${name} is a hook, and has no group, schedule or autostart`);
}

function checkCycle({ name, dependsOn }: ServiceInput, { services, registering }: KnownServices): void {
  const dependenciesOf = (other: string): string[] =>
    [services.get(other)?.spec, registering.get(other)].flatMap(
      (one) => one?.dependsOn.map(dependencyName) ?? [],
    );
  const found = dependencyCycle(name, dependsOn.map(dependencyName), dependenciesOf);
  if (!found) return;
  const message = `dependsOn has a cycle: ${found.join(' -> ')}`;
  throw fail('invalid_spec', message, { details: [{ path: 'dependsOn', message }] });
}

const CHECKS = [checkKind, checkHostname, checkGroup, checkHooks, checkCycle];

/** Throws name_in_use or invalid_spec when `input` cannot be registered beside the known services. */
export function checkRegistration(input: ServiceInput, known: KnownServices): void {
  for (const check of CHECKS) check(input, known);
}
