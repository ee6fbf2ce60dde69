import type { ServiceStatus, SleepReply, StartReply } from './service.ts';

/** The restart of a group that is under way: a daemon that finds one makes it right. */
export interface StoredRestart {
  /** `start`: every member has been stopped. */
  step: 'stop' | 'start';
  graceMs: number | null;
  timeoutMs: number | null;
  /** Epoch milliseconds. */
  at: number;
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
  /** At a start of the daemon or of its thread: goes on with the restarts that were under way. */
  resume(message: Record<string, never>): null;
  /** Restarts the services that depend on `name`, and have a process, in dependsOn order. */
  restartDependants(message: { name: string }): null;
  /**
   * Starts a service with all that it depends on, in that order; what runs is left alone. `timeoutMs` is for
   * each of them.
   */
  wake(message: { name: string; timeoutMs: number | null }): StartReply;
  /** From a service: a client waits for it. It hears if the wake failed. */
  knocked(message: { name: string }): null;
  /** Puts the members that have `sleep` to sleep, dependents first. The others are left alone. */
  sleepGroup(message: { name: string }): { services: SleepReply[] };
  /** Wakes the members that have `sleep`, with all that they depend on. */
  wakeGroup(message: { name: string; timeoutMs: number | null }): { services: StartReply[] };
  /** Stops every service, dependents first: the shutdown of the daemon. */
  shutdown(message: Record<string, never>): null;
}
