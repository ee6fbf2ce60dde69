// Reads one HTTP/1.1 response after the other from the bytes of a connection. Strict where framing is at stake: what could be
// read in two ways ends the connection.
import type { RawHeaders } from './rules.ts';

const HEAD_BYTES = 64 * 1024;
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

export interface ResponseHead {
  status: number;
  reason: string;
  headers: string[];
}

/** What the parser tells; `body` returns false when the receiver wants a pause. */
export interface Receiver {
  head(head: ResponseHead): void;
  body(bytes: Buffer): void;
  /** `reusable`: the connection may carry the next request. `rest`: bytes after an upgrade. */
  end(reusable: boolean): void;
}

type State = 'head' | 'length' | 'size' | 'chunk' | 'chunk-end' | 'trailer' | 'close' | 'done';

/** A response that is no HTTP/1.1 or is framed ambiguously. */
export class BadResponse extends Error {
  override readonly name = 'BadResponse';
}

function parseHead(text: string): ResponseHead & { version: string } {
  const lines = text.split('\r\n');
  const first = /^HTTP\/(1\.[01]) (\d{3})(?: (.*))?$/.exec(lines[0] ?? '');
  if (!first) throw new BadResponse('the first line is no status line');
  const headers: string[] = [];
  for (let index = 1; index < lines.length; index += 1) {
    const line = lines[index] ?? '';
    const colon = line.indexOf(':');
    const name = line.slice(0, colon);
    if (colon < 1 || !NAME.test(name)) throw new BadResponse('a header line is malformed');
    headers.push(name, line.slice(colon + 1).trim());
  }
  return { version: first[1] ?? '', status: Number(first[2]), reason: first[3] ?? '', headers };
}

/** How the body of a response is framed (RFC 9112 section 6.3). */
function framing(headers: RawHeaders): {
  chunked: boolean;
  length: number | undefined;
  keepAlive: boolean | undefined;
} {
  let length: number | undefined;
  let chunked = false;
  let keepAlive: boolean | undefined;
  for (let index = 0; index < headers.length; index += 2) {
    const value = headers[index + 1] ?? '';
    switch (headers[index]?.toLowerCase()) {
      case 'content-length':
        if (!/^\d{1,15}$/.test(value) || (length !== undefined && length !== Number(value))) {
          throw new BadResponse('Content-Length is no single number');
        }
        length = Number(value);
        break;
      case 'transfer-encoding':
        if (chunked || value.toLowerCase() !== 'chunked')
          throw new BadResponse('Transfer-Encoding is not chunked');
        chunked = true;
        break;
      case 'connection':
        if (/\bclose\b/i.test(value)) keepAlive = false;
        else if (/\bkeep-alive\b/i.test(value)) keepAlive = true;
        break;
    }
  }
  if (chunked && length !== undefined) throw new BadResponse('both Content-Length and Transfer-Encoding');
  return { chunked, length, keepAlive };
}

export class ResponseParser {
  #state: State = 'done';
  #held: Buffer = Buffer.alloc(0);
  #left = 0;
  #reusable = false;
  #isHead = false;
  #receiver: Receiver | undefined;

  /** Begins to read the response to a request; `isHead`: to one with the method HEAD, which has no body. */
  expect(isHead: boolean, receiver: Receiver): void {
    this.#state = 'head';
    this.#isHead = isHead;
    this.#receiver = receiver;
  }

  /** Takes the next bytes; throws BadResponse. Bytes while nothing is expected are an error too. */
  feed(bytes: Buffer): void {
    let rest = this.#held.length > 0 ? Buffer.concat([this.#held, bytes]) : bytes;
    this.#held = rest.subarray(0, 0);
    while (rest.length > 0) {
      const next = this.#step(rest);
      if (next === undefined) {
        this.#held = rest;
        return;
      }
      rest = next;
    }
  }

  /** The connection has ended: the end of a body without other framing. Returns whether the response was complete. */
  finish(): boolean {
    if (this.#state !== 'close') return false;
    this.#end(false);
    return true;
  }

  #end(reusable: boolean): void {
    this.#state = 'done';
    this.#receiver?.end(reusable);
  }

  /** Handles the front of `bytes` and returns what is left; undefined: more is needed. */
  #step(bytes: Buffer): Buffer | undefined {
    switch (this.#state) {
      case 'done':
        throw new BadResponse('bytes that belong to no response');
      case 'head':
        return this.#head(bytes);
      case 'length':
      case 'chunk': {
        const part = bytes.subarray(0, this.#left);
        this.#left -= part.length;
        this.#receiver?.body(part);
        if (this.#left === 0 && this.#state === 'length') this.#end(this.#reusable);
        else if (this.#left === 0) this.#state = 'chunk-end';
        return bytes.subarray(part.length);
      }
      case 'close':
        this.#receiver?.body(bytes);
        return bytes.subarray(bytes.length);
      default:
        return this.#line(bytes);
    }
  }

  #line(bytes: Buffer): Buffer | undefined {
    const end = bytes.indexOf('\r\n');
    if (end < 0) {
      if (bytes.length > HEAD_BYTES) throw new BadResponse('a line is too long');
      return undefined;
    }
    const line = bytes.toString('latin1', 0, end);
    if (this.#state === 'size') {
      const size = /^([0-9a-fA-F]{1,12})(?:[\t ]*;.*)?$/.exec(line)?.[1];
      if (size === undefined) throw new BadResponse('a chunk size is malformed');
      this.#left = Number.parseInt(size, 16);
      this.#state = this.#left === 0 ? 'trailer' : 'chunk';
    } else if (this.#state === 'chunk-end') {
      if (line !== '') throw new BadResponse('a chunk does not end where it should');
      this.#state = 'size';
    } else if (line === '') {
      this.#end(this.#reusable);
    }
    return bytes.subarray(end + 2);
  }

  #head(bytes: Buffer): Buffer | undefined {
    const end = bytes.indexOf('\r\n\r\n');
    if (end < 0) {
      if (bytes.length > HEAD_BYTES) throw new BadResponse('the head is too long');
      return undefined;
    }
    const rest = bytes.subarray(end + 4);
    const head = parseHead(bytes.toString('latin1', 0, end));
    // An interim answer (100, 103) is not passed on: the client has had its 100 from us.
    if (head.status >= 100 && head.status < 200) return rest;
    const { chunked, length, keepAlive } = framing(head.headers);
    this.#reusable = keepAlive ?? head.version === '1.1';
    const bodiless = this.#isHead || head.status === 204 || head.status === 304;
    if (bodiless || (length === 0 && !chunked)) this.#state = 'done';
    else if (chunked) this.#state = 'size';
    else if (length !== undefined) this.#state = 'length';
    else this.#state = 'close';
    this.#left = length ?? 0;
    this.#receiver?.head(head);
    if (this.#state === 'done') this.#end(this.#reusable);
    return rest;
  }
}
