// Registers a service of the project file, and decides whether its running process must be restarted.
import { worksInReplacedFolder } from '../../adapters/process/process_table.ts';
import type { Client } from '../../client/create_client.ts';
import type { Registration, ServiceDetail } from '../../client/records.ts';
import type { ProjectService } from '../../project/project_service.ts';
import {
  completeRegistration,
  pickFields,
  SPEC_FIELD_NAMES,
  SPEC_FIELDS,
} from '../../protocol/registration.ts';
import { isMark, NO_RESTART_LABEL, projectLabel, restartLabel } from './project_file.ts';
import { whileRegistered } from './removed_meanwhile.ts';

type RegistrationSpec = { [K in keyof Registration]-?: Exclude<Registration[K], undefined> };

type ComparedField = Exclude<keyof RegistrationSpec, 'env' | 'baseEnv'>;
const COMPARED_FIELDS = SPEC_FIELD_NAMES.filter(
  (field): field is ComparedField => field !== 'env' && field !== 'agent',
);
const fieldsThatChange = (what: 'process' | 'record'): ComparedField[] =>
  COMPARED_FIELDS.filter((field) => SPEC_FIELDS[field].change === what);
const PROCESS_FIELDS = fieldsThatChange('process');
const RECORD_FIELDS = fieldsThatChange('record');

function desiredSpec(file: string, service: ProjectService, port: number | null): RegistrationSpec {
  const labels = [projectLabel(file)];
  const given = { ...service, baseEnv: null, port, labels, agent: null };
  const { agent, ...spec } = completeRegistration(given);
  return { ...spec, env: Object.fromEntries(service.env), baseEnv: service.baseEnv };
}

const isSameJson = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

async function registerAndRead(client: Client, spec: Registration): Promise<ServiceDetail> {
  await client.register(spec);
  return whileRegistered(spec.name, client.service(spec.name));
}

/** The `port` to register; 0 requests a free port. */
const portOf = ({ port }: ProjectService): number | null => (port === 'auto' ? 0 : port);

export interface RegistrationResult {
  detail: ServiceDetail;
  change: 'registered' | 'updated' | 'unchanged';
  /**
   * The running process was started from an older registration with different values for its process.
   */
  mustRestart: boolean;
  /** Its port has changed. While a process runs that has the old one, the detail still says so. */
  isMoved: boolean;
  /** The running process has another shell environment than the current registration. */
  hasOldEnvironment?: boolean;
}

export interface PlannedChange {
  change: 'register' | 'update' | 'none';
  /** The fields that differ; in `env`, only the names can be compared. */
  fields: string[];
  /** A running process would be restarted. */
  restarts: boolean;
  /** It has no process and would get one; null: a task that would, if its inputs have changed. */
  starts: boolean | null;
}

/** How `up` was asked to start what is registered. */
export interface PlannedStarts {
  start: boolean;
  /** Tasks that have completed run again. */
  force: boolean;
}

/** Whether `up` would start what has no process. `isChanged`: what a process is made from differs. */
function planStart(
  { inputs, kind }: ProjectService,
  { pid, status }: ServiceDetail,
  isChanged: boolean,
  { start, force }: PlannedStarts,
): PlannedChange['starts'] {
  if (!start || pid !== undefined) return false;
  if (kind !== 'task' || status !== 'completed' || force || isChanged) return true;
  return inputs.length > 0 ? null : false;
}

/** Whether the folder of a running service was removed and made again: its process sees none of it. */
export const hasReplacedFolder = ({ pid, cwd }: ServiceDetail): boolean =>
  pid !== undefined && worksInReplacedFolder(pid, cwd);

/** Whether the process has what it needs. With the label, it is older than harmless changes. */
export const isCurrent = (service: ServiceDetail): boolean =>
  (!service.stale || service.labels.includes(NO_RESTART_LABEL)) && !hasReplacedFolder(service);

/** An `auto` service keeps its port, unless that is one of `taken`, the ports that other services have. */
const isPortChanged = (
  { port }: ProjectService,
  before: ServiceDetail,
  taken: ReadonlySet<number>,
): boolean => (port === 'auto' ? before.port === null || taken.has(before.port) : port !== before.port);

/** Predicts what `registerService` would do. It cannot detect changed values of `env`. */
export function planRegistration(
  file: string,
  service: ProjectService,
  before: ServiceDetail | undefined,
  taken: ReadonlySet<number>,
  wanted: PlannedStarts,
): PlannedChange {
  if (!before) return { change: 'register', fields: [], restarts: false, starts: wanted.start };
  const goal = desiredSpec(file, service, before.port);
  const current = pickFields(before, COMPARED_FIELDS);
  const changed = [...PROCESS_FIELDS, ...RECORD_FIELDS].filter(
    (field) => !isSameJson(goal[field], current[field]),
  );
  const needsProcess = changed.some((field) => PROCESS_FIELDS.includes(field));
  const portChanged = isPortChanged(service, before, taken);
  const envChanged = !isSameJson(Object.keys(goal.env).toSorted(), before.envKeys.toSorted());
  const fields = [...changed, ...(portChanged ? ['port'] : []), ...(envChanged ? ['env'] : [])];
  const isChanged = needsProcess || portChanged || envChanged;
  const restarts = before.pid !== undefined && (isChanged || !isCurrent(before));
  const starts = planStart(service, before, isChanged, wanted);
  return { change: fields.length > 0 ? 'update' : 'none', fields, restarts, starts };
}

/**
 * Registers `service` as the project `file` describes it. `before` is the current registration, and `taken`
 * the registered ports of other services. The daemon never returns the values of `env`: to detect a change,
 * this registers only the new `env` and compares the hashes of the specs.
 */
export async function registerService(
  client: Client,
  file: string,
  service: ProjectService,
  before: ServiceDetail | undefined,
  taken: ReadonlySet<number> = new Set(),
): Promise<RegistrationResult> {
  const goal = desiredSpec(file, service, portOf(service));
  if (!before)
    return {
      detail: await registerAndRead(client, goal),
      change: 'registered',
      mustRestart: false,
      isMoved: false,
    };
  const isAuto = service.port === 'auto';
  const alive = before.pid !== undefined;
  const isProcessCurrent = isCurrent(before);

  const withoutEnv = pickFields(before, COMPARED_FIELDS);
  const isChanged = (field: ComparedField): boolean => !isSameJson(goal[field], withoutEnv[field]);
  const labelsChanged = !isSameJson(
    goal.labels,
    before.labels.filter((label) => !isMark(label)),
  );
  const portChanged = isPortChanged(service, before, taken);
  if (portChanged || PROCESS_FIELDS.some(isChanged))
    return {
      detail: await registerAndRead(client, goal),
      change: 'updated',
      mustRestart: alive,
      isMoved: portChanged,
    };

  const withEnv = await registerAndRead(client, {
    ...withoutEnv,
    port: isAuto ? 0 : before.port,
    env: goal.env,
    baseEnv: goal.baseEnv,
  });
  const isMoved = withEnv.port !== before.port;
  const envChanged = withEnv.specHash !== before.specHash;
  const needsNoRestart = !envChanged && isProcessCurrent;
  const mustRestart = alive && !needsNoRestart;
  const isRecordChanged = RECORD_FIELDS.some(isChanged) || labelsChanged;
  const isMarked = withEnv.labels.includes(NO_RESTART_LABEL);
  // Everything else that the daemon returns is unchanged, so the shell environment has changed.
  const hasOldEnvironment = alive && !envChanged && withEnv.revision !== before.revision;
  // The shell environment may have changed, which restarts nothing.
  const mustMark = alive && needsNoRestart && (isRecordChanged || withEnv.stale);
  const isMarkWrong = mustMark ? !isMarked : isMarked && mustRestart;
  if (!isRecordChanged && !isMarkWrong) {
    const change = withEnv.revision === before.revision ? 'unchanged' : 'updated';
    return { detail: withEnv, change, mustRestart, isMoved, hasOldEnvironment };
  }
  const labels = mustMark ? [...goal.labels, NO_RESTART_LABEL] : goal.labels;
  const detail = await registerAndRead(client, { ...goal, labels });
  return { detail, change: 'updated', mustRestart, isMoved, hasOldEnvironment };
}

/**
 * Has this and any later `up` restart the running process of a service that refers to what has changed. It is
 * stale from then on.
 */
export function markForRestart(
  client: Client,
  file: string,
  service: ProjectService,
  detail: ServiceDetail & { pid: number },
): Promise<ServiceDetail> {
  const port = service.port === 'auto' ? 0 : detail.port;
  const { env, baseEnv } = desiredSpec(file, service, port);
  const labels = [...detail.labels.filter((label) => !isMark(label)), restartLabel(detail.pid)];
  return registerAndRead(client, { ...pickFields(detail, COMPARED_FIELDS), labels, port, env, baseEnv });
}
