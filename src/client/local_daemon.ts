// Finds this user's daemon and its tokens: through BERTH_URL or <state>/daemon.json, never by guessing a
// port. docs/reference.md "State directory", "Tokens".
import { runningDaemon } from '../adapters/process/running_daemon.ts';
import { localUrl, withScheme } from '../adapters/url_host.ts';
import { loadSettings, type Settings } from '../settings/config.ts';
import { readSecret, stateDirPath } from '../settings/state_dir.ts';
import { statePaths } from '../settings/state_paths.ts';
import { type Client, createClient } from './create_client.ts';
import { BerthError } from './errors.ts';
import { nodeTransport } from './node_transport.ts';

type Env = Readonly<Record<string, string | undefined>>;

export interface LocalOptions {
  /** With or without `http://`. Default: `$BERTH_URL`, else the daemon that uses the state directory. */
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

function cloudUrlOf({ cloud }: Settings, daemonUrl: () => string, env: Env): () => string {
  const named = env['BERTH_CLOUD_URL'];
  if (named) return () => withScheme(named);
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
    if (named !== undefined) return withScheme(named);
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
    // The process that daemon.json names lives, so its port is its own.
    asksTokenless: named === undefined,
    ...(options.deadlineMs === undefined ? {} : { deadlineMs: options.deadlineMs }),
    ...(options.busyRetryMs === undefined ? {} : { busyRetryMs: options.busyRetryMs }),
  });
  return { client, settings, stateDir, url, cloudToken };
}

/** A client of this user's daemon: `const berth = await connectLocal()`. */
export async function connectLocal(options: LocalOptions = {}): Promise<Client> {
  return (await findLocalDaemon(options)).client;
}
