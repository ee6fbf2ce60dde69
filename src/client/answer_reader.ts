// Reads an answer of HTTP/1.1 (RFC 9112) from its bytes, as they arrive.

export interface BufferedAnswer {
  status: number;
  headers: ReadonlyMap<string, string>;
  body: string;
}

export const HEAD_END = '\r\n\r\n';
const FIRST_CAPACITY = 16 * 1024;

interface AnswerHead {
  status: number;
  headers: Map<string, string>;
  /** How the end of the body is determined: chunks, a length, or the end of the connection (null). */
  length: number | 'chunked' | null;
}

function parseHead(text: string): AnswerHead {
  const [first = '', ...lines] = text.split('\r\n');
  const [, status] = /^HTTP\/1\.[01] (\d{3})/.exec(first) ?? [];
  if (status === undefined) throw new Error('the answer is no HTTP');
  const headers = new Map(
    lines.map((line): [string, string] => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
  const length = headers.get('content-length');
  const isChunked = headers.get('transfer-encoding')?.toLowerCase() === 'chunked';
  const end = length === undefined ? null : Number(length);
  return { status: Number(status), headers, length: isChunked ? 'chunked' : end };
}

/** Parses one answer. Each byte is examined once, in however many parts it arrives. */
export class AnswerReader {
  private bytes = Buffer.allocUnsafe(FIRST_CAPACITY);
  private used = 0;
  private head: AnswerHead | null = null;
  /** Where the next line or the rest of the body begins. */
  private at = 0;
  /** The chunks so far, as offsets: the bytes move when their buffer grows. */
  private readonly chunks: [from: number, to: number][] = [];

  /** Bytes so far. */
  get size(): number {
    return this.used;
  }

  /** Adds the next bytes. Returns the answer once it is complete. Throws when it is invalid. */
  push(part: Buffer): BufferedAnswer | null {
    this.append(part);
    return this.read(false);
  }

  /** No more bytes will arrive. Throws unless the answer is complete. */
  end(): BufferedAnswer {
    const answer = this.read(true);
    if (!answer) throw new Error('the connection was closed before the answer');
    return answer;
  }

  private append(part: Buffer): void {
    const needed = this.used + part.length;
    if (needed > this.bytes.length) {
      const grown = Buffer.allocUnsafe(Math.max(needed, this.bytes.length * 2));
      this.bytes.copy(grown, 0, 0, this.used);
      this.bytes = grown;
    }
    part.copy(this.bytes, this.used);
    this.used = needed;
  }

  private read(ended: boolean): BufferedAnswer | null {
    const head = this.readHead();
    const body = head && this.readBody(head.length, ended);
    return body && { status: head.status, headers: head.headers, body: body.toString() };
  }

  private readHead(): AnswerHead | null {
    if (this.head) return this.head;
    const end = this.indexOf(HEAD_END, Math.max(0, this.at - HEAD_END.length));
    if (end < 0) {
      this.at = this.used;
      return null;
    }
    this.head = parseHead(this.bytes.toString('latin1', 0, end));
    this.at = end + HEAD_END.length;
    return this.head;
  }

  private readBody(length: AnswerHead['length'], ended: boolean): Buffer | null {
    if (length === 'chunked') return this.readChunks();
    const end = length === null ? this.used : this.at + length;
    const isWhole = length === null ? ended : this.used >= end;
    return isWhole ? this.bytes.subarray(this.at, end) : null;
  }

  private readChunks(): Buffer | null {
    for (;;) {
      const lineEnd = this.indexOf('\r\n', this.at);
      if (lineEnd < 0) return null;
      const line = this.bytes.toString('latin1', this.at, lineEnd);
      const [, digits] = /^([0-9a-f]{1,8})\s*(?:;|$)/i.exec(line) ?? [];
      if (digits === undefined) throw new Error('the answer is no HTTP');
      const size = Number.parseInt(digits, 16);
      const start = lineEnd + 2;
      // The last chunk is empty. Trailers may follow, which nothing here needs.
      if (size === 0) return this.indexOf(HEAD_END, lineEnd) < 0 ? null : this.joined();
      if (this.used < start + size + 2) return null;
      this.chunks.push([start, start + size]);
      this.at = start + size + 2;
    }
  }

  private joined(): Buffer {
    return Buffer.concat(this.chunks.map(([from, to]) => this.bytes.subarray(from, to)));
  }

  private indexOf(text: string, from: number): number {
    return this.bytes.subarray(0, this.used).indexOf(text, from, 'latin1');
  }
}
