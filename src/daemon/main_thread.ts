// The main thread's node and the threads around it. Created first, so that the slowest parts start while the
// rest of the daemon's code is being loaded.
import { uptime } from 'node:os';
import type { HostStart } from '../adapters/host/host_start.ts';
import { newPagesInFlight } from '../adapters/storage/store_room.ts';
import { createNodeLookup, mayAsk, SERVICES_NODE } from '../protocol/address.ts';
import { fail } from '../protocol/errors.ts';
import { type Failure, isFailure, type Node } from '../runtime/actor.ts';
import { systemClock } from '../runtime/clock.ts';
import { deferred } from '../runtime/deferred.ts';
import { createNode } from '../runtime/node.ts';
import type { Settings } from '../settings/config.ts';
import { rulesFolder } from '../settings/config.ts';
import { THREADS } from '../settings/limits.ts';
import { isLoopback } from '../settings/loopback.ts';
import { cloudKeyPath } from '../settings/state_dir.ts';
import { relaySettings, remoteBerth } from './cloud_controller.ts';
import { report, reportCrash } from './daemon_log.ts';
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
  /** Whether the store goes back to its copy. */
  restoreStore: boolean;
  /** Whether events are reported as they happen. */
  verbose: boolean;
  /** The configuration file, which may be absent. */
  configPath: string;
  /** Reads the settings again; rejects with a SettingsError. */
  reload: () => Promise<Settings>;
}

export interface MainThread {
  node: Node;
  threads: ThreadSupervisor;
  data: ThreadData;
  /** The longest delay of this thread's timers in the last minute, in milliseconds. */
  lagMs: () => number;
  /** Accepts messages of the threads, once the actors of this thread exist. */
  acceptMessages: () => void;
}

function threadData({ settings, stateDir, hostEntry, umask, configPath }: DaemonOptions): ThreadData {
  return {
    stateDir,
    hostEntry,
    session: `${process.pid}-${performance.timeOrigin}`,
    umask,
    bootedAt: Date.now() - uptime() * 1000,
    servicePorts: settings.services.ports,
    agentPorts: settings.agents.ports,
    agentDomain: settings.agents.domain,
    notify: settings.notify,
    rulesFolder: rulesFolder(configPath),
    api: { bind: settings.bind, port: settings.port },
    storeInFlight: newPagesInFlight(),
    addressRule: {
      allow: settings.cloud.allow_addresses,
      apiOnLoopback: isLoopback(settings.cloud.bind || settings.bind),
    },
    cloud: {
      keyFile: cloudKeyPath(settings.cloud.key_file, stateDir),
      tetherPorts: settings.cloud.tether_ports,
      sweepMs: settings.cloud.sweep_interval_ms,
      allowInCluster: settings.cloud.allow_in_cluster,
      relay: relaySettings(settings, stateDir),
      remote: remoteBerth(settings, stateDir),
    },
  };
}

const LOST = 'the services cannot be looked after: they live on, and the next daemon has them';

/**
 * Creates the node and the supervisor, and assigns the services thread, which is up already. `bootDaemon`
 * waits for it. `onServicesLost` gets the failure when that thread has died too often: the daemon is useless
 * without it.
 */
export function createMainThread(
  options: DaemonOptions,
  hostStart: HostStart,
  services: StartedWorker,
  onServicesLost: (error: Failure) => void,
): MainThread {
  const data = threadData(options);
  const mainHeartbeat = heartbeatMemory();
  const { note, lagMs } = startHeartbeat(mainHeartbeat, systemClock);
  const servicesData = (isRestart: boolean): ServicesThreadData => ({
    ...data,
    // They may have been read again.
    notify: options.settings.notify,
    hostStart: isRestart ? 'running' : hostStart,
    mainHeartbeat,
    restoreStore: options.restoreStore && !isRestart,
    isFirstThread: !isRestart,
  });
  const node = createNode({
    name: 'front',
    clock: systemClock,
    nodeOf: createNodeLookup(THREADS.tethers),
    mayAsk,
    onCrash: reportCrash,
    onHandle: note,
    defaultDeadlineMs: THREADS.askDeadlineMs,
  });
  const heard = deferred<void>();
  const threads = createThreadSupervisor({
    node,
    tetherThreads: THREADS.tethers,
    dataFor: (kind, isRestart) => (kind === 'services' ? servicesData(isRestart) : data),
    receiveAfter: heard.promise,
    startedWorkers: new Map([[SERVICES_NODE, services]]),
    onUnendable: (diagnosis) => endProcess(`${diagnosis.stack ?? diagnosis.message}\nit cannot be ended`),
    onDeath: (name, error, sequel) => {
      if (!isFailure(error)) reportCrash(`the thread ${name}`, error, sequel === 'refused');
      if (sequel === 'restarts') return;
      if (name !== SERVICES_NODE) {
        const pause = `it died too often, and starts again in ${THREADS.pauseMs / 1_000} s`;
        if (sequel === 'pauses') report(`the thread ${name}: ${pause}`);
        return;
      }
      // A refusal says why. A thread that dies while it starts only says that it is gone.
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
