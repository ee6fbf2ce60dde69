// The events that are kept, and everybody who listens to them:
// docs/reference.md "Event stream", "Replay and retention". The front keeps the rings itself, so a replay and
// what follows it live are one synchronous step: nothing is sent twice, nothing is skipped.

import { EventRing } from '../../protocol/event_ring.ts';
import type { EventRecord, EventType } from '../../protocol/events.ts';
import { localTime } from '../../protocol/timestamps.ts';
import type { Clock } from '../../runtime/actor.ts';
import { EVENTS } from '../../settings/limits.ts';
import type { ResponseStream } from '../server/http_server.ts';

/** What a subscriber wants; null: all. */
export interface EventFilter {
  types: readonly string[] | null;
  names: readonly string[] | null;
  /** Adds `at` and `run` to the data. */
  detail: boolean;
}

interface EventEntry {
  id: number;
  type: EventType;
  record: EventRecord;
  frame: Buffer;
  /** Made when first asked for. */
  detailed: Buffer | null;
}

/** Everybody with the same filter gets the same bytes. */
interface FilterChannel {
  types: ReadonlySet<string> | null;
  names: ReadonlySet<string> | null;
  detail: boolean;
  streams: Set<ResponseStream>;
}

const noop = (): void => {};
/** Less is no rest that a timer could keep. */
const MIN_FLUSH_PAUSE_MS = 1;

const RETRY_FRAME = Buffer.from(`retry: ${EVENTS.reconnectDelayMs}\n\n`);
/** A comment: what may be sent at any time without meaning. */
export const KEEP_ALIVE_COMMENT = Buffer.from(':\n\n');

const frameOf = ({ id, type }: EventRecord, data: string): Buffer =>
  Buffer.from(`id: ${id}\nevent: ${type}\ndata: ${data}\n\n`);

/** The data with the two fields that are stored with every event. */
export function detailedData({ data, at, run }: EventRecord): string {
  return `${data.slice(0, -1)},"at":"${localTime(at)}","run":${JSON.stringify(run)}}`;
}

const resetFrame = (oldest: number): Buffer =>
  Buffer.from(`event: stream.reset\ndata: {"oldest":${oldest}}\n\n`);

const ID = /^[0-9]{1,15}$/;

/** Replays events to new streams and sends them the new ones, filtered; the event feed of the front owns the one there is. */
export class EventHub {
  private readonly ring = new EventRing<EventEntry>(EVENTS.retained, 1);
  private readonly channels = new Map<string, FilterChannel>();
  private pending: EventEntry[] = [];
  private readonly clock: Clock;
  private isScheduled = false;
  private cancelScheduled: () => void = noop;
  private nextFlushAt = 0;
  private lastId = 0;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** What the journal has kept and what is new since: in id order, and nothing that is known already. */
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

  /** Whether `id` follows what is known; if not, something was missed on the way. */
  isContiguous(id: number): boolean {
    return id <= this.lastId + 1;
  }

  /** Takes new events; subscribers get them at the end of this turn, or soon after, all at once. */
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

  /** Sends the first frames and from now on what fits. `after`: the last id the client has; empty: replay nothing. */
  subscribe(stream: ResponseStream, filter: EventFilter, after: string): void {
    // What is in the rings already must not come again.
    this.flush();
    const key = JSON.stringify([filter.types, filter.names, filter.detail]);
    const channel = this.channels.get(key) ?? newChannel(filter);
    stream.write(Buffer.concat([RETRY_FRAME, ...(after === '' ? [] : this.replay(channel, after))]));
    channel.streams.add(stream);
    this.channels.set(key, channel);
    stream.onClose = () => {
      channel.streams.delete(stream);
      if (channel.streams.size === 0 && this.channels.get(key) === channel) this.channels.delete(key);
    };
  }

  /** Keeps quiet connections alive; called every `EVENTS.commentMs`. */
  keepAlive(): void {
    for (const { streams } of this.channels.values()) for (const stream of streams) stream.keepAlive();
  }

  /** Ends every stream in order, after what is still to be sent. */
  end(): void {
    this.flush();
    for (const { streams } of this.channels.values()) for (const stream of [...streams]) stream.end();
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
    this.cancelFlush();
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
   * At the end of this turn; after a flush to many not before as much time has passed as that has taken. So half of the thread's
   * time is everybody else's, and what comes meanwhile is one write to each.
   */
  private schedule(): void {
    if (this.isScheduled) return;
    this.isScheduled = true;
    const rest = this.nextFlushAt - this.clock.monotonic();
    const flush = (): void => this.flush();
    if (rest < MIN_FLUSH_PAUSE_MS) {
      const job = setImmediate(flush);
      this.cancelScheduled = () => clearImmediate(job);
    } else this.cancelScheduled = this.clock.after(rest, flush);
  }

  private cancelFlush(): void {
    if (this.isScheduled) this.cancelScheduled();
    this.isScheduled = false;
  }

  private send(channel: FilterChannel, bytes: Buffer): void {
    for (const stream of channel.streams) {
      stream.write(bytes);
      // It loses nothing: it comes again with its last id.
      if (stream.bufferedBytes > EVENTS.maxUnsentBytes) stream.destroy();
    }
  }
}

function newChannel({ types, names, detail }: EventFilter): FilterChannel {
  return { types: types && new Set(types), names: names && new Set(names), detail, streams: new Set() };
}

const matches = ({ types, names }: FilterChannel, { type, name }: EventRecord): boolean =>
  (types === null || types.has(type)) && (names === null || names.has(name));

function frameFor(channel: FilterChannel, entry: EventEntry): Buffer {
  if (!channel.detail) return entry.frame;
  entry.detailed ??= frameOf(entry.record, detailedData(entry.record));
  return entry.detailed;
}

const join = ([first, ...rest]: Buffer[]): Buffer =>
  first && rest.length === 0 ? first : Buffer.concat([first ?? Buffer.alloc(0), ...rest]);
