// Reads berth.yaml into services. Finds every problem of the file before any of it is used.
import { statSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { regexFault } from '../adapters/linear_regex.ts';
import { parseYamlNodes, YamlPositionError } from '../adapters/yaml.ts';
import { type Dependency, dependencyText } from '../protocol/dependency_order.ts';
import { HOOKS } from '../protocol/hooks.ts';
import type { ScheduleSpec } from '../protocol/schedules.ts';
import type { WatchSpec } from '../protocol/service.ts';
import { PLACEHOLDER } from '../protocol/stacks.ts';
import { WATCH } from '../settings/limits.ts';
import { readTextInput } from '../settings/state_files.ts';
import { checkReferences } from './check_references.ts';
import { interpolateNode, positionOfPath, problemsOfIssues } from './document_values.ts';
import { realProjectFile } from './find_project_file.ts';
import {
  type ProjectCheck,
  readDotenv,
  readEachOnce,
  type ShellEnvironment,
  serviceEnv,
} from './project_environment.ts';
import { ProjectError, type ProjectProblem } from './project_error.ts';
import type { ProjectService } from './project_service.ts';
import { PROJECT_SHAPE, type ProjectServiceShape } from './project_shape.ts';
import { PATTERN_MESSAGE } from './run_shapes.ts';

export interface Project {
  /** Absolute and without symbolic links; identifies the project. */
  file: string;
  /** null: the name of the folder. */
  name: string | null;
  /** It was made of another tool's file, `file`, so that positions mean nothing. */
  isConverted: boolean;
  /** Whose environment services start from. */
  environment: 'shell' | 'daemon';
  services: ProjectService[];
  /** The tasks that create and remove what a stack needs. */
  hooks: ProjectService[];
}

const MAX_DEPTH = 32;

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

function serviceCwd(check: ProjectCheck, name: string, service: ProjectServiceShape): string {
  const cwd = resolve(check.folder, service.cwd ?? '.');
  const isKnown = cwd.search(PLACEHOLDER) < 0;
  if (isKnown && !isFolder(cwd)) {
    const message = `services.${name}.cwd: there is no folder ${cwd}`;
    check.problems.push({ at: check.positionAt('services', name, 'cwd'), message });
  }
  return cwd;
}

const DEFAULT_PORT = { service: 'auto', task: null } as const;

/** A list of names and of names with a condition, or a map of names to conditions. `ready` is the default. */
function dependenciesOf(given: ProjectServiceShape['depends_on'] = []): Dependency[] {
  const rows = Array.isArray(given)
    ? given.map((one) => (typeof one === 'string' ? { name: one } : one))
    : Object.entries(given).map(([name, one]) => ({ ...one, name }));
  const all = rows.map(({ name, condition = 'ready' }): Dependency => {
    return condition === 'ready' ? name : { name, condition };
  });
  return [...new Map(all.map((one) => [dependencyText(one), one])).values()];
}

function scheduleOf({ schedule }: ProjectServiceShape): ScheduleSpec | null {
  if (schedule === undefined) return null;
  if (typeof schedule === 'string') return { cron: schedule, timezone: null, catchUp: false };
  const { cron, timezone = null, catch_up: catchUp = false } = schedule;
  return { cron, timezone, catchUp };
}

function portOf({
  kind = 'service',
  port = DEFAULT_PORT[kind],
}: ProjectServiceShape): Pick<ProjectService, 'port' | 'isPortFixed'> {
  return port !== null && typeof port === 'object'
    ? { port: port.fixed, isPortFixed: true }
    : { port, isPortFixed: false };
}

function watchOf({ watch }: ProjectServiceShape): WatchSpec | null {
  if (!watch) return null;
  const { paths, ignore = [], debounce_ms: debounceMs = WATCH.defaultDebounceMs } = watch;
  const { action = 'restart', cascade = false } = watch;
  return { paths, ignore, debounceMs, action, cascade };
}

async function projectServiceOf(
  check: ProjectCheck,
  name: string,
  service: ProjectServiceShape,
): Promise<ProjectService> {
  const kind = service.kind ?? 'service';
  return {
    name,
    at: check.positionAt('services', name),
    cmd: service.cmd,
    cwd: serviceCwd(check, name, service),
    ...portOf(service),
    ready: service.ready ?? null,
    live: service.live ?? null,
    env: await serviceEnv(check, name, service),
    dependsOn: dependenciesOf(service.depends_on),
    group: service.group ?? null,
    restart: service.restart,
    limits: service.limits ?? null,
    autostart: service.autostart ?? false,
    sleep: service.sleep === undefined ? null : { afterMinutes: service.sleep },
    startTimeout: service.start_timeout,
    stop: service.stop?.command ?? null,
    stopSignal: service.stop?.signal,
    stopGrace: service.stop?.grace,
    stack: null,
    baseEnv: null,
    watch: watchOf(service),
    kind,
    inputs: service.inputs ?? [],
    schedule: scheduleOf(service),
    protocol: service.protocol,
  };
}

async function hooksOf(
  check: ProjectCheck,
  { create, remove }: { [K in keyof typeof HOOKS]?: string | undefined },
) {
  const rows = [
    [HOOKS.create, create],
    [HOOKS.remove, remove],
  ] as const;
  return Promise.all(
    rows.flatMap(([name, cmd]) => (cmd ? [projectServiceOf(check, name, { cmd, kind: 'task' })] : [])),
  );
}

/** The expressions in the checks of a service, each with its key. */
const patternsOf = ({ ready, live }: ProjectService): [path: string[], pattern: string][] =>
  Object.entries({ ready, live }).flatMap(([key, check]): [string[], string][] => {
    if (check === null || typeof check === 'string') return [];
    if ('log' in check) return [[[key, 'log'], check.log]];
    return 'body' in check && check.body !== undefined ? [[[key, 'body'], check.body]] : [];
  });

/** Checks the expressions of checks. Loads the package for them only for files that have any. */
async function checkPatterns(check: ProjectCheck, services: readonly ProjectService[]): Promise<void> {
  for (const service of services) {
    for (const [keys, pattern] of patternsOf(service)) {
      const reason = await regexFault(pattern);
      const path = ['services', service.name, ...keys];
      const message = `${path.join('.')}: ${PATTERN_MESSAGE}: ${reason}`;
      if (reason !== null) check.problems.push({ at: check.positionAt(...path), message });
    }
  }
}

/**
 * The project defined by `text`, as if it were in `file`. `shellEnv` fills in `${NAME}`; a `.env` beside the
 * file fills in what it lacks. Throws a ProjectError with every problem. `isConverted`: the text was made of
 * that in `file`.
 */
export async function parseProject(
  text: string,
  file: string,
  shellEnv: ShellEnvironment,
  isConverted = false,
): Promise<Project> {
  const refuse = (problems: readonly ProjectProblem[]) =>
    new ProjectError(displayName(file), isConverted ? null : text, problems);
  const folder = dirname(file);
  const readInput = readEachOnce();
  const dotenv = await readDotenv(folder, { readInput, shellEnv });
  const problems: ProjectProblem[] = [];
  let tree: ReturnType<typeof parseYamlNodes>;
  try {
    tree = parseYamlNodes(text, MAX_DEPTH);
  } catch (error) {
    if (error instanceof YamlPositionError) throw refuse([error]);
    throw error;
  }
  const variable = (name: string) => shellEnv[name] ?? dotenv.get(name);
  const value = interpolateNode(tree, variable, problems);
  const parsed = PROJECT_SHAPE.safeParse(value);
  if (!parsed.success) {
    // A missing variable has already been reported at this position.
    const isNew = ({ at }: ProjectProblem) =>
      !problems.some((one) => one.at.line === at.line && one.at.column === at.column);
    throw refuse([...problems, ...problemsOfIssues(tree, parsed.error.issues).filter(isNew)]);
  }
  if (problems.length > 0) throw refuse(problems);
  const check: ProjectCheck = {
    folder,
    shellEnv,
    variable,
    problems,
    readInput,
    positionAt: (...path) => positionOfPath(tree, path),
  };
  const services: ProjectService[] = [];
  for (const [name, one] of Object.entries(parsed.data.services))
    services.push(await projectServiceOf(check, name, one));
  checkReferences(check, services);
  await checkPatterns(check, services);
  if (problems.length > 0) throw refuse(problems);
  const { name = null, environment = 'shell' } = parsed.data;
  const hooks = await hooksOf(check, parsed.data.hooks ?? {});
  return { file, name, isConverted, environment, services, hooks };
}

/** The file as a user in the current folder names it. */
const displayName = (file: string): string => (file.startsWith(`${process.cwd()}/`) ? basename(file) : file);

/**
 * Reads the project file at `path`. Rejects with a ProjectError that has every problem, also when the file
 * cannot be read.
 */
export async function readProject(path: string, shellEnv: ShellEnvironment): Promise<Project> {
  const start = { line: 1, column: 1 };
  let file: string;
  let text: string;
  try {
    file = realProjectFile(path);
    text = await readTextInput(file);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new ProjectError(path, '', [
      { at: start, message: code === 'ENOENT' ? 'there is no such file' : `cannot be read: ${message}` },
    ]);
  }
  return parseProject(text, file, shellEnv);
}
