// Converts another tool's file to the text of a berth.yaml.
import { basename } from 'node:path';
import { YamlPositionError } from '../../adapters/yaml.ts';
import { SCHEMA_LINE, stringifyProject } from '../../project/imported_project.ts';
import { IMPORTERS, importProject } from '../../project/importers.ts';
import { CommandError, UsageError } from './exit_codes.ts';
import { sanitizeLine } from './sanitize.ts';

/** The file has no service; the hint says what it has instead. */
export class NothingToRunError extends CommandError {}

/**
 * Converts the file `path` to a project file; `notes` name what could not be converted. Throws a
 * NothingToRunError or UsageError.
 */
export async function convertToProject(path: string) {
  const known = IMPORTERS.flatMap(({ files }) => files).join(', ');
  let imported: Awaited<ReturnType<typeof importProject>>;
  try {
    imported = await importProject(path);
  } catch (error) {
    if (error instanceof YamlPositionError)
      throw new UsageError(`${path}:${error.at.line}:${error.at.column}: ${error.message}`);
    throw new UsageError(`${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (!imported)
    throw new UsageError(`${basename(path)} is no file that can be imported`, `Known files: ${known}.`);
  const { services, notes, kind } = imported;
  if (services.length === 0) throw new NothingToRunError(`${path} has nothing to run`, notes.join('\n'));
  const head = [SCHEMA_LINE, `# Made from ${sanitizeLine(basename(path))} by \`berth import\`.`];
  return { text: stringifyProject(services, head), services, notes, kind };
}
