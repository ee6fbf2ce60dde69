import type { AddressRule } from '../adapters/address_rule.ts';
import type { HostStart } from '../adapters/host/host_start.ts';

/** What every worker thread gets to know of this daemon. Plain data. */
export interface ThreadData {
  stateDir: string;
  /** The built file of the process host. */
  hostEntry: string;
  /** One daemon's life; all its threads have the same. */
  session: string;
  /** The umask of the user, for children; the daemon's own is 077. */
  umask: number;
  /** When the machine was booted, epoch milliseconds. */
  bootedAt: number;
  servicePorts: [from: number, to: number];
  agentPorts: [from: number, to: number];
  agentDomain: string;
  /** Where clusters may be: for the cloud's threads, which dial them. */
  addressRule: AddressRule;
  cloud: {
    keyFile: string;
    tetherPorts: [from: number, to: number];
    sweepMs: number;
    allowInCluster: boolean;
  };
}

/** The assignment of the services thread. */
export interface ServicesThreadData extends ThreadData {
  /**
   * For the first services thread of a daemon; one that comes back after a death finds the host `running`.
   */
  hostStart: HostStart;
}
