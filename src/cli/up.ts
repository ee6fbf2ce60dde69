// berth up

import { existsSync } from 'node:fs';
import type { Client } from '../client/connect.ts';
import type { ServiceDetail } from '../client/records.ts';
import { inOrder, withDependencies } from '../project/order.ts';
import { nearest, ProjectError } from '../project/problem.ts';
import { type Project, type ProjectService, readProject } from '../project/read.ts';
import { AGENTS_GROUP } from '../protocol/names.ts';
import { ensureDaemon } from './background.ts';
import type { Cli } from './cli.ts';
import { command, duration, flag, text, unless } from './command.ts';
import { type Done, reporter } from './each.ts';
import { CommandError, EXIT, UsageError } from './exit.ts';
import { followAll } from './logs.ts';
import { type Progress, progress } from './progress.ts';
import { fileOf, projectPath } from './project_file.ts';
import { type Registered, registerService } from './registering.ts';
import { restartOne } from './restart.ts';
import { count } from './show.ts';
import { goesOn, startOne } from './starting.ts';

/** The services that are meant: all, or those named with what they need. Throws a UsageError for an unknown one. */
function selected(project: Project, names: readonly string[]): ProjectService[] {
  const known = project.services.map(({ name }) => name);
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) {
    const near = nearest(unknown, known);
    const hint = near ? `Did you mean ${near}?` : `It has ${known.join(', ') || 'none'}.`;
    throw new UsageError(`${project.file} has no service ${unknown}`, hint);
  }
  if (names.length === 0) return project.services;
  const wanted = withDependencies(project.services, names);
  return project.services.filter(({ name }) => wanted.has(name));
}

/** Every registered service by name, with its spec. */
async function registered(berth: Client): Promise<Map<string, ServiceDetail>> {
  const all = await berth.services();
  const details = await Promise.all(all.map(({ name }) => berth.service(name)));
  return new Map(details.map((detail) => [detail.name, detail]));
}

/** Why a name cannot be this project's; undefined when it can. A file that has gone claims nothing any more. */
function claim(file: string, before: ServiceDetail | undefined, adopt: boolean): string | undefined {
  if (!before) return undefined;
  if (before.group === AGENTS_GROUP) return 'an agent has this name; `berth agent rm` removes it';
  const owner = fileOf(before.labels);
  if (owner === file || adopt) return undefined;
  if (owner === undefined) return 'a service of this name was registered by hand; --adopt takes it over';
  return existsSync(owner)
    ? `${owner} has a service of this name too; rename one, or --adopt takes it over`
    : undefined;
}

function refuseClaimed(
  project: Project,
  services: readonly ProjectService[],
  there: ReadonlyMap<string, ServiceDetail>,
  adopt: boolean,
): void {
  const problems = services.flatMap(({ name, at }) => {
    const why = claim(project.file, there.get(name), adopt);
    return why === undefined ? [] : [{ at, message: `services.${name}: ${why}` }];
  });
  if (problems.length > 0) throw new ProjectError(project.file, '', problems);
}

interface Bringing {
  timeout: number | undefined;
  wait: boolean;
  start: boolean;
}

/** Brings one service to where its registration wants it, and says what that took. */
async function bring(
  berth: Client,
  { detail, change, mustRestart }: Registered,
  { timeout, wait, start }: Bringing,
  shown: Progress,
): Promise<Done> {
  const { name, url } = detail;
  const tell = (about: string): void => shown.update(name, about);
  const isUp = detail.status === 'running' || detail.status === 'starting';
  const isSame = change === 'unchanged';
  const record = { name, change, url };
  if (!start)
    return { record: { ...record, status: detail.status }, text: `is ${change} (${detail.status})`, isSame };
  if (mustRestart) {
    const done = await restartOne(berth, name, tell, { timeout });
    return { record: { ...record, ...done.record, restarted: true }, text: `has changed and ${done.text}` };
  }
  const done = await startOne(berth, name, tell, { timeout, wait });
  const again = isUp && change === 'updated' ? ', with a new registration that needs no restart' : '';
  return {
    record: { ...record, ...done.record },
    text: done.text + again,
    isSame: (done.isSame ?? false) && isSame,
  };
}

/** Registers all before anything starts, so that a wrong registration starts nothing. */
async function registerAll(
  berth: Client,
  file: string,
  services: readonly ProjectService[],
  there: ReadonlyMap<string, ServiceDetail>,
): Promise<Map<string, Registered>> {
  const rows = await Promise.all(
    services.map(async (service): Promise<[string, Registered]> => {
      try {
        return [service.name, await registerService(berth, file, service, there.get(service.name))];
      } catch (error) {
        const message = `${service.name} cannot be registered: ${error instanceof Error ? error.message : String(error)}`;
        throw new CommandError(message, 'Nothing was started.');
      }
    }),
  );
  return new Map(rows);
}

/** Services that this file once had and has no longer. */
async function removeGone(
  cli: Cli,
  berth: Client,
  project: Project,
  there: ReadonlyMap<string, ServiceDetail>,
): Promise<void> {
  const names = new Set(project.services.map(({ name }) => name));
  const gone = [...there.values()].filter(
    ({ name, labels }) => fileOf(labels) === project.file && !names.has(name),
  );
  for (const { name } of gone) {
    await berth.remove(name);
    cli.out.note(`${name} is no longer in ${project.file}: stopped and removed`);
  }
}

async function bringAll(
  cli: Cli,
  berth: Client,
  services: readonly ProjectService[],
  specs: ReadonlyMap<string, Registered>,
  how: Bringing,
): Promise<number | undefined> {
  const shown = progress(cli.out);
  const report = reporter(cli, shown);
  const open = new Set<string>();
  let changes = 0;
  const off = cli.onInterrupt(() => {
    shown.stop();
    if (open.size > 0) cli.out.note(goesOn([...open]));
  });
  const outcomes = await inOrder(services, async ({ name }) => {
    const spec = specs.get(name);
    if (!spec) return;
    open.add(name);
    shown.begin(name, spec.mustRestart ? 'restarting' : 'starting');
    try {
      const done = await bring(berth, spec, how, shown);
      if (!done.isSame) changes += 1;
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

export const up = command({
  about:
    'Registers what has changed, starts what is not running in the order of its dependencies, restarts only what must be, and removes what is no longer in the file. Doing it again changes nothing. A daemon is started in the background when none runs.',
  args: [{ syntax: '[names...]', about: 'only these services of the file, and what they need' }],
  options: {
    file: text(
      '-f, --file <file>',
      'the project file; default: berth.yaml here or in a folder above',
      'file',
    ),
    timeout: duration('--timeout <time>', 'how long each may take to start; default: its own'),
    wait: unless('--no-wait', 'return as soon as the processes are there'),
    start: unless('--no-start', 'register, but start nothing'),
    adopt: flag('--adopt', 'take over services that were registered otherwise'),
    attach: flag('-a, --attach', 'then follow the logs until Ctrl-C; the services go on'),
  },
  examples: [
    ['berth up', 'everything in berth.yaml'],
    ['berth up web', 'web, and what it needs'],
  ],
  run: async (cli, names, { file, timeout, wait, start, adopt, attach }) => {
    const project = readProject(projectPath(file), process.env);
    const services = selected(project, names);
    await ensureDaemon(cli);
    const berth = await cli.berth();
    const there = await registered(berth);
    refuseClaimed(project, services, there, adopt);
    const specs = await registerAll(berth, project.file, services, there);
    if (names.length === 0) await removeGone(cli, berth, project, there);
    if (services.length === 0) cli.out.note(`${project.file} has no services.`);
    const exitCode = await bringAll(cli, berth, services, specs, { timeout, wait, start });
    if (!attach || services.length === 0) return exitCode;
    cli.out.note(`Following ${count(services.length, 'log')}; Ctrl-C ends this, not the services.`);
    await followAll(
      cli,
      berth,
      services.map(({ name }) => name),
      { lines: 10 },
    );
    return exitCode ?? EXIT.ok;
  },
});
