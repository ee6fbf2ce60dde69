import type { ServiceInput, ServiceSpec, StoredService } from './service.ts';

/** Owns which services exist. Commits in groups: a reply is sent after the record is on disk. */
export interface RegistryProtocol {
  /**
   * Tells the views every record and has every service actor adopt its run; with `autostart` it then starts
   * what is to start with the daemon, without waiting for it. Also for a process host that is back.
   * `nothingRuns`: the host, which is still to come, need not be asked what does.
   */
  boot(message: { autostart: boolean; nothingRuns?: boolean }): null;
  /**
   * Creates or replaces. `created` false: it was there. Fails invalid_spec (cycle), name_in_use, port_in_use,
   * storage_full.
   */
  register(message: { input: ServiceInput }): { stored: StoredService; created: boolean };
  /** Stops it if need be and forgets it. With `agent` only what is one: else unknown_agent. */
  remove(message: { name: string; agent: boolean; graceMs: number | null }): { port: number };
  /** The spec of a service, or null when there is none of that name. */
  specOf(message: { name: string }): { spec: ServiceSpec | null };
  /** Members of a group, or with null of all groups, with what orders them. */
  members(message: { group: string | null }): { members: { name: string; dependsOn: string[] }[] };
  /** From now on every change is refused with daemon_busy: the daemon is shutting down. */
  close(message: Record<string, never>): null;
}
