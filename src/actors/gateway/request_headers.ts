// Who may pass and with which headers: pure, and one pass over what came.
import { createHash, timingSafeEqual } from 'node:crypto';

/** Headers as node:http gives them raw: name, value, name, value ... */
export type RawHeaders = readonly string[];

/** The headers that end here; `named` looks into Connection for more of them. */
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

/** What marks a request that has passed this gateway once: a second time it is a loop. */
const VIA = '1.1 berth';

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

/** Whether `authorization` is exactly one of our tokens, as the daemon would take it; in constant time per token. */
function isDaemonToken(authorization: string, tokens: readonly string[]): boolean {
  const given = /^bearer +(.*)$/i.exec(authorization)?.[1];
  if (given === undefined) return false;
  const hash = digest(given.trim());
  return tokens.reduce((found, token) => timingSafeEqual(hash, digest(token)) || found, false);
}

/** The host name of a Host header if its port is ours: lower case, without the trailing dot. undefined: not for us. */
export function hostnameOf(host: string | undefined, port: number): string | undefined {
  if (host === undefined) return undefined;
  const match = /^([A-Za-z0-9.-]+?)\.?(?::(\d{1,5}))?$/.exec(host);
  if (!match || Number(match[2] ?? 80) !== port) return undefined;
  return match[1]?.toLowerCase();
}

/**
 * docs/reference.md "Gateway", the third check: loopback names with any port, names below the agent domain,
 * allowed extensions.
 */
export function isAllowedOrigin(
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

/** Whether a Connection header names other headers as hop-by-hop too. */
export const namesExtraHeaders = (connection: string): boolean =>
  !/^(?:close|keep-alive|upgrade)$/i.test(connection);

/** `headers` without those that the values of Connection name. */
export function withoutConnectionHeaders(headers: RawHeaders, connection: readonly string[]): string[] {
  const named = new Set(
    connection.flatMap((value) => value.split(',')).map((name) => name.trim().toLowerCase()),
  );
  return headers.filter((_, index) => !named.has((headers[index & ~1] ?? '').toLowerCase()));
}

/** What the gateway has to know of a request's headers, and those that travel on. */
export interface RequestHeaders {
  host: string | undefined;
  origin: string | undefined;
  accept: string | undefined;
  upgrade: string | undefined;
  /** It has passed this gateway once. */
  isLooped: boolean;
  /** How the body is framed: nothing of it ever depends on what Connection names. */
  isChunked: boolean;
  length: string | undefined;
  /** Why no agent may see it: it could be read in two ways. */
  malformedReason: string | undefined;
  forwarded: string[];
}

/** Reads the headers of a request in one pass; `tokens` are ours and never travel on. */
export function parseRequestHeaders(raw: RawHeaders, tokens: readonly string[]): RequestHeaders {
  const read: RequestHeaders = {
    host: undefined,
    origin: undefined,
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
      case 'expect':
      case 'forwarded':
        continue;
      case 'authorization':
        if (isDaemonToken(value, tokens)) continue;
        break;
      case 'origin':
        // One more is never let in by the first.
        read.origin = read.origin === undefined ? value : 'null';
        break;
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
        if (HOP_BY_HOP.has(lower) || lower.startsWith('x-forwarded-')) continue;
    }
    read.forwarded.push(name, value);
  }
  if (connection) read.forwarded = withoutConnectionHeaders(read.forwarded, connection);
  return read;
}

/** Who asks for what, and where it goes. */
export interface ForwardedRequest {
  method: string;
  url: string;
  /** The address of the peer. */
  peer: string;
  /** What the client has asked for as Host, and what the agent is told. */
  host: string;
  upstreamHost: string;
}

/** The head of a request as the agent gets it, up to the empty line: ours removed, forwarding set anew. */
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
  return `${text}Forwarded: for=${node};host="${host}";proto=http\r\nX-Forwarded-For: ${address}\r\nX-Forwarded-Host: ${host}\r\nX-Forwarded-Proto: http\r\nVia: ${VIA}\r\n`;
}
