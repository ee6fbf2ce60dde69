// A client: an address, a token, a transport, and the methods.
import { access } from '../api/access.ts';
import { type AccessKey, parseKey } from '../protocol/access_key.ts';
import { keyOfToken } from '../protocol/api_token.ts';
import { DEFAULT_DEADLINE_MS, type Endpoint } from './api_call.ts';
import { accessMethods } from './methods/access.ts';
import { agentMethods } from './methods/agents.ts';
import { cloudMethods } from './methods/cloud.ts';
import { commandMethods } from './methods/commands.ts';
import { eventMethods } from './methods/events.ts';
import { groupMethods } from './methods/groups.ts';
import { logMethods } from './methods/logs.ts';
import { serviceMethods } from './methods/services.ts';
import { stackMethods } from './methods/stacks.ts';
import { systemMethods } from './methods/system.ts';
import type { Access } from './prove_server.ts';
import type { Transport } from './transport.ts';

const daemonMethods = (endpoint: Endpoint) => ({
  ...systemMethods(endpoint),
  ...serviceMethods(endpoint),
  ...groupMethods(endpoint),
  ...stackMethods(endpoint),
  ...eventMethods(endpoint),
  ...logMethods(endpoint),
  ...agentMethods(endpoint),
  ...commandMethods(endpoint),
  ...accessMethods(endpoint),
});

/** The methods for clusters, workloads and tethers. */
export type CloudClient = ReturnType<typeof cloudMethods>;

/** The methods of a daemon. */
export type Client = ReturnType<typeof daemonMethods> & { cloud: CloudClient };

/** A value, or a function that returns it for every call. */
type ValueOrGetter<T> = T | (() => T);

export interface ClientOptions {
  /** Where the daemon is, such as `http://127.0.0.1:11611`. */
  url: ValueOrGetter<string>;
  /** The daemon's `auth.token`, or a share token. It is never sent: the server proves that it knows it. */
  token?: ValueOrGetter<string | null>;
  /** Address of the cloud API, if it has its own listener; default: `url`. */
  cloudUrl?: ValueOrGetter<string>;
  /** The daemon's cloud token, or an API token. */
  cloudToken?: ValueOrGetter<string | null>;
  /** Deadline of a call that does not wait for a state, in milliseconds. Default 30 s. */
  deadlineMs?: number;
  /**
   * How long a call is retried while the daemon is busy, in milliseconds. Default 0: `daemon_busy` is thrown
   * like any other error.
   */
  busyRetryMs?: number;
}

/** Options of clients within Berth. */
interface InternalOptions extends ClientOptions {
  /** Used instead of the token. */
  key?: () => AccessKey | null;
  /** Whether the same key is also used for the cloud part, instead of the cloud token. */
  isOnlyKey?: boolean;
  /** The agent from within which a person forces a change. */
  forcedIn?: string | null;
  /** The key for each call of the cloud part, instead of the cloud token. */
  cloudKey?: () => Promise<AccessKey | null>;
  /** Rereads the settings that keys and tokens come from, after one was refused. */
  rereadAccess?: () => Promise<void>;
  /** Whether a daemon that says it has no token may be called without one, because its address is certain. */
  asksTokenless?: boolean;
}

function toGetter<T extends string | null>(value: ValueOrGetter<T>): () => T {
  return typeof value === 'function' ? value : () => value;
}

/** Without a slash at the end, and with the scheme in lower case: transports choose TLS and proof by it. */
const baseUrl = (url: () => string) => () => {
  const given = url();
  return (URL.canParse(given) ? new URL(given).href : given).replace(/\/+$/, '');
};

/** The key of a token; null without one. */
function keyOf(token: ClientOptions['token'] = null): () => AccessKey | null {
  const get = toGetter(token);
  return () => {
    const secret = get();
    if (!secret) return null;
    return secret.startsWith('share-') ? parseKey(secret) : keyOfToken(secret);
  };
}

const accessBy =
  (
    key: () => AccessKey | null | Promise<AccessKey | null>,
    proofPath: string,
    asksTokenless = false,
  ): Endpoint['access'] =>
  () => {
    const access = (key: AccessKey | null): Access | null => key && { key, proofPath, asksTokenless };
    const found = key();
    return found instanceof Promise ? found.then(access) : access(found);
  };

/** A client over `transport`. The entry points of this folder supply the transport. */
export function createClient(transport: Transport, options: InternalOptions): Client {
  const { deadlineMs = DEFAULT_DEADLINE_MS, busyRetryMs = 0, asksTokenless, isOnlyKey, forcedIn } = options;
  const { cloudKey = keyOf(options.cloudToken), rereadAccess } = options;
  const key = options.key ?? keyOf(options.token);
  const shared = { transport, deadlineMs, busyRetryMs, ...(rereadAccess ? { rereadAccess } : {}) };
  const daemon: Endpoint = {
    ...shared,
    url: baseUrl(toGetter(options.url)),
    access: accessBy(key, access.prove.path, asksTokenless),
    ...(forcedIn ? { forcedIn } : {}),
  };
  const cloud: Endpoint = {
    ...shared,
    url: options.cloudUrl === undefined ? daemon.url : baseUrl(toGetter(options.cloudUrl)),
    access: isOnlyKey ? daemon.access : accessBy(cloudKey, access.proveCloud.path),
  };
  return { ...daemonMethods(daemon), cloud: cloudMethods(cloud) };
}
