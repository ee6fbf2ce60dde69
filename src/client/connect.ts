// A client is an address, a token and a transport; everything else is methods.
import type { Endpoint } from './call.ts';
import { daemonMethods } from './client.ts';
import { cloudMethods } from './cloud.ts';
import type { Transport } from './transport.ts';

export type Client = ReturnType<typeof daemonMethods> & { cloud: ReturnType<typeof cloudMethods> };

/** A value, or a function asked anew for every call. */
type Source<T> = T | (() => T);

export interface ClientOptions {
  /** Where the daemon is, such as `http://127.0.0.1:11611`. */
  url: Source<string>;
  /** The daemon's `auth.token`. */
  token?: Source<string | null>;
  /** Where the cloud API is, when it has a listener of its own; default: `url`. */
  cloudUrl?: Source<string>;
  cloudToken?: Source<string | null>;
  /** How long a call that does not wait for anything may take. Default 30 s. */
  deadlineMs?: number;
  /** How long a call is made again while the daemon says it is busy. Default 0: `daemon_busy` is an error like others. */
  patienceMs?: number;
}

const DEADLINE_MS = 30_000;

function source<T extends string | null>(value: Source<T>): () => T {
  return typeof value === 'function' ? value : () => value;
}

const withoutSlash = (url: () => string) => () => url().replace(/\/+$/, '');

/** A client over `transport`; the entries of this folder fill that in. */
export function createClient(transport: Transport, options: ClientOptions): Client {
  const { deadlineMs = DEADLINE_MS, patienceMs = 0 } = options;
  const daemon: Endpoint = {
    transport,
    deadlineMs,
    patienceMs,
    url: withoutSlash(source(options.url)),
    token: source(options.token ?? null),
  };
  const cloud: Endpoint = {
    transport,
    deadlineMs,
    patienceMs,
    url: options.cloudUrl === undefined ? daemon.url : withoutSlash(source(options.cloudUrl)),
    token: source(options.cloudToken ?? null),
  };
  return { ...daemonMethods(daemon), cloud: cloudMethods(cloud) };
}
