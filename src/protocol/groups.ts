import type { ServiceStatus, StartResult } from './service.ts';

/** Starts and stops whole groups in dependsOn order: docs/reference.md "Groups". */
export interface GroupsProtocol {
  start(message: { name: string; timeoutMs: number | null }): { services: StartResult[] };
  stop(message: { name: string; graceMs: number | null }): {
    services: { name: string; status: ServiceStatus; exitCode: number | null }[];
  };
  /** Stops every service, dependents first: the shutdown of the daemon. */
  shutdown(message: Record<string, never>): null;
}
