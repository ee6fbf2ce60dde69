// Logs as they are written: each follower reads on from its own offset whenever the log has grown and its client has taken
// what it was sent, so a slow one costs nothing and misses nothing.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { LineCutter } from '../../logs/line_cutter.ts';
import { type LineFormat, lineText } from '../../logs/line_text.ts';
import type { LogSlice, LogsQuery, ServiceProtocol } from '../../protocol/service.ts';
import { localTime } from '../../protocol/timestamps.ts';
import type { Ref } from '../../runtime/actor.ts';
import { EVENTS, KIB } from '../../settings/limits.ts';
import type { ResponseStream } from '../server/http_server.ts';

/** Bytes of log per question to the service. */
const READ_BYTES = 128 * KIB;
const OFFSET = /^[0-9]{1,15}$/;
const RETRY_FRAME = Buffer.from(`retry: ${EVENTS.reconnectDelayMs}\n\n`);

/** One line as a frame. `id` is the offset where the log goes on after it; a client that comes again says it. */
function lineFrame(line: string, id: number | null): string {
  return `${id === null ? '' : `id: ${id}\n`}event: line\ndata: ${JSON.stringify({ line })}\n\n`;
}

/** Gives the time at each of ascending offsets. */
function timeLookup(times: LogSlice['times']): (offset: number) => number {
  let at = 0;
  return (offset) => {
    while (at + 1 < times.length && (times[at + 1]?.offset ?? 0) <= offset) at += 1;
    return times[at]?.time ?? 0;
  };
}

class LogFollower {
  /** Its service is no more. */
  removed = false;
  private readonly service: Ref<ServiceProtocol>;
  private readonly query: LogsQuery;
  private readonly isRunning: () => boolean;
  private stream: ResponseStream | null = null;
  private offset = 0;
  /** Holds the beginning of a line of `run` until its end arrives. */
  private readonly cutter = new LineCutter();
  private readonly format: LineFormat;
  private run: string | null = null;
  private reading = false;
  /** Asked to read on while it was reading. */
  private readRequested = false;

  constructor(service: Ref<ServiceProtocol>, query: LogsQuery, isRunning: () => boolean) {
    this.service = service;
    this.query = query;
    this.format = { raw: query.raw, stamp: query.timestamps ? localTime : null };
    this.isRunning = isRunning;
  }

  /** Finds where to begin. */
  async seekStart(lastEventId: string): Promise<void> {
    const { lines, stream } = this.query;
    this.offset = OFFSET.test(lastEventId)
      ? Number(lastEventId)
      : await this.service.ask('tailStart', { lines, stream });
  }

  start(stream: ResponseStream): void {
    this.stream = stream;
    stream.onDrain = () => this.wake();
    this.wake();
  }

  keepAlive(): void {
    this.stream?.keepAlive();
    // What the service forgot to tell, because it was started anew, is found out here.
    this.wake();
  }

  /** Reads on, if there is more and the client has taken what it was sent. */
  wake(): void {
    if (this.reading) this.readRequested = true;
    else if (this.stream) void this.readAll(this.stream);
  }

  end(): void {
    this.stream?.end();
  }

  private async readAll(stream: ResponseStream): Promise<void> {
    this.reading = true;
    try {
      do {
        this.readRequested = false;
        // A long log gives everybody else a turn between two pieces: answers to asks come without one.
        while (stream.bufferedBytes === 0 && (await this.readNext(stream))) await nextTurn();
      } while (this.readRequested && stream.bufferedBytes === 0);
    } catch {
      // Whatever became of the service: the client comes again with the offset it has.
      stream.end();
    }
    this.reading = false;
  }

  /** Sends the next piece; false when there was none. */
  private async readNext(stream: ResponseStream): Promise<boolean> {
    const from = this.offset;
    const { stream: output, timestamps } = this.query;
    const asked = { offset: from, limit: READ_BYTES, stream: output, timestamps };
    const { start, end, run, parts, times } = await this.service.ask('read', asked);
    this.offset = end;
    const isOther = run !== null && run !== this.run;
    // Nobody will end the last line of a run that is over, nor one that has lost what comes next.
    const isOver = start > from || isOther || (end <= from && !this.isRunning());
    if (isOther) this.run = run;
    let frames = isOver ? this.flushPartialLine(from) : '';
    const timeAt = timeLookup(times);
    for (const { offset, bytes } of parts)
      for (const line of this.cutter.cut(Buffer.from(bytes), offset, timeAt))
        frames += lineFrame(lineText(line, this.format), line.next);
    if (frames !== '') stream.write(Buffer.from(frames));
    return end > from;
  }

  /** The frame of a line that will not end, after which the log goes on at `offset`. */
  private flushPartialLine(offset: number): string {
    const line = this.cutter.flush();
    return line === undefined ? '' : lineFrame(lineText(line, this.format), offset);
  }
}

export interface FollowLogRequest {
  name: string;
  service: Ref<ServiceProtocol>;
  query: LogsQuery;
  lastEventId: string;
  isRunning: () => boolean;
  open: () => ResponseStream | null;
}

export class LogStreams {
  private readonly followers = new Map<string, Set<LogFollower>>();

  /**
   * Follows the log of a service: the last `lines`, or what came after `lastEventId`, then every new line. Rejects with the
   * service's failure; `open` is called after everything that can fail.
   */
  async follow({ name, service, query, lastEventId, isRunning, open }: FollowLogRequest): Promise<void> {
    await service.ask('follow', { on: true });
    const follower = new LogFollower(service, query, isRunning);
    // A letter to a service that was removed would bring its actor back to life.
    const leave = (): void => {
      if (!follower.removed) service.tell('follow', { on: false });
    };
    await follower.seekStart(lastEventId).catch((error: unknown) => {
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
    stream.write(RETRY_FRAME);
    follower.start(stream);
  }

  /** The log of `name` may have grown, or its process has ended. */
  wake(name: string): void {
    for (const follower of this.followers.get(name) ?? []) follower.wake();
  }

  /** Ends the streams of services that are gone. */
  endMissing(exists: (name: string) => boolean): void {
    for (const [name, group] of this.followers) {
      if (exists(name)) continue;
      for (const follower of [...group]) {
        follower.removed = true;
        follower.end();
      }
    }
  }

  keepAlive(): void {
    for (const group of this.followers.values()) for (const follower of group) follower.keepAlive();
  }

  end(): void {
    for (const group of this.followers.values()) for (const follower of [...group]) follower.end();
  }
}
