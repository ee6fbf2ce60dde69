// The defaults of a registration, in one place: docs/reference.md "Fields of a service".
import { SERVICE } from '../settings/limits.ts';
import type { ServiceInput } from './service.ts';

type Required = 'name' | 'port' | 'cmd' | 'cwd' | 'env' | 'agent';

/** A registration with optional fields; null is the same as absent. */
export type PartialRegistration = Pick<ServiceInput, Required> & {
  [K in Exclude<keyof ServiceInput, Required>]?: ServiceInput[K] | null | undefined;
};

/** `given` with a default for every field left open. */
export const completeRegistration = (given: PartialRegistration): ServiceInput => ({
  name: given.name,
  port: given.port,
  cmd: given.cmd,
  cwd: given.cwd,
  group: given.group ?? null,
  ready: given.ready ?? null,
  env: given.env,
  dependsOn: given.dependsOn ?? [],
  restart: given.restart ?? 'no',
  autostart: given.autostart ?? false,
  stopSignal: given.stopSignal ?? 'SIGTERM',
  stopGrace: given.stopGrace ?? SERVICE.defaultStopGraceMs,
  startTimeout: given.startTimeout ?? SERVICE.defaultStartTimeoutMs,
  labels: given.labels ?? [],
  agent: given.agent,
});
