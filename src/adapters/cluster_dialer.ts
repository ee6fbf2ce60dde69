// The one connector: every connection to a cluster, for calls, watches and tethers, is made here. It resolves, checks every
// address, and dials the address it has checked, so that no second look-up can give another one.
import { lookup } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { connect, isIP, type Socket } from 'node:net';
import { checkServerIdentity, connect as connectTls, createSecureContext, type TLSSocket } from 'node:tls';
import type { ClusterAccess } from '../protocol/cloud.ts';
import { fail } from '../protocol/errors.ts';
import { isFailure } from '../runtime/actor.ts';
import { CLOUD } from '../settings/limits.ts';
import { type AddressRule, addressCheck } from './address_rule.ts';
import { unbracketedHost } from './url_host.ts';

/** The way into one cluster, for calls, watches and forwards alike. */
export interface ClusterDialer {
  /** For the header Host: with the port where it is not 443. */
  readonly host: string;
  /** What stands before `/api` in paths: '' or begins with a slash. */
  readonly prefix: string;
  /** Who asks: the header Authorization where the account has a token. */
  headers(): Record<string, string>;
  /** A verified TLS connection (HTTP/1.1). Fails cluster_unreachable, also when `signal` aborts. */
  connect(signal?: AbortSignal): Promise<TLSSocket>;
}

export interface ClusterDialerOptions {
  resolve?: (host: string) => Promise<string[]>;
  timeoutMs?: number;
  /** Where a pod finds the token of its service account. */
  podTokenFile?: string;
}

const POD_TOKEN_FILE = '/var/run/secrets/kubernetes.io/serviceaccount/token';

/** The token of the account; a pod's is read again after a while, because the kubelet replaces it. */
function tokenReader(access: ClusterAccess, file: string): () => string | null {
  const { credential } = access;
  if (credential.kind === 'certificate') return () => null;
  if (credential.kind === 'token') return () => credential.token;
  let read = { token: '', at: Number.NEGATIVE_INFINITY };
  return () => {
    const now = performance.now();
    if (now - read.at < CLOUD.podTokenTtlMs) return read.token;
    try {
      read = { token: readFileSync(file, 'utf8').trim(), at: now };
    } catch (error) {
      throw fail(
        'cluster_denied',
        `the token of the pod's service account cannot be read: ${errorText(error)}`,
      );
    }
    return read.token;
  };
}

const resolveHost = async (host: string): Promise<string[]> =>
  (await lookup(host, { all: true, verbatim: true })).map(({ address }) => address);

const errorText = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error);
  const { code } = error as NodeJS.ErrnoException;
  return code && !error.message.includes(code) ? `${error.message} (${code})` : error.message;
};

/** Rejects when `signal` aborts: a look-up cannot be cancelled, but nobody needs to wait for it. */
const whenAborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));

/** Settles with the socket when it has said `event`; destroys it when it fails or `signal` aborts first. */
function whenConnected<S extends Socket>(socket: S, event: string, signal: AbortSignal): Promise<S> {
  return new Promise((resolve, reject) => {
    const settle = (error?: unknown): void => {
      signal.removeEventListener('abort', aborted);
      socket.off(event, ready).off('error', settle).off('close', closed);
      if (error === undefined) {
        resolve(socket);
      } else {
        // An error after this one has nobody to hear it.
        socket.on('error', () => undefined).destroy();
        reject(error);
      }
    };
    const ready = (): void => settle();
    const closed = (): void => settle(new Error('the connection was closed during the handshake'));
    const aborted = (): void => settle(signal.reason);
    socket.once(event, ready).once('error', settle).once('close', closed);
    if (signal.aborted) aborted();
    else signal.addEventListener('abort', aborted);
  });
}

/** The addresses of `host`, each of them allowed: one that is not refuses them all. */
async function checkedAddresses(
  host: string,
  check: (ip: string) => string | null,
  resolve: (host: string) => Promise<string[]>,
  signal: AbortSignal,
): Promise<string[]> {
  const addresses = isIP(host) ? [host] : await Promise.race([resolve(host), whenAborted(signal)]);
  if (addresses.length === 0) throw new Error('the name has no address');
  for (const ip of addresses) {
    const reason = check(ip);
    if (reason !== null)
      throw fail('cluster_unreachable', `${host === ip ? ip : `${host} (${ip})`} ${reason}`, {
        hint: 'The setting cloud.allow_addresses says which addresses a cluster may have; some are never dialled.',
      });
  }
  return addresses;
}

async function connectFirst(addresses: string[], port: number, signal: AbortSignal): Promise<Socket> {
  const failures: string[] = [];
  for (const [index, host] of addresses.entries()) {
    // A dead address leaves time for those after it.
    const share = CLOUD.dialTimeoutMs / 2 / (addresses.length - index);
    const attempt =
      index < addresses.length - 1 ? AbortSignal.any([signal, AbortSignal.timeout(share)]) : signal;
    try {
      return await whenConnected(connect({ host, port, noDelay: true, keepAlive: true }), 'connect', attempt);
    } catch (error) {
      if (signal.aborted) throw error;
      failures.push(errorText(error));
    }
  }
  throw new Error(failures.join('; '));
}

/** Makes the door of one cluster; it keeps the TLS context and the last session, so that later handshakes are short. */
export function createClusterDialer(
  access: ClusterAccess,
  rule: AddressRule,
  options: ClusterDialerOptions = {},
): ClusterDialer {
  const url = new URL(access.server);
  const host = unbracketedHost(url);
  const port = Number(url.port || 443);
  const check = addressCheck(rule);
  const name = access.tlsServerName ?? host;
  const { credential } = access;
  const secureContext = createSecureContext({
    minVersion: 'TLSv1.2',
    // As the API server's own clients do: any certificate of the bundle is an anchor, be it an intermediate.
    allowPartialTrustChain: true,
    ...(access.ca === null ? {} : { ca: access.ca }),
    ...(credential.kind === 'certificate' ? { cert: credential.certificate, key: credential.key } : {}),
  });
  let session: Buffer | undefined;

  async function dial(signal: AbortSignal): Promise<TLSSocket> {
    const addresses = await checkedAddresses(host, check, options.resolve ?? resolveHost, signal);
    const socket = await connectFirst(addresses, port, signal);
    const secure = connectTls({
      socket,
      secureContext,
      servername: isIP(name) ? '' : name,
      checkServerIdentity: (_, certificate) => checkServerIdentity(name, certificate),
      ALPNProtocols: ['http/1.1'],
      ...(session ? { session } : {}),
    });
    secure.on('session', (ticket) => {
      session = ticket;
    });
    return whenConnected(secure, 'secureConnect', signal);
  }

  const token = tokenReader(access, options.podTokenFile ?? POD_TOKEN_FILE);
  return {
    host: url.host,
    prefix: url.pathname.replace(/\/$/, ''),
    headers() {
      const value = token();
      return value === null ? {} : { authorization: `Bearer ${value}` };
    },
    async connect(signal) {
      const timeout = AbortSignal.timeout(options.timeoutMs ?? CLOUD.dialTimeoutMs);
      try {
        return await dial(signal ? AbortSignal.any([signal, timeout]) : timeout);
      } catch (error) {
        if (isFailure(error)) throw error;
        const reason = timeout.aborted
          ? `no answer in ${options.timeoutMs ?? CLOUD.dialTimeoutMs} ms`
          : errorText(error);
        throw fail('cluster_unreachable', `${url.host} cannot be reached: ${reason}`);
      }
    },
  };
}
