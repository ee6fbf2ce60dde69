// berth import
import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { countText } from '../../presentation/format.ts';
import { IMPORTERS, importableFiles } from '../../project/importers.ts';
import { writeProject } from '../../project/write_project.ts';
import { defineCommand, flagOption } from '../kit/command.ts';
import { convertToProject } from '../kit/convert_project.ts';
import { CommandError, UsageError } from '../kit/exit_codes.ts';
import { relativePath } from '../kit/format.ts';

/** The one file of `folder` to import. Throws a UsageError when there is none. */
function firstImportable(folder: string): string {
  const [found] = importableFiles(folder);
  if (found !== undefined) return found;
  const names = IMPORTERS.flatMap(({ files }) => files).join(', ');
  throw new UsageError('there is nothing to import in this folder', `Known files: ${names}.`);
}

export const importCommand = defineCommand({
  about:
    'Prints the project file, or with -w writes it beside the source file. Warns about everything it ' +
    'cannot carry over.',
  args: [
    {
      syntax: '[file]',
      about: 'the source file; default: the first known file of this folder',
      completes: 'file',
    },
  ],
  options: {
    write: flagOption('-w, --write', 'write berth.yaml'),
    force: flagOption('--force', 'overwrite an existing berth.yaml'),
  },
  examples: [['berth import -w && berth up', 'from a Procfile to running services']],
  run: async (context, [file], { write, force }) => {
    const path = resolve(file ?? firstImportable(process.cwd()));
    const { text, services, notes, kind } = await convertToProject(path);
    for (const note of notes) context.out.warn(note);
    const target = join(dirname(path), 'berth.yaml');
    if (!write) {
      if (context.out.isData) context.out.record({ from: path, services, notes }, () => text);
      else context.out.raw(text);
      return;
    }
    if (existsSync(target) && !force)
      throw new CommandError(`${relativePath(target)} is there already`, '--force overwrites it.');
    writeProject(target, text);
    context.out.record(
      { from: path, file: target, services, notes },
      () =>
        `${relativePath(target)} has ${countText(services.length, 'service')} from the ${kind}; ` +
        '`berth up` brings them up',
    );
  },
});
