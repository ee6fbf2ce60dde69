// Finds the project file of a command, and marks services with the file they came from.
import { existsSync, realpathSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { findProjectFile } from '../../project/find_project_file.ts';
import { SERVICE } from '../../settings/limits.ts';
import { UsageError } from './exit_codes.ts';

const PROJECT_LABEL_PREFIX = 'project=';
/** Marks a registration that is newer than the running process but needs no restart. */
export const NO_RESTART_LABEL = 'project-calm';

const HINT =
  '`berth init` writes one; `berth import -w` makes one from a Procfile, package.json or compose file; ' +
  '-f names one.';

/** The project file that is named, or the nearest in this folder and those above. Throws a UsageError. */
export function projectFilePath(named: string | undefined): string {
  if (named !== undefined) return canonical(named);
  const found = findProjectFile(process.cwd());
  if (found === undefined) throw new UsageError('there is no berth.yaml in this folder or above it', HINT);
  return canonical(found);
}

/**
 * Absolute and without symbolic links, as far as it exists: `down` must find the services of a deleted file.
 */
function canonical(path: string): string {
  const full = resolve(path);
  if (existsSync(full)) return realpathSync(full);
  const folder = dirname(full);
  return existsSync(folder) ? join(realpathSync(folder), full.slice(folder.length)) : full;
}

/** The label that names the file a service came from. Throws a UsageError if the path is too long. */
export function projectLabel(file: string): string {
  const label = PROJECT_LABEL_PREFIX + file;
  if (label.length <= SERVICE.maxLabelLength) return label;
  throw new UsageError(
    `the path of ${file} is too long`,
    `A project file's path has at most ${SERVICE.maxLabelLength - PROJECT_LABEL_PREFIX.length} characters.`,
  );
}

/** The project file that a service came from; undefined if it came from none. */
export const projectFileOf = (labels: readonly string[]): string | undefined =>
  labels.find((label) => label.startsWith(PROJECT_LABEL_PREFIX))?.slice(PROJECT_LABEL_PREFIX.length);
