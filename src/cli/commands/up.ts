// berth up

import { existsSync } from 'node:fs';
import type { Client } from '../../client/create_client.ts';
import type { ServiceDetail } from '../../client/records.ts';
import { runInDependencyOrder, withDependencies } from '../../project/dependency_order.ts';
import { nearestWord, ProjectError } from '../../project/project_error.ts';
import { type Project, type ProjectService, readProject } from '../../project/read_project.ts';
import { AGENTS_GROUP } from '../../protocol/names.ts';
import { ensureDaemon } from '../kit/background_daemon.ts';
import { type BatchResult, batchReporter } from '../kit/batch.ts';
import { defineCommand, durationOption, flagOption, negatedFlagOption, textOption } from '../kit/command.ts';
import type { CommandContext } from '../kit/context.ts';
import { CommandError, EXIT_CODE, UsageError } from '../kit/exit_codes.ts';
import { pluralize } from '../kit/format.ts';
import { createProgress, type Progress } from '../kit/progress.ts';
import { projectFileOf, projectFilePath } from '../kit/project_file.ts';
import { type RegistrationResult, registerService } from '../kit/registration_diff.ts';
import { startContinuesNote, startService } from '../kit/start_service.ts';
import { followLogs } from './logs.ts';
import { restartService } from './restart.ts';

/** The services that are meant: all, or those named with what they need. Throws a UsageError for an unknown one. */
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

/** Every registered service by name, with its spec. */
async function registeredServices(berth: Client): Promise<Map<string, ServiceDetail>> {
  const all = await berth.services();
  const details = await Promise.all(all.map(({ name }) => berth.service(name)));
  return new Map(details.map((detail) => [detail.name, detail]));
}

/** Why a name cannot be this project's; undefined when it can. A file that has gone claims nothing any more. */
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
}

/** Brings one service to where its registration wants it, and says what that took. */
async function bringUp(
  berth: Client,
  { detail, change, mustRestart }: RegistrationResult,
  { timeout, wait, start }: BringUpOptions,
  progress: Progress,
): Promise<BatchResult> {
  const { name, url } = detail;
  const tell = (about: string): void => progress.update(name, about);
  const isUp = detail.status === 'running' || detail.status === 'starting';
  const isSame = change === 'unchanged';
  const record = { name, change, url };
  if (!start)
    return {
      record: { ...record, status: detail.status },
      text: `is ${change} (${detail.status})`,
      isUnchanged: isSame,
    };
  if (mustRestart) {
    const done = await restartService(berth, name, tell, { timeout });
    return { record: { ...record, ...done.record, restarted: true }, text: `has changed and ${done.text}` };
  }
  const done = await startService(berth, name, tell, { timeout, wait });
  const again = isUp && change === 'updated' ? ', with a new registration that needs no restart' : '';
  return {
    record: { ...record, ...done.record },
    text: done.text + again,
    isUnchanged: (done.isUnchanged ?? false) && isSame,
  };
}

/** Registers all before anything starts, so that a wrong registration starts nothing. */
async function registerAll(
  berth: Client,
  file: string,
  services: readonly ProjectService[],
  registered: ReadonlyMap<string, ServiceDetail>,
): Promise<Map<string, RegistrationResult>> {
  const rows = await Promise.all(
    services.map(async (service): Promise<[string, RegistrationResult]> => {
      try {
        return [service.name, await registerService(berth, file, service, registered.get(service.name))];
      } catch (error) {
        const message = `${service.name} cannot be registered: ${error instanceof Error ? error.message : String(error)}`;
        throw new CommandError(message, 'Nothing was started.');
      }
    }),
  );
  return new Map(rows);
}

/** Services that this file once had and has no longer. */
async function removeStale(
  cli: CommandContext,
  berth: Client,
  project: Project,
  registered: ReadonlyMap<string, ServiceDetail>,
): Promise<void> {
  const names = new Set(project.services.map(({ name }) => name));
  const gone = [...registered.values()].filter(
    ({ name, labels }) => projectFileOf(labels) === project.file && !names.has(name),
  );
  for (const { name } of gone) {
    await berth.remove(name);
    cli.out.note(`${name} is no longer in ${project.file}: stopped and removed`);
  }
}

async function bringUpAll(
  cli: CommandContext,
  berth: Client,
  services: readonly ProjectService[],
  specs: ReadonlyMap<string, RegistrationResult>,
  options: BringUpOptions,
): Promise<number | undefined> {
  const shown = createProgress(cli.out);
  const report = batchReporter(cli, shown);
  const open = new Set<string>();
  let changes = 0;
  const off = cli.onInterrupt(() => {
    shown.stop();
    if (open.size > 0) cli.out.note(startContinuesNote([...open]));
  });
  const outcomes = await runInDependencyOrder(services, async ({ name }) => {
    const spec = specs.get(name);
    if (!spec) return;
    open.add(name);
    shown.begin(name, spec.mustRestart ? 'restarting' : 'starting');
    try {
      const done = await bringUp(berth, spec, options, shown);
      if (!done.isUnchanged) changes += 1;
      report.done(name, done);
    } finally {
      open.delete(name);
      shown.end(name);
    }
  });
  for (const [name, outcome] of outcomes) {
    if ('failed' in outcome) report.failed(name, outcome.failed);
    if ('skipped' in outcome)
      report.failed(name, new CommandError(`not started: it needs ${outcome.skipped}`));
  }
  off();
  const exitCode = report.end();
  if (exitCode === undefined && changes === 0) cli.out.note('Everything is up to date.');
  return exitCode;
}

export const upCommand = defineCommand({
  about:
    'Registers what has changed, starts what is not running in the order of its dependencies, restarts only what must be, and removes what is no longer in the file. Doing it again changes nothing. A daemon is started in the background when none runs.',
  args: [{ syntax: '[names...]', about: 'only these services of the file, and what they need' }],
  options: {
    file: textOption(
      '-f, --file <file>',
      'the project file; default: berth.yaml here or in a folder above',
      'file',
    ),
    timeout: durationOption('--timeout <time>', 'how long each may take to start; default: its own'),
    wait: negatedFlagOption('--no-wait', 'return as soon as the processes are there'),
    start: negatedFlagOption('--no-start', 'register, but start nothing'),
    adopt: flagOption('--adopt', 'take over services that were registered otherwise'),
    attach: flagOption('-a, --attach', 'then follow the logs until Ctrl-C; the services go on'),
  },
  examples: [
    ['berth up', 'everything in berth.yaml'],
    ['berth up web', 'web, and what it needs'],
  ],
  run: async (cli, names, { file, timeout, wait, start, adopt, attach }) => {
    const project = readProject(projectFilePath(file), process.env);
    const services = selectedServices(project, names);
    await ensureDaemon(cli);
    const berth = await cli.client();
    const there = await registeredServices(berth);
    checkClaims(project, services, there, adopt);
    const specs = await registerAll(berth, project.file, services, there);
    if (names.length === 0) await removeStale(cli, berth, project, there);
    if (services.length === 0) cli.out.note(`${project.file} has no services.`);
    const exitCode = await bringUpAll(cli, berth, services, specs, { timeout, wait, start });
    if (!attach || services.length === 0) return exitCode;
    cli.out.note(`Following ${pluralize(services.length, 'log')}; Ctrl-C ends this, not the services.`);
    await followLogs(
      cli,
      berth,
      services.map(({ name }) => name),
      { lines: 10 },
    );
    return exitCode ?? EXIT_CODE.ok;
  },
});
