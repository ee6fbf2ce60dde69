// The name of a folder's project: docs/reference.md "Stacks".
import { basename, dirname } from 'node:path';
import { folderInMain, workTreeOf } from '../../adapters/git_worktree.ts';
import { parseYamlNodes } from '../../adapters/yaml.ts';
import { realProjectFile } from '../../project/find_project_file.ts';
import { importableFiles } from '../../project/importers.ts';
import { interpolate } from '../../project/interpolate.ts';
import { readDotenv, readEachOnce } from '../../project/project_environment.ts';
import { projectName } from '../../protocol/stacks.ts';
import { readTextInput } from '../../settings/state_files.ts';

const MAX_DEPTH = 32;

/** The project in `folder` whose file gives the name `given`; null: it gives none. */
export function projectNameIn(folder: string, given: string | null): string {
  if (given !== null) return given;
  const tree = workTreeOf(folder);
  return projectName(basename(tree ? folderInMain(folder, tree) : folder));
}

/** The folder of the project that `up` makes of another tool's file in `folder`; undefined: there is none. */
export function folderOfOtherTool(folder: string): string | undefined {
  const [file] = importableFiles(folder);
  return file === undefined ? undefined : dirname(realProjectFile(file));
}

/** Whether `folder` is in a linked worktree of git. */
export const isInLinkedTree = (folder: string): boolean => (workTreeOf(folder)?.mainRoot ?? null) !== null;

/**
 * The name of the project with the berth.yaml `file`. Reads nothing else of it, so that a fault in a service
 * does not matter. Rejects if the file cannot be read or is no YAML.
 */
export async function projectNameOfFile(file: string): Promise<string> {
  const folder = dirname(file);
  const tree = parseYamlNodes(await readTextInput(file), MAX_DEPTH);
  const name = tree.kind === 'map' ? tree.rows.find(({ key }) => key === 'name')?.value : undefined;
  if (name?.kind !== 'scalar' || typeof name.value !== 'string') return projectNameIn(folder, null);
  const dotenv = await readDotenv(folder, { readInput: readEachOnce(), shellEnv: process.env });
  return projectNameIn(
    folder,
    interpolate(name.value, (key) => process.env[key] ?? dotenv.get(key)),
  );
}
