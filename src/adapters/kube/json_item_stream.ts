// Cuts the items of a listing from a stream of bytes one by one. So a page of megabytes is never in memory as
// a whole, and no step takes longer than parsing one object.
import { CLOUD } from '../../settings/cloud_limits.ts';
import { MIB } from '../../settings/limits.ts';
import { WireError } from './kube_errors.ts';
import { parseJson } from './parse_objects.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** The key before the array of the items, at the end of the bytes so far. */
const ITEMS_KEY = /(?:^|[^\\])"items"\s*:\s*$/;
/** The number of bytes to search for ITEMS_KEY, which is at least the length of a match. */
const TAIL_BYTES = 64;

/** Bytes that arrive in pieces, up to a limit. `what` names them in the WireError for exceeding it. */
class BoundedBytes {
  private parts: Uint8Array[] = [];
  private size = 0;
  private readonly maxBytes: number;
  private readonly what: string;

  constructor(maxBytes: number, what: string) {
    this.maxBytes = maxBytes;
    this.what = what;
  }

  add(bytes: Uint8Array): void {
    this.size += bytes.length;
    if (this.size > this.maxBytes) throw new WireError(`${this.what} has more than ${this.maxBytes} bytes`);
    this.parts.push(bytes);
  }

  take(): Uint8Array {
    const [only] = this.parts;
    const whole = this.parts.length === 1 && only ? only : Buffer.concat(this.parts, this.size);
    this.parts = [];
    this.size = 0;
    return whole;
  }

  endsWith(pattern: RegExp): boolean {
    let tail = '';
    for (const part of this.parts.toReversed()) {
      if (tail.length >= TAIL_BYTES) break;
      tail = Buffer.from(part.subarray(-TAIL_BYTES)).toString('latin1') + tail;
    }
    return pattern.test(tail);
  }
}

/**
 * Reads the bytes of `{..., "items": [{...}, ...], ...}` in pieces of any size, and passes each parsed item
 * to `onItem` as soon as it is complete. Only brackets and strings are recognised here; JSON.parse validates
 * the rest. The methods throw a WireError for any other text, and whatever `onItem` throws.
 */
export class JsonItemStream {
  private readonly onItem: (item: unknown) => void;
  private readonly frame = new BoundedBytes(MIB, 'the frame of a listing');
  private readonly item = new BoundedBytes(CLOUD.maxObjectBytes, 'an object');
  /** What the next byte belongs to. Between items there are only commas, which are dropped. */
  private place: 'frame' | 'between' | 'item' = 'frame';
  private depth = 0;
  private isInString = false;
  private isEscaped = false;

  constructor(onItem: (item: unknown) => void) {
    this.onItem = onItem;
  }

  push(chunk: Uint8Array): void {
    // The bytes before `from` have been stored.
    let from = 0;
    for (let at = 0; at < chunk.length; at += 1) {
      const byte = chunk[at];
      if (this.isInString) {
        if (this.isEscaped) this.isEscaped = false;
        else if (byte === BACKSLASH) this.isEscaped = true;
        else if (byte === QUOTE) this.isInString = false;
      } else if (byte === QUOTE) this.isInString = true;
      else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) from = this.onOpen(chunk, from, at);
      else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) from = this.onClose(chunk, from, at);
    }
    this.put(chunk.subarray(from));
  }

  /** The listing without its items, parsed: `items` is an empty array. */
  end(): unknown {
    return parseJson(this.frame.take());
  }

  private onOpen(chunk: Uint8Array, from: number, at: number): number {
    this.depth += 1;
    if (this.place === 'between') {
      this.place = 'item';
      return at;
    }
    if (this.place === 'item' || this.depth !== 2 || chunk[at] !== OPEN_ARRAY) return from;
    this.put(chunk.subarray(from, at));
    const isItems = this.frame.endsWith(ITEMS_KEY);
    this.put(chunk.subarray(at, at + 1));
    if (isItems) this.place = 'between';
    return at + 1;
  }

  private onClose(chunk: Uint8Array, from: number, at: number): number {
    this.depth -= 1;
    if (this.place === 'item' && this.depth === 2) {
      this.put(chunk.subarray(from, at + 1));
      this.place = 'between';
      this.onItem(parseJson(this.item.take()));
      return at + 1;
    }
    if (this.place !== 'between') return from;
    this.place = 'frame';
    return at;
  }

  private put(bytes: Uint8Array): void {
    if (bytes.length === 0 || this.place === 'between') return;
    if (this.place === 'item') this.item.add(bytes);
    else this.frame.add(bytes);
  }
}
