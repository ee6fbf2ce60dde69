// The stack of a project as `up`, `add` and `agent spinup` register it: docs/reference.md "Stacks".
import { basename, dirname } from 'node:path';
import { workTreeOf } from '../../adapters/git_worktree.ts';
import type { Client } from '../../client/create_client.ts';
import { refersTo } from '../../project/check_references.ts';
import { onOtherPort } from '../../project/check_text.ts';
import type { ProjectService } from '../../project/project_service.ts';
import type { Project } from '../../project/read_project.ts';
import { shellEnvironment } from '../../protocol/base_environment.ts';
import type { LiveField } from '../../protocol/checks.ts';
import { renamedDependency } from '../../protocol/dependency_order.ts';
import {
  lengthFault,
  MAX_STACK_NAME,
  nameInStack,
  projectOfStack,
  STACK_NAME_PATTERN,
  type StackClaim,
  shortName,
  slugOfStack,
  stackNames,
} from '../../protocol/stacks.ts';
import type { CommandContext } from './context.ts';
import { UsageError } from './exit_codes.ts';
import { loadProject } from './load_project.ts';
import { givenName, type ProjectPlace } from './named_stack.ts';
import { projectNameIn } from './project_name.ts';
import { chosenStack, isStackOf, type StackChoice, UNREGISTERED } from './stack_scope.ts';

const NAME_HINT = 'Shorten it, or give the project a shorter name with `name` in berth.yaml.';

/** The place of a project that was read. Its file may be a pipe, which cannot be read again. */
const placeOf = ({ file, name }: Project): ProjectPlace => {
  const folder = dirname(file);
  return { folder, projectName: async () => projectNameIn(folder, name) };
};

/** Lists the stacks when no daemon runs. */
const NO_DAEMON: Pick<Client, 'stacks'> = { stacks: async () => [] };

/**
 * The stack name that the user chose for `project`; null if the user chose none, or that of the folder.
 * Throws a UsageError, and a CommandError as `chosenStack` does.
 */
async function chosenName(
  client: Pick<Client, 'stacks'>,
  project: Project,
  choice: StackChoice,
): Promise<string | null> {
  if (givenName(choice) === undefined) return null;
  const name = await chosenStack(client, { ...choice, isOwn: true, place: placeOf(project) });
  if (name === null || name === UNREGISTERED) return null;
  if (STACK_NAME_PATTERN.test(name) && name.length <= MAX_STACK_NAME) return name;
  throw new UsageError(
    `${name} is no name of a stack`,
    'A stack is called <project> or <project>--<slug>, each of a-z, 0-9 and single -.',
  );
}

/** The claim for the stack of `project`. */
async function claimOf(
  client: Pick<Client, 'stacks'>,
  project: Project,
  choice: StackChoice,
): Promise<StackClaim> {
  const { folder, projectName } = placeOf(project);
  const tree = workTreeOf(folder);
  const chosen = await chosenName(client, project, choice);
  return {
    project: chosen === null ? await projectName() : projectOfStack(chosen),
    path: folder,
    worktree: tree?.mainRoot ? (tree.branch ?? basename(tree.root)) : null,
    branch: tree?.branch ?? null,
    name: chosen,
  };
}

/** Registers the stack of a project, and returns its name. */
export async function registerStack(client: Client, project: Project, choice: StackChoice): Promise<string> {
  return (await client.registerStack(await claimOf(client, project, choice))).name;
}

/**
 * The name that `registerStack` would return, as far as that can be known without registering a stack.
 * `client`: null if no daemon runs.
 */
export async function plannedStack(
  client: Pick<Client, 'stacks'> | null,
  project: Project,
  choice: StackChoice,
): Promise<string> {
  const claim = await claimOf(client ?? NO_DAEMON, project, choice);
  if (claim.name !== null) return claim.name;
  const names = stackNames(claim);
  const known = await (client ?? NO_DAEMON).stacks();
  const ours = known.find(
    ({ name, path, named }) => !named && path === claim.path && isStackOf(name, claim.project, claim.path),
  );
  return ours?.name ?? names[0] ?? claim.project;
}

/**
 * The port and checks of a service in a stack. A port number applies if it is fixed, or if the stack has no
 * slug. Otherwise, the daemon leases another port, and checks that name the number use that port.
 */
function addressIn(
  service: ProjectService,
  isMain: boolean,
): Pick<ProjectService, 'port' | 'ready' | 'live'> {
  const { name, port, ready, live, isPortFixed } = service;
  if (isMain || isPortFixed || typeof port !== 'number') return { port, ready, live };
  const moved = <C extends LiveField>(check: C | null): LiveField | null =>
    check && onOtherPort(check, port, name);
  return { port: 'auto', ready: moved(ready), live: moved(live) };
}

/**
 * The services of a stack that refer to one of `moved`, whose URLs have changed. Their processes have got the
 * old ones.
 */
export function referringTo(
  moved: readonly string[],
  stack: string,
  services: readonly ProjectService[],
): Set<string> {
  const asked = moved.flatMap((name) => shortName(name, stack) ?? []);
  const referring = services.filter((service) => asked.some((name) => refersTo(service, name)));
  return new Set(referring.map(({ name }) => name));
}

/** The hooks of `project` as registered in `stack`: in no group, because only the stack starts them. */
export function hooksInStack(project: Project, stack: string): ProjectService[] {
  const hooks = servicesInStack({ ...project, services: project.hooks }, stack);
  return hooks.map((hook) => ({ ...hook, group: null }));
}

/** Throws a UsageError for a name that is too long with the prefix of its stack. */
function refuseLongNames(services: readonly ProjectService[], stack: string): void {
  for (const { name, group } of services) {
    const [ofName, ofGroup] = [lengthFault(stack, name), group === null ? null : lengthFault(stack, group)];
    if (ofName !== null) throw new UsageError(`services.${name}: the name ${ofName}`, NAME_HINT);
    if (ofGroup !== null) throw new UsageError(`services.${name}.group: ${group} ${ofGroup}`, NAME_HINT);
  }
}

/**
 * The services of `project` as registered in `stack`: with full names and leased ports. Throws a UsageError
 * for a name that is too long in `stack`.
 */
export function servicesInStack({ services, environment }: Project, stack: string): ProjectService[] {
  const whole = (name: string): string => nameInStack(stack, name);
  const baseEnv = environment === 'shell' ? shellEnvironment(process.env) : null;
  const isMain = slugOfStack(stack) === null;
  refuseLongNames(services, stack);
  return services.map((service) => ({
    ...service,
    name: whole(service.name),
    dependsOn: service.dependsOn.map((one) => renamedDependency(one, whole)),
    group: service.group === null ? stack : whole(service.group),
    ...addressIn(service, isMain),
    stack,
    baseEnv,
  }));
}

/** Registers the stack of this folder's project, and returns its name. */
export async function registerStackHere(
  context: CommandContext,
  client: Client,
  choice: StackChoice,
): Promise<string> {
  return registerStack(client, await loadProject(context, undefined), choice);
}
