// berth down
import { existsSync, realpathSync } from 'node:fs';
import { dirname, sep } from 'node:path';
import type { Client } from '../../client/create_client.ts';
import type { ServiceDetail } from '../../client/records.ts';
import { importerOf } from '../../project/importers.ts';
import { reverseDependencies, runInDependencyOrder } from '../../protocol/dependency_order.ts';
import { isHook } from '../../protocol/hooks.ts';
import { type BatchResult, batchReporter } from '../kit/batch.ts';
import { defineCommand, durationOption, flagOption, textOption } from '../kit/command.ts';
import { CommandError } from '../kit/exit_codes.ts';
import { describeStop, relativePath } from '../kit/format.ts';
import { noteFormerStacks } from '../kit/former_stacks.ts';
import { projectFileHere, projectFilePath, projectPlace } from '../kit/load_project.ts';
import { givenName } from '../kit/named_stack.ts';
import { createProgress } from '../kit/progress.ts';
import { projectFileOf } from '../kit/project_file.ts';
import { detailsOf, unlessRemoved } from '../kit/removed_meanwhile.ts';
import { chosenStack, STACK_OPTIONS, type StackChoice, scopeOf } from '../kit/stack_scope.ts';
import { untilDone } from '../kit/standard_streams.ts';

/** The services that the command is about: those of a stack that came from these project files. */
interface Extent {
  /** null: in no stack. */
  stack: string | null;
  /** For people. */
  about: string;
  /** The file whose former stacks are named; null: a stack was chosen. */
  path: string | null;
  has(file: string): boolean;
}

/**
 * The stack that is up in this folder, or in the nearest one above it that has any: `usual`, that of another
 * tool's file here, if it has services; otherwise the only one that has. Undefined if none has. Throws a
 * CommandError that names them if several have.
 */
async function stackUpHere(client: Client, usual: string | null): Promise<string | undefined> {
  const here = realpathSync(process.cwd()) + sep;
  const above = (await client.stacks()).filter(
    ({ path, services }) => path !== null && here.startsWith(path + sep) && services > 0,
  );
  const nearest = Math.max(...above.map(({ path }) => path?.length ?? 0));
  const used = above.filter(({ path }) => path?.length === nearest);
  const names = used.map(({ name }) => name);
  if (usual !== null && names.includes(usual)) return usual;
  if (names.length < 2) return names[0];
  throw new CommandError(
    `several stacks of this folder are up: ${names.join(', ')}`,
    `\`berth down --stack ${names[0]}\` ends one of them.`,
  );
}

/**
 * The extent for the options. A chosen stack may be that of another folder, with a file of its own. Throws a
 * UsageError when no stack is chosen and none belongs to this folder.
 */
async function extentOf(client: Client, file: string | undefined, choice: StackChoice): Promise<Extent> {
  if (file === undefined && givenName(choice) !== undefined) {
    const stack = await chosenStack(client, { ...choice, ends: true });
    return { stack, about: `the stack ${stack}`, path: null, has: () => true };
  }
  const path = file === undefined ? projectFileHere() : projectFilePath(file);
  const place = path === undefined ? undefined : projectPlace(path);
  const usual = await chosenStack(client, { ...choice, isOwn: true, ...(place && { place }) });
  // Without a berth.yaml here, what is up came from a file named with -f, or from one that is gone, as with
  // another branch.
  const isOpen = file === undefined && (path === undefined || importerOf(path) !== undefined);
  const upHere = isOpen ? await stackUpHere(client, path === undefined ? null : usual) : undefined;
  const stack = upHere ?? usual;
  // Throws what says so.
  if (path === undefined && stack === null) projectFilePath(undefined);
  const has = (one: string): boolean => one === path || upHere !== undefined || (isOpen && !existsSync(one));
  return { stack, about: path ?? `the stack ${stack}`, path: path ?? null, has };
}

/** The message that nothing of `path` is up. It names the other files of its folder that are. */
function nothingUp({ about, path }: Extent, all: readonly ServiceDetail[]): string {
  const owners = new Set(all.flatMap(({ labels }) => projectFileOf(labels) ?? []));
  const beside = [...owners].filter((owner) => path !== null && dirname(owner) === dirname(path));
  const nothing = `Nothing of ${about} is up.`;
  if (beside.length === 0) return nothing;
  return `${nothing} ${beside.map((one) => `\`berth down -f ${relativePath(one)}\``).join(' or ')} ends what is.`;
}

/** The result for a service that another command removed first. */
const goneMeanwhile = (name: string): BatchResult => ({
  record: { name, removed: true },
  text: 'was removed by another command meanwhile',
  isUnchanged: true,
});

export const downCommand = defineCommand({
  about:
    'Stops the services of the project file in reverse dependency order and removes them with their logs. ' +
    'Works without the file too, and for another stack. Other services and the daemon keep running.',
  args: [
    { syntax: '[names...]', about: 'the services; default: all of the project file', completes: 'service' },
  ],
  options: {
    file: textOption(
      '-f, --file <file>',
      'project file; default: berth.yaml here or in a folder above',
      'file',
    ),
    grace: durationOption('--grace <time>', 'time each service has to end; default: its own'),
    keep: flagOption('--keep', 'only stop them: they keep their registrations, logs and URLs'),
    ...STACK_OPTIONS,
  },
  run: async (context, names, { file, grace, keep, ...choice }) => {
    const client = await context.client();
    const extent = await extentOf(client, file, choice);
    const { about, path, stack } = extent;
    const all = await client.services();
    const { full, label } = scopeOf(stack, all);
    const wanted = names.map(full);
    const details = await detailsOf(
      client,
      all.map(({ name }) => name),
    );
    const ours = details.filter((one) => {
      const from = projectFileOf(one.labels);
      if (from === undefined || !extent.has(from) || isHook(one.service)) return false;
      // Earlier versions registered services without a stack.
      const isInStack = one.stack === stack || (one.stack === null && from === path);
      return isInStack && (names.length === 0 || wanted.includes(one.name));
    });
    const missing = names.find((name) => !ours.some((service) => service.name === full(name)));
    if (missing !== undefined) throw new CommandError(`${missing} is no service that came from ${about}`);
    // From here on a reader that leaves must not leave some services running.
    return untilDone(async () => {
      const progress = createProgress(context.out);
      const report = batchReporter(context, progress, { label });
      const removeInterrupt = context.onInterrupt(() => progress.stop());
      const outcomes = await runInDependencyOrder(reverseDependencies(ours), async ({ name }) => {
        progress.begin(label(name), 'stopping');
        try {
          const stopped = await unlessRemoved(client.stop(name, { grace }));
          if (!stopped) return report.done(name, goneMeanwhile(name));
          if (!keep) await unlessRemoved(client.remove(name));
          const text = keep
            ? describeStop(stopped)
            : `${describeStop(stopped).replace('stopped', 'stopped and removed')}`;
          report.done(name, { record: { ...stopped, removed: !keep }, text });
        } finally {
          progress.end(label(name));
        }
      });
      for (const [name, outcome] of outcomes) {
        if ('failed' in outcome) report.failed(name, outcome.failed);
        if ('skipped' in outcome)
          report.failed(
            name,
            new CommandError(`not stopped: ${label(outcome.skipped)} needs it and still runs`),
          );
      }
      removeInterrupt();
      if (ours.length === 0) context.out.note(nothingUp(extent, details));
      if (path !== null) await noteFormerStacks(context, client, { file: path, stack }, details);
      return report.end();
    });
  },
});
