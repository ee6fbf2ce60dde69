// The main thread's node and the threads around it. Created first, so that the slowest parts start while the
// rest of the daemon's code is still loading.
import type { HostStart } from '../adapters/host/host_start.ts';
import { giveMemoryBackAtRest } from '../adapters/process/resting_memory.ts';
import { SERVICES_NODE } from '../protocol/address.ts';
import { fail } from '../protocol/errors.ts';
import { type Failure, isFailure, type Node } from '../runtime/actor.ts';
import { systemClock } from '../runtime/clock.ts';
import { deferred } from '../runtime/deferred.ts';
import type { Settings } from '../settings/config.ts';
import { THREADS } from '../settings/limits.ts';
import { POOL_SIZES } from '../settings/pool_sizes.ts';
import { createThreadData } from './create_thread_data.ts';
import { report, reportDeath, reportUnloaded } from './daemon_log.ts';
import { createFrontNode } from './front_node.ts';
import { endProcess } from './hanging_thread.ts';
import { heartbeatMemory, startHeartbeat } from './heartbeat.ts';
import type { ServicesThreadData, ThreadData } from './thread_data.ts';
import { createThreadSupervisor, type ThreadSupervisor } from './thread_supervisor.ts';
import type { StartedWorker } from './worker_thread.ts';

export interface DaemonOptions {
  settings: Settings;
  stateDir: string;
  /** The built file of the process host. */
  hostEntry: string;
  /** The umask of the user, for children. */
  umask: number;
  /** Whether to restore the store from its copy. */
  restoreStore: boolean;
  /** Whether to report events as they happen. */
  verbose: boolean;
  /** The configuration file, which may be absent. */
  configPath: string;
  /** Rereads the settings; rejects with a SettingsError. */
  reload: () => Promise<Settings>;
  /** Lets a process of its own restart the daemon. */
  restart: () => void;
}

export interface MainThread {
  node: Node;
  threads: ThreadSupervisor;
  data: ThreadData;
  /** The longest delay of this thread's timers in the last minute, in milliseconds. */
  lagMs: () => number;
  /** Accepts messages from the threads, once the actors of this thread exist. */
  acceptMessages: () => void;
}

const LOST = 'the services cannot be looked after: they live on, and the next daemon has them';

/**
 * Creates the node and the supervisor, and gives the services thread, already running, its assignment.
 * `bootDaemon` waits for it. `onServicesLost` gets the failure when that thread has died too often, because
 * the daemon is useless without it.
 */
export function createMainThread(
  options: DaemonOptions,
  hostStart: HostStart,
  services: StartedWorker,
  onServicesLost: (error: Failure) => void,
): MainThread {
  const data = createThreadData({ ...options, isCloudServer: false });
  const mainHeartbeat = heartbeatMemory();
  const { note, lagMs } = startHeartbeat(mainHeartbeat, systemClock);
  giveMemoryBackAtRest({ clock: systemClock });
  const servicesData = (isRestart: boolean): ServicesThreadData => ({
    ...data,
    // The notify settings may have been reread.
    notify: options.settings.notify,
    hostStart: isRestart ? 'running' : hostStart,
    mainHeartbeat,
    restoreStore: options.restoreStore && !isRestart,
    isFirstThread: !isRestart,
  });
  const node = createFrontNode(note);
  const heard = deferred<void>();
  const threads = createThreadSupervisor({
    node,
    pools: POOL_SIZES,
    dataFor: (kind, isRestart) => (kind === 'services' ? servicesData(isRestart) : data),
    receiveAfter: heard.promise,
    startedWorkers: new Map([[SERVICES_NODE, services]]),
    onUnendable: (diagnosis) => endProcess(`${diagnosis.stack ?? diagnosis.message}\nit cannot be ended`),
    onDeath: (name, error, sequel) => {
      if (sequel === 'awaits-files') return reportUnloaded(`the thread ${name}`, error);
      if (!isFailure(error)) reportDeath(name, error, sequel === 'refused');
      if (sequel === 'restarts') return;
      if (name !== SERVICES_NODE) {
        const pause = `it died too often, and starts again in ${THREADS.pauseMs / 1_000} s`;
        if (sequel === 'pauses') report(`the thread ${name}: ${pause}`);
        return;
      }
      // A refusal gives the reason. A thread that dies while it starts only reports that it is gone.
      onServicesLost(sequel === 'refused' && isFailure(error) ? error : fail('internal', LOST));
    },
  });
  threads.onRestarted(async (name) => {
    if (name !== SERVICES_NODE) return;
    await node.ref('registry').ask('boot', { autostart: false });
  });
  // Callers of `ensure` get the rejection.
  threads.ensure('services').catch(() => {});
  return { node, threads, data, lagMs, acceptMessages: heard.resolve };
}
