// Logs as they are written: each follower reads on from its own offset whenever the log has grown and its client has taken
// what it was sent, so a slow one costs nothing and misses nothing.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { cutAt } from '../adapters/logs/linecut.ts';
import { readableLine } from '../adapters/logs/readable.ts';
import { EVENTS, KIB, LOGS } from '../limits.ts';
import type { LogParts, LogsQuery, ServiceProtocol } from '../protocol/service.ts';
import { localTime } from '../protocol/time.ts';
import type { Ref } from '../runtime/actor.ts';
import type { Stream } from './server.ts';

/** Bytes of log per question to the service. */
const READ_BYTES = 128 * KIB;
const NEWLINE = 0x0a;
const OFFSET = /^[0-9]{1,15}$/;
const RETRY = Buffer.from(`retry: ${EVENTS.retryMs}\n\n`);

/** One line as a frame. `id` is the offset where the log goes on after it; a client that comes again says it. */
function frame(line: string, id: number | null): string {
  return `${id === null ? '' : `id: ${id}\n`}event: line\ndata: ${JSON.stringify({ line })}\n\n`;
}

/** Gives the time at each of ascending offsets. */
function clockOf(times: LogParts['times']): (offset: number) => number {
  let at = 0;
  return (offset) => {
    while (at + 1 < times.length && (times[at + 1]?.offset ?? 0) <= offset) at += 1;
    return times[at]?.time ?? 0;
  };
}

class Follower {
  /** Its service is no more. */
  removed = false;
  private readonly service: Ref<ServiceProtocol>;
  private readonly query: LogsQuery;
  private readonly isRunning: () => boolean;
  private stream: Stream | null = null;
  private offset = 0;
  /** The beginning of a line whose end has not come yet, when that came and which run has printed it. */
  private rest: Buffer = Buffer.alloc(0);
  private restTime = 0;
  private run: string | null = null;
  private reading = false;
  /** Asked to read on while it was reading. */
  private again = false;

  constructor(service: Ref<ServiceProtocol>, query: LogsQuery, isRunning: () => boolean) {
    this.service = service;
    this.query = query;
    this.isRunning = isRunning;
  }

  /** Finds where to begin. */
  async begin(lastEventId: string): Promise<void> {
    const { lines, stream } = this.query;
    this.offset = OFFSET.test(lastEventId)
      ? Number(lastEventId)
      : await this.service.ask('tailStart', { lines, stream });
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
        // A long log gives everybody else a turn between two pieces: answers to asks come without one.
        while (stream.waiting === 0 && (await this.readOn(stream))) await nextTurn();
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
    const { stream: output, timestamps } = this.query;
    const asked = { offset: from, limit: READ_BYTES, stream: output, timestamps };
    const { start, end, run, parts, times } = await this.service.ask('read', asked);
    this.offset = end;
    const isOther = run !== null && run !== this.run;
    // Nobody will end the last line of a run that is over, nor one that has lost what comes next.
    const isOver = start > from || isOther || (end <= from && !this.isRunning());
    if (isOther) this.run = run;
    let frames = isOver ? this.flush(from) : '';
    const timeAt = clockOf(times);
    for (const { offset, bytes } of parts) frames += this.split(Buffer.from(bytes), offset, timeAt);
    if (frames !== '') stream.write(Buffer.from(frames));
    return end > from;
  }

  /** The frames of the lines that end in what the log has at `offset`; the rest waits for its newline. */
  private split(bytes: Buffer, offset: number, timeAt: (offset: number) => number): string {
    const before = this.rest.length;
    const all = before === 0 ? bytes : Buffer.concat([this.rest, bytes]);
    let frames = '';
    let from = 0;
    while (from < all.length) {
      const newline = all.indexOf(NEWLINE, from);
      const isLong = (newline < 0 ? all.length : newline) - from > LOGS.lineBytes;
      if (newline < 0 && !isLong) break;
      const to = isLong ? cutAt(all, from) : newline;
      const time = from < before ? this.restTime : timeAt(offset + from - before);
      const line = this.text(all.subarray(from, to), time);
      from = isLong ? to : to + 1;
      // What was left of the part before need not lie next to this one.
      frames += frame(line, from < before ? null : offset + from - before);
    }
    this.rest = Buffer.from(all.subarray(from));
    if (from >= before) this.restTime = timeAt(offset + from - before);
    return frames;
  }

  /** The frame of a line that will not end, after which the log goes on at `offset`. */
  private flush(offset: number): string {
    if (this.rest.length === 0) return '';
    const line = this.text(this.rest, this.restTime);
    this.rest = Buffer.alloc(0);
    return frame(line, offset);
  }

  private text(bytes: Buffer, time: number): string {
    const { raw, timestamps } = this.query;
    const text = raw ? bytes.toString() : readableLine(bytes.toString());
    return timestamps ? `${localTime(time)} ${text}` : text;
  }
}

export interface Following {
  name: string;
  service: Ref<ServiceProtocol>;
  query: LogsQuery;
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
    await follower.begin(lastEventId).catch((error: unknown) => {
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
    stream.write(RETRY);
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
