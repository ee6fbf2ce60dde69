// Reads berth.yaml into services. Finds every problem of the file before anything is done with it.
import { realpathSync, statSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { parseYamlNodes, type YamlPosition, YamlPositionError } from '../adapters/yaml.ts';
import type { LiveField, ReadyField } from '../protocol/checks.ts';
import {
  type Dependency,
  dependencyName,
  dependencyText,
  findDependencyCycle,
} from '../protocol/dependency_order.ts';
import type { ScheduleSpec } from '../protocol/schedules.ts';
import type {
  RestartPolicy,
  RestartRule,
  RunLimits,
  ServiceSpec,
  SleepRule,
  WatchSpec,
} from '../protocol/service.ts';
import { HOOKS, PLACEHOLDER } from '../protocol/stacks.ts';
import { WATCH } from '../settings/limits.ts';
import { readTextInput } from '../settings/state_files.ts';
import { interpolateNode, positionOfPath, problemsOfIssues } from './document_values.ts';
import { type ProjectCheck, readDotenv, type ShellEnvironment, serviceEnv } from './project_environment.ts';
import { ProjectError, type ProjectProblem } from './project_error.ts';
import { PROJECT_SHAPE, type ProjectServiceShape } from './project_shape.ts';
import { asksOwnPort } from './ready_url.ts';
import { suggestion } from './spelling.ts';

export interface ProjectService {
  name: string;
  /** Position in the file. */
  at: YamlPosition;
  cmd: string;
  /** Absolute. */
  cwd: string;
  /** null: it has none. */
  port: number | 'auto' | null;
  /** The port holds in every stack. */
  isPortFixed: boolean;
  /** An object, a URL, a path on the service's own port, or `tcp`: see readyUrl. */
  ready: ReadyField | null;
  live: LiveField | null;
  env: [key: string, value: string][];
  dependsOn: Dependency[];
  group: string | null;
  restart: RestartPolicy | RestartRule | undefined;
  limits: RunLimits | null;
  autostart: boolean;
  /** null: it never sleeps. */
  sleep: SleepRule | null;
  /** Milliseconds, as is stopGrace. */
  startTimeout: number | undefined;
  /** The command that is run first to stop it. */
  stop: string | null;
  stopSignal: string | undefined;
  stopGrace: number | undefined;
  /** The stack it is registered in; null while it is only what the file says. */
  stack: string | null;
  /** What it starts from in place of the environment of the daemon; null: nothing. */
  baseEnv: Record<string, string> | null;
  watch: WatchSpec | null;
  kind: ServiceSpec['kind'];
  inputs: string[];
  schedule: ScheduleSpec | null;
}

export interface Project {
  /** Absolute and without symbolic links; identifies the project. */
  file: string;
  /** null: that of its folder. */
  name: string | null;
  /** Whose environment services start from. */
  environment: 'shell' | 'daemon';
  services: ProjectService[];
  /** The tasks that make and remove what a stack needs. */
  hooks: ProjectService[];
}

const MAX_DEPTH = 32;

function serviceCwd(check: ProjectCheck, name: string, service: ProjectServiceShape): string {
  const cwd = resolve(check.folder, service.cwd ?? '.');
  const isKnown = cwd.search(PLACEHOLDER) < 0;
  if (isKnown && !statSync(cwd, { throwIfNoEntry: false })?.isDirectory()) {
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

const policyOf = (restart: ProjectService['restart']): RestartPolicy | undefined =>
  typeof restart === 'object' ? restart.policy : restart;

/** Checks what goes with the kind of each service: a task is done when it ends, and only tasks complete. */
function checkKinds(check: ProjectCheck, services: readonly ProjectService[]): void {
  const tasks = new Set(services.filter(({ kind }) => kind === 'task').map(({ name }) => name));
  for (const { name, dependsOn, inputs, kind, ready, restart, schedule } of services) {
    const isTask = kind === 'task';
    const endless = dependsOn.find(
      (one) => typeof one !== 'string' && one.condition === 'completed' && !tasks.has(one.name),
    );
    const conditions = new Set(dependsOn.map(dependencyText));
    const twice = conditions.size > new Set(dependsOn.map(dependencyName)).size;
    const faults: [key: string, isWrong: boolean, message: string][] = [
      ['schedule', !isTask && schedule !== null, 'is for tasks alone'],
      ['inputs', !isTask && inputs.length > 0, 'are for tasks alone'],
      ['ready', isTask && ready !== null, 'is not for a task, which is done when it ends'],
      [
        'restart',
        isTask && policyOf(restart) === 'always',
        'must not be always for a task, which runs to its end',
      ],
      [
        'depends_on',
        endless !== undefined,
        `${dependencyName(endless ?? '')} is no task, so it never completes`,
      ],
      ['depends_on', twice, 'has two conditions for the same service'],
    ];
    for (const [key, isWrong, message] of faults)
      if (isWrong)
        check.problems.push({
          at: check.positionAt('services', name, key),
          message: `services.${name}.${key}: ${message}`,
        });
  }
}

/** The services whose addresses `service` is started with: those that its placeholders name. */
export function servicesAsked({ cmd, cwd, ready, live, env }: ProjectService): Set<string> {
  const texts = [cmd, cwd, JSON.stringify([ready, live]), ...env.map(([, value]) => value)];
  const bodies = texts.flatMap((text) => [...text.matchAll(PLACEHOLDER)]);
  return new Set(
    bodies.flatMap(([, dollar, body = '']) =>
      dollar === '' && body.includes('.') ? [body.slice(body.indexOf('.') + 1)] : [],
    ),
  );
}

/** Checks what services say of each other: unknown names, cycles, a port used twice. */
function checkReferences(check: ProjectCheck, services: readonly ProjectService[]): void {
  const names = services.map(({ name }) => name);
  const owners = new Map<number, string>();
  for (const service of services) {
    for (const other of [...servicesAsked(service)].filter((asked) => !names.includes(asked))) {
      const message = `services.${service.name}: there is no service ${other}${suggestion(other, names)}`;
      check.problems.push({ at: service.at, message });
    }
  }
  for (const { name, dependsOn, port, ready, live } of services) {
    for (const other of dependsOn.map(dependencyName).filter((one) => !names.includes(one))) {
      const message = `services.${name}.depends_on: there is no service ${other}${suggestion(other, names)}`;
      check.problems.push({ at: check.positionAt('services', name, 'depends_on'), message });
    }
    for (const [key, asked] of Object.entries({ ready, live })) {
      if (port !== null || !asksOwnPort(asked)) continue;
      const text = typeof asked === 'string' ? asked : 'it';
      const message = `services.${name}.${key}: ${text} asks its own port, and its port is null`;
      check.problems.push({ at: check.positionAt('services', name, key), message });
    }
    if (port === 'auto' || port === null) continue;
    const owner = owners.get(port);
    if (owner === undefined) owners.set(port, name);
    else {
      const message = `services.${name}.port: ${port} is the port of ${owner} already`;
      check.problems.push({ at: check.positionAt('services', name, 'port'), message });
    }
  }
  checkKinds(check, services);
  const cycle = findDependencyCycle(services);
  if (cycle) {
    const message = `services.${cycle[0]}.depends_on: has a cycle: ${cycle.join(' -> ')}`;
    check.problems.push({ at: check.positionAt('services', cycle[0] ?? '', 'depends_on'), message });
  }
}

/**
 * The project that `text` means, as if it stood in `file`. `shellEnv` fills in `${NAME}`; a `.env` beside the
 * file fills in what it lacks. Throws a ProjectError with every problem.
 */
export async function parseProject(text: string, file: string, shellEnv: ShellEnvironment): Promise<Project> {
  const refuse = (problems: readonly ProjectProblem[]) => new ProjectError(displayName(file), text, problems);
  const folder = dirname(file);
  const dotenv = new Map(Object.entries(await readDotenv(folder)));
  const problems: ProjectProblem[] = [];
  let tree: ReturnType<typeof parseYamlNodes>;
  try {
    tree = parseYamlNodes(text, MAX_DEPTH);
  } catch (error) {
    if (error instanceof YamlPositionError) throw refuse([error]);
    throw error;
  }
  const value = interpolateNode(tree, (name) => shellEnv[name] ?? dotenv.get(name), problems);
  const parsed = PROJECT_SHAPE.safeParse(value);
  if (!parsed.success) {
    // A place with a missing variable has its problem already.
    const isNew = ({ at }: ProjectProblem) =>
      !problems.some((one) => one.at.line === at.line && one.at.column === at.column);
    throw refuse([...problems, ...problemsOfIssues(tree, parsed.error.issues).filter(isNew)]);
  }
  if (problems.length > 0) throw refuse(problems);
  const check: ProjectCheck = {
    folder,
    shellEnv,
    problems,
    positionAt: (...path) => positionOfPath(tree, path),
  };
  const services: ProjectService[] = [];
  for (const [name, one] of Object.entries(parsed.data.services))
    services.push(await projectServiceOf(check, name, one));
  checkReferences(check, services);
  if (problems.length > 0) throw refuse(problems);
  const { name = null, environment = 'shell' } = parsed.data;
  const hooks = await hooksOf(check, parsed.data.hooks ?? {});
  return { file, name, environment, services, hooks };
}

/** The file as a user in the current folder names it. */
const displayName = (file: string): string => (file.startsWith(`${process.cwd()}/`) ? basename(file) : file);

/**
 * Reads the project file at `path`. Throws a ProjectError with every problem, also when the file cannot be
 * read.
 */
export async function readProject(path: string, shellEnv: ShellEnvironment): Promise<Project> {
  const start = { line: 1, column: 1 };
  let file: string;
  let text: string;
  try {
    file = realpathSync(path);
    text = await readTextInput(file);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new ProjectError(path, '', [
      { at: start, message: code === 'ENOENT' ? 'there is no such file' : `cannot be read: ${message}` },
    ]);
  }
  return parseProject(text, file, shellEnv);
}
