// Imports a process-compose file.
import { constants } from 'node:os';
import { dirname } from 'node:path';
import type { YamlNode } from '../adapters/yaml.ts';
import { toldProtocol } from '../protocol/port_protocol.ts';
import { CHECK, HTTP, SERVICE } from '../settings/limits.ts';
import { portInCommand } from './command_port.ts';
import { mergeSources, processComposeFiles, readSources } from './compose_files.ts';
import { droppedKeys, droppedNote } from './dropped_keys.ts';
import { dotenvIn, dotenvNotes, type ImportedDotenv, withDotenv } from './import_dotenv.ts';
import {
  dependsOn,
  type ImportedCheck,
  type ImportedDependency,
  type ImportedProject,
  type ImportedService,
  toServiceName,
} from './imported_project.ts';
import { envEntries, mapEntries, nodeAt, scalarText } from './lenient_yaml.ts';
import { processCommand, type ShellCommand, shellCommandIn } from './process_compose_commands.ts';
import { FILE, isYes, numberAt, PROCESS } from './process_compose_keys.ts';
import { withVariables } from './process_compose_variables.ts';

/** The defaults of process-compose. */
const DEFAULT_PERIOD_S = 10;
const DEFAULT_STOP_S = 10;
const MAX_REPLICAS = 64;
/** The longest time of a project file. */
const MAX_SECONDS = HTTP.maxQueryDurationMs / 1_000;

/** What the parts of a process need to know. */
interface ProcessContext {
  /** Others wait for its end. */
  isTask: boolean;
  inShell: ShellCommand;
  notes: string[];
}

/** The URL of an HTTP probe. */
function probeUrl(get: YamlNode | undefined): string | undefined {
  const port = scalarText(nodeAt(get, 'port'));
  if (port === undefined) return undefined;
  const host = scalarText(nodeAt(get, 'host')) ?? 'localhost';
  const path = scalarText(nodeAt(get, 'path')) ?? '/';
  const scheme = (scalarText(nodeAt(get, 'scheme')) ?? 'http').toLowerCase();
  return `${scheme}://${host}:${port}${path.startsWith('/') ? path : `/${path}`}`;
}

const milliseconds = (seconds: number): number =>
  Math.min(HTTP.maxQueryDurationMs, Math.max(CHECK.minIntervalMs, Math.round(seconds * 1_000)));

/** The check for a probe; undefined if the probe checks nothing. */
function checkOf(
  probe: YamlNode | undefined,
  { isLive, inShell }: { isLive: boolean; inShell: ShellCommand },
): ImportedCheck | undefined {
  const http = probeUrl(nodeAt(probe, 'http_get'));
  const exec = scalarText(nodeAt(probe, 'exec', 'command')) || undefined;
  if (http === undefined && exec === undefined) return undefined;
  const period = numberAt(probe, 'period_seconds') || DEFAULT_PERIOD_S;
  const timeout = numberAt(probe, 'timeout_seconds');
  const status = numberAt(probe, 'http_get', 'status_code');
  // 0 is the default.
  const failures = (isLive && numberAt(probe, 'failure_threshold')) || undefined;
  return {
    ...(http === undefined ? { exec: inShell(exec ?? '') } : { http }),
    // 200 is the default, and here any success counts.
    ...(http === undefined || status === undefined || status === 200 ? {} : { status: [status, status] }),
    ...(isLive || period !== DEFAULT_PERIOD_S ? { interval: milliseconds(period) } : {}),
    ...(timeout === undefined ? {} : { timeout: milliseconds(timeout) }),
    ...(failures === undefined ? {} : { failures }),
  };
}

/** A line that contains a text, as a regular expression. */
const lineWith = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');

/** The ready-check. A task has none: its dependents wait for its end. */
function readyOf(
  name: string,
  value: YamlNode,
  { isTask, inShell, notes }: ProcessContext,
): ImportedService['ready'] {
  if (isTask) {
    const given = ['readiness_probe', 'ready_log_line'].filter((key) => nodeAt(value, key));
    for (const key of given) notes.push(`${name}: ${key} is left out, as others wait for its end`);
    return undefined;
  }

  const line = scalarText(nodeAt(value, 'ready_log_line')) || undefined;
  const check = checkOf(nodeAt(value, 'readiness_probe'), { isLive: false, inShell });
  if (!check) return line === undefined ? undefined : { log: lineWith(line) };
  const { http, ...more } = check;
  return http !== undefined && Object.keys(more).length === 0 ? http : check;
}

/** Time for a probe that may fail so often before the process counts as failed. */
function startTimeoutOf(probe: YamlNode | undefined): string | undefined {
  const failures = numberAt(probe, 'failure_threshold');
  const delay = numberAt(probe, 'initial_delay_seconds') ?? 0;
  if (failures === undefined && delay === 0) return undefined;
  const period = numberAt(probe, 'period_seconds') || DEFAULT_PERIOD_S;
  return `${Math.min(MAX_SECONDS, Math.max(30, delay + (failures ?? 3) * period))}s`;
}

function signalName(number: string | undefined): string | undefined {
  return Object.entries(constants.signals).find(([, value]) => String(value) === number)?.[0];
}

function stopOf(
  name: string,
  node: YamlNode | undefined,
  { inShell, notes }: ProcessContext,
): ImportedService['stop'] {
  const command = scalarText(nodeAt(node, 'command')) || undefined;
  const number = scalarText(nodeAt(node, 'signal')) || undefined;
  const signal = signalName(number);
  if (number !== undefined && signal === undefined)
    notes.push(`${name}: there is no signal ${number}: shutdown.signal is left out`);
  const seconds = Math.min(MAX_SECONDS, numberAt(node, 'timeout_seconds') ?? DEFAULT_STOP_S);
  return {
    ...(command === undefined ? {} : { command: inShell(command) }),
    ...(signal === undefined ? {} : { signal }),
    grace: `${seconds}s`,
  };
}

const POLICIES = new Map([
  ['on_failure', 'on-failure'],
  ['always', 'always'],
]);

/** The restart policy. A task runs to its end, so it cannot restart always. */
function restartOf(
  name: string,
  node: YamlNode | undefined,
  { isTask, notes }: ProcessContext,
): ImportedService['restart'] {
  const given = scalarText(nodeAt(node, 'restart')) || undefined;
  const policy = POLICIES.get(given ?? '');
  if (given === 'exit_on_failure') notes.push(`${name}: its failure ends nothing else (exit_on_failure)`);
  else if (given !== undefined && given !== 'no' && policy === undefined)
    notes.push(`${name}: there is no restart policy ${given}: availability.restart is left out`);
  if (isTask && policy === 'always') {
    notes.push(`${name}: restart always is left out, as others wait for its end`);
    return undefined;
  }
  if (policy === undefined) return undefined;
  const backoff = numberAt(node, 'backoff_seconds');
  // In process-compose, 0 means unlimited.
  const max = numberAt(node, 'max_restarts') || undefined;
  if (backoff === undefined && max === undefined) return policy;
  const ms = Math.max(SERVICE.minRestartPauseMs, Math.min(MAX_SECONDS, backoff ?? 0) * 1_000);
  const pause = backoff === undefined ? {} : { min_ms: ms, max_ms: ms };
  return { policy, ...pause, ...(max === undefined ? {} : { max }) };
}

/** The content of the file, and the names that each process gets here: several for replicas. */
interface Processes {
  names: ReadonlyMap<string, readonly string[]>;
  inShell: ShellCommand;
  notes: string[];
  guessedPorts: Set<string>;
}

/** The dependencies of a process. */
function needsOf(
  name: string,
  node: YamlNode | undefined,
  { names, notes }: Processes,
): ImportedDependency[] {
  return mapEntries(node).flatMap(({ key, value }) => {
    const condition = scalarText(nodeAt(value, 'condition')) ?? 'process_completed';
    const found = names.get(key);
    if (!found) notes.push(`${name}: there is no process ${key} to wait for`);
    if (condition === 'process_completed')
      notes.push(`${name}: waits for ${key} to succeed; process_completed would take a failure too`);
    return (found ?? []).map((other) => ({ name: other, startedOnly: condition === 'process_started' }));
  });
}

/** The processes that another one waits for to end: they are tasks. */
function awaitedEnds(rows: readonly { value: YamlNode }[]): Set<string> {
  const waits = rows.flatMap(({ value }) => mapEntries(nodeAt(value, 'depends_on')));
  const ends = waits.filter(({ value }) =>
    (scalarText(nodeAt(value, 'condition')) ?? 'process_completed').startsWith('process_completed'),
  );
  return new Set(ends.map(({ key }) => key));
}

/** The port of a process: that of its probe, or else of its environment or its command. */
function portOf(cmd: string, env: Map<string, string>, probe: YamlNode | undefined): number | string | null {
  const port = scalarText(nodeAt(probe, 'http_get', 'port')) ?? env.get('PORT');
  if (port !== undefined) return /^\d+$/.test(port) ? Number(port) : port;
  return portInCommand(cmd)?.port ?? null;
}

/** Whether nothing but its probe, or the environment of all processes, says that a process has `port`. */
function isGuess(port: number | string, command: string, value: YamlNode): boolean {
  const named = portInCommand(command)?.port;
  const own = envEntries(nodeAt(value, 'environment'))?.get('PORT');
  return named !== 'auto' && ![String(named), own].includes(String(port));
}

/** The services of one process: one, or one per replica. */
function servicesOf(
  key: string,
  value: YamlNode,
  given: { command: string; isTask: boolean; env: Map<string, string>; dotenv: ImportedDotenv },
  all: Processes,
): ImportedService[] {
  const { notes } = all;
  const { command, isTask } = given;
  const names = all.names.get(key) ?? [];
  const [first = key] = names;
  notes.push(...droppedNote(first, droppedKeys(value, PROCESS)));
  if (!isTask && nodeAt(value, 'readiness_probe') && nodeAt(value, 'ready_log_line'))
    notes.push(`${first}: ready_log_line is left out, as it has a readiness_probe`);
  const env = new Map([...given.env, ...(envEntries(nodeAt(value, 'environment')) ?? [])]);
  const probe = nodeAt(value, 'readiness_probe');
  const port = isTask ? null : portOf(command, env, probe);
  if (port !== null && isGuess(port, command, value)) all.guessedPorts.add(first);
  const group = scalarText(nodeAt(value, 'namespace')) || undefined;
  const context = { isTask, inShell: all.inShell, notes };
  const ready =
    readyOf(first, value, context) ?? (!isTask && portInCommand(command) ? ('tcp' as const) : undefined);
  const isForShell = scalarText(nodeAt(value, 'command')) === command;
  if (isForShell && nodeAt(value, 'entrypoint'))
    notes.push(`${first}: entrypoint is left out, as it has a command`);
  const cmd = isForShell ? all.inShell(command) : command;
  const isTcp = cmd !== command && port !== null && toldProtocol(command, null) === 'tcp';
  const service: Omit<ImportedService, 'name'> = {
    cmd,
    kind: isTask ? 'task' : undefined,
    cwd: scalarText(nodeAt(value, 'working_dir')),
    port,
    protocol: isTcp ? 'tcp' : undefined,
    ready,
    live: checkOf(nodeAt(value, 'liveness_probe'), { isLive: true, inShell: all.inShell }),
    start_timeout: isTask ? undefined : startTimeoutOf(probe),
    env: env.size > 0 ? env : undefined,
    depends_on: dependsOn(needsOf(first, nodeAt(value, 'depends_on'), all)),
    group: group === 'default' ? undefined : group,
    restart: restartOf(first, nodeAt(value, 'availability'), context),
    stop: nodeAt(value, 'shutdown') ? stopOf(first, nodeAt(value, 'shutdown'), context) : undefined,
  };
  if (names.length > 1 && typeof port === 'number')
    notes.push(`${first}: its replicas cannot share port ${port}; each has a free one in $PORT`);
  const isDotenvDisabled = isYes(nodeAt(value, 'is_dotenv_disabled'));
  return names.map((name, index) => {
    const replica =
      names.length > 1
        ? {
            port: port === null ? null : 'auto',
            env: new Map([...env, ['PC_REPLICA_NUM', String(index)]]),
          }
        : {};
    const named = { name, ...service, ...replica };
    return isDotenvDisabled ? named : withDotenv(named, given.dotenv);
  });
}

const isDisabled = (value: YamlNode): boolean =>
  ['disabled', 'is_disabled'].some((key) => isYes(nodeAt(value, key)));

/** The names of the services of each process that runs. */
function serviceNames(rows: readonly { key: string; value: YamlNode }[]): Processes['names'] {
  const taken = new Set<string>();
  const running = rows.filter(({ value }) => !isDisabled(value) && processCommand(value) !== undefined);
  return new Map(
    running.map(({ key, value }) => {
      const replicas = Math.min(MAX_REPLICAS, Math.max(1, numberAt(value, 'replicas') ?? 1));
      return [key, Array.from({ length: replicas }, () => toServiceName(key, taken))];
    }),
  );
}

/**
 * The services of the process-compose file `path` with the content `text`, and of its override. Each gets the
 * `.env` file beside it. Throws what the reading throws.
 */
export function importProcessCompose(text: string, path: string): ImportedProject {
  const dotenv = dotenvIn(dirname(path));
  const variable = (name: string) => process.env[name] ?? dotenv.variables?.get(name);
  const merged = mergeSources(readSources(text, path, processComposeFiles(path)));
  const { tree, notes: variableNotes } = withVariables(merged, variable);
  const rows = mapEntries(nodeAt(tree, 'processes'));
  const env = envEntries(nodeAt(tree, 'environment')) ?? new Map<string, string>();
  const notes = [...droppedNote('the file', droppedKeys(tree, FILE)), ...variableNotes];
  const guessedPorts = new Set<string>();
  const all = { names: serviceNames(rows), inShell: shellCommandIn(tree), notes, guessedPorts };
  const awaited = awaitedEnds(rows);
  const services = rows.flatMap(({ key, value }) => {
    const command = processCommand(value);
    if (command !== undefined && all.names.has(key))
      return servicesOf(key, value, { command, isTask: awaited.has(key), env, dotenv }, all);
    notes.push(isDisabled(value) ? `${key} is disabled: left out` : `${key} has no command: left out`);
    return [];
  });
  return { services, notes: [...notes, ...dotenvNotes(services)], guessedPorts };
}
