// Logs as they are written. Each follower continues from its own offset when the log has grown and its client
// has taken the bytes sent so far, so a slow client costs nothing and misses nothing.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { LineCutter } from '../../logs/line_cutter.ts';
import { type LineFormat, lineText } from '../../logs/line_text.ts';
import { fail } from '../../protocol/errors.ts';
import type { LogSlice, LogsQuery, ServiceProtocol } from '../../protocol/service.ts';
import { localTime } from '../../protocol/timestamps.ts';
import { isFailure, type Ref } from '../../runtime/actor.ts';
import { EVENTS, KIB } from '../../settings/limits.ts';
import type { ResponseStream } from '../server/http_server.ts';

/** Bytes of log per request to the service. */
const READ_BYTES = 128 * KIB;
const OFFSET = /^[0-9]{1,15}$/;
const RETRY_FRAME = Buffer.from(`retry: ${EVENTS.reconnectDelayMs}\n\n`);

/**
 * One line as a frame. `id` is the offset at which the log continues after it: a client that reconnects sends
 * it back.
 */
function lineFrame(line: string, id: number | null): string {
  return `${id === null ? '' : `id: ${id}\n`}event: line\ndata: ${JSON.stringify({ line })}\n\n`;
}

/** Looks up the time at an offset. Offsets must not decrease from call to call. */
function timeLookup(times: LogSlice['times']): (offset: number) => number {
  let at = 0;
  return (offset) => {
    while (at + 1 < times.length && (times[at + 1]?.offset ?? 0) <= offset) at += 1;
    return times[at]?.time ?? 0;
  };
}

/**
 * The reading of a follower. `opening`: it has no stream yet. `idle`: it has read everything, or its client
 * has not taken the bytes sent so far. `again`: it is reading, and was woken meanwhile.
 */
type ReadState = 'opening' | 'idle' | 'reading' | 'again';

class LogFollower {
  /** Its service has been removed. */
  isRemoved = false;
  private readonly service: Ref<ServiceProtocol>;
  private readonly query: LogsQuery;
  private readonly isRunning: () => boolean;
  private readonly onDefect: (error: unknown) => void;
  private stream: ResponseStream | null = null;
  private offset = 0;
  /** Holds the beginning of a line of `run` until its end arrives. */
  private readonly cutter = new LineCutter();
  private readonly format: LineFormat;
  private run: string | null = null;
  private state: ReadState = 'opening';

  constructor({ service, query, isRunning }: FollowLogRequest, onDefect: (error: unknown) => void) {
    this.service = service;
    this.query = query;
    this.format = { raw: query.raw, stamp: query.timestamps ? localTime : null };
    this.isRunning = isRunning;
    this.onDefect = onDefect;
  }

  /** Finds the offset to begin at. Fails as the service does. */
  async seekStart(lastEventId: string): Promise<void> {
    const { lines, stream } = this.query;
    this.offset = OFFSET.test(lastEventId)
      ? Number(lastEventId)
      : await this.service.ask('tailStart', { lines, stream });
  }

  start(stream: ResponseStream): void {
    this.stream = stream;
    this.state = 'idle';
    stream.onDrain = () => this.wake();
    this.wake();
  }

  keepAlive(): void {
    this.stream?.keepAlive();
    // A restarted service does not know that its log is followed.
    this.wake();
  }

  /** Continues reading if there is more and the client has taken the bytes sent so far. */
  wake(): void {
    if (this.state === 'reading') this.state = 'again';
    else if (this.state === 'idle' && this.stream) void this.readAll(this.stream);
  }

  end(): void {
    this.stream?.end();
  }

  cut(): void {
    this.stream?.destroy();
  }

  private async readAll(stream: ResponseStream): Promise<void> {
    try {
      do {
        this.state = 'reading';
        // Yield between two pieces: answers to asks arrive without a turn of the event loop, and a long log
        // must not block other work.
        while (stream.bufferedBytes === 0 && (await this.readNext(stream))) await nextTurn();
      } while (this.wasWoken() && stream.bufferedBytes === 0);
    } catch (error) {
      // Whatever happened to the service, the client reconnects with its offset.
      stream.end();
      if (!isFailure(error)) this.onDefect(error);
    }
    this.state = 'idle';
  }

  private wasWoken(): boolean {
    return this.state === 'again';
  }

  /** Sends the next piece; false when there was none. */
  private async readNext(stream: ResponseStream): Promise<boolean> {
    const from = this.offset;
    const { stream: output, timestamps } = this.query;
    const asked = { offset: from, limit: READ_BYTES, stream: output, timestamps };
    const { start, end, run, parts, times } = await this.service.ask('read', asked);
    this.offset = end;
    const isOther = run !== null && run !== this.run;
    // The last line of an ended run stays incomplete, as does a line whose next part is lost.
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

  /** The frame of a line that stays incomplete; the log continues at `offset`. */
  private flushPartialLine(offset: number): string {
    const line = this.cutter.flush();
    return line === undefined ? '' : lineFrame(lineText(line, this.format), offset);
  }
}

/** A request to follow a log. */
export interface FollowLogRequest {
  /** The name of the service. */
  name: string;
  service: Ref<ServiceProtocol>;
  query: LogsQuery;
  lastEventId: string;
  isRunning: () => boolean;
  /** null: the client has disconnected. */
  open: () => ResponseStream | null;
}

/** All streams of logs. */
export class LogStreams {
  private readonly followers = new Map<string, Set<LogFollower>>();
  private readonly onDefect: (error: unknown) => void;
  /** How often all streams were cut. */
  private cuts = 0;

  constructor(onDefect: (error: unknown) => void) {
    this.onDefect = onDefect;
  }

  /**
   * Follows the log of a service: the last `lines`, or the lines after `lastEventId`, then every new line.
   * Rejects with the service's failure; `open` is called after everything that can fail.
   */
  async follow(request: FollowLogRequest): Promise<void> {
    const { name, service, lastEventId, open } = request;
    const { cuts } = this;
    await service.ask('follow', { on: true });
    const follower = new LogFollower(request, this.onDefect);
    // A message to a removed service would start its actor again.
    const leave = (): void => {
      if (!follower.isRemoved) service.tell('follow', { on: false });
    };
    await follower.seekStart(lastEventId).catch((error: unknown) => {
      leave();
      throw error;
    });
    if (cuts !== this.cuts) {
      leave();
      throw fail('unauthorized', 'the token has changed');
    }
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

  /** Ends the streams of removed services. */
  endMissing(exists: (name: string) => boolean): void {
    for (const [name, group] of this.followers) {
      if (exists(name)) continue;
      for (const follower of [...group]) {
        follower.isRemoved = true;
        follower.end();
      }
    }
  }

  keepAlive(): void {
    for (const group of this.followers.values()) for (const follower of group) follower.keepAlive();
  }

  /** Cuts every stream, also those that are being opened: their clients may see no more. */
  cut(): void {
    this.cuts += 1;
    for (const group of this.followers.values()) for (const follower of [...group]) follower.cut();
  }

  end(): void {
    for (const group of this.followers.values()) for (const follower of [...group]) follower.end();
  }
}
