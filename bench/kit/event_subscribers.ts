// Readers of event streams that cost the machine as little as possible: plain sockets that fill a buffer,
// looked at later.
import net from 'node:net';

export interface Subscriber {
  /** All it has got after the head of the answer, without the framing of chunks. */
  text(): string;
  /** Resolves when `mark` has come, from now on. Rejects when the stream ends before. */
  until(mark: string): Promise<void>;
  end(): void;
}

const KIB = 1_024;
/** What one subscriber can take in; more is a defect of the bench. */
const ROOM = 256 * KIB;
/** One for all: what is read is copied at once. */
const incoming = Buffer.allocUnsafeSlow(64 * KIB);

/** A chunk is a line with its size and then the bytes; no frame has a carriage return. */
const unchunked = (text: string): string =>
  text
    .split('\r\n')
    .filter((_, index) => index % 2 === 1)
    .join('');

/** Opens a stream; resolves when its head and first line have come. */
export function subscribe(port: number, path: string): Promise<Subscriber> {
  const all = Buffer.allocUnsafeSlow(ROOM);
  let size = 0;
  let body = 0;
  let seen = 0;
  let waiting: { mark: string; resolve: () => void; reject: (error: Error) => void } | undefined;
  return new Promise((opened, refused) => {
    const look = (): void => {
      if (!waiting) return;
      // The mark may have come in two parts.
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
  /** Frames since it was opened, besides the first line. */
  count(): number;
  /** Resolves when so many have come. Rejects when the stream ends before. */
  reached(count: number): Promise<void>;
  end(): void;
}

const FRAME = Buffer.from('\ndata: ');

/**
 * Opens a stream of which nothing but the number of its frames is kept: thousands of them cost next to
 * nothing.
 */
export function countFrames(port: number, path: string): Promise<Counter> {
  let frames = 0;
  let rest = '';
  let waiting: { count: number; resolve: () => void; reject: (error: Error) => void } | undefined;
  return new Promise((opened, refused) => {
    const take = (size: number): boolean => {
      const part = incoming.subarray(0, size);
      // A mark may lie across two parts.
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
