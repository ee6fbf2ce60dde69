// Registers a service of the project file, and decides whether its running process must be restarted.
import type { Client } from '../../client/create_client.ts';
import type { Registration, ServiceDetail } from '../../client/records.ts';
import type { ProjectService } from '../../project/read_project.ts';
import { readyUrl } from '../../project/ready_url.ts';
import { SERVICE } from '../../settings/limits.ts';
import { NO_RESTART_LABEL, projectLabel } from './project_file.ts';

type RegistrationSpec = { [K in keyof Registration]-?: Exclude<Registration[K], undefined> };

/** What a registration says, with every default: the same fields that a read gives back. */
const COMPARED_FIELDS = [
  'cmd',
  'cwd',
  'group',
  'ready',
  'dependsOn',
  'restart',
  'autostart',
  'stopSignal',
  'stopGrace',
  'startTimeout',
] as const satisfies readonly (keyof RegistrationSpec & keyof ServiceDetail)[];
/** Of these a process is made: a change needs a new one. So does one of the port and of env. */
const PROCESS_FIELDS: readonly string[] = ['cmd', 'cwd'];

function desiredSpec(
  file: string,
  service: ProjectService,
  port: number,
  readyPort: number,
): RegistrationSpec {
  return {
    name: service.name,
    port,
    cmd: service.cmd,
    cwd: service.cwd,
    group: service.group,
    ready: readyUrl(service.ready, readyPort),
    env: Object.fromEntries(service.env),
    dependsOn: service.dependsOn,
    restart: service.restart ?? 'no',
    autostart: service.autostart,
    stopSignal: service.stopSignal ?? 'SIGTERM',
    stopGrace: service.stopGrace ?? SERVICE.defaultStopGraceMs,
    startTimeout: service.startTimeout ?? SERVICE.defaultStartTimeoutMs,
    labels: [projectLabel(file)],
  };
}

const currentSpec = (detail: ServiceDetail): Omit<RegistrationSpec, 'env'> => ({
  name: detail.name,
  port: detail.port,
  labels: detail.labels,
  cmd: detail.cmd,
  cwd: detail.cwd,
  group: detail.group,
  ready: detail.ready,
  dependsOn: detail.dependsOn,
  restart: detail.restart,
  autostart: detail.autostart,
  stopSignal: detail.stopSignal,
  stopGrace: detail.stopGrace,
  startTimeout: detail.startTimeout,
});

const isSameJson = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

async function registerAndRead(client: Client, spec: Registration): Promise<ServiceDetail> {
  await client.register(spec);
  return client.service(spec.name);
}

/**
 * Registers a new service. Its ready URL needs its port, which an `auto` port has only after a first
 * registration.
 */
async function registerNew(
  client: Client,
  file: string,
  service: ProjectService,
): Promise<RegistrationResult> {
  const port = service.port === 'auto' ? 0 : service.port;
  const isLate = port === 0 && readyUrl(service.ready, 0) !== service.ready;
  const detail = await registerAndRead(
    client,
    desiredSpec(file, isLate ? { ...service, ready: null } : service, port, port),
  );
  const whole = isLate ? await registerAndRead(client, desiredSpec(file, service, 0, detail.port)) : detail;
  return { detail: whole, change: 'registered', mustRestart: false };
}

export interface RegistrationResult {
  detail: ServiceDetail;
  change: 'registered' | 'updated' | 'unchanged';
  /**
   * The running process was started from an older registration that differs in what a process is made from.
   */
  mustRestart: boolean;
}

/**
 * Registers `service` as the project `file` wants it. `before` is what is registered now. The values of `env`
 * are never read back, so a change of them shows in the spec's hash, with everything else left as it was.
 */
export async function registerService(
  client: Client,
  file: string,
  service: ProjectService,
  before: ServiceDetail | undefined,
): Promise<RegistrationResult> {
  if (!before) return registerNew(client, file, service);
  const isAuto = service.port === 'auto';
  const readyPort = isAuto ? before.port : Number(service.port);
  const goal = desiredSpec(file, service, isAuto ? 0 : readyPort, readyPort);
  const alive = before.pid !== undefined;
  // With this label the process is older than the registration, but no change since concerns it.
  const isProcessCurrent = !before.stale || before.labels.includes(NO_RESTART_LABEL);

  const changed = COMPARED_FIELDS.filter((field) => !isSameJson(goal[field], before[field]));
  const labelsChanged = !isSameJson(
    goal.labels,
    before.labels.filter((label) => label !== NO_RESTART_LABEL),
  );
  const portChanged = !isAuto && goal.port !== before.port;
  if (portChanged || changed.some((field) => PROCESS_FIELDS.includes(field)))
    return { detail: await registerAndRead(client, goal), change: 'updated', mustRestart: alive };

  const withEnv = await registerAndRead(client, {
    ...currentSpec(before),
    port: isAuto ? 0 : before.port,
    env: goal.env,
  });
  const envChanged = withEnv.specHash !== before.specHash;
  const needsNoRestart = !envChanged && isProcessCurrent;
  const mustRestart = alive && !needsNoRestart;
  if (changed.length === 0 && !labelsChanged)
    return { detail: withEnv, change: envChanged ? 'updated' : 'unchanged', mustRestart };
  const labels = alive && needsNoRestart ? [...goal.labels, NO_RESTART_LABEL] : goal.labels;
  return { detail: await registerAndRead(client, { ...goal, labels }), change: 'updated', mustRestart };
}
