import type { AddressRule } from '../adapters/address_rule.ts';
import type { ChangePermit } from '../adapters/change_permit.ts';
import type { HostStart } from '../adapters/host/host_start.ts';
import type { RelayAddress } from '../adapters/relay/relay_server.ts';
import type { PagesInFlight } from '../adapters/storage/store_room.ts';
import type { RemoteBerth } from '../client/remote_berth.ts';
import type { HolderAddress } from '../protocol/cloud_views.ts';
import type { Quotas } from '../protocol/quotas.ts';
import type { NoticeRule } from '../settings/notify.ts';

/** Where other Berths connect, and the secret for their tickets. */
export interface RelaySettings {
  address: RelayAddress;
  isBehindProxy: boolean;
  cloudToken: string;
}

/** What this daemon passes to every worker thread. Plain data. */
export interface ThreadData {
  stateDir: string;
  /** The built file of the process host. */
  hostEntry: string;
  /** Identifies one run of the daemon; all its threads share it. */
  session: string;
  /** The user's umask, for children; the daemon's own is 077. */
  umask: number;
  /** When the machine was booted, or the daemon on a copy of a state directory, epoch milliseconds. */
  bootedAt: number;
  servicePorts: [from: number, to: number];
  agentPorts: [from: number, to: number];
  agentDomain: string;
  /** `[[notify]]`. */
  notify: readonly NoticeRule[];
  /** The folder of the user's screen rules. */
  rulesFolder: string;
  /** The API's address in the settings; port 0: any free one. */
  api: { bind: string; port: number };
  /** Shared by the threads that have the store open. */
  storeInFlight: PagesInFlight;
  /** The allowed addresses of clusters, for the cloud's threads, which dial them. */
  addressRule: AddressRule;
  cloud: {
    /** Whether clusters may be changed: always, or only as the lease of the shared database allows. */
    changePermit: ChangePermit;
    keyFile: string;
    tetherPorts: [from: number, to: number];
    sweepMs: number;
    allowInCluster: boolean;
    /** Where other Berths connect; null: nowhere. */
    relay: RelaySettings | null;
    /** The database that is shared with other Berths; empty: the store of the state directory is used. */
    databaseUrl: string;
    /** Where the other Berths of the database reach this one; null: nowhere. */
    advertised: HolderAddress | null;
    /** The Berth whose clusters and workloads are shown here; null: its own. */
    remote: RemoteBerth | null;
    /** Whether this is `berth cloud serve`, where only the cloud part opens the store. */
    isServer: boolean;
    /** Of each API token and each person. */
    quotas: Quotas;
  };
}

/** The assignment of the services thread. */
export interface ServicesThreadData extends ThreadData {
  /** For the first services thread of a daemon. A replacement finds the host `running`. */
  hostStart: HostStart;
  /** The heartbeat of the main thread, which this thread watches. */
  mainHeartbeat: SharedArrayBuffer;
  /** Whether to restore the store from its copy. */
  restoreStore: boolean;
  /** Whether no other thread has the store open. */
  isFirstThread: boolean;
}
