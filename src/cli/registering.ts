// From a service of the project file to its registration: what has to be sent, and whether a process that runs must be restarted.
import type { Client } from '../client/connect.ts';
import type { Registration, ServiceDetail } from '../client/records.ts';
import { SERVICE } from '../limits.ts';
import type { ProjectService } from '../project/read.ts';
import { readyUrl } from '../project/ready.ts';
import { CALM, labelOf } from './project_file.ts';

type Spec = Required<Registration>;

/** What a registration says, with every default: the same fields that a read gives back. */
const FIELDS = [
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
] as const satisfies readonly (keyof Spec & keyof ServiceDetail)[];
/** Of these a process is made: a change needs a new one. So does one of the port and of env. */
const OF_THE_PROCESS: readonly string[] = ['cmd', 'cwd'];

function wanted(file: string, service: ProjectService, port: number, readyPort: number): Spec {
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
    stopGrace: service.stopGrace ?? SERVICE.stopGraceMs,
    startTimeout: service.startTimeout ?? SERVICE.startTimeoutMs,
    labels: [labelOf(file)],
  };
}

const specOf = (detail: ServiceDetail): Omit<Spec, 'env'> => ({
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

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

async function register(berth: Client, spec: Registration): Promise<ServiceDetail> {
  await berth.register(spec);
  return berth.service(spec.name);
}

/** A new service. Its ready URL needs its port, which is known once it is registered when the port is `auto`. */
async function create(berth: Client, file: string, service: ProjectService): Promise<Registered> {
  const port = service.port === 'auto' ? 0 : service.port;
  const isLate = port === 0 && readyUrl(service.ready, 0) !== service.ready;
  const detail = await register(
    berth,
    wanted(file, isLate ? { ...service, ready: null } : service, port, port),
  );
  const whole = isLate ? await register(berth, wanted(file, service, 0, detail.port)) : detail;
  return { detail: whole, change: 'registered', mustRestart: false };
}

export interface Registered {
  detail: ServiceDetail;
  change: 'registered' | 'updated' | 'unchanged';
  /** A process runs that was made of an older registration. */
  mustRestart: boolean;
}

/**
 * Registers `service` as the project `file` wants it. `before` is what is registered now. The values of `env` are never
 * read back, so a change of them shows in the spec's hash, with everything else left as it was.
 */
export async function registerService(
  berth: Client,
  file: string,
  service: ProjectService,
  before: ServiceDetail | undefined,
): Promise<Registered> {
  if (!before) return create(berth, file, service);
  const isAuto = service.port === 'auto';
  const readyPort = isAuto ? before.port : Number(service.port);
  const goal = wanted(file, service, isAuto ? 0 : readyPort, readyPort);
  const alive = before.pid !== undefined;
  // An older process with the mark of a calm change is as good as one of the newest registration.
  const wasCalm = !before.stale || before.labels.includes(CALM);

  const changed = FIELDS.filter((field) => !same(goal[field], before[field]));
  const labelsChanged = !same(
    goal.labels,
    before.labels.filter((label) => label !== CALM),
  );
  const portChanged = !isAuto && goal.port !== before.port;
  if (portChanged || changed.some((field) => OF_THE_PROCESS.includes(field)))
    return { detail: await register(berth, goal), change: 'updated', mustRestart: alive };

  const withEnv = await register(berth, { ...specOf(before), port: isAuto ? 0 : before.port, env: goal.env });
  const envChanged = withEnv.specHash !== before.specHash;
  const isCalm = !envChanged && wasCalm;
  const mustRestart = alive && !isCalm;
  if (changed.length === 0 && !labelsChanged)
    return { detail: withEnv, change: envChanged ? 'updated' : 'unchanged', mustRestart };
  const labels = alive && isCalm ? [...goal.labels, CALM] : goal.labels;
  return { detail: await register(berth, { ...goal, labels }), change: 'updated', mustRestart };
}
