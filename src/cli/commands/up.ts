// berth up
import type { Client } from '../../client/create_client.ts';
import { BerthError } from '../../client/errors.ts';
import type { ServiceDetail } from '../../client/records.ts';
import { countText } from '../../presentation/format.ts';
import type { ProjectService } from '../../project/project_service.ts';
import type { Project } from '../../project/read_project.ts';
import { nearestWord } from '../../project/spelling.ts';
import { awaited, runInDependencyOrder, withDependencies } from '../../protocol/dependency_order.ts';
import { ensureDaemon, isDaemonThere } from '../kit/background_daemon.ts';
import { type BatchResult, batchReporter } from '../kit/batch.ts';
import { defineCommand, durationOption, flagOption, negatedFlagOption, textOption } from '../kit/command.ts';
import type { CommandContext } from '../kit/context.ts';
import { EXIT_CODE, UsageError } from '../kit/exit_codes.ts';
import { noteFormerStacks } from '../kit/former_stacks.ts';
import { loadProject } from '../kit/load_project.ts';
import { printMergedLogs } from '../kit/merged_logs.ts';
import { createProgress } from '../kit/progress.ts';
import { plannedStack, referringTo, registerStack, servicesInStack } from '../kit/project_stack.ts';
import {
  hasReplacedFolder,
  isCurrent,
  type PlannedChange,
  type PlannedStarts,
  planRegistration,
  type RegistrationResult,
} from '../kit/registration_diff.ts';
import { detailsOf, unlessRemoved, whileRegistered } from '../kit/removed_meanwhile.ts';
import { registerHooks, runCreateHook } from '../kit/stack_hooks.ts';
import { STACK_OPTIONS, type StackChoice, scopeOf } from '../kit/stack_scope.ts';
import { untilDone } from '../kit/standard_streams.ts';
import { restartService, startContinuesNote, startService, whenStarted } from '../kit/start_service.ts';
import { UncheckedStarts } from '../kit/unchecked_starts.ts';
import {
  checkClaims,
  markForNewUrls,
  registerAll,
  removeStale,
  renamedServices,
  staleServices,
  takenPorts,
  takeOverRenamed,
  type UpPlan,
} from '../kit/up_registrations.ts';

/** All services, or the named ones with their dependencies. Throws a UsageError for an unknown name. */
function selectedServices(project: Project, names: readonly string[]): ProjectService[] {
  const known = project.services.map(({ name }) => name);
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) {
    const near = nearestWord(unknown, known);
    const hint = near ? `Did you mean ${near}?` : `It has ${known.join(', ') || 'none'}.`;
    throw new UsageError(`${project.file} has no service ${unknown}`, hint);
  }
  if (names.length === 0) return project.services;
  const wanted = withDependencies(project.services, names);
  return project.services.filter(({ name }) => wanted.has(name));
}

function planOf(project: Project, names: readonly string[], stack: string): UpPlan {
  const services = servicesInStack({ ...project, services: selectedServices(project, names) }, stack);
  return { project, services, stack, scope: scopeOf(stack, []), isWhole: names.length === 0 };
}

/** Every registered service, by name. */
async function registeredServices(client: Client): Promise<Map<string, ServiceDetail>> {
  const all = await client.services();
  const details = await detailsOf(
    client,
    all.map(({ name }) => name),
  );
  return new Map(details.map((detail) => [detail.name, detail]));
}

interface BringUpOptions {
  timeout: number | undefined;
  wait: boolean;
  start: boolean;
  /** Run tasks again that have completed and have not changed. */
  force: boolean;
  /** The services that this `up` has removed. */
  removed: readonly string[];
}

/** Starts or restarts one service as its registration requires. */
async function bringUp(
  client: Client,
  { detail, change, mustRestart, hasOldEnvironment }: RegistrationResult,
  { timeout, wait, start, force }: Omit<BringUpOptions, 'removed'>,
  onWaiting: (about: string) => void,
): Promise<BatchResult> {
  const { name, url } = detail;
  const isUp = detail.status === 'running' || detail.status === 'starting';
  const isUnchanged = change === 'unchanged';
  const record = { name, change, url };
  if (!start)
    return {
      record: { ...record, status: detail.status },
      text: `is ${change} (${detail.status})`,
      isUnchanged,
    };
  const restarted = async (): Promise<BatchResult> => {
    const done = await restartService(client, name, onWaiting, { timeout });
    return {
      ...done,
      record: { ...record, ...done.record, restarted: true },
      text: `has changed and ${done.text}`,
    };
  };
  if (mustRestart) return restarted();
  const ifChanged = detail.kind === 'task' && !force;
  const done = await startService(client, name, onWaiting, { timeout, wait, ifChanged });
  // `autostart` of a daemon that has just begun may start what was registered before.
  if (done.isOutdated) return restarted();
  const isCalm = isUp && change === 'updated' && !hasOldEnvironment;
  const again = isCalm ? ', with a new registration that needs no restart' : '';
  return {
    ...done,
    record: { ...record, ...done.record },
    text: done.text + again,
    isUnchanged: (done.isUnchanged ?? false) && isUnchanged,
  };
}

/**
 * Stops the running services whose ports have changed and are taken by others now. Otherwise services that
 * swap ports would wait for each other.
 */
async function freeTakenPorts(
  client: Client,
  { services }: UpPlan,
  specs: ReadonlyMap<string, RegistrationResult>,
): Promise<void> {
  const taken = new Set<ProjectService['port']>(services.map(({ port }) => port));
  const holders = [...specs].flatMap(([name, { isMoved, detail }]) =>
    isMoved && detail.pid !== undefined && detail.port !== null && taken.has(detail.port) ? [name] : [],
  );
  await Promise.all(holders.map((name) => unlessRemoved(client.stop(name))));
}

/** Names the services that still have an earlier shell environment: `up` does not restart them for that. */
function noteOldEnvironment(
  context: CommandContext,
  { services, scope }: UpPlan,
  specs: ReadonlyMap<string, RegistrationResult>,
): void {
  const old = services.filter(({ name }) => {
    const spec = specs.get(name);
    return spec?.hasOldEnvironment && !spec.mustRestart;
  });
  if (old.length === 0) return;
  const names = old.map(({ name }) => scope.label(name)).join(' ');
  context.out.note(`The environment of your shell has changed; \`berth restart ${names}\` applies it.`);
}

/** The error for a service that was skipped because it needs `name`. `isUp`: its process goes on. */
const dependencyFailed = (name: string, isUp: boolean): BerthError =>
  new BerthError('dependency_failed', `${isUp ? 'left as it was' : 'not started'}: it needs ${name}`);

async function bringUpAll(
  context: CommandContext,
  client: Client,
  { services, scope }: UpPlan,
  specs: ReadonlyMap<string, RegistrationResult>,
  options: BringUpOptions,
): Promise<number | undefined> {
  const progress = createProgress(context.out);
  const report = batchReporter(context, progress, scope);
  // People have read a note about each.
  if (context.out.isData)
    for (const name of options.removed)
      report.done(name, { record: { name, change: 'removed', removed: true }, text: '' });
  const unchecked = new UncheckedStarts(client);
  const open = new Set<string>();
  let changes = 0;
  const removeInterrupt = context.onInterrupt(() => {
    progress.stop();
    if (open.size > 0) context.out.note(startContinuesNote([...open].map(scope.label)));
  });
  const early = awaited(services, 'started');
  const whole = awaited(services, 'done');
  const outcomes = await runInDependencyOrder(services, async ({ name, kind }, onStarted) => {
    const spec = specs.get(name);
    if (!spec) return;
    open.add(name);
    progress.begin(scope.label(name), spec.mustRestart ? 'restarting' : 'starting');
    try {
      const onWaiting = (about: string): void => progress.update(scope.label(name), about);
      // Services that depend on a task need its completion, even with --no-wait.
      const wait = options.wait || (kind === 'task' && whole.has(name));
      const work = whileRegistered(name, bringUp(client, spec, { ...options, wait }, onWaiting));
      const done = await (early.has(name) && !spec.mustRestart
        ? whenStarted(client, name, work, onStarted)
        : work);
      if (!done.isUnchanged) changes += 1;
      if (done.uncheckedPid !== undefined) unchecked.add(name, done.uncheckedPid);
      report.done(name, done);
    } finally {
      open.delete(name);
      progress.end(scope.label(name));
    }
  });
  for (const [name, outcome] of outcomes) {
    if ('failed' in outcome) report.failed(name, outcome.failed);
    if ('skipped' in outcome) {
      const isUp = specs.get(name)?.detail.pid !== undefined;
      report.failed(name, dependencyFailed(scope.label(outcome.skipped), isUp));
    }
  }
  const left = await unchecked.settle((name, error) => report.failed(name, error));
  removeInterrupt();
  const exitCode = report.end();
  if (left.length > 0) context.out.note(`${left.map(scope.label).join(', ')}: still there after 2 s.`);
  if (exitCode === undefined && changes === 0) context.out.note('Everything is up to date.');
  return exitCode;
}

/** What follows a change, and what would happen without one, by `starts`. */
const STARTS = new Map([
  [true, ['; starts', 'would be started']],
  [null, ['; runs again if its inputs have changed', 'would run again if its inputs have changed']],
  [false, ['', 'would stay as it is, unless a value of its env has changed']],
] as const);

/** Why a service whose registration does not change would restart. */
function restartReason(before: ServiceDetail | undefined): string {
  if (before && hasReplacedFolder(before)) return 'its folder was removed and made again';
  return before && !isCurrent(before)
    ? 'its process runs an older registration'
    : 'it refers to a URL that changes';
}

function planText(
  { change, fields, restarts, starts }: PlannedChange,
  before: ServiceDetail | undefined,
): string {
  const [then, alone] = STARTS.get(starts) ?? ['', ''];
  if (change === 'register') return 'would be registered';
  if (change === 'update') return `would change: ${fields.join(', ')}${restarts ? '; restarts' : then}`;
  return restarts ? `would restart, because ${restartReason(before)}` : alone;
}

/** Prints what `up` would do. Without a daemon, everything is new. */
async function printPlan(
  context: CommandContext,
  plan: UpPlan,
  { adopt, ...wanted }: PlannedStarts & { adopt: boolean },
): Promise<undefined> {
  const isThere = await isDaemonThere(context);
  if (!isThere) context.out.note('No daemon runs; `berth up` would start one.');
  const registered = isThere ? await registeredServices(await context.client()) : new Map();
  checkClaims(plan, registered, adopt);
  const { services, project, scope } = plan;
  const renamed = renamedServices(plan, registered);
  for (const [name, before] of renamed) context.out.note(`${before.name} would become ${name}`);
  const taken = takenPorts(plan, registered);
  const planned = services.map((service) => ({
    name: service.name,
    ...planRegistration(project.file, service, registered.get(service.name), taken, wanted),
  }));
  const moved = planned.flatMap(({ name, change, fields }) =>
    change === 'register' || fields.includes('port') || fields.includes('protocol') ? [name] : [],
  );
  const referring = referringTo(moved, plan.stack, services);
  const plans = planned.map((one) => ({
    ...one,
    restarts: one.restarts || (referring.has(one.name) && registered.get(one.name)?.pid !== undefined),
  }));
  const gone = staleServices(plan, registered);
  const removals = gone.map(({ name }) => ({
    name,
    change: 'remove' as const,
    fields: [],
    restarts: true,
    starts: false,
  }));
  if (context.out.isData) {
    context.out.rows([...plans, ...removals], [], '');
    return undefined;
  }
  for (const one of plans)
    context.out.line(`${scope.label(one.name)} ${planText(one, registered.get(one.name))}`);
  for (const { name } of removals) context.out.line(`${scope.label(name)} would be stopped and removed`);
  return undefined;
}

/** The plan of a dry run, which registers no stack. */
async function dryPlan(
  context: CommandContext,
  project: Project,
  names: readonly string[],
  choice: StackChoice,
): Promise<UpPlan> {
  const client = (await isDaemonThere(context)) ? await context.client() : null;
  return planOf(project, names, await plannedStack(client, project, choice));
}

/** Follows the logs of a whole stack, also of services that are added later, or of the named services. */
async function followPlan(
  context: CommandContext,
  client: Client,
  { services, stack, scope, isWhole }: UpPlan,
): Promise<void> {
  const names = services.map(({ name }) => name);
  const query = { ...(isWhole ? { stack } : { names }), follow: true, limit: 10, agents: false };
  const view = { timestamps: false, prefix: true, label: scope.label, names };
  await printMergedLogs(context, client, query, view);
}

interface ApplyOptions extends StackChoice {
  timeout: number | undefined;
  wait: boolean;
  start: boolean;
  force: boolean;
  adopt: boolean;
}

/** Registers and starts what the file asks for. Resolves with the exit code if something is not up. */
async function applyProject(
  context: CommandContext,
  client: Client,
  project: Project,
  names: readonly string[],
  { timeout, wait, start, force, adopt, ...choice }: ApplyOptions,
): Promise<{ plan: UpPlan; exitCode: number | undefined }> {
  const registered = await registeredServices(client);
  const plan = planOf(project, names, await registerStack(client, project, choice));
  checkClaims(plan, registered, adopt);
  const before = [...registered.values()];
  await noteFormerStacks(context, client, { file: project.file, stack: plan.stack }, before);
  await takeOverRenamed(context, client, plan, registered);
  const specs = await registerAll(client, plan, registered);
  await markForNewUrls(context, client, plan, specs, registered);
  const removed = await removeStale(context, client, plan, registered);
  await registerHooks(client, project, plan.stack, registered);
  if (start) await runCreateHook(context, client, project, plan.stack);
  if (start) await freeTakenPorts(client, plan, specs);
  if (plan.services.length === 0) context.out.note(`${project.file} has no services.`);
  const exitCode = await bringUpAll(context, client, plan, specs, { timeout, wait, start, force, removed });
  noteOldEnvironment(context, plan, specs);
  return { plan, exitCode };
}

export const upCommand = defineCommand({
  about:
    'Registers what has changed, starts services in dependency order, restarts only those whose change ' +
    'requires it, and removes those no longer in the file. Repeating it changes nothing. Starts a daemon ' +
    'in the background if none runs.',
  args: [
    {
      syntax: '[names...]',
      about: 'the services, started with their dependencies; default: all',
      completes: 'project',
    },
  ],
  options: {
    file: textOption(
      '-f, --file <file>',
      'project file; default: berth.yaml here or in a folder above',
      'file',
    ),
    timeout: durationOption('--timeout <time>', 'time each service has to start; default: its own'),
    wait: negatedFlagOption('--no-wait', 'return as soon as the processes run'),
    start: negatedFlagOption('--no-start', 'register services, but start none'),
    dryRun: flagOption('--dry-run', 'print what would change, and change nothing'),
    force: flagOption('--force', 'run tasks again that have completed and have not changed'),
    adopt: flagOption('--adopt', 'take over services that were registered by hand or by another file'),
    attach: flagOption('-a, --attach', 'then follow the logs until Ctrl-C; the services keep running'),
    ...STACK_OPTIONS,
  },
  examples: [
    ['berth up', 'everything in berth.yaml'],
    ['berth up web', 'web and its dependencies'],
  ],
  run: async (context, names, { file, attach, dryRun, ...options }) => {
    const project = await loadProject(context, file);
    selectedServices(project, names);
    if (dryRun) return printPlan(context, await dryPlan(context, project, names, options), options);
    await ensureDaemon(context);
    const client = await context.client();
    const { plan, exitCode } = await untilDone(() => applyProject(context, client, project, names, options));
    const { services } = plan;
    if (!attach || services.length === 0) return exitCode;
    context.out.note(`Following ${countText(services.length, 'log')}; Ctrl-C ends this, not the services.`);
    await followPlan(context, client, plan);
    return exitCode ?? EXIT_CODE.ok;
  },
});
