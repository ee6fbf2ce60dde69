// A client: an address, a token, a transport, and the methods.
import type { Endpoint } from './api_call.ts';
import { agentMethods } from './methods/agents.ts';
import { cloudMethods } from './methods/cloud.ts';
import { eventMethods } from './methods/events.ts';
import { groupMethods } from './methods/groups.ts';
import { serviceMethods } from './methods/services.ts';
import { systemMethods } from './methods/system.ts';
import type { Transport } from './transport.ts';

const daemonMethods = (endpoint: Endpoint) => ({
  ...systemMethods(endpoint),
  ...serviceMethods(endpoint),
  ...groupMethods(endpoint),
  ...eventMethods(endpoint),
  ...agentMethods(endpoint),
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
  /** The daemon's `auth.token`. */
  token?: ValueOrGetter<string | null>;
  /** Address of the cloud API, if it has its own listener; default: `url`. */
  cloudUrl?: ValueOrGetter<string>;
  cloudToken?: ValueOrGetter<string | null>;
  /** Deadline of a call that does not wait for a state, in milliseconds. Default 30 s. */
  deadlineMs?: number;
  /**
   * How long a call is retried while the daemon is busy, in milliseconds. Default 0: `daemon_busy` is thrown
   * like any other error.
   */
  busyRetryMs?: number;
}

const DEADLINE_MS = 30_000;

function toGetter<T extends string | null>(value: ValueOrGetter<T>): () => T {
  return typeof value === 'function' ? value : () => value;
}

const withoutSlash = (url: () => string) => () => url().replace(/\/+$/, '');

/** A client over `transport`. The entry points of this folder supply the transport. */
export function createClient(transport: Transport, options: ClientOptions): Client {
  const { deadlineMs = DEADLINE_MS, busyRetryMs = 0 } = options;
  const daemon: Endpoint = {
    transport,
    deadlineMs,
    busyRetryMs,
    url: withoutSlash(toGetter(options.url)),
    token: toGetter(options.token ?? null),
  };
  const cloud: Endpoint = {
    transport,
    deadlineMs,
    busyRetryMs,
    url: options.cloudUrl === undefined ? daemon.url : withoutSlash(toGetter(options.cloudUrl)),
    token: toGetter(options.cloudToken ?? null),
  };
  return { ...daemonMethods(daemon), cloud: cloudMethods(cloud) };
}
