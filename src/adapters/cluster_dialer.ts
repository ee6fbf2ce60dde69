// The one place where connections to clusters are made, for calls, watches and tethers. It resolves the name,
// checks every address, and dials a checked address, so that no second look-up can return another one.
import { lookup } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { connect, isIP, type Socket } from 'node:net';
import {
  checkServerIdentity,
  connect as connectTls,
  createSecureContext,
  type SecureContext,
  type TLSSocket,
} from 'node:tls';
import type { ClusterAccess } from '../protocol/clusters.ts';
import { fail } from '../protocol/errors.ts';
import { type Clock, isFailure } from '../runtime/actor.ts';
import { systemClock } from '../runtime/clock.ts';
import { CLOUD } from '../settings/cloud_limits.ts';
import { type AddressRule, addressCheck } from './address_rule.ts';
import { deadlineSignal } from './deadline_signal.ts';
import { isTimeout, isTransportError } from './kube/kube_errors.ts';
import { redact } from './redact.ts';
import { unbracketedHost } from './url_host.ts';

/** Makes connections to the API server of one cluster, for calls, watches and forwards alike. */
export interface ClusterDialer {
  /** The value of the header Host: with the port unless it is 443. */
  readonly host: string;
  /** The part of paths before `/api`: '', or begins with a slash. */
  readonly prefix: string;
  /** The header Authorization if the account has a token. */
  headers(): Record<string, string>;
  /** Removes the account's token from what the cluster says, because a server may have put it there. */
  redact(text: string): string;
  /**
   * A verified TLS connection (HTTP/1.1). Fails cluster_unreachable, also when `signal` aborts; any error but
   * those of the network and TLS is thrown as it is.
   */
  connect(signal?: AbortSignal): Promise<TLSSocket>;
}

export interface ClusterDialerOptions {
  resolve?: (host: string) => Promise<string[]>;
  timeoutMs?: number;
  clock?: Clock;
  /** Where a pod finds the token of its service account. */
  podTokenFile?: string;
}

const POD_TOKEN_FILE = '/var/run/secrets/kubernetes.io/serviceaccount/token';

/**
 * Returns a function that reads the account's token. A pod's token is reread after a while, because the
 * kubelet replaces it.
 */
function tokenReader(access: ClusterAccess, file: string, clock: Clock): () => string | null {
  const { credential } = access;
  if (credential.kind === 'certificate') return () => null;
  if (credential.kind === 'token') return () => credential.token;
  let read = { token: '', at: Number.NEGATIVE_INFINITY };
  return () => {
    const now = clock.monotonic();
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

/** A failed connection, for a reason that no network error expresses. */
class DialError extends Error {
  override readonly name = 'DialError';
}

/** Whether the network, TLS or the cluster's address has failed; false: a defect. */
const isDialError = (error: unknown): boolean =>
  error instanceof DialError || isTransportError(error) || isTimeout(error);

/** Codes of Node for a server whose certificate does not pass verification. */
const CERTIFICATE_CODES = /CERT_|UNABLE_TO_(?:GET|VERIFY)_|SELF_SIGNED|INVALID_CA|HOSTNAME_MISMATCH/;
const UNTRUSTED_HINT =
  'Check certificate-authority-data of the kubeconfig, and that the certificate names the address of `server`.';

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

/** Resolves with the socket at `event`. Destroys it and rejects if it fails or `signal` aborts first. */
function whenConnected<S extends Socket>(socket: S, event: string, signal: AbortSignal): Promise<S> {
  return new Promise((resolve, reject) => {
    const settle = (error?: unknown): void => {
      signal.removeEventListener('abort', aborted);
      socket.off(event, ready).off('error', settle).off('close', closed);
      if (error === undefined) {
        resolve(socket);
      } else {
        // No one else listens to errors after this one.
        socket.on('error', () => undefined).destroy();
        reject(error);
      }
    };
    const ready = (): void => settle();
    const closed = (): void => settle(new DialError('the connection was closed during the handshake'));
    const aborted = (): void => settle(signal.reason);
    socket.once(event, ready).once('error', settle).once('close', closed);
    if (signal.aborted) aborted();
    else signal.addEventListener('abort', aborted);
  });
}

/** The addresses of `host`. Fails cluster_unreachable if any of them is not allowed. */
async function checkedAddresses(
  host: string,
  check: (ip: string) => string | null,
  resolve: (host: string) => Promise<string[]>,
  signal: AbortSignal,
): Promise<string[]> {
  const addresses = isIP(host) ? [host] : await Promise.race([resolve(host), whenAborted(signal)]);
  if (addresses.length === 0) throw new DialError('the name has no address');
  for (const ip of addresses) {
    const reason = check(ip);
    if (reason !== null)
      throw fail('cluster_unreachable', `${host === ip ? ip : `${host} (${ip})`} ${reason}`, {
        hint:
          'The setting cloud.allow_addresses says which addresses a cluster may have; ' +
          'some are never dialled.',
      });
  }
  return addresses;
}

/** Connects to the first address that answers. */
async function connectFirst(
  addresses: string[],
  port: number,
  clock: Clock,
  signal: AbortSignal,
): Promise<Socket> {
  const failures: string[] = [];
  for (const [index, host] of addresses.entries()) {
    // A dead address must leave time for the next ones.
    const shareMs = CLOUD.dialTimeoutMs / 2 / (addresses.length - index);
    const attempt =
      index < addresses.length - 1
        ? deadlineSignal(clock, shareMs, signal)
        : { signal, clear: () => undefined };
    try {
      const socket = connect({
        host,
        port,
        noDelay: true,
        keepAlive: true,
        keepAliveInitialDelay: CLOUD.keepAliveDelayMs,
      });
      return await whenConnected(socket, 'connect', attempt.signal);
    } catch (error) {
      if (signal.aborted || !isDialError(error)) throw error;
      failures.push(errorText(error));
    } finally {
      attempt.clear();
    }
  }
  throw new DialError(failures.join('; '));
}

/**
 * TLS as the API server's other clients use it: any certificate of the bundle is a trust anchor, even an
 * intermediate one.
 */
function secureContextOf({ ca, credential }: ClusterAccess): SecureContext {
  return createSecureContext({
    minVersion: 'TLSv1.2',
    allowPartialTrustChain: true,
    ...(ca === null ? {} : { ca }),
    ...(credential.kind === 'certificate' ? { cert: credential.certificate, key: credential.key } : {}),
  });
}

/** The dialer of one cluster. It keeps the TLS context and the last session to shorten later handshakes. */
export function createClusterDialer(
  access: ClusterAccess,
  rule: AddressRule,
  options: ClusterDialerOptions = {},
): ClusterDialer {
  const { clock = systemClock, resolve = resolveHost, timeoutMs = CLOUD.dialTimeoutMs } = options;
  const url = new URL(access.server);
  const host = unbracketedHost(url);
  const port = Number(url.port || 443);
  const check = addressCheck(rule);
  const name = access.tlsServerName ?? host;
  const secureContext = secureContextOf(access);
  let session: Buffer | undefined;

  async function dial(signal: AbortSignal): Promise<TLSSocket> {
    const addresses = await checkedAddresses(host, check, resolve, signal);
    const socket = await connectFirst(addresses, port, clock, signal);
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

  let sentToken: string | null = null;
  const token = tokenReader(access, options.podTokenFile ?? POD_TOKEN_FILE, clock);
  return {
    host: url.host,
    prefix: url.pathname.replace(/\/$/, ''),
    headers() {
      const value = token();
      sentToken = value;
      return value === null ? {} : { authorization: `Bearer ${value}` };
    },
    redact: (text) => redact(text, sentToken),
    async connect(signal) {
      const deadline = deadlineSignal(clock, timeoutMs, signal);
      try {
        return await dial(deadline.signal);
      } catch (error) {
        const { aborted, reason: abortReason } = deadline.signal;
        const isAborted = aborted && error === abortReason;
        if (isFailure(error) || !(isAborted || isDialError(error))) throw error;
        const isLate = aborted && !signal?.aborted;
        const reason = isLate ? `no answer in ${timeoutMs} ms` : errorText(error);
        const more = CERTIFICATE_CODES.test(reason) ? { hint: UNTRUSTED_HINT } : {};
        throw fail('cluster_unreachable', `${url.host} cannot be reached: ${reason}`, more);
      } finally {
        deadline.clear();
      }
    },
  };
}
