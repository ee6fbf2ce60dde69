// Logs as they are written: each follower reads on from its own offset whenever the log has grown and its client has taken
// what it was sent, so a slow one costs nothing and misses nothing.
import { readableLine } from '../adapters/lines.ts';
import { EVENTS, KIB, LOGS } from '../limits.ts';
import type { LogsQuery, ServiceProtocol } from '../protocol/service.ts';
import type { Ref } from '../runtime/actor.ts';
import type { Stream } from './server.ts';

export type FollowQuery = Pick<LogsQuery, 'lines' | 'stream' | 'raw'>;

/** Bytes of log per question to the service. */
const READ_BYTES = 128 * KIB;
const NEWLINE = 0x0a;
const OFFSET = /^[0-9]{1,15}$/;

/** One line as a frame. `id` is the offset where the log goes on after it; a client that comes again says it. */
function frame(line: string, id: number | null): string {
  return `${id === null ? '' : `id: ${id}\n`}event: line\ndata: ${JSON.stringify({ line })}\n\n`;
}

/** Where a line that is too long is cut: never within a character. */
function cutAt(bytes: Uint8Array): number {
  let end = LOGS.lineBytes;
  while (end > LOGS.lineBytes - 3 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return end;
}

/** Answers to asks come without one: the event loop would see nothing else. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

class Follower {
  /** Its service is no more. */
  removed = false;
  private readonly service: Ref<ServiceProtocol>;
  private readonly query: FollowQuery;
  private readonly isRunning: () => boolean;
  private stream: Stream | null = null;
  private offset = 0;
  /** The beginning of a line whose end has not come yet. */
  private rest: Buffer = Buffer.alloc(0);
  private reading = false;
  /** Asked to read on while it was reading. */
  private again = false;

  constructor(service: Ref<ServiceProtocol>, query: FollowQuery, isRunning: () => boolean) {
    this.service = service;
    this.query = query;
    this.isRunning = isRunning;
  }

  /** Finds where to begin; gives the frames of the past lines. */
  async begin(lastEventId: string): Promise<string> {
    const { lines, stream, raw } = this.query;
    if (OFFSET.test(lastEventId)) {
      this.offset = Number(lastEventId);
      return '';
    }
    if (lines === 0) {
      const { end } = await this.service.ask('read', { offset: Number.MAX_SAFE_INTEGER, limit: 1, stream });
      this.offset = end;
      return '';
    }
    const past = await this.service.ask('logs', { lines, stream, raw, timestamps: false });
    this.offset = past.end;
    const texts: string[] = JSON.parse(Buffer.from(past.lines).toString());
    this.rest = Buffer.from(past.rest);
    if (this.rest.length > 0) texts.pop();
    // The last of them says where the log goes on; within a line that has not ended yet there is no such place.
    const last = this.rest.length === 0 ? texts.length - 1 : -1;
    return texts.map((line, at) => frame(line, at === last ? past.end : null)).join('');
  }

  start(stream: Stream): void {
    this.stream = stream;
    stream.onDrain = () => this.poke();
    this.poke();
  }

  touch(): void {
    this.stream?.touch();
    // What the service forgot to tell, because it was started anew, is found out here.
    this.poke();
  }

  /** Reads on, if there is more and the client has taken what it was sent. */
  poke(): void {
    if (this.reading) this.again = true;
    else if (this.stream) void this.pump(this.stream);
  }

  end(): void {
    this.stream?.end();
  }

  private async pump(stream: Stream): Promise<void> {
    this.reading = true;
    try {
      do {
        this.again = false;
        // A long log gives everybody else a turn between two pieces.
        while (stream.waiting === 0 && (await this.readOn(stream))) await turn();
      } while (this.again && stream.waiting === 0);
    } catch {
      // Whatever became of the service: the client comes again with the offset it has.
      stream.end();
    }
    this.reading = false;
  }

  /** Sends the next piece; false when there was none. */
  private async readOn(stream: Stream): Promise<boolean> {
    const from = this.offset;
    const { start, end, bytes } = await this.service.ask('read', {
      offset: from,
      limit: READ_BYTES,
      stream: this.query.stream,
    });
    this.offset = end;
    let frames = start > from ? this.flush() : '';
    frames += this.split(Buffer.from(bytes), end);
    // Nobody will end the last line of a process that is gone.
    if (end <= from && !this.isRunning()) frames += this.flush();
    if (frames !== '') stream.write(Buffer.from(frames));
    return end > from;
  }

  /** The frames of the whole lines in what came; the rest waits for its newline. */
  private split(bytes: Buffer, end: number): string {
    const all = this.rest.length === 0 ? bytes : Buffer.concat([this.rest, bytes]);
    // Of one stream of two it is not known where in the log a line ends.
    const base = this.query.stream === null ? end - all.length : null;
    let frames = '';
    let from = 0;
    while (from < all.length) {
      const newline = all.indexOf(NEWLINE, from);
      const isLong = (newline < 0 ? all.length : newline) - from > LOGS.lineBytes;
      if (newline < 0 && !isLong) break;
      const to = isLong ? from + cutAt(all.subarray(from)) : newline;
      const line = this.text(all.subarray(from, to));
      from = isLong ? to : to + 1;
      frames += frame(line, base === null ? null : base + from);
    }
    this.rest = Buffer.from(all.subarray(from));
    return frames;
  }

  private flush(): string {
    if (this.rest.length === 0) return '';
    const line = this.text(this.rest);
    this.rest = Buffer.alloc(0);
    return frame(line, this.query.stream === null ? this.offset : null);
  }

  private text(bytes: Buffer): string {
    return this.query.raw ? bytes.toString() : readableLine(bytes.toString());
  }
}

export interface Following {
  name: string;
  service: Ref<ServiceProtocol>;
  query: FollowQuery;
  lastEventId: string;
  isRunning: () => boolean;
  open: () => Stream | null;
}

export class LogStreams {
  private readonly followers = new Map<string, Set<Follower>>();

  /**
   * Follows the log of a service: the last `lines`, or what came after `lastEventId`, then every new line. Rejects with the
   * service's failure; `open` is called after everything that can fail.
   */
  async follow({ name, service, query, lastEventId, isRunning, open }: Following): Promise<void> {
    await service.ask('follow', { on: true });
    const follower = new Follower(service, query, isRunning);
    // A letter to a service that was removed would bring its actor back to life.
    const leave = (): void => {
      if (!follower.removed) service.tell('follow', { on: false });
    };
    const past = await follower.begin(lastEventId).catch((error: unknown) => {
      leave();
      throw error;
    });
    const stream = open();
    if (!stream) return leave();
    const group = this.followers.get(name) ?? new Set();
    this.followers.set(name, group.add(follower));
    stream.onClose = () => {
      group.delete(follower);
      if (group.size === 0 && this.followers.get(name) === group) this.followers.delete(name);
      leave();
    };
    stream.write(Buffer.from(`retry: ${EVENTS.retryMs}\n\n${past}`));
    follower.start(stream);
  }

  /** The log of `name` may have grown, or its process has ended. */
  poke(name: string): void {
    for (const follower of this.followers.get(name) ?? []) follower.poke();
  }

  /** Ends the streams of services that are gone. */
  keep(exists: (name: string) => boolean): void {
    for (const [name, group] of this.followers) {
      if (exists(name)) continue;
      for (const follower of [...group]) {
        follower.removed = true;
        follower.end();
      }
    }
  }

  touch(): void {
    for (const group of this.followers.values()) for (const follower of group) follower.touch();
  }

  end(): void {
    for (const group of this.followers.values()) for (const follower of [...group]) follower.end();
  }
}
