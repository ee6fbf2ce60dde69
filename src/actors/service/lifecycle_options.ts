// The dependencies of a service's life cycle.
import type { LastCheck, LastEnd } from '../../protocol/service.ts';
import type { Context } from '../../runtime/actor.ts';
import type { AgentSession } from './agent_session.ts';
import type { ProbeContext } from './check_probes.ts';
import type { ServiceEffects } from './effects.ts';
import type { LiveRun } from './run.ts';
import type { ServiceDoor } from './service_door.ts';

export interface LifecycleOptions {
  context: Context;
  name: string;
  effects: ServiceEffects;
  door: ServiceDoor;
  session: AgentSession;
  probes: ProbeContext;
  /** When the machine was booted, epoch milliseconds. Restarts owed from before that are dropped. */
  bootedAt: number;
  /** The last lines a run has printed. */
  lastLines: (run: string) => Promise<string[]>;
  /** Called after each change of the phase or the record. */
  onChanged: () => void;
  /** Called when the live-check of a run has failed. */
  onUnhealthy: (run: LiveRun, check: LastCheck) => void;
  /** Whether the run is being stopped in order to be started again. */
  isRelaunched: (run: LiveRun) => boolean;
  /** Whether a client has stopped the service since its last start. */
  isReleased: () => boolean;
  /** Called once for each end. */
  onEnded: (run: LiveRun, end: LastEnd) => void;
}
