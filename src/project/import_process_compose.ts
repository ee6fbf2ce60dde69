// Imports a process-compose file.
import { constants } from 'node:os';
import { dirname } from 'node:path';
import type { YamlNode } from '../adapters/yaml.ts';
import { toldProtocol } from '../protocol/port_protocol.ts';
import { SERVICE } from '../settings/limits.ts';
import { portInCommand } from './command_port.ts';
import { mergeSources, processComposeFiles, readSources } from './compose_files.ts';
import { droppedKeys, droppedNote } from './dropped_keys.ts';
import { dotenvIn, dotenvNotes, type ImportedDotenv, withDotenv } from './import_dotenv.ts';
import {
  dependsOn,
  type ImportedDependency,
  type ImportedProject,
  type ImportedService,
  toGroupName,
  toServiceName,
} from './imported_project.ts';
import { envEntries, listItems, mapEntries, nodeAt, scalarText } from './lenient_yaml.ts';
import {
  checkOf,
  MAX_SECONDS,
  type ProcessContext,
  readyOf,
  startTimeoutOf,
} from './process_compose_checks.ts';
import { processCommand, type ShellCommand, shellCommandIn } from './process_compose_commands.ts';
import { FILE, httpText, isPort, isYes, numberAt, PROCESS } from './process_compose_keys.ts';
import { type Replica, replicaOf, withOwnPorts, withReplica } from './process_compose_replicas.ts';
import { isScheduled, scheduleOf } from './process_compose_schedule.ts';
import { type TemplateVariables, templateVariables, withTemplates } from './process_compose_templates.ts';
import { withVariables } from './process_compose_variables.ts';

/** The default of process-compose. */
const DEFAULT_STOP_S = 10;
const MAX_REPLICAS = 64;

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
  { taskReason, notes }: ProcessContext,
): ImportedService['restart'] {
  const given = scalarText(nodeAt(node, 'restart')) || undefined;
  const policy = POLICIES.get(given ?? '');
  if (given === 'exit_on_failure') notes.push(`${name}: its failure ends nothing else (exit_on_failure)`);
  else if (given !== undefined && given !== 'no' && policy === undefined)
    notes.push(`${name}: there is no restart policy ${given}: availability.restart is left out`);
  if (taskReason !== undefined && policy === 'always') {
    notes.push(`${name}: restart always is left out, as ${taskReason}`);
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

/** The group for the namespace of a process; undefined for the default one. */
function groupOf(name: string, node: YamlNode | undefined, notes: string[]): string | undefined {
  const texts = node?.kind === 'list' ? listItems(node).map(scalarText) : [scalarText(node)];
  const [given, ...others] = texts.filter((text) => text !== undefined && text !== '');
  if (others.length > 0)
    notes.push(`${name}: a service has one group: namespace ${others.join(', ')} is left out`);
  if (given === undefined || given === 'default') return undefined;
  const group = toGroupName(given);
  if (group !== given) notes.push(`${name}: its group is ${group}, for the namespace ${given}`);
  return group;
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

/** The processes that another one waits for to end, and that they are tasks for this reason. */
function awaitedEnds(rows: readonly { value: YamlNode }[]): ReadonlyMap<string, string> {
  const waits = rows.flatMap(({ value }) => mapEntries(nodeAt(value, 'depends_on')));
  const ends = waits.filter(({ value }) =>
    (scalarText(nodeAt(value, 'condition')) ?? 'process_completed').startsWith('process_completed'),
  );
  return new Map(ends.map(({ key }) => [key, 'others wait for its end']));
}

/** The port of a process: that of its probe, or else of its environment or its command. */
function portOf(cmd: string, env: Map<string, string>, probe: YamlNode | undefined): number | string | null {
  const own = env.get('PORT') ?? '';
  const port = httpText(nodeAt(probe, 'http_get'), 'port') ?? (isPort(own) ? own : undefined);
  if (port !== undefined) return /^\d+$/.test(port) ? Number(port) : port;
  return portInCommand(cmd)?.port ?? null;
}

/** Whether nothing but its probe, or the environment of all processes, says that a process has `port`. */
function isGuess(port: number | string, command: string, value: YamlNode): boolean {
  const named = portInCommand(command)?.port;
  const own = envEntries(nodeAt(value, 'environment'))?.get('PORT');
  return named !== 'auto' && ![String(named), own].includes(String(port));
}

/** A process, or one of its replicas. */
interface ProcessFacts extends Pick<ProcessContext, 'taskReason'> {
  value: YamlNode;
  /** The environment of all processes. */
  env: ReadonlyMap<string, string>;
}

/** The service `name` of a process with `command`, with the variables `own` in its environment. */
function serviceOf(
  name: string,
  { value, command, taskReason, env: shared }: ProcessFacts & { command: string },
  own: Replica,
  all: Processes,
): ImportedService {
  const { notes, inShell } = all;
  const isTask = taskReason !== undefined;
  notes.push(...droppedNote(name, droppedKeys(value, PROCESS)));
  if (isScheduled(value) && !isYes(nodeAt(value, 'schedule', 'run_on_start')))
    notes.push(`${name}: \`berth up\` runs it once too; process-compose waits for its schedule`);
  if (!isTask && nodeAt(value, 'readiness_probe') && nodeAt(value, 'ready_log_line'))
    notes.push(`${name}: ready_log_line is left out, as it has a readiness_probe`);
  const env = new Map([...shared, ...(envEntries(nodeAt(value, 'environment')) ?? []), ...own]);
  const probe = nodeAt(value, 'readiness_probe');
  const told = withReplica(command, own);
  const port = isTask ? null : portOf(told, env, probe);
  if (port !== null && isGuess(port, told, value)) all.guessedPorts.add(name);
  const context = { taskReason, inShell, notes };
  const ready =
    readyOf(name, value, context) ?? (!isTask && portInCommand(told) ? ('tcp' as const) : undefined);
  const isForShell = scalarText(nodeAt(value, 'command')) === command;
  if (isForShell && nodeAt(value, 'entrypoint'))
    notes.push(`${name}: entrypoint is left out, as it has a command`);
  const cmd = isForShell ? inShell(command) : command;
  const isTcp = cmd !== command && port !== null && toldProtocol(command, null) === 'tcp';
  return {
    name,
    cmd,
    kind: isTask ? 'task' : undefined,
    schedule: scheduleOf(value),
    cwd: scalarText(nodeAt(value, 'working_dir')),
    port,
    protocol: isTcp ? 'tcp' : undefined,
    ready,
    live: checkOf(nodeAt(value, 'liveness_probe'), { isLive: true, inShell }),
    start_timeout: isTask ? undefined : startTimeoutOf(probe),
    env: env.size > 0 ? env : undefined,
    depends_on: dependsOn(needsOf(name, nodeAt(value, 'depends_on'), all)),
    group: groupOf(name, nodeAt(value, 'namespace'), notes),
    restart: restartOf(name, nodeAt(value, 'availability'), context),
    stop: nodeAt(value, 'shutdown') ? stopOf(name, nodeAt(value, 'shutdown'), context) : undefined,
  };
}

/** The services of the process `key`: one, or one per replica. */
function servicesOf(
  key: string,
  facts: ProcessFacts,
  { dotenv, variables }: { dotenv: ImportedDotenv; variables: TemplateVariables },
  all: Processes,
): ImportedService[] {
  const names = all.names.get(key) ?? [];
  const services = names.map((name, index) => {
    // The notes on one replica are those on all.
    const own = index === 0 ? all : { ...all, notes: [] };
    const filled = withTemplates(facts.value, new Map([...variables, ['PC_REPLICA_NUM', String(index)]]));
    if (filled.left.length > 0)
      own.notes.push(`${name}: only process-compose can fill in ${filled.left.join(', ')}`);
    const command = processCommand(filled.value) ?? '';
    const replica = replicaOf(command, { key, index, count: names.length });
    return serviceOf(name, { ...facts, value: filled.value, command }, replica, own);
  });
  const distinct = withOwnPorts(services, all.notes);
  const isDotenvDisabled = isYes(nodeAt(facts.value, 'is_dotenv_disabled'));
  return isDotenvDisabled ? distinct : distinct.map((service) => withDotenv(service, dotenv));
}

const isDisabled = (value: YamlNode): boolean =>
  ['disabled', 'is_disabled'].some((key) => isYes(nodeAt(value, key)));

/** The names of the services of each process that runs. */
function serviceNames(rows: readonly { key: string; value: YamlNode }[]): Processes['names'] {
  const taken = new Set<string>();
  const running = rows.filter(({ value }) => !isDisabled(value) && processCommand(value) !== undefined);
  return new Map(
    running.map(({ key, value }) => {
      // process-compose has one replica of what has a schedule.
      const wanted = (!isScheduled(value) && numberAt(value, 'replicas')) || 1;
      const replicas = Math.min(MAX_REPLICAS, wanted);
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
  const given = { dotenv, variables: templateVariables(tree) };
  const services = rows.flatMap(({ key, value }) => {
    if (all.names.has(key)) {
      const taskReason = isScheduled(value) ? 'it has a schedule' : awaited.get(key);
      return servicesOf(key, { value, taskReason, env }, given, all);
    }
    notes.push(isDisabled(value) ? `${key} is disabled: left out` : `${key} has no command: left out`);
    return [];
  });
  return { services, notes: [...notes, ...dotenvNotes(services)], guessedPorts };
}
