// berth import
import { existsSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { localUrl } from '../../adapters/url_host.ts';
import { YamlPositionError } from '../../adapters/yaml.ts';
import { runningDaemon } from '../../client/local_daemon.ts';
import { schemaLine, stringifyProject } from '../../project/imported_project.ts';
import { IMPORTERS, importableFiles, importProject } from '../../project/importers.ts';
import { defineCommand, flagOption } from '../kit/command.ts';
import type { CommandContext } from '../kit/context.ts';
import { CommandError, UsageError } from '../kit/exit_codes.ts';
import { pluralize, relativePath } from '../kit/format.ts';

/** Where the daemon serves the schema: where it runs, or where it would. */
export async function schemaServer(cli: CommandContext): Promise<string> {
  const { stateDir, settings } = await cli.local();
  return localUrl(settings.bind, runningDaemon(stateDir)?.port ?? settings.port);
}

/** The project file made from `path`, with what could not be carried over. Throws a CommandError or UsageError. */
export async function convertToProject(cli: CommandContext, path: string) {
  const known = IMPORTERS.flatMap(({ files }) => files).join(', ');
  let imported: ReturnType<typeof importProject>;
  try {
    imported = importProject(path);
  } catch (error) {
    if (error instanceof YamlPositionError)
      throw new UsageError(`${path}:${error.at.line}:${error.at.column}: ${error.message}`);
    throw new UsageError(`${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (!imported)
    throw new UsageError(`${basename(path)} is no file that can be imported`, `Known are ${known}.`);
  const { services, notes, kind } = imported;
  if (services.length === 0) throw new CommandError(`${path} has nothing to run`, notes.join('\n'));
  const head = [schemaLine(await schemaServer(cli)), `# Made from ${basename(path)} by \`berth import\`.`];
  return { text: stringifyProject(services, head), services, notes, kind };
}

/** The one file of `folder` to import. Throws a UsageError when there is none. */
function firstImportable(folder: string): string {
  const [found] = importableFiles(folder);
  if (found !== undefined) return found;
  const names = IMPORTERS.flatMap(({ files }) => files).join(', ');
  throw new UsageError('there is nothing to import in this folder', `Looked for ${names}.`);
}

export const importCommand = defineCommand({
  about:
    'Prints the project file; -w writes it beside the file it was made from. What cannot be carried over is said on stderr.',
  args: [{ syntax: '[file]', about: 'the file; default: what is found in this folder', completes: 'file' }],
  options: {
    write: flagOption('-w, --write', 'write berth.yaml'),
    force: flagOption('--force', 'write it over one that is there'),
  },
  examples: [['berth import -w && berth up', 'from a Procfile to running services']],
  run: async (cli, [file], { write, force }) => {
    const path = resolve(file ?? firstImportable(process.cwd()));
    const { text, services, notes, kind } = await convertToProject(cli, path);
    for (const note of notes) cli.out.warn(note);
    const target = join(dirname(path), 'berth.yaml');
    if (!write) {
      if (cli.out.isData) cli.out.record({ from: path, services, notes }, () => text);
      else cli.out.raw(text);
      return;
    }
    if (existsSync(target) && !force)
      throw new CommandError(`${relativePath(target)} is there already`, '--force writes over it.');
    writeFileSync(target, text);
    cli.out.record(
      { from: path, file: target, services, notes },
      () =>
        `${relativePath(target)} has ${pluralize(services.length, 'service')} from the ${kind}; \`berth up\` brings them up`,
    );
  },
});
