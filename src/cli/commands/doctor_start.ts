// The check of `berth doctor` for what would keep a daemon from starting, while none runs.
import { suspendedHost } from '../../adapters/host/suspended_host.ts';
import { portRefusal } from '../../adapters/loopback_listener.ts';
import { SUSPENDED, wayToContinue } from '../../adapters/process/process_table.ts';
import { runningDaemon } from '../../adapters/process/running_daemon.ts';
import { checkDaemonStore } from '../../adapters/storage/store_presence.ts';
import { readTlsFiles } from '../../adapters/tls_files.ts';
import { hostInUrl } from '../../adapters/url_host.ts';
import type { Settings } from '../../settings/config.ts';
import { cloudKeyPath, readSecret } from '../../settings/state_dir.ts';
import { checkStateFiles } from '../../settings/state_files.ts';
import { statePaths } from '../../settings/state_paths.ts';
import { type DoctorCheck, errorMessage, withLocal } from './doctor_check.ts';
import type { DoctorFinding } from './doctor_finding.ts';

/** The first fault in the state directory, or of the files that the settings name; each is one line. */
function startFault({ cloud }: Settings, stateDir: string): string | null {
  const paths = statePaths(stateDir);
  const { cloudToken, envKey, agentKey } = paths;
  const secrets = [envKey, agentKey, cloudKeyPath(cloud.key_file, stateDir)];
  try {
    checkStateFiles(stateDir);
    for (const path of cloud.token === '' ? [cloudToken, ...secrets] : secrets) readSecret(path);
    checkDaemonStore(paths);
    if (cloud.tls_cert !== '') readTlsFiles({ cert: cloud.tls_cert, key: cloud.tls_key });
    return null;
  } catch (error) {
    return errorMessage(error);
  }
}

/** A port of the settings, and what is missing while another program has it. */
interface WantedPort {
  name: string;
  bind: string;
  port: number;
  without: 'daemon' | 'gateway';
}

function wantedPorts({ bind, port, gateway, cloud }: Settings): WantedPort[] {
  const ports: WantedPort[] = [
    { name: 'port', bind, port, without: 'daemon' },
    { name: 'gateway.port', bind: '127.0.0.1', port: gateway.port, without: 'gateway' },
  ];
  if (cloud.bind !== '') {
    ports.push({ name: 'cloud.port', bind: cloud.bind, port: cloud.port, without: 'daemon' });
    if (cloud.remote === '')
      ports.push({ name: 'cloud.relay_port', bind: cloud.bind, port: cloud.relay_port, without: 'daemon' });
  }
  // 0 is any free port, -1 none.
  return ports.filter((wanted) => wanted.port > 0);
}

async function portFinding({ name, bind, port, without }: WantedPort): Promise<DoctorFinding[]> {
  const refusal = await portRefusal(bind, port);
  if (refusal === null) return [];
  const shown = `${hostInUrl(refusal.address)}:${port}`;
  const why =
    refusal.refused === 'EADDRINUSE' ? 'is taken by something else' : `cannot be used (${refusal.refused})`;
  return [
    {
      state: without === 'daemon' ? 'wrong' : 'warning',
      about: `no daemon is running, and its port ${port} ${why}: ${name} at ${shown}`,
      fix: `The ${without} does not start with it: free the port, or set another one in the configuration.`,
    },
  ];
}

/** What would keep a daemon from starting, while none runs. */
export const daemonStart: DoctorCheck = withLocal(async (_cli, { settings, stateDir }) => {
  if (runningDaemon(stateDir)) return [];
  const fault = startFault(settings, stateDir);
  const findings: DoctorFinding[] =
    fault === null ? [] : [{ state: 'wrong', about: fault, fix: 'The daemon does not start with it.' }];
  const host = suspendedHost(statePaths(stateDir).host);
  if (host !== undefined)
    findings.push({
      state: 'wrong',
      about: `the process host (pid ${host}) ${SUSPENDED}`,
      fix: wayToContinue(host),
    });
  for (const wanted of wantedPorts(settings)) findings.push(...(await portFinding(wanted)));
  return findings;
});
