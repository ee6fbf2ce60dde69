// What the watch of a service's files needs from the rest of it.
import type { Context } from '../../runtime/actor.ts';
import type { ServiceEffects } from './effects.ts';
import type { ServiceLifecycle } from './lifecycle.ts';

export interface FileWatchOptions {
  context: Context;
  name: string;
  effects: ServiceEffects;
  life: ServiceLifecycle;
  /** When the machine was booted, epoch milliseconds. Restarts owed from before that are dropped. */
  bootedAt: number;
  /**
   * `start` starts the service when it has no process; `restart` stops and starts it. They fail as a client's
   * requests do.
   */
  start: () => Promise<unknown>;
  restart: () => Promise<unknown>;
  /** Whether a restart is under way whose start has not begun. */
  isRestarting: () => boolean;
  /** Whether it is asleep, or will be when its run has ended. */
  isAsleep: () => boolean;
}
