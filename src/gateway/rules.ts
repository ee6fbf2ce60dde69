// Who may pass and with which headers: pure, so that every case is a line in a table of tests.
import { createHash, timingSafeEqual } from 'node:crypto';

/** Headers as node:http gives them raw: name, value, name, value ... */
export type RawHeaders = readonly string[];

const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** What marks a request that has passed this gateway once: a second time it is a loop. */
export const VIA = '1.1 berth';

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

/** Whether `authorization` is exactly one of our tokens, in constant time per token. */
export function isOurToken(authorization: string, tokens: readonly string[]): boolean {
  const given = digest(authorization);
  return tokens.reduce((found, token) => timingSafeEqual(given, digest(`Bearer ${token}`)) || found, false);
}

/** The host name of a Host header if its port is ours: lower case, without the trailing dot. undefined: not for us. */
export function hostnameOf(host: string | undefined, port: number): string | undefined {
  if (host === undefined) return undefined;
  const match = /^([A-Za-z0-9.-]+?)\.?(?::(\d{1,5}))?$/.exec(host);
  if (!match || Number(match[2] ?? 80) !== port) return undefined;
  return match[1]?.toLowerCase();
}

/** Contract section 6, Gateway (3): loopback names with any port, names below the agent domain, allowed extensions. */
export function mayCall(
  origin: string | undefined,
  agentDomain: string,
  allowedExtensions: readonly string[],
): boolean {
  if (origin === undefined) return true;
  const match = /^(https?|chrome-extension):\/\/(\[::1\]|[A-Za-z0-9-][A-Za-z0-9.-]*)(?::\d{1,5})?$/.exec(
    origin,
  );
  const host = match?.[2]?.toLowerCase();
  if (!match || host === undefined) return false;
  if (match[1] === 'chrome-extension')
    return allowedExtensions.length === 0 || allowedExtensions.includes(host);
  const names = ['localhost', '127.0.0.1', '[::1]'];
  return names.includes(host) || host.endsWith('.localhost') || host.endsWith(`.${agentDomain}`);
}

/** The headers that the Connection header of these names as hop-by-hop too. */
function named(headers: RawHeaders): Set<string> {
  const found = new Set<string>();
  for (let index = 0; index < headers.length; index += 2) {
    if (headers[index]?.toLowerCase() !== 'connection') continue;
    for (const name of (headers[index + 1] ?? '').split(',')) found.add(name.trim().toLowerCase());
  }
  return found;
}

/** Keeps the headers that travel end to end, in their order and spelling. */
export function endToEnd(
  headers: RawHeaders,
  alsoDrop: (name: string, value: string) => boolean = () => false,
): string[] {
  const connection = named(headers);
  const kept: string[] = [];
  for (let index = 0; index < headers.length; index += 2) {
    const name = headers[index] ?? '';
    const value = headers[index + 1] ?? '';
    const lower = name.toLowerCase();
    if (!HOP_BY_HOP.has(lower) && !connection.has(lower) && !alsoDrop(lower, value)) kept.push(name, value);
  }
  return kept;
}

export interface Passing {
  host: string;
  /** The address of the peer. */
  peer: string;
  tokens: readonly string[];
  /** What the agent is told as Host. */
  upstreamHost: string;
}

/** The headers of a request as the agent gets them: ours removed, forwarding set anew. */
export function requestHeaders(headers: RawHeaders, passing: Passing): string[] {
  const dropped = (name: string, value: string): boolean =>
    name === 'host' ||
    name === 'expect' ||
    name === 'forwarded' ||
    name.startsWith('x-forwarded-') ||
    (name === 'authorization' && isOurToken(value, passing.tokens));
  const peer = passing.peer.replace(/^::ffff:/, '');
  const node = peer.includes(':') ? `"[${peer}]"` : peer;
  return [
    'Host',
    passing.upstreamHost,
    ...endToEnd(headers, dropped),
    'Forwarded',
    `for=${node};host="${passing.host}";proto=http`,
    'X-Forwarded-For',
    peer,
    'X-Forwarded-Host',
    passing.host,
    'X-Forwarded-Proto',
    'http',
    'Via',
    VIA,
  ];
}
