// Reads one HTTP/1.1 response after the other from the bytes of a connection. Strict where framing is at stake: what could be
// read in two ways ends the connection.
import { HOP_BY_HOP, namesExtraHeaders, withoutConnectionHeaders } from './request_headers.ts';

const HEAD_BYTES = 64 * 1024;
const SWITCHING_PROTOCOLS = 101;
const NO_BYTES = Buffer.alloc(0);
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d{2})(?: ([\t\x20-\x7e\x80-\xff]*))?$/;
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** What no value may hold: a lone CR or LF would be the end of a line to others. */
const BAD_HEADER_VALUE = /[^\t\x20-\x7e\x80-\xff]/;

export interface ResponseHead {
  status: number;
  reason: string;
  /** Those that travel on. */
  headers: string[];
}

/** What the parser tells. Bytes are valid until the call returns. */
export interface ResponseReceiver {
  onHead(head: ResponseHead): void;
  onBody(bytes: Buffer): void;
  /** `reusable`: the connection may carry the next request. */
  onEnd(reusable: boolean): void;
}

type ParserState = 'head' | 'length' | 'size' | 'chunk' | 'chunk-end' | 'trailer' | 'close' | 'done';

/** A response that is no HTTP/1.1 or is framed ambiguously. */
export class BadResponse extends Error {
  override readonly name = 'BadResponse';
}

/** A head, and how the body behind it is framed (RFC 9112 section 6.3). */
interface FramedHead extends ResponseHead {
  chunked: boolean;
  length: number | undefined;
  keepAlive: boolean;
}

function lengthOf(value: string, before: number | undefined): number {
  const length = Number(value);
  if (!/^\d{1,15}$/.test(value) || (before !== undefined && before !== length))
    throw new BadResponse('Content-Length is no single number');
  return length;
}

/** Reads the header line `line` into `read`; gives the value of a Connection header that names other headers. */
function parseHeaderLine(line: string, read: FramedHead): string | undefined {
  const colon = line.indexOf(':');
  const name = line.slice(0, colon);
  const value = line.slice(colon + 1).trim();
  if (colon < 1 || !HEADER_NAME.test(name) || BAD_HEADER_VALUE.test(value))
    throw new BadResponse('a header line is malformed');
  const lower = name.toLowerCase();
  switch (lower) {
    case 'content-length':
      // Said once, however often it came.
      if (read.length === undefined) read.headers.push(name, value);
      read.length = lengthOf(value, read.length);
      return undefined;
    case 'transfer-encoding':
      if (read.chunked || value.toLowerCase() !== 'chunked')
        throw new BadResponse('Transfer-Encoding is not chunked');
      read.chunked = true;
      return undefined;
    case 'connection':
      if (/\bclose\b/i.test(value)) read.keepAlive = false;
      else if (/\bkeep-alive\b/i.test(value)) read.keepAlive = true;
      return namesExtraHeaders(value) ? value : undefined;
    default:
      if (!HOP_BY_HOP.has(lower)) read.headers.push(name, value);
      return undefined;
  }
}

function parseHead(text: string): FramedHead {
  let at = text.indexOf('\r\n');
  const first = STATUS_LINE.exec(at < 0 ? text : text.slice(0, at));
  if (!first) throw new BadResponse('the first line is no status line');
  const read: FramedHead = {
    status: Number(first[2]),
    reason: first[3] ?? '',
    headers: [],
    chunked: false,
    length: undefined,
    keepAlive: first[1] === '1',
  };
  let connection: string[] | undefined;
  while (at >= 0) {
    const end = text.indexOf('\r\n', at + 2);
    const named = parseHeaderLine(text.slice(at + 2, end < 0 ? undefined : end), read);
    if (named !== undefined) connection = [...(connection ?? []), named];
    at = end;
  }
  if (read.chunked && read.length !== undefined)
    throw new BadResponse('both Content-Length and Transfer-Encoding');
  if (connection) read.headers = withoutConnectionHeaders(read.headers, connection);
  return read;
}

export class ResponseParser {
  private state: ParserState = 'done';
  private unparsed: Buffer = NO_BYTES;
  private remaining = 0;
  private reusable = false;
  private isHead = false;
  private readonly receiver: ResponseReceiver;

  constructor(receiver: ResponseReceiver) {
    this.receiver = receiver;
  }

  /** Begins to read the response to a request; `isHead`: to one with the method HEAD, which has no body. */
  expect(isHead: boolean): void {
    this.state = 'head';
    this.isHead = isHead;
  }

  /** Takes the next bytes; throws BadResponse. Bytes while nothing is expected are an error too. */
  feed(bytes: Buffer): void {
    let rest = this.unparsed.length > 0 ? Buffer.concat([this.unparsed, bytes]) : bytes;
    this.unparsed = NO_BYTES;
    while (rest.length > 0) {
      const next = this.step(rest);
      if (next === undefined) {
        // The next read takes the place of these bytes.
        this.unparsed = Buffer.from(rest);
        return;
      }
      rest = next;
    }
  }

  /** The connection has ended: the end of a body without other framing. Returns whether the response was complete. */
  finish(): boolean {
    if (this.state !== 'close') return false;
    this.end(false);
    return true;
  }

  private end(reusable: boolean): void {
    this.state = 'done';
    this.receiver.onEnd(reusable);
  }

  /** Handles the front of `bytes` and returns what is left; undefined: more is needed. */
  private step(bytes: Buffer): Buffer | undefined {
    switch (this.state) {
      case 'done':
        throw new BadResponse('bytes that belong to no response');
      case 'head':
        return this.head(bytes);
      case 'length':
      case 'chunk': {
        const part = bytes.subarray(0, this.remaining);
        this.remaining -= part.length;
        this.receiver.onBody(part);
        if (this.remaining === 0 && this.state === 'length') this.end(this.reusable);
        else if (this.remaining === 0) this.state = 'chunk-end';
        return bytes.subarray(part.length);
      }
      case 'close':
        this.receiver.onBody(bytes);
        return bytes.subarray(bytes.length);
      default:
        return this.line(bytes);
    }
  }

  private line(bytes: Buffer): Buffer | undefined {
    const end = bytes.indexOf('\r\n');
    if (end < 0) {
      if (bytes.length > HEAD_BYTES) throw new BadResponse('a line is too long');
      return undefined;
    }
    const line = bytes.toString('latin1', 0, end);
    if (this.state === 'size') {
      const size = /^([0-9a-fA-F]{1,12})(?:[\t ]*;.*)?$/.exec(line)?.[1];
      if (size === undefined) throw new BadResponse('a chunk size is malformed');
      this.remaining = Number.parseInt(size, 16);
      this.state = this.remaining === 0 ? 'trailer' : 'chunk';
    } else if (this.state === 'chunk-end') {
      if (line !== '') throw new BadResponse('a chunk does not end where it should');
      this.state = 'size';
    } else if (line === '') {
      this.end(this.reusable);
    }
    return bytes.subarray(end + 2);
  }

  private head(bytes: Buffer): Buffer | undefined {
    const end = bytes.indexOf('\r\n\r\n');
    if (end < 0) {
      if (bytes.length > HEAD_BYTES) throw new BadResponse('the head is too long');
      return undefined;
    }
    const rest = bytes.subarray(end + 4);
    const head = parseHead(bytes.toString('latin1', 0, end));
    const { status, chunked, length } = head;
    if (status === SWITCHING_PROTOCOLS) throw new BadResponse('it changes the protocol unasked');
    // An interim answer (100, 103) is not passed on: the client has had its 100 from us.
    if (status < 200) return rest;
    this.reusable = head.keepAlive;
    const bodiless = this.isHead || status === 204 || status === 304;
    if (bodiless || (length === 0 && !chunked)) this.state = 'done';
    else if (chunked) this.state = 'size';
    else if (length !== undefined) this.state = 'length';
    else this.state = 'close';
    this.remaining = length ?? 0;
    this.receiver.onHead(head);
    if (this.state === 'done') this.end(this.reusable);
    return rest;
  }
}
