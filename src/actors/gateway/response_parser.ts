// Reads one HTTP/1.1 response after another from the bytes of a connection. Strict about framing: an
// ambiguous response ends the connection.
import { HOP_BY_HOP, namesExtraHeaders, withoutConnectionHeaders } from './request_headers.ts';

const HEAD_BYTES = 64 * 1024;
const SWITCHING_PROTOCOLS = 101;
const LF = 10;
const CR = 13;
const NO_BYTES = Buffer.alloc(0);
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d{2})(?: ([\t\x20-\x7e\x80-\xff]*))?$/;
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Characters not allowed in a value: other software would take a lone CR or LF for the end of a line. */
const BAD_HEADER_VALUE = /[^\t\x20-\x7e\x80-\xff]/;

export interface ResponseHead {
  status: number;
  reason: string;
  /** The forwarded headers, names and values alternating. */
  headers: string[];
  setsCookies: boolean;
}

/** Receives what the parser reads. Bytes are valid until the call returns. */
export interface ResponseReceiver {
  onHead(head: ResponseHead): void;
  onBody(bytes: Buffer): void;
  /** `isReusable`: the connection may carry another request. */
  onEnd(isReusable: boolean): void;
}

/** In a body of known length, or in a chunk; `remaining` bytes of it are still to come. */
interface BodyState {
  at: 'length' | 'chunk';
  remaining: number;
  isReusable: boolean;
}

/** At a line of the chunked coding. */
interface ChunkLineState {
  at: 'chunk-size' | 'chunk-end' | 'trailer';
  isReusable: boolean;
}

type ParserState =
  | { at: 'idle' }
  | { at: 'head'; isHead: boolean }
  | BodyState
  | ChunkLineState
  | { at: 'until-close' };

/** A response that is not HTTP/1.1, or is framed ambiguously. */
export class BadResponse extends Error {
  override readonly name = 'BadResponse';
}

/** A head, with the framing of the body after it (RFC 9112 section 6.3). */
interface FramedHead extends ResponseHead {
  isChunked: boolean;
  length: number | undefined;
  isKeepAlive: boolean;
}

type LineEnd = '\r\n' | '\n';

/**
 * The line end of a head, by its first line: a lone LF may end lines too (RFC 9112 section 2.2). A head with
 * both is refused, because its lone LF may come from a value.
 */
function lineEndOf(bytes: Buffer): LineEnd {
  const first = bytes.indexOf(LF);
  return first > 0 && bytes[first - 1] !== CR ? '\n' : '\r\n';
}

/** The offset of the empty line after a head; negative: it has not arrived. */
function headEnd(bytes: Buffer, lineEnd: LineEnd): number {
  const isBare = lineEnd === '\n';
  const end = bytes.indexOf(isBare ? '\n\n' : '\r\n\r\n');
  const isMixed = isBare
    ? bytes.subarray(0, end < 0 ? undefined : end).includes(CR)
    : end < 0 && bytes.includes('\n\n');
  if (isMixed) throw new BadResponse('only some lines of the head end in CRLF');
  return end;
}

function lengthOf(value: string, before: number | undefined): number {
  const length = Number(value);
  if (!/^\d{1,15}$/.test(value) || (before !== undefined && before !== length))
    throw new BadResponse('Content-Length is no single number');
  return length;
}

/**
 * Reads a header line into `read`. Returns the value of a Connection header that names further hop-by-hop
 * headers.
 */
function parseHeaderLine(line: string, read: FramedHead): string | undefined {
  const colon = line.indexOf(':');
  const name = line.slice(0, colon);
  const value = line.slice(colon + 1).trim();
  if (colon < 1 || !HEADER_NAME.test(name) || BAD_HEADER_VALUE.test(value))
    throw new BadResponse('a header line is malformed');
  const lower = name.toLowerCase();
  switch (lower) {
    case 'content-length':
      // Forwarded once, however often it is repeated.
      if (read.length === undefined) read.headers.push(name, value);
      read.length = lengthOf(value, read.length);
      return undefined;
    case 'transfer-encoding':
      if (read.isChunked || value.toLowerCase() !== 'chunked')
        throw new BadResponse('Transfer-Encoding is not chunked');
      read.isChunked = true;
      return undefined;
    case 'set-cookie':
      read.setsCookies = true;
      read.headers.push(name, value);
      return undefined;
    case 'connection':
      if (/\bclose\b/i.test(value)) read.isKeepAlive = false;
      else if (/\bkeep-alive\b/i.test(value)) read.isKeepAlive = true;
      return namesExtraHeaders(value) ? value : undefined;
    default:
      if (!HOP_BY_HOP.has(lower)) read.headers.push(name, value);
      return undefined;
  }
}

/** `lineEnd`: what every line of the head ends with. */
function parseHead(text: string, lineEnd: LineEnd): FramedHead {
  let at = text.indexOf(lineEnd);
  const first = STATUS_LINE.exec(at < 0 ? text : text.slice(0, at));
  if (!first) throw new BadResponse('the first line is no status line');
  const read: FramedHead = {
    status: Number(first[2]),
    reason: first[3] ?? '',
    headers: [],
    setsCookies: false,
    isChunked: false,
    length: undefined,
    isKeepAlive: first[1] === '1',
  };
  let connection: string[] | undefined;
  while (at >= 0) {
    const start = at + lineEnd.length;
    const end = text.indexOf(lineEnd, start);
    const named = parseHeaderLine(text.slice(start, end < 0 ? undefined : end), read);
    if (named !== undefined) connection = [...(connection ?? []), named];
    at = end;
  }
  if (read.isChunked && read.length !== undefined)
    throw new BadResponse('both Content-Length and Transfer-Encoding');
  if (connection) read.headers = withoutConnectionHeaders(read.headers, connection);
  return read;
}

/** The state after a head. */
function stateAfter({ status, isChunked, length, isKeepAlive }: FramedHead, isHead: boolean): ParserState {
  const isBodiless = isHead || status === 204 || status === 304;
  if (isBodiless || (length === 0 && !isChunked)) return { at: 'idle' };
  if (isChunked) return { at: 'chunk-size', isReusable: isKeepAlive };
  if (length === undefined) return { at: 'until-close' };
  return { at: 'length', remaining: length, isReusable: isKeepAlive };
}

/** The parser for the responses of one connection. */
export class ResponseParser {
  private state: ParserState = { at: 'idle' };
  /** The beginning of an incomplete line or head. */
  private unparsed: Buffer = NO_BYTES;
  private readonly receiver: ResponseReceiver;

  constructor(receiver: ResponseReceiver) {
    this.receiver = receiver;
  }

  /** Begins to read a response. `isHead`: the request's method is HEAD, so there is no body. */
  expect(isHead: boolean): void {
    this.state = { at: 'head', isHead };
  }

  /** Reads the next bytes. Throws BadResponse, also for bytes while no response is expected. */
  feed(bytes: Buffer): void {
    let rest = this.unparsed.length > 0 ? Buffer.concat([this.unparsed, bytes]) : bytes;
    this.unparsed = NO_BYTES;
    while (rest.length > 0) {
      const next = this.step(rest);
      if (next === undefined) {
        // A copy, because the next read overwrites these bytes.
        this.unparsed = Buffer.from(rest);
        return;
      }
      rest = next;
    }
  }

  /**
   * The connection has ended, which completes a body without other framing. Returns whether the response was
   * complete.
   */
  finish(): boolean {
    if (this.state.at !== 'until-close') return false;
    this.end(false);
    return true;
  }

  private end(isReusable: boolean): void {
    this.state = { at: 'idle' };
    this.receiver.onEnd(isReusable);
  }

  /** Parses the beginning of `bytes` and returns the rest; undefined: more bytes are needed. */
  private step(bytes: Buffer): Buffer | undefined {
    const { state } = this;
    switch (state.at) {
      case 'idle':
        throw new BadResponse('bytes that belong to no response');
      case 'head':
        return this.head(bytes, state.isHead);
      case 'length':
      case 'chunk':
        return this.body(bytes, state);
      case 'until-close':
        this.receiver.onBody(bytes);
        return bytes.subarray(bytes.length);
      default:
        return this.line(bytes, state);
    }
  }

  private body(bytes: Buffer, state: BodyState): Buffer {
    const part = bytes.subarray(0, state.remaining);
    state.remaining -= part.length;
    this.receiver.onBody(part);
    if (state.remaining === 0) {
      const { isReusable } = state;
      if (state.at === 'length') this.end(isReusable);
      else this.state = { at: 'chunk-end', isReusable };
    }
    return bytes.subarray(part.length);
  }

  private line(bytes: Buffer, { at, isReusable }: ChunkLineState): Buffer | undefined {
    const end = bytes.indexOf('\r\n');
    if (end < 0) {
      if (bytes.length > HEAD_BYTES) throw new BadResponse('a line is too long');
      return undefined;
    }
    const line = bytes.toString('latin1', 0, end);
    if (at === 'chunk-size') {
      const size = /^([0-9a-fA-F]{1,12})(?:[\t ]*;.*)?$/.exec(line)?.[1];
      if (size === undefined) throw new BadResponse('a chunk size is malformed');
      const remaining = Number.parseInt(size, 16);
      this.state = remaining === 0 ? { at: 'trailer', isReusable } : { at: 'chunk', remaining, isReusable };
    } else if (at === 'chunk-end') {
      if (line !== '') throw new BadResponse('a chunk does not end where it should');
      this.state = { at: 'chunk-size', isReusable };
    } else if (line === '') {
      this.end(isReusable);
    }
    return bytes.subarray(end + 2);
  }

  private head(bytes: Buffer, isHead: boolean): Buffer | undefined {
    const lineEnd = lineEndOf(bytes);
    const end = headEnd(bytes, lineEnd);
    if (end < 0) {
      if (bytes.length > HEAD_BYTES) throw new BadResponse('the head is too long');
      return undefined;
    }
    const rest = bytes.subarray(end + 2 * lineEnd.length);
    const head = parseHead(bytes.toString('latin1', 0, end), lineEnd);
    const { status } = head;
    if (status === SWITCHING_PROTOCOLS) throw new BadResponse('it changes the protocol unasked');
    // Interim answers (100, 103) are not forwarded: the gateway itself has sent 100 to the client.
    if (status < 200) return rest;
    this.state = stateAfter(head, isHead);
    this.receiver.onHead(head);
    if (this.state.at === 'idle') this.end(head.isKeepAlive);
    return rest;
  }
}
