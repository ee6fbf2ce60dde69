import type { ServiceStatus, StartReply } from './service.ts';

/** Starts and stops whole groups in dependsOn order: docs/reference.md "Groups". */
export interface GroupsProtocol {
  start(message: { name: string; timeoutMs: number | null }): { services: StartReply[] };
  stop(message: { name: string; graceMs: number | null }): {
    services: { name: string; status: ServiceStatus; exitCode: number | null }[];
  };
  /** Restarts the services that depend on `name`, and have a process, in dependsOn order. */
  restartDependants(message: { name: string }): null;
  /** Stops every service, dependents first: the shutdown of the daemon. */
  shutdown(message: Record<string, never>): null;
}
