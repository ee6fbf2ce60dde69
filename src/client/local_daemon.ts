// Finds this user's daemon and its tokens: through BERTH_URL or <state>/daemon.json, never by guessing a
// port. docs/reference.md "State directory", "Tokens".
import { existsSync } from 'node:fs';
import { isSuspended, SUSPENDED, wayToContinue } from '../adapters/process/process_table.ts';
import { STATE_ID_VARIABLE } from '../adapters/process/process_tree.ts';
import { runningDaemon } from '../adapters/process/running_daemon.ts';
import { localUrl, withScheme } from '../adapters/url_host.ts';
import { type AccessKey, parseAgentKeyId, parseKey } from '../protocol/access_key.ts';
import { loadSettings, type Settings, SettingsError } from '../settings/config.ts';
import { readSecret, stateDirPath } from '../settings/state_dir.ts';
import { stateDirId, statePaths } from '../settings/state_paths.ts';
import { type CloudLogin, cloudAccess, originOf } from './cloud_access.ts';
import { type Client, createClient } from './create_client.ts';
import { BerthError } from './errors.ts';
import { nodeTransport } from './node_transport.ts';

type Env = Readonly<Record<string, string | undefined>>;

export interface LocalOptions {
  /**
   * With or without `http://`. Default: the daemon that uses `stateDir`; if that is not given either,
   * `$BERTH_URL`, else the daemon that uses the default state directory.
   */
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
  /**
   * Whether a person acting within an agent uses the token in `$BERTH_AUTH_TOKEN`. The configuration proves
   * nothing, because the agent can read it too.
   */
  asPerson?: boolean;
}

/**
 * The URL by which the user has named the daemon; undefined: it is the one that uses the state directory. An
 * option is nearer to a command than a variable, which each agent's process has.
 */
export const namedUrl = (
  { url, stateDir }: Pick<LocalOptions, 'url' | 'stateDir'>,
  env: Env,
): string | undefined => url ?? (stateDir === undefined ? env['BERTH_URL'] || undefined : undefined);

/** The key of the agent that this process belongs to; null if none. Throws a SettingsError. */
export function agentKeyOf(env: Env): AccessKey | null {
  const text = env['BERTH_AGENT_TOKEN'];
  if (!text) return null;
  const key = parseKey(text);
  if (key && parseAgentKeyId(key.id)) return key;
  throw new SettingsError('BERTH_AGENT_TOKEN is not the token of an agent');
}

/** Whether a state directory is another one than that of the daemon that runs this process. */
function isOfOther(stateDir: string, env: Env): boolean {
  const own = env[STATE_ID_VARIABLE];
  return Boolean(own) && existsSync(stateDir) && stateDirId(stateDir) !== own;
}

/** The error when someone within an agent acts as a person without a token. */
const NOT_A_PERSON =
  'within an agent, a person is known by his token alone: give it in BERTH_AUTH_TOKEN, or call berth from a ' +
  'shell of your own';

export interface LocalDaemon {
  client: Client;
  settings: Settings;
  stateDir: string;
  /**
   * The current address of the daemon. Throws a BerthError: `unreachable` when none runs, `deadline` when it
   * is suspended.
   */
  url: () => string;
  /** The current cloud token; null when there is none yet. */
  cloudToken: () => string | null;
  /**
   * The origin of the Berth that has the clusters of `berth k8s`; null: it is the daemon that uses the state
   * directory.
   */
  cloudServer: () => string | null;
}

const HINT = 'Start one in the background with `berth daemon start`, or here with `berth daemon`.';

function cloudUrlOf({ cloud }: Settings, daemonUrl: () => string, env: Env): string {
  const named = env['BERTH_CLOUD_URL'];
  if (named) return withScheme(named);
  if (cloud.bind === '') return daemonUrl();
  return localUrl(cloud.bind, cloud.port, cloud.tls_cert === '' ? 'http' : 'https');
}

/** Finds the daemon, with its addresses and tokens. Throws a SettingsError for an invalid configuration. */
export async function findLocalDaemon(
  options: LocalOptions & { login?: CloudLogin } = {},
): Promise<LocalDaemon> {
  const env = options.env ?? process.env;
  const stateDir = stateDirPath(options.stateDir, env);
  let settings = await loadSettings(options.config, env);
  // The token of an agent is for its own daemon.
  const agent = options.stateDir !== undefined && isOfOther(stateDir, env) ? null : agentKeyOf(env);
  const isAgent = agent !== null && !options.asPerson;
  if (agent && options.asPerson && !env['BERTH_AUTH_TOKEN']) throw new SettingsError(NOT_A_PERSON);
  const named = namedUrl(options, env);
  const url = (): string => {
    if (named !== undefined) return withScheme(named);
    const daemon = runningDaemon(stateDir);
    if (!daemon) throw new BerthError('unreachable', 'no daemon is running', { hint: HINT });
    const { pid, port } = daemon;
    // It would accept the request, and never answer.
    if (isSuspended(pid))
      throw new BerthError('deadline', `the daemon (pid ${pid}) ${SUSPENDED}`, { hint: wayToContinue(pid) });
    return localUrl(settings.bind, port);
  };
  const cloudToken = (): string | null =>
    isAgent
      ? null
      : settings.cloud.token || readSecret(statePaths(stateDir).cloudToken)?.toString().trim() || null;
  const cloud = cloudAccess({
    url: () => cloudUrlOf(settings, url, env),
    token: cloudToken,
    isNamed: Boolean(env['BERTH_CLOUD_URL']) || named !== undefined || settings.cloud.remote !== '',
    hasToken: Boolean(env['BERTH_CLOUD_TOKEN']),
    login: options.login,
    stateDir,
  });
  const cloudServer = (): string | null => {
    const elsewhere = env['BERTH_CLOUD_URL'] || named;
    const server = elsewhere ? withScheme(elsewhere) : settings.cloud.remote || options.login?.url(stateDir);
    const daemon = runningDaemon(stateDir);
    const own = daemon && cloudUrlOf(settings, () => localUrl(settings.bind, daemon.port), {});
    const [at, ownAt] = [server, own].map((url) => (url ? originOf(url) : null));
    return at === ownAt ? null : (at ?? null);
  };
  const rereadAccess = async (): Promise<void> => {
    // A file that somebody is editing may be invalid for a moment.
    settings = await loadSettings(options.config, env).catch(() => settings);
  };
  const ownAccess = { token: () => settings.auth.token || null, rereadAccess, ...cloud };
  const client = createClient(nodeTransport, {
    url,
    ...(isAgent ? { key: () => agent, isOnlyKey: true } : ownAccess),
    forcedIn: agent && options.asPerson ? (parseAgentKeyId(agent.id)?.name ?? null) : null,
    // The process named in daemon.json is alive, so it holds that port.
    asksTokenless: named === undefined,
    ...(options.deadlineMs === undefined ? {} : { deadlineMs: options.deadlineMs }),
    ...(options.busyRetryMs === undefined ? {} : { busyRetryMs: options.busyRetryMs }),
  });
  return { client, settings, stateDir, url, cloudToken, cloudServer };
}

/** A client of this user's daemon: `const berth = await connectLocal()`. */
export async function connectLocal(options: LocalOptions = {}): Promise<Client> {
  return (await findLocalDaemon(options)).client;
}
