// The events that are kept, and everybody who listens to them:
// docs/reference.md "Event stream", "Replay and retention". The front keeps the rings itself, so a replay and
// what follows it live are one synchronous step: nothing is sent twice, nothing is skipped.
import { EVENTS } from '../limits.ts';
import type { EventRecord } from '../protocol/events.ts';
import { localTime } from '../protocol/time.ts';
import type { Clock } from '../runtime/actor.ts';
import type { Stream } from './server.ts';

/** What a subscriber wants; null: all. */
export interface EventFilter {
  types: readonly string[] | null;
  names: readonly string[] | null;
  /** Adds `at` and `run` to the data. */
  detail: boolean;
}

interface Entry {
  record: EventRecord;
  frame: Buffer;
  /** Made when first asked for. */
  detailed: Buffer | null;
}

/** Everybody with the same filter gets the same bytes. */
interface Channel {
  types: ReadonlySet<string> | null;
  names: ReadonlySet<string> | null;
  detail: boolean;
  streams: Set<Stream>;
}

const nothing = (): void => {};
/** Less is no rest that a timer could keep. */
const LEAST_REST_MS = 1;

const RETRY = Buffer.from(`retry: ${EVENTS.retryMs}\n\n`);
/** A comment: what may be sent at any time without meaning. */
export const COMMENT = Buffer.from(':\n\n');

const frameOf = ({ id, type }: EventRecord, data: string): Buffer =>
  Buffer.from(`id: ${id}\nevent: ${type}\ndata: ${data}\n\n`);

/** The data with the two fields that are stored with every event. */
export function detailedData({ data, at, run }: EventRecord): string {
  return `${data.slice(0, -1)},"at":"${localTime(at)}","run":${JSON.stringify(run)}}`;
}

const resetFrame = (oldest: number): Buffer =>
  Buffer.from(`event: stream.reset\ndata: {"oldest":${oldest}}\n\n`);

const ID = /^[0-9]{1,15}$/;

/** The last `EVENTS.kept` entries; it holds up to twice as many, so that not every one pushes all others. */
class Ring {
  private entries: Entry[] = [];
  /** The id of the newest entry that was pushed out; 0 when there is none. */
  lost = 0;

  push(entry: Entry): void {
    this.entries.push(entry);
    const over = this.entries.length - EVENTS.kept;
    if (over > 0) this.lost = this.entries[over - 1]?.record.id ?? 0;
    if (over >= EVENTS.kept) this.entries = this.entries.slice(over);
  }

  last(): Entry[] {
    return this.entries.slice(-EVENTS.kept);
  }
}

/** Replays events to new streams and sends them the new ones, filtered; the event feed of the front owns the one there is. */
export class EventHub {
  private readonly recent = new Ring();
  /** Those that are not statistics. */
  private readonly lasting = new Ring();
  private readonly channels = new Map<string, Channel>();
  private pending: Entry[] = [];
  private readonly clock: Clock;
  private isScheduled = false;
  private cancel: () => void = nothing;
  private restUntil = 0;
  private lastId = 0;
  /** The oldest id from which nothing but statistics was missing when we subscribed. */
  private completeFrom = 1;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** What the journal has kept and what is new since: in id order, and nothing that is known already. */
  restore(kept: readonly EventRecord[], lastId: number, completeFrom: number): void {
    const hasGap = completeFrom > this.lastId + 1;
    if (hasGap) {
      this.completeFrom = completeFrom;
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
  follows(id: number): boolean {
    return id <= this.lastId + 1;
  }

  /** Takes new events; subscribers get them at the end of this turn, or soon after, all at once. */
  add(records: readonly EventRecord[]): void {
    for (const record of records) {
      if (record.id <= this.lastId) continue;
      this.lastId = record.id;
      const entry: Entry = { record, frame: frameOf(record, record.data), detailed: null };
      this.recent.push(entry);
      if (record.type !== 'service.stats') this.lasting.push(entry);
      if (this.channels.size > 0) this.pending.push(entry);
    }
    if (this.pending.length > 0) this.schedule();
  }

  /** Sends the first frames and from now on what fits. `after`: the last id the client has; empty: replay nothing. */
  subscribe(stream: Stream, filter: EventFilter, after: string): void {
    // What is in the rings already must not come again.
    this.flush();
    const key = JSON.stringify([filter.types, filter.names, filter.detail]);
    const channel = this.channels.get(key) ?? newChannel(filter);
    stream.write(Buffer.concat([RETRY, ...(after === '' ? [] : this.replay(channel, after))]));
    channel.streams.add(stream);
    this.channels.set(key, channel);
    stream.onClose = () => {
      channel.streams.delete(stream);
      if (channel.streams.size === 0 && this.channels.get(key) === channel) this.channels.delete(key);
    };
  }

  /** Keeps quiet connections alive; called every `EVENTS.commentMs`. */
  touch(): void {
    for (const { streams } of this.channels.values()) for (const stream of streams) stream.touch();
  }

  /** Ends every stream in order, after what is still to be sent. */
  end(): void {
    this.flush();
    for (const { streams } of this.channels.values()) for (const stream of [...streams]) stream.end();
  }

  private replay(channel: Channel, after: string): Buffer[] {
    const kept = this.kept();
    const given = ID.test(after) ? Number(after) : Number.NaN;
    const isKnown = given <= this.lastId;
    const from = isKnown ? given : 0;
    const isComplete = isKnown && from + 1 >= Math.max(this.completeFrom, this.lasting.lost + 1);
    const entries = kept.filter(({ record }) => record.id > from && fits(channel, record));
    const frames = entries.map((entry) => frameFor(channel, entry));
    const oldest = kept[0]?.record.id ?? this.lastId + 1;
    return isComplete ? frames : [resetFrame(oldest), ...frames];
  }

  /** The union of both rings in id order. */
  private kept(): Entry[] {
    const recent = this.recent.last();
    const first = recent[0]?.record.id ?? 0;
    return [...this.lasting.last().filter(({ record }) => record.id < first), ...recent];
  }

  private flush(): void {
    this.cancelFlush();
    const entries = this.pending;
    this.pending = [];
    if (entries.length === 0) return;
    const began = this.clock.monotonic();
    for (const channel of this.channels.values()) {
      const wanted = entries.filter(({ record }) => fits(channel, record));
      if (wanted.length > 0) this.send(channel, join(wanted.map((entry) => frameFor(channel, entry))));
    }
    const ended = this.clock.monotonic();
    this.restUntil = ended + Math.min(ended - began, EVENTS.restMs);
  }

  /**
   * At the end of this turn; after a flush to many not before as much time has passed as that has taken. So half of the thread's
   * time is everybody else's, and what comes meanwhile is one write to each.
   */
  private schedule(): void {
    if (this.isScheduled) return;
    this.isScheduled = true;
    const rest = this.restUntil - this.clock.monotonic();
    const flush = (): void => this.flush();
    if (rest < LEAST_REST_MS) {
      const job = setImmediate(flush);
      this.cancel = () => clearImmediate(job);
    } else this.cancel = this.clock.after(rest, flush);
  }

  private cancelFlush(): void {
    if (this.isScheduled) this.cancel();
    this.isScheduled = false;
  }

  private send(channel: Channel, bytes: Buffer): void {
    for (const stream of channel.streams) {
      stream.write(bytes);
      // It loses nothing: it comes again with its last id.
      if (stream.waiting > EVENTS.bufferBytes) stream.destroy();
    }
  }
}

function newChannel({ types, names, detail }: EventFilter): Channel {
  return { types: types && new Set(types), names: names && new Set(names), detail, streams: new Set() };
}

const fits = ({ types, names }: Channel, { type, name }: EventRecord): boolean =>
  (types === null || types.has(type)) && (names === null || names.has(name));

function frameFor(channel: Channel, entry: Entry): Buffer {
  if (!channel.detail) return entry.frame;
  entry.detailed ??= frameOf(entry.record, detailedData(entry.record));
  return entry.detailed;
}

const join = ([first, ...rest]: Buffer[]): Buffer =>
  first && rest.length === 0 ? first : Buffer.concat([first ?? Buffer.alloc(0), ...rest]);
