// Readers of event streams that use as little processor time as possible: plain sockets that fill a buffer,
// which is parsed later.
import net from 'node:net';

export interface Subscriber {
  /** Everything received after the response head, without the chunk framing. */
  text(): string;
  /** Resolves when `mark` arrives after this call. Rejects when the stream ends first. */
  until(mark: string): Promise<void>;
  end(): void;
}

const KIB = 1_024;
/** Buffer size of one subscriber. A benchmark must not send more to it. */
const ROOM = 256 * KIB;
/** One read buffer for all subscribers: each copies its data out of it at once. */
const incoming = Buffer.allocUnsafeSlow(64 * KIB);

/**
 * Removes the chunk framing: each chunk is a line with its size, then the bytes. No event contains a carriage
 * return.
 */
const unchunked = (text: string): string =>
  text
    .split('\r\n')
    .filter((_, index) => index % 2 === 1)
    .join('');

/** Opens a stream. Resolves when the response head and the first line have arrived. */
export function subscribe(port: number, path: string): Promise<Subscriber> {
  const all = Buffer.allocUnsafeSlow(ROOM);
  let size = 0;
  let body = 0;
  let seen = 0;
  let waiting: { mark: string; resolve: () => void; reject: (error: Error) => void } | undefined;
  return new Promise((opened, refused) => {
    const look = (): void => {
      if (!waiting) return;
      // The mark may be split between two reads.
      const at = all.subarray(Math.max(body, seen - waiting.mark.length), size).indexOf(waiting.mark);
      seen = size;
      if (at < 0) return;
      waiting.resolve();
      waiting = undefined;
    };
    const take = (count: number): boolean => {
      incoming.copy(all, size, 0, count);
      size += count;
      if (body > 0) look();
      else {
        const head = all.subarray(0, size).indexOf('\r\n\r\n');
        if (head < 0 || all.indexOf('\n', head + 4) < 0) return true;
        body = head + 4;
        opened(subscriber);
      }
      return true;
    };
    const socket = net.connect({ port, host: '127.0.0.1', onread: { buffer: incoming, callback: take } });
    const subscriber: Subscriber = {
      text: () => unchunked(all.toString('latin1', body, size)),
      until: (mark) =>
        new Promise((resolve, reject) => {
          seen = size;
          waiting = { mark, resolve, reject };
        }),
      end: () => socket.destroy(),
    };
    const lost = (error: Error): void => {
      refused(error);
      waiting?.reject(error);
    };
    socket.on('error', lost);
    socket.on('close', () => lost(new Error(`the stream ended after ${size} bytes`)));
    socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
  });
}

export interface Counter {
  /** The number of events since the stream opened. */
  count(): number;
  /** Resolves after `count` events. Rejects when the stream ends first. */
  reached(count: number): Promise<void>;
  end(): void;
}

const FRAME = Buffer.from('\ndata: ');

/** Opens a stream and only counts its events, so that thousands of such streams use little time. */
export function countFrames(port: number, path: string): Promise<Counter> {
  let frames = 0;
  let rest = '';
  let waiting: { count: number; resolve: () => void; reject: (error: Error) => void } | undefined;
  return new Promise((opened, refused) => {
    const take = (size: number): boolean => {
      const part = incoming.subarray(0, size);
      // A mark may be split between two reads.
      const seam = rest + part.toString('latin1', 0, FRAME.length - 1);
      if (rest.length > 0 && seam.includes(FRAME.toString('latin1'))) frames += 1;
      for (let at = part.indexOf(FRAME); at >= 0; at = part.indexOf(FRAME, at + FRAME.length)) frames += 1;
      rest = (rest + part.toString('latin1', Math.max(0, size - FRAME.length + 1))).slice(1 - FRAME.length);
      opened(counter);
      if (waiting && frames >= waiting.count) waiting.resolve();
      return true;
    };
    const socket = net.connect({ port, host: '127.0.0.1', onread: { buffer: incoming, callback: take } });
    const counter: Counter = {
      count: () => frames,
      reached: (count) =>
        new Promise((resolve, reject) => {
          if (frames >= count) resolve();
          else waiting = { count, resolve, reject };
        }),
      end: () => socket.destroy(),
    };
    const lost = (error: Error): void => {
      refused(error);
      waiting?.reject(error);
    };
    socket.on('error', lost);
    socket.on('close', () => lost(new Error(`the stream ended after ${frames} events`)));
    socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
  });
}
