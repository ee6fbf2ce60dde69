// Marks services with the project file they came from.
import { dirname } from 'node:path';
import { importerOf } from '../../project/importers.ts';
import { SERVICE } from '../../settings/limits.ts';
import { UsageError } from './exit_codes.ts';

const PROJECT_LABEL_PREFIX = 'project=';
/** Marks a registration that is newer than the running process but needs no restart. */
export const NO_RESTART_LABEL = 'project-calm';
const RESTART_LABEL_PREFIX = 'project-restart=';

/** Marks a registration whose process must be restarted, although only what it refers to has changed. */
export const restartLabel = (pid: number): string => RESTART_LABEL_PREFIX + pid;

/** Whether the label marks a registration, as those above do. */
export const isMark = (label: string): boolean =>
  label === NO_RESTART_LABEL || label.startsWith(RESTART_LABEL_PREFIX);

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

/**
 * Whether the services of `owner`, another tool's file, now belong to `file`: someone added a `berth.yaml`
 * to its folder after `up` had used `owner`.
 */
export const isReplacedBy = (file: string, owner: string): boolean =>
  dirname(owner) === dirname(file) && importerOf(owner) !== undefined && importerOf(file) === undefined;
