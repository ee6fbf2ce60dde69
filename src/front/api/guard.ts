// The five checks that every request passes first, in the order of
// docs/reference.md "Checks on every request": peer, Host, Origin, Sec-Fetch-Site, token. A request that
// passes costs no allocation, and no header value makes a check throw.

import { protocolToken } from '../../adapters/protocol_token.ts';
import { hostInUrl, isWildcard } from '../../adapters/url_host.ts';
import { access } from '../../api/access.ts';
import { headerToken } from '../../protocol/access_key.ts';
import { apiTokenId, isApiTokenForm } from '../../protocol/api_token.ts';
import { HOST_SIGNATURE, PASSED_ON } from '../../protocol/cloud_views.ts';
import { fail } from '../../protocol/errors.ts';
import { isAllowedExtension } from '../../protocol/extension_origin.ts';
import type { Failure } from '../../runtime/actor.ts';
import { isLoopback } from '../../settings/loopback.ts';
import type { Forwarder } from '../server/forwarding.ts';
import type { HttpExchange } from '../server/http_server.ts';
import type { CloudViews } from '../views/cloud_views.ts';
import type { AccessKeys } from './access_keys.ts';
import { type Caller, USER } from './caller.ts';
import { isPublicPath } from './public_paths.ts';

/** The settings that control which pages may call; they may change at run time. */
export interface AllowedCallers {
  /** Extension ids that may call; empty: any. */
  allowedExtensions: readonly string[];
  /** Origins of other pages that may call. */
  allowedOrigins: readonly string[];
}

export interface GuardOptions extends AllowedCallers {
  /** The address of the listener, which is also an accepted Host unless it is a wildcard. */
  bind: string;
  /** The actual port of the listener. */
  port: number;
  /** The keys of the daemon. */
  keys: AccessKeys;
  /** The keys of /k8s; null: /k8s is not served here. */
  cloudKeys: AccessKeys | null;
  /** Has the API tokens for /k8s. */
  views: Pick<CloudViews, 'principals' | 'assertAvailable'>;
  /** Asks the Berth that has the clusters, while that is another one. null: nobody is asked. */
  forwarder?: Pick<Forwarder, 'authorize'> | null;
  /** The cloud listener on its own address: only rules 3 to 5 apply, and only /k8s is served. */
  cloudOnly?: boolean;
}

export interface Verdict {
  /** Why the request is refused; null: it is accepted. */
  refusal: Failure | null;
  /** The origin of an allowed extension or page, for the CORS headers of every answer; else empty. */
  origin: string;
  /** Who sends the request, if it is accepted. */
  caller: Caller;
}

const PASS: Verdict = { refusal: null, origin: '', caller: USER };

const HOST = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+?)\.?(?::([0-9]+))?$/;

export const isCloudPath = (path: string): boolean =>
  path.startsWith('/k8s') && (path.length === 4 || path.charCodeAt(4) === 47);

const shown = (value: string): string => JSON.stringify(value.slice(0, 100));

/** Whether this is a CORS preflight request. */
export const isPreflight = (exchange: HttpExchange): boolean =>
  exchange.method === 'OPTIONS' &&
  exchange.header('origin') !== '' &&
  exchange.header('access-control-request-method') !== '';

/** The checks of one listener, with its host names and tokens. The front has one per address. */
export class Guard {
  private readonly options: GuardOptions;
  private readonly names = new Set(['localhost', '127.0.0.1', '[::1]']);
  private readonly hosts = new Set<string>();
  private readonly origins = new Set<string>();
  private readonly checksPeer: boolean;
  private allowedExtensions: readonly string[] = [];
  private allowedOrigins: ReadonlySet<string> = new Set();
  /** Requests whose token the Berth with the clusters has accepted for their path. */
  private readonly authorized = new WeakSet<HttpExchange>();

  constructor(options: GuardOptions) {
    this.options = options;
    const { bind, port, cloudOnly = false } = options;
    // On a loopback address the kernel admits local peers only.
    this.checksPeer = !cloudOnly && !isLoopback(bind);
    if (!isWildcard(bind)) {
      // An IPv6 address has many spellings, and clients send the shortest.
      const name = hostInUrl(bind).toLowerCase();
      const url = `http://${name}`;
      // An address with a zone is not valid in a URL.
      this.names.add(name).add(URL.canParse(url) ? new URL(url).hostname : name);
    }
    for (const name of this.names) {
      for (const host of port === 80 ? [name, `${name}:80`] : [`${name}:${port}`]) {
        this.hosts.add(host);
        if (!cloudOnly) this.origins.add(`http://${host}`);
      }
    }
    this.reload(options);
  }

  /** Applies new lists of callers. */
  reload({ allowedExtensions, allowedOrigins }: AllowedCallers): void {
    this.allowedExtensions = allowedExtensions;
    this.allowedOrigins = new Set(allowedOrigins);
  }

  /**
   * Verifies a token that `check` cannot judge alone: one that reads about this server while another Berth
   * has the clusters, and an issuer's token that has not been seen before. Runs before `check`. null: nothing
   * to verify. Rejects if the other Berth refuses the token, or if it or the issuer does not answer.
   */
  verify(exchange: HttpExchange): Promise<void> | null {
    const { views, cloudOnly } = this.options;
    const { principals } = views;
    if (!cloudOnly || isPublicPath(exchange.path)) return null;
    const given = givenToken(exchange);
    return (
      this.askHolder(exchange, given) ?? (principals.isUnverified(given) ? principals.verify(given) : null)
    );
  }

  private askHolder(exchange: HttpExchange, given: string): Promise<void> | null {
    const { views, cloudKeys, forwarder } = this.options;
    // Only for reads about this server itself: whoever may read something may not change it, and the clusters
    // may come to this Berth before the answer does.
    if (exchange.method !== 'GET' || isCloudPath(exchange.path)) return null;
    if (cloudKeys?.accepts(given)) return null;
    if (apiTokenId(given) === null && !views.principals.isIssuedForm(given)) return null;
    // Whoever forwards takes this Berth for the one with the clusters. It must not ask in turn.
    if (exchange.header(PASSED_ON) !== '') return null;
    const asked = forwarder?.authorize(exchange.path, given);
    return asked?.then(() => void this.authorized.add(exchange)) ?? null;
  }

  check(exchange: HttpExchange): Verdict {
    if (this.checksPeer && !isLoopback(exchange.peerAddress()))
      return refuse('forbidden_origin', `the peer ${exchange.peerAddress()} is not on this machine`);
    // A proof names the Host it was made for. For another Host than ours, a stranger could present our proof
    // as his own.
    if (!this.options.cloudOnly || exchange.path === access.proveCloud.path) {
      const host = exchange.header('host');
      if (!this.isOwnHost(host) && !this.hasSignedHost(exchange, host))
        return refuse('forbidden_host', `the Host ${shown(host)} is not this daemon`);
    }
    let verdict = PASS;
    const origin = exchange.header('origin');
    if (origin === '') {
      if (!isOwnSite(exchange.header('sec-fetch-site')) && !isPageVisit(exchange))
        return refuse('forbidden_origin', 'a page of another origin may neither read nor change anything');
    } else if (!this.origins.has(origin)) {
      if (!this.allowedOrigins.has(origin) && !isAllowedExtension(origin, this.allowedExtensions))
        return refuse('forbidden_origin', `the Origin ${shown(origin)} may not call this daemon`);
      verdict = { refusal: null, origin, caller: USER };
    }
    const caller = this.callerOf(exchange);
    if (!caller) return refuse('unauthorized', 'the token is missing or wrong', verdict.origin);
    return caller === USER ? verdict : { ...verdict, caller };
  }

  /** Whether `host` names this listener. */
  isOwnHost(host: string): boolean {
    return this.hosts.has(host) || this.isOurs(host);
  }

  /** Whether a standby, which knows the token, has forwarded the request for a proof of its own Host. */
  private hasSignedHost(exchange: HttpExchange, host: string): boolean {
    const given = exchange.header(HOST_SIGNATURE);
    if (given === '' || exchange.path !== access.proveCloud.path) return false;
    const nonce = new URLSearchParams(exchange.query()).get('nonce') ?? '';
    return this.options.cloudKeys?.isHostSignature(given, host, nonce) ?? false;
  }

  /** The slow comparison of a Host, which tolerates upper case and a trailing dot. */
  private isOurs(host: string): boolean {
    const parts = HOST.exec(host.toLowerCase());
    if (!parts?.[1] || !this.names.has(parts[1])) return false;
    const { port } = this.options;
    return parts[2] === undefined ? port === 80 : parts[2] === String(port);
  }

  /** Throws while the tokens are not known, or may be those of earlier: why the cloud part is unavailable. */
  private principalOf(given: string): Caller | null {
    const { views, cloudOnly } = this.options;
    const { principals } = views;
    const isIssued = cloudOnly === true && principals.isIssuedForm(given);
    if (!isIssued && !isApiTokenForm(given)) return null;
    views.assertAvailable();
    if (principals.isExpected && !principals.isLoaded)
      throw fail('daemon_busy', 'the cloud part is starting');
    const principal = isIssued ? principals.findUser(given) : principals.find(given);
    return principal && { kind: 'principal', principal };
  }

  /** null: the token is missing or wrong. */
  private callerOf(exchange: HttpExchange): Caller | null {
    const { path } = exchange;
    const { cloudOnly, cloudKeys } = this.options;
    const isCloud = cloudOnly || (cloudKeys !== null && isCloudPath(path));
    const keys = isCloud ? cloudKeys : this.options.keys;
    const given = givenToken(exchange);
    const agent = cloudOnly ? null : this.options.keys.agentOf(given);
    // An agent's token identifies an agent everywhere, and agents may not use the cloud part.
    if (agent) return { kind: 'agent', life: agent };
    if (keys === null || isPublicPath(path) || isPreflight(exchange)) return USER;
    // The cloud's token is always required.
    if (isCloud) return keys.accepts(given) || this.authorized.has(exchange) ? USER : this.principalOf(given);
    return keys.callerOf(given);
  }
}

/** Whether the request was sent by this daemon's own page, or by no page at all. */
const isOwnSite = (site: string): boolean => site === '' || site === 'none' || site === 'same-origin';

/** Whether someone follows a link to a page of this daemon. The linking page cannot see the result. */
const isPageVisit = (exchange: HttpExchange): boolean =>
  exchange.method === 'GET' &&
  exchange.header('sec-fetch-mode') === 'navigate' &&
  exchange.header('sec-fetch-dest') === 'document' &&
  isPublicPath(exchange.path);

/**
 * The token of a request, or its bearer. A WebSocket handshake may carry it as a subprotocol, because a
 * browser cannot set the header.
 */
export function givenToken(exchange: HttpExchange): string {
  const header = exchange.header('authorization');
  if (header !== '') return headerToken(header) ?? '';
  if (!exchange.isHandshake) return '';
  for (const protocol of exchange.header('sec-websocket-protocol').split(',')) {
    const token = protocolToken(protocol.trim());
    if (token !== null) return token;
  }
  return '';
}

function refuse(
  code: 'forbidden_host' | 'forbidden_origin' | 'unauthorized',
  message: string,
  origin = '',
): Verdict {
  return { refusal: fail(code, message), origin, caller: USER };
}
