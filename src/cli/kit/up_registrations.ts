// Registers the services of a project file, takes over earlier registrations, and removes stale ones.
import { existsSync } from 'node:fs';
import type { Client } from '../../client/create_client.ts';
import type { ServiceDetail } from '../../client/records.ts';
import { ProjectError } from '../../project/project_error.ts';
import type { ProjectService } from '../../project/project_service.ts';
import type { Project } from '../../project/read_project.ts';
import { dependencyName } from '../../protocol/dependency_order.ts';
import { isHook } from '../../protocol/hooks.ts';
import { AGENTS_GROUP } from '../../protocol/names.ts';
import { shortName } from '../../protocol/stacks.ts';
import type { CommandContext } from './context.ts';
import { CommandError } from './exit_codes.ts';
import { isReplacedBy, projectFileOf } from './project_file.ts';
import { referringTo, servicesInStack } from './project_stack.ts';
import { markForRestart, type RegistrationResult, registerService } from './registration_diff.ts';
import { unlessRemoved, whileRegistered } from './removed_meanwhile.ts';
import type { StackScope } from './stack_scope.ts';

/** The project, services and stack of one `up`. */
export interface UpPlan {
  project: Project;
  /** With their registered names. */
  services: ProjectService[];
  stack: string;
  scope: StackScope;
  isWhole: boolean;
}

/**
 * The reason why this project may not use a name; undefined if it may. A deleted project file no longer
 * holds its names.
 */
function claimRefusal(file: string, before: ServiceDetail | undefined, adopt: boolean): string | undefined {
  if (!before) return undefined;
  if (before.group === AGENTS_GROUP) return 'an agent has this name; `berth agent rm` removes it';
  const owner = projectFileOf(before.labels);
  if (adopt || owner === file || (owner !== undefined && isReplacedBy(file, owner))) return undefined;
  if (owner === undefined) return 'a service of this name was registered by hand; --adopt takes it over';
  return existsSync(owner)
    ? `${owner} has a service of this name too; rename one, or --adopt takes it over`
    : undefined;
}

/** Throws a ProjectError that names every service whose name is not free for this project. */
export function checkClaims(
  { project, services, scope }: UpPlan,
  registered: ReadonlyMap<string, ServiceDetail>,
  adopt: boolean,
): void {
  const problems = services.flatMap(({ name, at }) => {
    const why = claimRefusal(project.file, registered.get(name), adopt);
    return why === undefined ? [] : [{ at, message: `services.${scope.label(name)}: ${why}` }];
  });
  if (problems.length > 0) throw new ProjectError(project.file, project.isConverted ? null : '', problems);
}

/**
 * The registrations of an `up`, in rounds that follow each other; those of a round are made at the same time.
 * First, services lose the dependencies that the file no longer has: together with a new one, an old one can
 * form a cycle, which the daemon refuses. Services with `auto` come last: the daemon leases them ports that
 * no other service has then.
 */
export function registrationRounds<S extends Pick<ProjectService, 'name' | 'dependsOn' | 'port'>>(
  services: readonly S[],
  registered: ReadonlyMap<string, Pick<ServiceDetail, 'dependsOn'>>,
): S[][] {
  const reduced = services.flatMap((service) => {
    const before = new Set(registered.get(service.name)?.dependsOn.map(dependencyName));
    const now = new Set(service.dependsOn.map(dependencyName));
    const kept = service.dependsOn.filter((one) => before.has(dependencyName(one)));
    return [...before].every((name) => now.has(name)) ? [] : [{ ...service, dependsOn: kept }];
  });
  const isAuto = ({ port }: S): boolean => port === 'auto';
  return [reduced, services.filter((one) => !isAuto(one)), services.filter(isAuto)];
}

/** The ports that the file gives by number, and those of registered services that this `up` leaves out. */
export function takenPorts(
  { services }: UpPlan,
  registered: ReadonlyMap<string, ServiceDetail>,
): Set<number> {
  const planned = new Set(services.map(({ name }) => name));
  const others = [...registered.values()].filter(({ name }) => !planned.has(name));
  const ports = [...services, ...others].map(({ port }) => port);
  return new Set(ports.filter((port) => typeof port === 'number'));
}

/** The result of two registrations of one service. */
const combined = (first: RegistrationResult | undefined, last: RegistrationResult): RegistrationResult =>
  first === undefined
    ? last
    : {
        detail: last.detail,
        change: first.change === 'unchanged' ? last.change : first.change,
        mustRestart: first.mustRestart || last.mustRestart,
        isMoved: first.isMoved || last.isMoved,
        hasOldEnvironment: first.hasOldEnvironment || last.hasOldEnvironment || false,
      };

/**
 * Registers all services before any starts, so that a wrong registration starts nothing. Throws a
 * CommandError.
 */
export async function registerAll(
  client: Client,
  plan: UpPlan,
  registered: ReadonlyMap<string, ServiceDetail>,
): Promise<Map<string, RegistrationResult>> {
  const { project, services, scope } = plan;
  const taken = takenPorts(plan, registered);
  const results = new Map<string, RegistrationResult>();
  const register = async (service: ProjectService): Promise<void> => {
    const { name } = service;
    const first = results.get(name);
    const before = first?.detail ?? registered.get(name);
    try {
      const last = await registerService(client, project.file, service, before, taken);
      results.set(name, combined(first, last));
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new CommandError(`${scope.label(name)} cannot be registered: ${reason}`, 'Nothing was started.');
    }
  };
  for (const round of registrationRounds(services, registered)) await Promise.all(round.map(register));
  return results;
}

/**
 * Marks the running services of the project for a restart that refer to a service whose port or protocol is
 * another one than in `registered`. One that is not registered was removed after they had started, so its
 * port may be new. Names those that this `up` does not include.
 */
export async function markForNewUrls(
  context: CommandContext,
  client: Client,
  { project, stack, scope }: UpPlan,
  specs: Map<string, RegistrationResult>,
  registered: ReadonlyMap<string, ServiceDetail>,
): Promise<void> {
  const moved = [...specs].flatMap(([name, { detail, isMoved }]) => {
    const before = registered.get(name);
    return isMoved || before?.protocol !== detail.protocol ? [name] : [];
  });
  const services = servicesInStack(project, stack);
  const referring = referringTo(moved, stack, services);
  const left: string[] = [];
  for (const service of services.filter(({ name }) => referring.has(name))) {
    const spec = specs.get(service.name);
    const current = spec?.detail ?? registered.get(service.name);
    if (!current || spec?.mustRestart || projectFileOf(current.labels) !== project.file) continue;
    const { pid, ...rest } = current;
    if (pid === undefined) continue;
    const marked = markForRestart(client, project.file, service, { ...rest, pid });
    const detail = await whileRegistered(service.name, marked);
    if (spec) specs.set(service.name, { ...spec, detail, mustRestart: true });
    else left.push(scope.label(service.name));
  }
  if (left.length > 0)
    context.out.note(
      `Started with an address that has changed: ${left.join(', ')}. \`berth up\` restarts them.`,
    );
}

/** The registered services of the stack that are no longer in the project file. */
export function staleServices(
  { project, stack, isWhole }: UpPlan,
  registered: ReadonlyMap<string, ServiceDetail>,
): readonly ServiceDetail[] {
  const names = new Set<string | null>(project.services.map(({ name }) => name));
  return [...registered.values()].filter(
    (one) =>
      isWhole &&
      projectFileOf(one.labels) === project.file &&
      one.stack === stack &&
      !names.has(one.service) &&
      !isHook(one.service),
  );
}

/**
 * The services that an earlier version of Berth registered for this file under their short names, by their
 * current names.
 */
export function renamedServices(
  { project, services, stack }: UpPlan,
  registered: ReadonlyMap<string, ServiceDetail>,
): Map<string, ServiceDetail> {
  const found = services.flatMap(({ name }): [string, ServiceDetail][] => {
    const before = registered.get(shortName(name, stack) ?? '');
    const isOurs = before && before.stack === null && projectFileOf(before.labels) === project.file;
    return isOurs ? [[name, before]] : [];
  });
  return new Map(found);
}

/** Registers the renamed services again with their earlier ports, and updates `registered`. */
export async function takeOverRenamed(
  context: CommandContext,
  client: Client,
  plan: UpPlan,
  registered: Map<string, ServiceDetail>,
): Promise<void> {
  const { file } = plan.project;
  for (const [name, before] of renamedServices(plan, registered)) {
    const service = plan.services.find((one) => one.name === name);
    if (!service) continue;
    await unlessRemoved(client.remove(before.name));
    context.out.note(`${before.name} was registered by an earlier version of berth: it is ${name} now`);
    const kept = service.port === 'auto' ? { ...service, port: before.port } : service;
    registered.set(name, (await registerService(client, file, kept, undefined)).detail);
  }
}

/** Removes the services that the project file no longer has. */
export async function removeStale(
  context: CommandContext,
  client: Client,
  plan: UpPlan,
  registered: ReadonlyMap<string, ServiceDetail>,
): Promise<string[]> {
  const stale = staleServices(plan, registered).map(({ name }) => name);
  for (const name of stale) {
    await unlessRemoved(client.remove(name));
    const label = plan.scope.label(name);
    context.out.note(`${label} is no longer in ${plan.project.file}: stopped and removed`);
  }
  return stale;
}
