// Decides which requests may pass, and with which headers: pure, in one pass over the headers.
import { createHash, timingSafeEqual } from 'node:crypto';
import { protocolToken } from '../../adapters/protocol_token.ts';
import { headerToken, parseBearer, parseKey } from '../../protocol/access_key.ts';
import { isSenderHeader, type SenderHeaders } from './request_sender.ts';

/** Raw headers of node:http: name, value, name, value ... */
export type RawHeaders = readonly string[];

/** Headers that are not forwarded. Connection may name more; see `withoutConnectionHeaders`. */
export const HOP_BY_HOP: ReadonlySet<string> = new Set([
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

/**
 * Headers that are never forwarded: the gateway answers `Expect` itself, and its own information about the
 * client is more reliable. The token of the cloud part is for nobody behind the gateway.
 */
const NOT_PASSED: ReadonlySet<string> = new Set(['berth-cloud-token', 'expect', 'forwarded', 'x-real-ip']);
/** Headers that the gateway writes or filters itself; a variant spelling would evade it. */
const OWN_SPELLING: ReadonlySet<string> = new Set(['content-length', 'sec-websocket-protocol']);

/** Marks a request that has passed through this gateway. One that arrives with the mark is in a loop. */
const VIA = '1.1 berth';

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

/**
 * Whether the daemon might accept `given`: it is one of its tokens, or has the form of a key (such as an
 * agent's) or of a bearer derived from one. Takes constant time per token.
 */
function isDaemonToken(given: string, tokens: readonly string[]): boolean {
  if (parseBearer(given) || parseKey(given)) return true;
  const hash = digest(given);
  return tokens.reduce((found, token) => timingSafeEqual(hash, digest(token)) || found, false);
}

function hasDaemonToken(authorization: string, tokens: readonly string[]): boolean {
  const given = headerToken(authorization);
  return given !== null && isDaemonToken(given, tokens);
}

/** The header that offers protocols, without those that carry a token: docs/reference.md "Attach". */
function protocolHeader(header: string, offered: string, tokens: readonly string[]): string[] {
  const isPassed = (protocol: string): boolean => {
    const token = protocolToken(protocol);
    return token === null || !isDaemonToken(token, tokens);
  };
  const passed = offered
    .split(',')
    .map((protocol) => protocol.trim())
    .filter(isPassed);
  return passed.length > 0 ? [header, passed.join(', ')] : [];
}

/**
 * Whether a header must not be forwarded: it is hop-by-hop, or claims what only the gateway knows. Agents
 * that turn header names into variables treat `_` like `-`.
 */
function isDropped(lower: string): boolean {
  const name = lower.includes('_') ? lower.replaceAll('_', '-') : lower;
  if (HOP_BY_HOP.has(name) || NOT_PASSED.has(name) || name.startsWith('x-forwarded-')) return true;
  return name !== lower && OWN_SPELLING.has(name);
}

/**
 * The host name in a Host header with our `port`, in lower case and without a trailing dot; undefined for any
 * other port.
 */
export function hostnameOf(host: string | undefined, port: number): string | undefined {
  if (host === undefined) return undefined;
  const match = /^([A-Za-z0-9.-]+?)\.?(?::(\d{1,5}))?$/.exec(host);
  if (!match || Number(match[2] ?? 80) !== port) return undefined;
  return match[1]?.toLowerCase();
}

/** Whether a Connection header names further hop-by-hop headers. */
export const namesExtraHeaders = (connection: string): boolean =>
  !/^(?:close|keep-alive|upgrade)$/i.test(connection);

/** `headers` without those that `connection`, the values of Connection headers, names. */
export function withoutConnectionHeaders(headers: RawHeaders, connection: readonly string[]): string[] {
  const named = new Set(
    connection.flatMap((value) => value.split(',')).map((name) => name.trim().toLowerCase()),
  );
  return headers.filter((_, index) => !named.has((headers[index & ~1] ?? '').toLowerCase()));
}

/** The headers of a request that the gateway acts on, and those that it passes on. */
export interface RequestHeaders {
  host: string | undefined;
  sender: SenderHeaders;
  accept: string | undefined;
  upgrade: string | undefined;
  /** The request has already passed through this gateway. */
  isLooped: boolean;
  /** The framing of the body, which never depends on what Connection names. */
  isChunked: boolean;
  length: string | undefined;
  /** Why no agent may see the request: it is ambiguous. */
  malformedReason: string | undefined;
  forwarded: string[];
}

/** Reads the headers of a request. `tokens` are Berth's own and are never passed on. */
export function parseRequestHeaders(raw: RawHeaders, tokens: readonly string[]): RequestHeaders {
  const read: RequestHeaders = {
    host: undefined,
    sender: {},
    accept: undefined,
    upgrade: undefined,
    isLooped: false,
    isChunked: false,
    length: undefined,
    malformedReason: undefined,
    forwarded: [],
  };
  let connection: string[] | undefined;
  for (let index = 0; index < raw.length; index += 2) {
    const name = raw[index] as string;
    const value = raw[index + 1] as string;
    const lower = name.toLowerCase();
    switch (lower) {
      case 'host':
        if (read.host !== undefined) read.malformedReason = 'It has two Host headers';
        read.host = value;
        continue;
      case 'transfer-encoding':
        if (read.isChunked || value.toLowerCase() !== 'chunked')
          read.malformedReason = 'Its Transfer-Encoding is not chunked';
        read.isChunked = true;
        continue;
      case 'connection':
        if (namesExtraHeaders(value)) connection = [...(connection ?? []), value];
        continue;
      case 'upgrade':
        read.upgrade = value;
        continue;
      case 'authorization':
        if (hasDaemonToken(value, tokens)) continue;
        break;
      case 'sec-websocket-protocol':
        read.forwarded.push(...protocolHeader(name, value, tokens));
        continue;
      case 'accept':
        read.accept = value;
        break;
      case 'via':
        if (value.includes('berth')) read.isLooped = true;
        break;
      case 'content-length':
        read.length = value;
        continue;
      default:
        if (isDropped(lower)) continue;
        // No two of them are trusted, whatever their values.
        if (isSenderHeader(lower)) read.sender[lower] = lower in read.sender ? 'null' : value;
    }
    read.forwarded.push(name, value);
  }
  if (connection) read.forwarded = withoutConnectionHeaders(read.forwarded, connection);
  return read;
}

/** The request line, and the input for its new headers. */
export interface ForwardedRequest {
  method: string;
  url: string;
  /** Address of the client. */
  peer: string;
  /** The Host sent by the client, and the one for the agent. */
  host: string;
  upstreamHost: string;
}

/** The head as sent to the agent, with forwarding headers of our own, without the final empty line. */
export function forwardedHead(
  { method, url, peer, host, upstreamHost }: ForwardedRequest,
  headers: RequestHeaders,
): string {
  const { forwarded, isChunked, length } = headers;
  const address = peer.startsWith('::ffff:') ? peer.slice('::ffff:'.length) : peer;
  const node = address.includes(':') ? `"[${address}]"` : address;
  let text = `${method} ${url} HTTP/1.1\r\nHost: ${upstreamHost}\r\n`;
  for (let index = 0; index < forwarded.length; index += 2)
    text += `${forwarded[index]}: ${forwarded[index + 1]}\r\n`;
  if (isChunked) text += 'Transfer-Encoding: chunked\r\n';
  else if (length !== undefined) text += `Content-Length: ${length}\r\n`;
  text += `Forwarded: for=${node};host="${host}";proto=http\r\n`;
  text += `X-Forwarded-For: ${address}\r\nX-Forwarded-Host: ${host}\r\nX-Forwarded-Proto: http\r\n`;
  return `${text}Via: ${VIA}\r\n`;
}
