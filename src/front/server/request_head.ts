// Finds what makes the head of a request ambiguous: docs/reference.md "Ambiguous requests".

/**
 * Headers that may occur only once in a request. With two, a proxy in front or a check may have used the
 * other one.
 */
const SINGLE_HEADERS: readonly string[] = [
  'host',
  'origin',
  'authorization',
  'content-length',
  'content-type',
  'idempotency-key',
  'sec-fetch-site',
  'sec-websocket-protocol',
  'transfer-encoding',
];

const INDEXES: ReadonlyMap<string, number> = new Map(SINGLE_HEADERS.map((name, index) => [name, index]));
const LENGTH = /^[0-9]+$/;

/** What the headers of a request say about its body. */
export interface HeadFacts {
  /** Why the request is ambiguous; null: it is not. */
  readonly fault: string | null;
  readonly hasBody: boolean;
  /** The body comes in chunks. */
  readonly isChunked: boolean;
}

/**
 * Reads the headers of one request after another: `begin`, `note` for each header, `finish`. It is on the
 * path of every request, so it allocates nothing for those without a body.
 */
export class HeadReader {
  private readonly values: (string | null)[] = SINGLE_HEADERS.map(() => null);
  private fault: string | null = null;
  private length: string | null = null;
  private coding: string | null = null;

  begin(): void {
    this.values.fill(null);
    this.fault = null;
    this.length = null;
    this.coding = null;
  }

  /** `name` is in lower case. A closure, because uWebSockets.js calls it without a receiver. */
  readonly note = (name: string, value: string): void => {
    const index = INDEXES.get(name);
    if (index === undefined) return;
    if (this.values[index] !== null) this.fault = `it has two headers ${name}`;
    this.values[index] = value;
    if (name === 'content-length') this.length = value;
    else if (name === 'transfer-encoding') this.coding = value;
    // Other empty headers count as absent. An empty key would repeat the change each time it is retried.
    else if (name === 'idempotency-key' && value === '') this.fault ??= 'its Idempotency-Key is empty';
  };

  /**
   * The value of a header of the last request read; empty if absent. undefined: not kept, because a request
   * may have several headers of that name.
   */
  value(name: string): string | undefined {
    const index = INDEXES.get(name);
    return index === undefined ? undefined : (this.values[index] ?? '');
  }

  finish(): HeadFacts {
    const { length, coding } = this;
    if (this.fault === null && length === null && coding === null) return WITHOUT_BODY;
    if (length !== null && !LENGTH.test(length)) this.fault ??= 'its Content-Length is not a number';
    if (coding !== null && coding.toLowerCase() !== 'chunked')
      this.fault ??= 'its Transfer-Encoding is not chunked';
    if (length !== null && coding !== null) this.fault ??= 'it has a Content-Length and a Transfer-Encoding';
    const isChunked = coding !== null;
    return { fault: this.fault, hasBody: isChunked || Number(length) > 0, isChunked };
  }
}

const WITHOUT_BODY: HeadFacts = { fault: null, hasBody: false, isChunked: false };
