// The events in memory and their subscribers, docs/reference.md "Event stream", "Replay and retention". The
// front has its own copy of the events, so a replay and the live events after it are one synchronous step:
// nothing is sent twice and nothing is skipped.

import { EventRing } from '../../protocol/event_ring.ts';
import type { Clock } from '../../runtime/actor.ts';
import { EVENTS } from '../../settings/limits.ts';
import type { ResponseStream } from '../server/http_server.ts';
import { streamHead } from './stream_head.ts';

/** An event that is streamed. */
export interface StreamedEvent {
  readonly id: number;
  readonly type: string;
  /** JSON text. */
  readonly data: string;
}

/** The events that a subscriber wants, and how. */
export interface StreamFilter<R extends StreamedEvent> {
  /** Equal for filters that want the same. */
  readonly key: string;
  matches(record: R): boolean;
  /** Whether the subscriber may learn only the ids of its own events, as ids tell how many there are. */
  readonly hidesIds: boolean;
  /** Formats the data with additional fields; null: as stored. */
  readonly detailOf: ((record: R) => string) | null;
}

interface EventEntry<R extends StreamedEvent> {
  id: number;
  type: string;
  record: R;
  frame: Buffer;
  /** The frame with additional fields, formatted at its first use. */
  detailed: Buffer | null;
}

/** The subscribers with the same filter, who all get the same bytes. */
interface FilterChannel<R extends StreamedEvent> {
  filter: StreamFilter<R>;
  streams: Set<ResponseStream>;
}

/** Timers cannot resolve shorter pauses. */
const MIN_FLUSH_PAUSE_MS = 1;

/** A comment, which clients ignore anywhere in the stream. */
export const KEEP_ALIVE_COMMENT = Buffer.from(':\n\n');

/** An event as bytes of a stream. */
export const frameOf = ({ id, type }: StreamedEvent, data: string): Buffer =>
  Buffer.from(`id: ${id}\nevent: ${type}\ndata: ${data}\n\n`);

/** Tells a subscriber that events before `oldest` are missing. */
export const resetFrame = (oldest: number): Buffer =>
  Buffer.from(`event: stream.reset\ndata: {"oldest":${oldest}}\n\n`);

const ID = /^[0-9]{1,15}$/;

/**
 * Replays events to new streams and then sends them the new ones, filtered. A feed owns each hub.
 */
export class EventHub<R extends StreamedEvent> {
  private readonly ring = new EventRing<EventEntry<R>>(EVENTS.retained, 1);
  private readonly channels = new Map<string, FilterChannel<R>>();
  /** Events not sent to any subscriber yet. */
  private pending: EventEntry<R>[] = [];
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
   * Adds the events from the journal's memory; known ones are skipped. If events between the known ones and
   * these are lost, subscribers are told that their stream is incomplete.
   */
  restore(kept: readonly R[], lastId: number, completeFrom: number): void {
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

  /** Whether a replay from `id` on is complete with the events in memory. */
  covers(id: number): boolean {
    return id <= this.lastId && id + 1 >= this.ring.completeFrom;
  }

  /** Whether no event between the known ones and `id` is missing. */
  isContiguous(id: number): boolean {
    return id <= this.lastId + 1;
  }

  /**
   * Takes new events in the order of ids. Subscribers get them at the end of this turn or soon after, in one
   * write.
   */
  add(records: readonly R[]): void {
    for (const record of records) {
      if (record.id <= this.lastId) continue;
      this.lastId = record.id;
      const { id, type, data } = record;
      const entry: EventEntry<R> = { id, type, record, frame: frameOf(record, data), detailed: null };
      this.ring.push(entry);
      if (this.channels.size > 0) this.pending.push(entry);
    }
    if (this.pending.length > 0) this.schedule();
  }

  /**
   * Sends the replay and from then on every new event that matches the filter. `after`: the last id that the
   * client has; empty: no replay.
   */
  subscribe(stream: ResponseStream, filter: StreamFilter<R>, after: string): void {
    // Pending events are in the replay already and must not be sent twice.
    this.flush();
    const { key } = filter;
    const channel = this.channels.get(key) ?? { filter, streams: new Set() };
    const isNew = after === '';
    const head = streamHead(isNew && !filter.hidesIds ? String(this.lastId) : null);
    stream.write(Buffer.concat([head, ...(isNew ? [] : this.replay(channel, after))]));
    channel.streams.add(stream);
    this.channels.set(key, channel);
    stream.onClose = () => {
      channel.streams.delete(stream);
      if (channel.streams.size === 0 && this.channels.get(key) === channel) this.channels.delete(key);
    };
  }

  /** Keeps idle connections alive. Called every `EVENTS.heartbeatMs`. */
  keepAlive(): void {
    for (const { streams } of this.channels.values()) for (const stream of streams) stream.keepAlive();
  }

  /** Sends what is pending, then ends every stream in order. */
  end(): void {
    this.flush();
    for (const { streams } of this.channels.values()) for (const stream of [...streams]) stream.end();
  }

  /** Cuts every stream, because its client may no longer see the events. */
  cut(): void {
    for (const { streams } of this.channels.values()) for (const stream of [...streams]) stream.destroy();
  }

  private replay({ filter }: FilterChannel<R>, after: string): Buffer[] {
    const kept = this.ring.kept();
    const given = ID.test(after) ? Number(after) : Number.NaN;
    const isKnown = given <= this.lastId;
    const from = isKnown ? given : 0;
    const isComplete = isKnown && from + 1 >= this.ring.completeFrom;
    const entries = kept.filter(({ id, record }) => id > from && filter.matches(record));
    const frames = entries.map((entry) => frameFor(filter, entry));
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
      const { filter } = channel;
      const wanted = entries.filter(({ record }) => filter.matches(record));
      if (wanted.length > 0) this.send(channel, join(wanted.map((entry) => frameFor(filter, entry))));
    }
    const ended = this.clock.monotonic();
    this.nextFlushAt = ended + Math.min(ended - began, EVENTS.maxWritePauseMs);
  }

  /**
   * Flushes at the end of this turn or, after a slow flush, once the same time has passed again. This leaves
   * half of the thread's time for other work, and events that arrive meanwhile go out in one write per
   * subscriber.
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

  private send(channel: FilterChannel<R>, bytes: Buffer): void {
    for (const stream of channel.streams) {
      stream.write(bytes);
      // The client loses nothing: it reconnects with its last id.
      if (stream.bufferedBytes > EVENTS.maxUnsentBytes) stream.destroy();
    }
  }
}

function frameFor<R extends StreamedEvent>({ detailOf }: StreamFilter<R>, entry: EventEntry<R>): Buffer {
  if (!detailOf) return entry.frame;
  entry.detailed ??= frameOf(entry.record, detailOf(entry.record));
  return entry.detailed;
}

const join = ([first, ...rest]: Buffer[]): Buffer =>
  first && rest.length === 0 ? first : Buffer.concat([first ?? Buffer.alloc(0), ...rest]);
