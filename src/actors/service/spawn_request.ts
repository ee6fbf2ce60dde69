// The message that makes the process host start a run: docs/reference.md "Environment of a process".
import type { EnvironmentRows } from '../../protocol/base_environment.ts';
import { isNotified, liveCheckOf } from '../../protocol/checks.ts';
import type { HostProtocol, RunMetadata } from '../../protocol/host.ts';
import type { ServiceSpec } from '../../protocol/service.ts';
import type { MessageOf } from '../../runtime/actor.ts';
import { checkOfRun } from './run.ts';

/** What the host gets as the port of a service without one. */
export const NO_PORT = 0;

/** The checks of `spec` as a run has them, for its metadata. */
export function checksOf(
  spec: Pick<ServiceSpec, 'ready' | 'live'>,
  metadata: RunMetadata,
): Pick<RunMetadata, 'ready' | 'live'> {
  const live = checkOfRun(spec.live, metadata);
  return { ready: checkOfRun(spec.ready, metadata), ...(live !== null && { live }) };
}

export interface SpawnedRun {
  name: string;
  run: string;
  /** With placeholders filled in. */
  spec: ServiceSpec;
  metadata: RunMetadata;
  /** The whole environment of its process. */
  env: EnvironmentRows;
  umask: number;
}

/** The request to start a run. */
export function spawnRequest({
  name,
  run,
  spec,
  metadata,
  env,
  umask,
}: SpawnedRun): MessageOf<HostProtocol, 'spawn'> {
  const { port, ready, live = null } = metadata;
  const { agent, limits } = spec;
  const watchdogMs = isNotified(live) ? (liveCheckOf(live, port)?.intervalMs ?? null) : null;
  return {
    service: name,
    run,
    cmd: spec.cmd,
    cwd: spec.cwd,
    env,
    port: port ?? NO_PORT,
    umask,
    pty: agent && { cols: agent.cols, rows: agent.rows },
    memo: metadata,
    ...((isNotified(ready) || isNotified(live)) && { notify: { watchdogMs } }),
    ...(limits && { limits }),
  };
}
