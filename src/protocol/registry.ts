import type { ServiceInput, ServiceSpec, StoredService } from './service.ts';

/** A member of a group. */
export type Member = Pick<ServiceSpec, 'name' | 'dependsOn' | 'kind' | 'sleep'>;

/** Owns the set of services. Commits in groups; each reply is sent after its record is on disk. */
export interface RegistryProtocol {
  /**
   * Sends every record to the views and makes every service actor adopt its run. With `autostart`, then
   * starts the autostart services without waiting for them. Repeated when the process host comes back.
   * `nothingRuns`: the host, not up yet, is known to have no runs, so it is not asked.
   */
  boot(message: { autostart: boolean; nothingRuns?: boolean }): null;
  /**
   * Creates or replaces. `created` false: it existed. Fails invalid_spec (cycle), name_in_use, port_in_use,
   * storage_full.
   */
  register(message: { input: ServiceInput }): { stored: StoredService; created: boolean };
  /**
   * Stops the service if necessary and removes it. `agent`: fails unknown_agent for a service that is not an
   * agent.
   */
  remove(message: { name: string; agent: boolean; graceMs: number | null }): { port: number | null };
  /** The spec of a service, or null for an unknown name, and whether it sleeps. */
  specOf(message: { name: string }): { spec: ServiceSpec | null; isAsleep: boolean };
  /** Whether a service is registered, once a change or a removal of it that is under way has ended. */
  isRegistered(message: { name: string }): { isRegistered: boolean };
  /**
   * The members of a group, or of all groups if null, with their dependencies; `stack`: only those of one
   * stack.
   */
  members(message: { group: string | null; stack?: string }): { members: Member[] };
  /** The watcher has restarted: makes every service that watches files register with it again. */
  watchAgain(message: Record<string, never>): null;
  /**
   * Closed: the stack is being removed, so registrations in it fail daemon_busy, except those of its hooks.
   */
  closeStack(message: { stack: string; isClosed: boolean }): null;
  /** Refuses every change from now on with daemon_busy: the daemon shuts down and keeps its services. */
  close(message: Record<string, never>): null;
}
