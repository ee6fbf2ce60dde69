// The layout of the state directory: docs/reference.md "State directory". A separate file, because the
// process host needs nothing else from the settings.
import { statSync } from 'node:fs';
import { join } from 'node:path';

/** The paths in a state directory. */
export interface StatePaths {
  /** The address of the running daemon. */
  addressFile: string;
  /** The embedded store, of services and of the cloud part. */
  store: string;
  /** The copy of the last good state of the store. */
  storeCopy: string;
  /** The folder of damaged rows of the store. */
  damaged: string;
  /** The folder of the event journal. */
  events: string;
  /** The folder of the events of the cloud part. */
  cloudEvents: string;
  /** The folder of the services' output. */
  logs: string;
  /** The folder of the pipes to running processes. */
  runs: string;
  /** The folder in which the process host keeps its own files. */
  host: string;
  /** The folder of where removed logs have ended. */
  logEnds: string;
  /** The log of the process host. */
  hostLog: string;
  /** The log of a daemon in the background. */
  daemonLog: string;
  /** The cloud token, unless the settings have one. */
  cloudToken: string;
  /** The cloud token of the Berth of `cloud.remote`, unless the settings have one. */
  remoteToken: string;
  /** The tokens from `berth login`. */
  login: string;
  /** Locked by whoever changes the login. */
  loginLock: string;
  /** The key of the cloud part, unless the settings name another file. */
  cloudKey: string;
  /** The key that seals the environments of services. */
  envKey: string;
  /** The key from which the tokens of agents are derived. */
  agentKey: string;
  /** The folder of the pages that redirect a browser to the dashboard; each is deleted after its use. */
  redirectPages: string;
  /** What `berth agent init` has changed in projects. */
  agentSetup: string;
  /** Locked by a `berth agent init` that writes. */
  agentSetupLock: string;
  /** Such a page of version 0.1, which contained the token. */
  earlierRedirectPage: string;
}

/** The second link to the ledger of the host with the folder `host`. It remains when that is removed. */
export const ledgerLinkOf = (host: string): string => `${host}.ledger`;

/**
 * The id of a state directory, from its device and inode: a renamed directory keeps its id, a copy gets
 * another. Throws if it is missing. docs/reference.md "Copies of the state directory".
 */
export function stateDirId(stateDir: string): string {
  const { dev, ino } = statSync(stateDir, { bigint: true });
  return `${dev}-${ino}`;
}

/** The paths in the state directory at `stateDir`. */
export const statePaths = (stateDir: string): StatePaths => ({
  addressFile: join(stateDir, 'daemon.json'),
  store: join(stateDir, 'store.mdb'),
  storeCopy: join(stateDir, 'store.copy'),
  damaged: join(stateDir, 'damaged'),
  events: join(stateDir, 'events'),
  cloudEvents: join(stateDir, 'cloud-events'),
  logs: join(stateDir, 'logs'),
  runs: join(stateDir, 'runs'),
  host: join(stateDir, 'host'),
  logEnds: join(stateDir, 'host', 'log-ends'),
  hostLog: join(stateDir, 'host', 'host.log'),
  daemonLog: join(stateDir, 'daemon.log'),
  cloudToken: join(stateDir, 'cloud-token'),
  remoteToken: join(stateDir, 'remote-token'),
  login: join(stateDir, 'login.json'),
  loginLock: join(stateDir, 'login.lock'),
  cloudKey: join(stateDir, 'cloud.key'),
  envKey: join(stateDir, 'env.key'),
  agentKey: join(stateDir, 'agent.key'),
  redirectPages: join(stateDir, 'open'),
  agentSetup: join(stateDir, 'agent-setup.json'),
  agentSetupLock: join(stateDir, 'agent-setup.lock'),
  earlierRedirectPage: join(stateDir, 'open.html'),
});
