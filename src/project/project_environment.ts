// The environment of a project's services: their own lists and files, and the `.env` that supplies the rest.
import { statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { YamlPosition } from '../adapters/yaml.ts';
import { ENV_KEY_PATTERN } from '../protocol/names.ts';
import { type EnvLookup, parseEnvText } from '../settings/env_text.ts';
import { SERVICE } from '../settings/limits.ts';
import { readTextInput } from '../settings/state_files.ts';
import { ProjectError, type ProjectProblem } from './project_error.ts';
import type { ProjectServiceShape } from './project_shape.ts';

export type ShellEnvironment = Readonly<Record<string, string | undefined>>;

/** Reads a file of the project. Throws as `readTextInput` does. */
export type ProjectInput = (path: string) => Promise<string>;

/** Reads each file once, because a FIFO gives its text only once. */
export function readEachOnce(): ProjectInput {
  const texts = new Map<string, Promise<string>>();
  return (path) => {
    const { dev, ino } = statSync(path);
    const key = `${dev}:${ino}`;
    const text = texts.get(key) ?? readTextInput(path);
    texts.set(key, text);
    return text;
  };
}

/** The context of checking one file, with the problems found so far. */
export interface ProjectCheck {
  folder: string;
  shellEnv: ShellEnvironment;
  /** A variable of the shell, or else of the `.env`. */
  variable: (name: string) => string | undefined;
  positionAt: (...path: (string | number)[]) => YamlPosition;
  problems: ProjectProblem[];
  readInput: ProjectInput;
}

/** Parses entries `KEY=value`, or `KEY` alone, whose value comes from the shell and is null here. */
function parseEnvList(
  check: ProjectCheck,
  name: string,
  entries: readonly string[],
): [string, string | null][] {
  return entries.flatMap((entry, index): [string, string | null][] => {
    const equals = entry.indexOf('=');
    const key = equals < 0 ? entry : entry.slice(0, equals);
    if (ENV_KEY_PATTERN.test(key)) return [[key, equals < 0 ? null : entry.slice(equals + 1)]];
    const message = `services.${name}.env: must be KEY=value, not ${JSON.stringify(entry)}`;
    check.problems.push({ at: check.positionAt('services', name, 'env', index), message });
    return [];
  });
}

async function readEnvFile(
  check: ProjectCheck,
  name: string,
  file: string,
  { at, lookup }: { at: YamlPosition; lookup: EnvLookup },
): Promise<[string, string][]> {
  try {
    return parseEnvText(await check.readInput(resolve(check.folder, file)), lookup);
  } catch (error) {
    const why =
      (error as NodeJS.ErrnoException).code === 'ENOENT'
        ? ' does not exist'
        : `: ${(error as Error).message}`;
    check.problems.push({ at, message: `services.${name}.env_file: ${file}${why}` });
    return [];
  }
}

/** The variables of a service: its files first, then its own. Adds their problems to `check`. */
export async function serviceEnv(
  check: ProjectCheck,
  name: string,
  service: ProjectServiceShape,
): Promise<[string, string][]> {
  const env = new Map<string, string>();
  const files = typeof service.env_file === 'string' ? [service.env_file] : (service.env_file ?? []);
  const lookup: EnvLookup = (key, own) => own ?? env.get(key) ?? check.variable(key);
  for (const [index, file] of files.entries()) {
    const at = check.positionAt('services', name, 'env_file', index);
    for (const [key, value] of await readEnvFile(check, name, file, { at, lookup })) env.set(key, value);
  }
  const own = Array.isArray(service.env)
    ? parseEnvList(check, name, service.env)
    : Object.entries(service.env ?? {});
  for (const [key, value] of own) {
    const text = value === null ? check.shellEnv[key] : String(value);
    if (text !== undefined) env.set(key, text);
  }
  for (const key of env.keys()) {
    if (!key.startsWith('BERTH_')) continue;
    const message = `services.${name}.env: ${key}: names that begin with BERTH_ are the daemon's`;
    check.problems.push({ at: check.positionAt('services', name, 'env', key), message });
  }
  if (env.size > SERVICE.maxEnvEntries) {
    const message =
      `services.${name}.env: has ${env.size} variables; ` + `at most ${SERVICE.maxEnvEntries} are possible`;
    check.problems.push({ at: check.positionAt('services', name), message });
  }
  return [...env];
}

/**
 * The variables of the `.env` in `folder`. Those of the shell win, also within it. Throws a ProjectError that
 * names it.
 */
export async function readDotenv(
  folder: string,
  { readInput, shellEnv }: Pick<ProjectCheck, 'readInput' | 'shellEnv'>,
): Promise<ReadonlyMap<string, string>> {
  const path = join(folder, '.env');
  try {
    if (!statSync(path, { throwIfNoEntry: false })) return new Map();
    return new Map(parseEnvText(await readInput(path), (key, own) => shellEnv[key] ?? own));
  } catch (error) {
    const message = `cannot be read: ${(error as Error).message}`;
    throw new ProjectError(path, '', [{ at: { line: 1, column: 1 }, message }]);
  }
}
