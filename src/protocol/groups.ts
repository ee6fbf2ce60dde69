import type { ServiceSpec, ServiceStatus, SleepReply, StartReply } from './service.ts';

/** A call of a group that is under way. A daemon that finds one completes it. */
export interface StoredGroupCall {
  /** Absent: a restart. */
  verb?: 'start' | 'stop' | 'sleep' | 'wake' | undefined;
  /** Of a restart; `start`: every member has already been stopped. */
  step: 'stop' | 'start';
  graceMs: number | null;
  timeoutMs: number | null;
  /** Epoch milliseconds. */
  at: number;
  /** The names of its members when it began. Absent in rows of earlier versions: those of the group now. */
  members?: string[] | undefined;
  /** Those that it has stopped or put to sleep. A client may have started them since. */
  done?: string[] | undefined;
}

/** Whether `call`, of the group `group`, is for the service `spec`, whose group may have changed since. */
export const isForService = (
  group: string,
  call: StoredGroupCall,
  spec: Pick<ServiceSpec, 'name' | 'group'>,
): boolean => call.members?.includes(spec.name) ?? spec.group === group;

/** A client has stopped a member, or put it to sleep, while a call of its group was under way. */
export interface StoredOverride {
  group: string;
}

/** Starts and stops whole groups in dependsOn order: docs/reference.md "Groups". */
export interface GroupsProtocol {
  start(message: { name: string; timeoutMs: number | null }): { services: StartReply[] };
  stop(message: { name: string; graceMs: number | null }): {
    services: { name: string; status: ServiceStatus; exitCode: number | null }[];
  };
  /** Stops the members as `stop` does, then starts them as `start` does. */
  restart(message: { name: string; graceMs: number | null; timeoutMs: number | null }): {
    services: StartReply[];
  };
  /** When the daemon or its thread starts: continues the calls that were under way. */
  resume(message: Record<string, never>): null;
  /** The daemon shuts down and keeps its services: the next one finishes what is under way at the end. */
  leave(message: Record<string, never>): null;
  /** Restarts the running services that depend on `name`, in dependsOn order. */
  restartDependants(message: { name: string }): null;
  /**
   * Starts a service and everything it depends on, in dependsOn order; running services are left alone.
   * `timeoutMs` applies to each of them.
   */
  wake(message: { name: string; timeoutMs: number | null }): StartReply;
  /**
   * From a service: a client is waiting for it, since the monotonic time `at`. The service is told if the
   * wake fails.
   */
  knocked(message: { name: string; at: number }): null;
  /** Puts the members with `sleep` to sleep, dependents first. The others are left alone. */
  sleepGroup(message: { name: string }): { services: SleepReply[] };
  /** Wakes the members with `sleep`, and everything they depend on. */
  wakeGroup(message: { name: string; timeoutMs: number | null }): { services: StartReply[] };
  /** Stops every service, dependents first, for the shutdown of the daemon. */
  shutdown(message: Record<string, never>): null;
}
