// The five checks that every request passes first, in the order of
// docs/reference.md "Checks on every request": peer, Host, Origin, Sec-Fetch-Site, token. Nothing is
// allocated for a request that passes, and no header value makes it throw.
import { timingSafeEqual } from 'node:crypto';
import { hostInUrl, isWildcard } from '../../adapters/url_host.ts';
import { fail } from '../../protocol/errors.ts';
import { isAllowedExtension } from '../../protocol/extension_origin.ts';
import type { Failure } from '../../runtime/actor.ts';
import { isLoopback } from '../../settings/config.ts';
import type { HttpExchange } from '../server/http_server.ts';
import { isPublicPath } from './public_paths.ts';

export interface GuardOptions {
  /** The address we listen on: it is a name of ours unless it is a wildcard. */
  bind: string;
  /** The port we really listen on. */
  port: number;
  /** `auth.token`; empty: no authentication. */
  token: string;
  /** The token of /k8s; null: /k8s is not served here. */
  cloudToken: string | null;
  /** Extension ids that may call; empty: any. */
  allowedExtensions: readonly string[];
  /** The cloud listener on an address of its own: rules 3 to 5 alone, and nothing but /k8s. */
  cloudOnly?: boolean;
}

export interface Verdict {
  /** Why the request is refused; null: it may go on. */
  refusal: Failure | null;
  /** The origin of an allowed extension, to which every answer must carry its CORS headers; else empty. */
  origin: string;
}

const PASS: Verdict = { refusal: null, origin: '' };

const HOST = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+?)\.?(?::([0-9]+))?$/;
const TOKEN_PROTOCOL = /(?:^|,)\s*base64url\.bearer\.authorization\.berth\.([A-Za-z0-9_-]+)\s*(?:,|$)/;

export const isCloudPath = (path: string): boolean =>
  path.startsWith('/k8s') && (path.length === 4 || path.charCodeAt(4) === 47);

const isChange = (method: string): boolean => method !== 'GET' && method !== 'HEAD' && method !== 'OPTIONS';

/** A token that is compared in a time that depends on no character of it; an empty one is nobody's. */
class Secret {
  private readonly expected: Buffer;
  /** What is given is copied here: as long as what is expected, whatever its own length. */
  private readonly given: Buffer;

  constructor(token: string) {
    this.expected = Buffer.from(token, 'latin1');
    this.given = Buffer.alloc(this.expected.length);
  }

  equals(text: string): boolean {
    this.given.fill(0);
    this.given.write(text, 'latin1');
    return timingSafeEqual(this.given, this.expected) && text.length === this.expected.length && text !== '';
  }
}

const shown = (value: string): string => JSON.stringify(value.slice(0, 100));

/** What a browser asks before it lets a page of another origin send its request. */
export const isPreflight = (exchange: HttpExchange): boolean =>
  exchange.method === 'OPTIONS' &&
  exchange.header('origin') !== '' &&
  exchange.header('access-control-request-method') !== '';

/** The checks of one listener with its names and tokens; the front has one per address it listens on. */
export class Guard {
  private readonly options: GuardOptions;
  private readonly names = new Set(['localhost', '127.0.0.1', '[::1]']);
  private readonly hosts = new Set<string>();
  private readonly origins = new Set<string>();
  private readonly checksPeer: boolean;
  private readonly cloud: Secret | null;
  private token: Secret | null = null;
  private allowedExtensions: readonly string[] = [];

  constructor(options: GuardOptions) {
    this.options = options;
    const { bind, port, cloudOnly = false } = options;
    // On a loopback address the kernel lets nobody else in.
    this.checksPeer = !cloudOnly && !isLoopback(bind);
    if (!isWildcard(bind)) {
      // An IPv6 address may be written in many ways, and clients send it in the shortest.
      const name = hostInUrl(bind).toLowerCase();
      const url = `http://${name}`;
      // One with a zone is none of a URL.
      this.names.add(name).add(URL.canParse(url) ? new URL(url).hostname : name);
    }
    for (const name of this.names) {
      for (const host of port === 80 ? [name, `${name}:80`] : [`${name}:${port}`]) {
        this.hosts.add(host);
        if (!cloudOnly) this.origins.add(`http://${host}`);
      }
    }
    this.cloud = options.cloudToken === null ? null : new Secret(options.cloudToken);
    this.reload(options);
  }

  /** Takes new values of what may change while the daemon runs. */
  reload({ token, allowedExtensions }: Pick<GuardOptions, 'token' | 'allowedExtensions'>): void {
    this.token = token === '' ? null : new Secret(token);
    this.allowedExtensions = allowedExtensions;
  }

  check(exchange: HttpExchange): Verdict {
    if (this.checksPeer && !isLoopback(exchange.peerAddress()))
      return refuse('forbidden_origin', `the peer ${exchange.peerAddress()} is not on this machine`);
    if (!this.options.cloudOnly) {
      const host = exchange.header('host');
      if (!this.hosts.has(host) && !this.isOurs(host))
        return refuse('forbidden_host', `the Host ${shown(host)} is not this daemon`);
    }
    let verdict = PASS;
    const origin = exchange.header('origin');
    if (origin === '') {
      if (isChange(exchange.method) && !isSameSite(exchange.header('sec-fetch-site')))
        return refuse('forbidden_origin', 'a page of another site may not change anything here');
    } else if (!this.origins.has(origin)) {
      if (!isAllowedExtension(origin, this.allowedExtensions))
        return refuse('forbidden_origin', `the Origin ${shown(origin)} may not call this daemon`);
      verdict = { refusal: null, origin };
    }
    return this.isAuthorized(exchange)
      ? verdict
      : refuse('unauthorized', 'the token is missing or wrong', verdict.origin);
  }

  /** The slow way to know a Host: another case, a trailing dot. */
  private isOurs(host: string): boolean {
    const parts = HOST.exec(host.toLowerCase());
    if (!parts?.[1] || !this.names.has(parts[1])) return false;
    const { port } = this.options;
    return parts[2] === undefined ? port === 80 : parts[2] === String(port);
  }

  private isAuthorized(exchange: HttpExchange): boolean {
    const { path } = exchange;
    const isCloud = this.options.cloudOnly || (this.cloud !== null && isCloudPath(path));
    const expected = isCloud ? this.cloud : this.token;
    if (expected === null || isPublicPath(path) || isPreflight(exchange)) return true;
    return expected.equals(givenToken(exchange));
  }
}

const isSameSite = (site: string): boolean => site === '' || site === 'none' || site === 'same-origin';

/**
 * The token of a request; of a WebSocket's handshake also as a subprotocol, because a browser cannot set the
 * header.
 */
function givenToken(exchange: HttpExchange): string {
  const header = exchange.header('authorization');
  if (header.startsWith('Bearer ')) return header.slice(7).trim();
  if (header !== '') return /^bearer +(.*)$/i.exec(header)?.[1] ?? '';
  if (!exchange.isHandshake) return '';
  const encoded = TOKEN_PROTOCOL.exec(exchange.header('sec-websocket-protocol'))?.[1];
  return encoded === undefined ? '' : Buffer.from(encoded, 'base64url').toString();
}

function refuse(
  code: 'forbidden_host' | 'forbidden_origin' | 'unauthorized',
  message: string,
  origin = '',
): Verdict {
  return { refusal: fail(code, message), origin };
}
