// berth up

import { existsSync } from 'node:fs';
import type { Client } from '../../client/create_client.ts';
import { BerthError } from '../../client/errors.ts';
import type { ServiceDetail } from '../../client/records.ts';
import { ProjectError } from '../../project/project_error.ts';
import { type Project, type ProjectService, readProject } from '../../project/read_project.ts';
import { nearestWord } from '../../project/spelling.ts';
import { awaited, runInDependencyOrder, withDependencies } from '../../protocol/dependency_order.ts';
import { AGENTS_GROUP } from '../../protocol/names.ts';
import { ensureDaemon, isDaemonThere } from '../kit/background_daemon.ts';
import { type BatchResult, batchReporter } from '../kit/batch.ts';
import { defineCommand, durationOption, flagOption, negatedFlagOption, textOption } from '../kit/command.ts';
import type { CommandContext } from '../kit/context.ts';
import { CommandError, EXIT_CODE, UsageError } from '../kit/exit_codes.ts';
import { pluralize } from '../kit/format.ts';
import { followLogs } from '../kit/print_logs.ts';
import { createProgress, type Progress } from '../kit/progress.ts';
import { projectFileOf, projectFilePath } from '../kit/project_file.ts';
import {
  type PlannedChange,
  planRegistration,
  type RegistrationResult,
  registerService,
} from '../kit/registration_diff.ts';
import { restartService, startContinuesNote, startService, whenStarted } from '../kit/start_service.ts';

/** All services, or those named with their dependencies. Throws a UsageError for an unknown name. */
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

/** Every registered service, by name. */
async function registeredServices(client: Client): Promise<Map<string, ServiceDetail>> {
  const all = await client.services();
  const details = await Promise.all(all.map(({ name }) => client.service(name)));
  return new Map(details.map((detail) => [detail.name, detail]));
}

/**
 * Why a name is not free for this project; undefined if it is. A deleted project file no longer holds its
 * names.
 */
function claimRefusal(file: string, before: ServiceDetail | undefined, adopt: boolean): string | undefined {
  if (!before) return undefined;
  if (before.group === AGENTS_GROUP) return 'an agent has this name; `berth agent rm` removes it';
  const owner = projectFileOf(before.labels);
  if (owner === file || adopt) return undefined;
  if (owner === undefined) return 'a service of this name was registered by hand; --adopt takes it over';
  return existsSync(owner)
    ? `${owner} has a service of this name too; rename one, or --adopt takes it over`
    : undefined;
}

function checkClaims(
  project: Project,
  services: readonly ProjectService[],
  registered: ReadonlyMap<string, ServiceDetail>,
  adopt: boolean,
): void {
  const problems = services.flatMap(({ name, at }) => {
    const why = claimRefusal(project.file, registered.get(name), adopt);
    return why === undefined ? [] : [{ at, message: `services.${name}: ${why}` }];
  });
  if (problems.length > 0) throw new ProjectError(project.file, '', problems);
}

interface BringUpOptions {
  timeout: number | undefined;
  wait: boolean;
  start: boolean;
  /** Run tasks that have completed and have not changed. */
  force: boolean;
}

/** Starts or restarts one service as its registration requires. */
async function bringUp(
  client: Client,
  { detail, change, mustRestart }: RegistrationResult,
  { timeout, wait, start, force }: BringUpOptions,
  progress: Progress,
): Promise<BatchResult> {
  const { name, url } = detail;
  const onWaiting = (about: string): void => progress.update(name, about);
  const isUp = detail.status === 'running' || detail.status === 'starting';
  const isUnchanged = change === 'unchanged';
  const record = { name, change, url };
  if (!start)
    return {
      record: { ...record, status: detail.status },
      text: `is ${change} (${detail.status})`,
      isUnchanged,
    };
  if (mustRestart) {
    const done = await restartService(client, name, onWaiting, { timeout });
    return { record: { ...record, ...done.record, restarted: true }, text: `has changed and ${done.text}` };
  }
  const ifChanged = detail.kind === 'task' && !force;
  const done = await startService(client, name, onWaiting, { timeout, wait, ifChanged });
  const again = isUp && change === 'updated' ? ', with a new registration that needs no restart' : '';
  return {
    record: { ...record, ...done.record },
    text: done.text + again,
    isUnchanged: (done.isUnchanged ?? false) && isUnchanged,
  };
}

/**
 * Registers all services before any starts, so that a wrong registration starts nothing. Throws a
 * CommandError.
 */
async function registerAll(
  client: Client,
  file: string,
  services: readonly ProjectService[],
  registered: ReadonlyMap<string, ServiceDetail>,
): Promise<Map<string, RegistrationResult>> {
  const rows = await Promise.all(
    services.map(async (service): Promise<[string, RegistrationResult]> => {
      try {
        return [service.name, await registerService(client, file, service, registered.get(service.name))];
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        const message = `${service.name} cannot be registered: ${reason}`;
        throw new CommandError(message, 'Nothing was started.');
      }
    }),
  );
  return new Map(rows);
}

/** The registered services of the project that its file no longer has. */
function staleServices(
  project: Project,
  registered: ReadonlyMap<string, ServiceDetail>,
): readonly ServiceDetail[] {
  const names = new Set(project.services.map(({ name }) => name));
  return [...registered.values()].filter(
    ({ name, labels }) => projectFileOf(labels) === project.file && !names.has(name),
  );
}

/** Removes the services that the project file no longer has. */
async function removeStale(
  context: CommandContext,
  client: Client,
  project: Project,
  registered: ReadonlyMap<string, ServiceDetail>,
): Promise<void> {
  for (const { name } of staleServices(project, registered)) {
    await client.remove(name);
    context.out.note(`${name} is no longer in ${project.file}: stopped and removed`);
  }
}

/** Why a service is not started that needs `name`. */
const dependencyFailed = (name: string): BerthError =>
  new BerthError('dependency_failed', `not started: it needs ${name}`);

async function bringUpAll(
  context: CommandContext,
  client: Client,
  services: readonly ProjectService[],
  specs: ReadonlyMap<string, RegistrationResult>,
  options: BringUpOptions,
): Promise<number | undefined> {
  const progress = createProgress(context.out);
  const report = batchReporter(context, progress);
  const open = new Set<string>();
  let changes = 0;
  const removeInterrupt = context.onInterrupt(() => {
    progress.stop();
    if (open.size > 0) context.out.note(startContinuesNote([...open]));
  });
  const early = awaited(services, 'started');
  const whole = awaited(services, 'done');
  const outcomes = await runInDependencyOrder(services, async ({ name, kind }, onStarted) => {
    const spec = specs.get(name);
    if (!spec) return;
    open.add(name);
    progress.begin(name, spec.mustRestart ? 'restarting' : 'starting');
    try {
      // What needs a task needs its end, whatever else is waited for.
      const wait = options.wait || (kind === 'task' && whole.has(name));
      const work = bringUp(client, spec, { ...options, wait }, progress);
      const done = await (early.has(name) && !spec.mustRestart
        ? whenStarted(client, name, work, onStarted)
        : work);
      if (!done.isUnchanged) changes += 1;
      report.done(name, done);
    } finally {
      open.delete(name);
      progress.end(name);
    }
  });
  for (const [name, outcome] of outcomes) {
    if ('failed' in outcome) report.failed(name, outcome.failed);
    if ('skipped' in outcome) report.failed(name, dependencyFailed(outcome.skipped));
  }
  removeInterrupt();
  const exitCode = report.end();
  if (exitCode === undefined && changes === 0) context.out.note('Everything is up to date.');
  return exitCode;
}

const planText = ({ change, fields, restarts }: PlannedChange): string => {
  if (change === 'register') return 'would be registered';
  if (change === 'none') return 'would stay as it is, unless a value of its env has changed';
  return `would change: ${fields.join(', ')}${restarts ? '; restarts' : ''}`;
};

/** Prints what `up` would do. Without a daemon, everything is new. */
async function printPlan(
  context: CommandContext,
  project: Project,
  services: readonly ProjectService[],
  { adopt, isWhole }: { adopt: boolean; isWhole: boolean },
): Promise<undefined> {
  const isThere = await isDaemonThere(context);
  if (!isThere) context.out.note('No daemon runs; `berth up` would start one.');
  const registered = isThere ? await registeredServices(await context.client()) : new Map();
  checkClaims(project, services, registered, adopt);
  const plans = services.map((service) => ({
    name: service.name,
    ...planRegistration(project.file, service, registered.get(service.name)),
  }));
  const gone = isWhole ? staleServices(project, registered) : [];
  const removals = gone.map(({ name }) => ({ name, change: 'remove' as const, fields: [], restarts: true }));
  if (context.out.isData) context.out.rows([...plans, ...removals], [], '');
  for (const plan of context.out.isData ? [] : plans) context.out.line(`${plan.name} ${planText(plan)}`);
  for (const { name } of context.out.isData ? [] : removals)
    context.out.line(`${name} would be stopped and removed`);
  return undefined;
}

export const upCommand = defineCommand({
  about:
    'Registers what has changed, starts services in dependency order, restarts only those whose change ' +
    'requires it, and removes those no longer in the file. Repeating it changes nothing. Starts a daemon ' +
    'in the background if none runs.',
  args: [{ syntax: '[names...]', about: 'the services, started with their dependencies; default: all' }],
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
  },
  examples: [
    ['berth up', 'everything in berth.yaml'],
    ['berth up web', 'web and its dependencies'],
  ],
  run: async (context, names, { file, timeout, wait, start, force, adopt, attach, dryRun }) => {
    const project = readProject(projectFilePath(file), process.env);
    const services = selectedServices(project, names);
    if (dryRun) return printPlan(context, project, services, { adopt, isWhole: names.length === 0 });
    await ensureDaemon(context);
    const client = await context.client();
    const registered = await registeredServices(client);
    checkClaims(project, services, registered, adopt);
    const specs = await registerAll(client, project.file, services, registered);
    if (names.length === 0) await removeStale(context, client, project, registered);
    if (services.length === 0) context.out.note(`${project.file} has no services.`);
    const exitCode = await bringUpAll(context, client, services, specs, { timeout, wait, start, force });
    if (!attach || services.length === 0) return exitCode;
    context.out.note(`Following ${pluralize(services.length, 'log')}; Ctrl-C ends this, not the services.`);
    await followLogs(
      context,
      client,
      services.map(({ name }) => name),
      { lines: 10 },
    );
    return exitCode ?? EXIT_CODE.ok;
  },
});
