// The data that the threads of a daemon or cloud server receive.
import { uptime } from 'node:os';
import { newChangePermit } from '../adapters/change_permit.ts';
import { isCopyOfRunning } from '../adapters/process/running_daemon.ts';
import { newPagesInFlight } from '../adapters/storage/store_room.ts';
import { rulesFolder, type Settings } from '../settings/config.ts';
import { isLoopback } from '../settings/loopback.ts';
import { cloudKeyPath } from '../settings/state_dir.ts';
import { relaySettings, remoteBerth } from './cloud_controller.ts';
import type { ThreadData } from './thread_data.ts';

export interface ThreadDataOptions {
  settings: Settings;
  stateDir: string;
  /** The built file of the process host. */
  hostEntry: string;
  /** The umask of the user, for children. */
  umask: number;
  /** The configuration file, which may be absent. */
  configPath: string;
  /** Whether this is `berth cloud serve`. */
  isCloudServer: boolean;
}

/** The data of a daemon's threads. Throws a SettingsError. */
export function createThreadData({ settings, stateDir, ...rest }: ThreadDataOptions): ThreadData {
  const { hostEntry, umask, configPath, isCloudServer } = rest;
  return {
    stateDir,
    hostEntry,
    session: `${process.pid}-${performance.timeOrigin}`,
    umask,
    // What the daemon of the original has not finished is left to it, as after a reboot.
    bootedAt: isCopyOfRunning(stateDir) ? Date.now() : Date.now() - uptime() * 1000,
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
      changePermit: newChangePermit(settings.cloud.database_url === ''),
      keyFile: cloudKeyPath(settings.cloud.key_file, stateDir),
      tetherPorts: settings.cloud.tether_ports,
      sweepMs: settings.cloud.sweep_interval_ms,
      allowInCluster: settings.cloud.allow_in_cluster,
      databaseUrl: settings.cloud.database_url,
      advertised: null,
      relay: relaySettings(settings, stateDir),
      remote: remoteBerth(settings, stateDir),
      isServer: isCloudServer,
      quotas: {
        tethers: settings.cloud.quota_tethers,
        connections: settings.cloud.quota_connections,
        wakesPerHour: settings.cloud.quota_wakes_per_hour,
      },
    },
  };
}
