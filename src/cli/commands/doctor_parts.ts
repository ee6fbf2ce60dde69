// The check of `berth doctor` for the parts of a running daemon: its store, its process host, and its ports.
import { suspendedHost } from '../../adapters/host/suspended_host.ts';
import { SUSPENDED, wayToContinue } from '../../adapters/process/process_table.ts';
import { runningDaemon } from '../../adapters/process/running_daemon.ts';
import { checkDaemonStore } from '../../adapters/storage/store_presence.ts';
import type { Client } from '../../client/create_client.ts';
import type { Settings } from '../../settings/config.ts';
import { statePaths } from '../../settings/state_paths.ts';
import { type DoctorCheck, errorMessage, versionOf, withDaemon } from './doctor_check.ts';
import type { DoctorFinding } from './doctor_finding.ts';

function storeFindings(stateDir: string): DoctorFinding[] {
  try {
    checkDaemonStore(statePaths(stateDir));
    return [];
  } catch (error) {
    const fix = 'Restart the daemon: until then it refuses changes.';
    return [{ state: 'wrong', about: errorMessage(error), fix }];
  }
}

async function hostFindings(client: Client, stateDir: string): Promise<DoctorFinding[]> {
  const { host } = await client.system();
  if (host !== null) return [];
  const { host: folder, hostLog } = statePaths(stateDir);
  const pid = suspendedHost(folder);
  return [
    {
      state: 'wrong',
      about: 'the process host does not answer: services keep running, but none can be started or stopped',
      fix:
        pid === undefined ? `Its log is ${hostLog}.` : `It (pid ${pid}) ${SUSPENDED}: ${wayToContinue(pid)}`,
    },
  ];
}

/** The ports that the daemon does not have although the configuration names them. 0 is any port, -1 none. */
async function portFindings(
  client: Client,
  { port, gateway }: Settings,
  running: { port: number },
): Promise<DoctorFinding[]> {
  const { gatewayPort } = await versionOf(client);
  const ports = [
    { name: 'port', wanted: port, used: running.port },
    { name: 'gateway.port', wanted: gateway.port, used: gatewayPort ?? gateway.port },
  ];
  return ports
    .filter(({ wanted, used }) => wanted > 0 && wanted !== used)
    .map(({ name, wanted, used }) => ({
      state: 'warning',
      about: `the daemon uses port ${used}, and the configuration has ${name} = ${wanted}`,
      fix: 'The daemon reads its ports when it starts: `berth daemon restart`.',
    }));
}

/** What is wrong with the parts of a daemon that answers. */
export const daemonParts: DoctorCheck = withDaemon(async (_cli, { client, settings, stateDir }) => {
  const running = runningDaemon(stateDir);
  if (!running) return [];
  try {
    return [
      ...storeFindings(stateDir),
      ...(await hostFindings(client, stateDir)),
      ...(await portFindings(client, settings, running)),
    ];
  } catch {
    // `daemon` reports why it does not answer.
    return [];
  }
});
