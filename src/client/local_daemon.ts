// Finds this user's daemon and its tokens: through BERTH_URL or <state>/daemon.json, never by guessing a
// port. docs/reference.md "State directory", "Tokens".
import { readFileSync } from 'node:fs';
import { mayBeAlive } from '../adapters/process/process_table.ts';
import { localUrl } from '../adapters/url_host.ts';
import { loadSettings, type Settings } from '../settings/config.ts';
import { type AddressRecord, readSecret, stateDirPath } from '../settings/state_dir.ts';
import { statePaths } from '../settings/state_paths.ts';
import { type Client, createClient } from './create_client.ts';
import { BerthError } from './errors.ts';
import { nodeTransport } from './node_transport.ts';

type Env = Readonly<Record<string, string | undefined>>;

export interface LocalOptions {
  /** Default: `$BERTH_URL`, else the daemon that uses the state directory. */
  url?: string | undefined;
  /** Default: `$BERTH_STATE_DIR`, else `$XDG_STATE_HOME/berth`. */
  stateDir?: string | undefined;
  /**
   * The configuration file that holds the tokens. Default: `$BERTH_CONFIG`, else
   * `$XDG_CONFIG_HOME/berth/config.toml`.
   */
  config?: string | undefined;
  env?: Env;
  deadlineMs?: number;
  busyRetryMs?: number;
}

export interface LocalDaemon {
  client: Client;
  settings: Settings;
  stateDir: string;
  /** The current address of the daemon. Throws a BerthError `unreachable` when none runs. */
  url: () => string;
  /** The current cloud token; null when there is none yet. */
  cloudToken: () => string | null;
}

const HINT = 'Start one in the background with `berth daemon start`, or here with `berth daemon`.';

/** The content of `<state>/daemon.json`, if its daemon is alive; otherwise undefined. */
export function runningDaemon(stateDir: string): AddressRecord | undefined {
  try {
    const file: AddressRecord = JSON.parse(readFileSync(statePaths(stateDir).addressFile, 'utf8'));
    const { pid, port, startTime } = file;
    // Pids are reused: the start time identifies the process that wrote the file.
    return Number.isInteger(pid) && Number.isInteger(port) && mayBeAlive(pid, startTime) ? file : undefined;
  } catch {
    // Absent, or in an unknown format: no daemon of ours.
    return undefined;
  }
}

function cloudUrlOf({ cloud }: Settings, daemonUrl: () => string, env: Env): () => string {
  const named = env['BERTH_CLOUD_URL'];
  if (named) return () => named;
  if (cloud.bind === '') return daemonUrl;
  return () => localUrl(cloud.bind, cloud.port, cloud.tls_cert === '' ? 'http' : 'https');
}

/** Finds the daemon, with its addresses and tokens. Throws a SettingsError for an invalid configuration. */
export async function findLocalDaemon(options: LocalOptions = {}): Promise<LocalDaemon> {
  const env = options.env ?? process.env;
  const stateDir = stateDirPath(options.stateDir, env);
  const settings = await loadSettings(options.config, env);
  const named = options.url ?? (env['BERTH_URL'] || undefined);
  const url = (): string => {
    if (named !== undefined) return named;
    const daemon = runningDaemon(stateDir);
    if (daemon) return localUrl(settings.bind, daemon.port);
    throw new BerthError('unreachable', 'no daemon is running', { hint: HINT });
  };
  const cloudToken = (): string | null =>
    settings.cloud.token || readSecret(statePaths(stateDir).cloudToken)?.toString().trim() || null;
  const client = createClient(nodeTransport, {
    url,
    token: settings.auth.token || null,
    cloudUrl: cloudUrlOf(settings, url, env),
    cloudToken,
    ...(options.deadlineMs === undefined ? {} : { deadlineMs: options.deadlineMs }),
    ...(options.busyRetryMs === undefined ? {} : { busyRetryMs: options.busyRetryMs }),
  });
  return { client, settings, stateDir, url, cloudToken };
}

/** A client of this user's daemon: `const berth = await connectLocal()`. */
export async function connectLocal(options: LocalOptions = {}): Promise<Client> {
  return (await findLocalDaemon(options)).client;
}
