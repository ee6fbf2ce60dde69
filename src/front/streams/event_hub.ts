// The events in memory and their subscribers, docs/reference.md "Event stream", "Replay and retention". The
// front has its own copy of the events, so a replay and the live events after it are one synchronous step:
// nothing is sent twice and nothing is skipped.

import { EventRing } from '../../protocol/event_ring.ts';
import type { EventRecord, EventType } from '../../protocol/events.ts';
import { localTime } from '../../protocol/timestamps.ts';
import type { Clock } from '../../runtime/actor.ts';
import { EVENTS } from '../../settings/limits.ts';
import type { Reach } from '../api/reach.ts';
import type { ResponseStream } from '../server/http_server.ts';

/** The events a subscriber wants; null: all. */
export interface EventFilter {
  types: readonly string[] | null;
  names: readonly string[] | null;
  /** Whether `at` and `run` are added to the data. */
  detail: boolean;
  /** Which of them it may see. */
  reach: Reach | null;
}

interface EventEntry {
  id: number;
  type: EventType;
  record: EventRecord;
  frame: Buffer;
  /** The frame with `at` and `run`, formatted at its first use. */
  detailed: Buffer | null;
}

/** The subscribers with the same filter, who all get the same bytes. */
interface FilterChannel {
  types: ReadonlySet<string> | null;
  names: ReadonlySet<string> | null;
  detail: boolean;
  reach: Reach | null;
  streams: Set<ResponseStream>;
}

/** Shorter pauses are below the resolution of a timer. */
const MIN_FLUSH_PAUSE_MS = 1;

const RETRY_FRAME = Buffer.from(`retry: ${EVENTS.reconnectDelayMs}\n\n`);
/** A comment, which clients ignore anywhere in the stream. */
export const KEEP_ALIVE_COMMENT = Buffer.from(':\n\n');

const frameOf = ({ id, type }: EventRecord, data: string): Buffer =>
  Buffer.from(`id: ${id}\nevent: ${type}\ndata: ${data}\n\n`);

/** The data with the two fields that are stored beside it: the time and the run. */
export function detailedData({ data, at, run }: EventRecord): string {
  return `${data.slice(0, -1)},"at":"${localTime(at)}","run":${JSON.stringify(run)}}`;
}

const resetFrame = (oldest: number): Buffer =>
  Buffer.from(`event: stream.reset\ndata: {"oldest":${oldest}}\n\n`);

const ID = /^[0-9]{1,15}$/;

/**
 * Replays events to new streams and then sends them the new ones, filtered. The front's event feed owns the
 * only hub.
 */
export class EventHub {
  private readonly ring = new EventRing<EventEntry>(EVENTS.retained, 1);
  private readonly channels = new Map<string, FilterChannel>();
  /** Events not sent to any subscriber yet. */
  private pending: EventEntry[] = [];
  private readonly clock: Clock;
  /** Cancels the next flush; null: none is scheduled. */
  private scheduledFlush: (() => void) | null = null;
  /** The earliest time of the next flush, by the monotonic clock. */
  private nextFlushAt = 0;
  private lastId = 0;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /**
   * Takes the events of the journal's memory; known ones are skipped. If events between the known ones and
   * these are lost, subscribers learn that their stream is incomplete.
   */
  restore(kept: readonly EventRecord[], lastId: number, completeFrom: number): void {
    const hasGap = completeFrom > this.lastId + 1;
    if (hasGap) {
      this.ring.markMissingBefore(completeFrom);
      if (this.channels.size > 0) {
        this.flush();
        const frame = resetFrame(kept[0]?.id ?? lastId + 1);
        for (const channel of this.channels.values()) this.send(channel, frame);
      }
    }
    this.add(kept);
    this.lastId = Math.max(this.lastId, lastId);
  }

  /** Whether no event between the known ones and `id` is missing. */
  isContiguous(id: number): boolean {
    return id <= this.lastId + 1;
  }

  /**
   * Takes new events in the order of ids. Subscribers get them at the end of this turn or soon after, in one
   * write.
   */
  add(records: readonly EventRecord[]): void {
    for (const record of records) {
      if (record.id <= this.lastId) continue;
      this.lastId = record.id;
      const { id, type, data } = record;
      const entry: EventEntry = { id, type, record, frame: frameOf(record, data), detailed: null };
      this.ring.push(entry);
      if (this.channels.size > 0) this.pending.push(entry);
    }
    if (this.pending.length > 0) this.schedule();
  }

  /**
   * Sends the replay and from then on every new event that matches the filter. `after`: the last id that the
   * client has; empty: no replay.
   */
  subscribe(stream: ResponseStream, filter: EventFilter, after: string): void {
    // Pending events are in the replay already and must not be sent twice.
    this.flush();
    // Agents of one stack see the same.
    const { types, names, detail, reach } = filter;
    const key = JSON.stringify([types, names, detail, reach && [reach.stack]]);
    const channel = this.channels.get(key) ?? newChannel(filter);
    stream.write(Buffer.concat([RETRY_FRAME, ...(after === '' ? [] : this.replay(channel, after))]));
    channel.streams.add(stream);
    this.channels.set(key, channel);
    stream.onClose = () => {
      channel.streams.delete(stream);
      if (channel.streams.size === 0 && this.channels.get(key) === channel) this.channels.delete(key);
    };
  }

  /** Keeps quiet connections alive. Called every `EVENTS.heartbeatMs`. */
  keepAlive(): void {
    for (const { streams } of this.channels.values()) for (const stream of streams) stream.keepAlive();
  }

  /** Sends what is pending, then ends every stream in order. */
  end(): void {
    this.flush();
    for (const { streams } of this.channels.values()) for (const stream of [...streams]) stream.end();
  }

  /** Cuts every stream: its client may see no more. */
  cut(): void {
    for (const { streams } of this.channels.values()) for (const stream of [...streams]) stream.destroy();
  }

  private replay(channel: FilterChannel, after: string): Buffer[] {
    const kept = this.ring.kept();
    const given = ID.test(after) ? Number(after) : Number.NaN;
    const isKnown = given <= this.lastId;
    const from = isKnown ? given : 0;
    const isComplete = isKnown && from + 1 >= this.ring.completeFrom;
    const entries = kept.filter(({ id, record }) => id > from && matches(channel, record));
    const frames = entries.map((entry) => frameFor(channel, entry));
    const oldest = kept[0]?.id ?? this.lastId + 1;
    return isComplete ? frames : [resetFrame(oldest), ...frames];
  }

  private flush(): void {
    this.scheduledFlush?.();
    this.scheduledFlush = null;
    const entries = this.pending;
    this.pending = [];
    if (entries.length === 0) return;
    const began = this.clock.monotonic();
    for (const channel of this.channels.values()) {
      const wanted = entries.filter(({ record }) => matches(channel, record));
      if (wanted.length > 0) this.send(channel, join(wanted.map((entry) => frameFor(channel, entry))));
    }
    const ended = this.clock.monotonic();
    this.nextFlushAt = ended + Math.min(ended - began, EVENTS.maxWritePauseMs);
  }

  /**
   * Flushes at the end of this turn or, after a flush that took long, once as much time has passed again. So
   * half of the thread's time is left for other work, and events that arrive meanwhile go out in one write
   * per subscriber.
   */
  private schedule(): void {
    if (this.scheduledFlush) return;
    const rest = this.nextFlushAt - this.clock.monotonic();
    const flush = (): void => this.flush();
    if (rest < MIN_FLUSH_PAUSE_MS) {
      const job = setImmediate(flush);
      this.scheduledFlush = () => clearImmediate(job);
    } else this.scheduledFlush = this.clock.after(rest, flush);
  }

  private send(channel: FilterChannel, bytes: Buffer): void {
    for (const stream of channel.streams) {
      stream.write(bytes);
      // The client loses nothing: it reconnects with its last id.
      if (stream.bufferedBytes > EVENTS.maxUnsentBytes) stream.destroy();
    }
  }
}

function newChannel({ types, names, detail, reach }: EventFilter): FilterChannel {
  const wanted = { types: types && new Set(types), names: names && new Set(names) };
  return { ...wanted, detail, reach, streams: new Set() };
}

const matches = ({ types, names, reach }: FilterChannel, event: EventRecord): boolean =>
  (types === null || types.has(event.type)) &&
  (names === null || names.has(event.name)) &&
  (reach === null || reach.hasEvent(event));

function frameFor(channel: FilterChannel, entry: EventEntry): Buffer {
  if (!channel.detail) return entry.frame;
  entry.detailed ??= frameOf(entry.record, detailedData(entry.record));
  return entry.detailed;
}

const join = ([first, ...rest]: Buffer[]): Buffer =>
  first && rest.length === 0 ? first : Buffer.concat([first ?? Buffer.alloc(0), ...rest]);
