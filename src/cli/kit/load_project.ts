// Finds and reads the project file of a command.
import { existsSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { findProjectFile, realProjectFile } from '../../project/find_project_file.ts';
import { importableFiles, importerOf } from '../../project/importers.ts';
import { type Project, parseProject, readProject } from '../../project/read_project.ts';
import { isNamelessPipe, readTextInput } from '../../settings/state_files.ts';
import type { CommandContext } from './context.ts';
import { convertToProject } from './convert_project.ts';
import { UsageError } from './exit_codes.ts';
import { relativePath } from './format.ts';
import type { ProjectPlace } from './named_stack.ts';
import { projectNameIn, projectNameOfFile } from './project_name.ts';

const HINT =
  '`berth init` writes one; `berth import -w` makes one from a Procfile, package.json or compose file; ' +
  '-f names one.';

/**
 * The named project file, or the nearest one in this folder and the folders above it; if there is none,
 * another tool's file in this folder. Throws a UsageError.
 */
export function projectFilePath(named: string | undefined): string {
  const path = named === undefined ? projectFileHere() : canonical(named);
  if (path !== undefined) return path;
  const [other] = findProjectFile(process.cwd()).ignored;
  if (other !== undefined)
    throw new UsageError(
      'there is no berth.yaml of yours in this folder or above it',
      `${other} belongs to another user, who could change what it runs; \`-f ${other}\` uses it.`,
    );
  throw new UsageError('there is no berth.yaml in this folder or above it', HINT);
}

/** The nearest project file, as for `projectFilePath`; undefined if there is none. */
export function projectFileHere(): string | undefined {
  const { found = importableFiles(process.cwd())[0] } = findProjectFile(process.cwd());
  return found === undefined ? undefined : canonical(found);
}

/**
 * Its `realProjectFile`, because `down` must find the services of a deleted file. A pipe counts as a file in
 * this folder.
 */
function canonical(path: string): string {
  const full = resolve(path);
  if (isNamelessPipe(full)) return join(process.cwd(), basename(full));
  // A file that was opened for the command, such as /dev/stdin.
  if (/^\/(dev|proc)\//.test(full) && existsSync(full)) return realpathSync(full);
  return realProjectFile(full);
}

/** The place of the project of `file`. The names in files of other tools do not count. */
export function projectPlace(file: string): ProjectPlace {
  const folder = dirname(file);
  const projectName = async () => (importerOf(file) ? projectNameIn(folder, null) : projectNameOfFile(file));
  return { folder, projectName };
}

/**
 * Loads the named project file, or the nearest one. Converts another tool's file in memory, and notes what
 * the conversion left out. Throws a ProjectError, CommandError or UsageError.
 */
export async function loadProject(context: CommandContext, named: string | undefined): Promise<Project> {
  const path = projectFilePath(named);
  if (named !== undefined && isNamelessPipe(named))
    return parseProject(await readTextInput(named), path, process.env);
  if (!importerOf(path) || !existsSync(path)) return readProject(path, process.env);
  const { text, notes } = await convertToProject(path);
  context.out.note(`Using ${relativePath(path)}; \`berth import -w\` makes a berth.yaml of it.`);
  for (const note of notes) context.out.warn(note);
  return parseProject(text, path, process.env, true);
}

/**
 * The names of the services in the named project file, or the nearest one. Throws a ProjectError,
 * CommandError or UsageError, also for a pipe, which only the command itself reads.
 */
export async function projectServiceNames(named: string | undefined): Promise<string[]> {
  const path = projectFilePath(named);
  const isOther = importerOf(path) && existsSync(path);
  const { services } = await (isOther ? convertToProject(path) : readProject(path, process.env));
  return services.map(({ name }) => name);
}
