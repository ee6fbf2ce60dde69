// State: the kept events, the last assigned id, the events appended in this turn. Rebuilt from: the journal
// and its checkpoint.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { EventJournal, type JournalLines } from '../../adapters/storage/event_journal.ts';
import type { StoreTable } from '../../adapters/storage/store_tables.ts';
import { isStatistics } from '../../protocol/event_ring.ts';
import type {
  EventCheckpoint,
  EventRecord,
  EventsProtocol,
  EventType,
  NewEvent,
} from '../../protocol/events.ts';
import type { ViewsProtocol } from '../../protocol/views.ts';
import {
  actor,
  type Context,
  type MessageOf,
  type Ref,
  type ReplyOf,
  tolerateFailure,
} from '../../runtime/actor.ts';
import { EVENTS } from '../../settings/limits.ts';
import { formatJournalLine, parseJournalLine } from './journal_lines.ts';
import { KeptEvents } from './kept_events.ts';

export interface EventsConfig {
  /** The folder of the journal. */
  folder: string;
  marks: StoreTable<EventCheckpoint>;
  /** The boot id of the machine; '' when unknown, and then every end except a clean one counts as a crash. */
  boot: string;
  /** Writes a line to the daemon's log. */
  report: (text: string) => void;
  /**
   * Whether `views` has subscribed. It subscribes only once, so the subscription is kept outside the actor to
   * survive a crash of it.
   */
  subscribed: boolean;
  /** Whether `notices` receives events; kept like `subscribed`. */
  watched?: boolean;
}

const CHECKPOINT_KEY = 'events';
/** Pause after a checkpoint that could not be stored. */
const CHECKPOINT_RETRY_MS = 10_000;

/**
 * Restores the events of earlier daemons. While the machine stays up the journal alone is trusted, because
 * written bytes stay in the page cache even after kill -9. After a reboot, an unwritten line, or a loss of
 * the files, events may be missing. Then ids continue above every id that may have been assigned, and replays
 * from before that point count as incomplete.
 */
function restoreEvents(journal: EventJournal, mark: EventCheckpoint | undefined, boot: string) {
  const { lifecycle, statistics } = journal.newest();
  const found = [...lifecycle, ...statistics].map(parseJournalLine);
  const events = found.filter((event) => event !== undefined).sort((a, b) => a.id - b.id);
  const known = events.at(-1)?.id ?? 0;
  const trusted = mark?.boot === boot && boot !== '' && known > 0;
  const completeFrom = mark?.completeFrom ?? 1;
  const lastId = Math.max(
    known,
    completeFrom - 1,
    journal.newestUnwrittenId,
    mark && !trusted ? mark.ahead : 0,
  );
  const lost = lastId > known || events.length < found.length;
  const kept = new KeptEvents(lost ? lastId + 1 : completeFrom);
  for (const event of events) kept.push(event);
  // A checkpoint from before a loss does not cover it: store a new one.
  return { kept, lastId, mark: lost ? undefined : mark, damaged: found.length - events.length };
}

class Events {
  private readonly context: Context;
  private readonly config: EventsConfig;
  private readonly journal: EventJournal;
  private readonly kept: KeptEvents;
  private readonly views: Ref<ViewsProtocol>;
  private lastId: number;
  /** The last event that `notices` received. */
  private toldTo: number;
  private checkpoint: EventCheckpoint | undefined;
  /** Appended in this turn, not written yet. */
  private pending: EventRecord[] = [];
  /** Settles when `pending` has been written. */
  private written: Promise<void> | undefined;
  private reserving: Promise<void> | undefined;
  /** No checkpoint is stored before this time; monotonic milliseconds. */
  private retryAt = 0;

  constructor(context: Context, config: EventsConfig) {
    this.context = context;
    this.config = config;
    this.views = context.ref('views');
    this.journal = new EventJournal(config.folder, EVENTS.retained, EVENTS.reserveBytes, config.report);
    const restored = restoreEvents(this.journal, config.marks.get(CHECKPOINT_KEY), config.boot);
    this.kept = restored.kept;
    this.lastId = restored.lastId;
    this.toldTo = restored.lastId;
    this.checkpoint = restored.mark;
    if (restored.damaged > 0)
      config.report(
        `events: ${restored.damaged} damaged lines of the journal are left out (${config.folder})`,
      );
    context.scope.defer(() => this.close());
  }

  /** Resolves when the events are in the journal. */
  async append(events: readonly NewEvent[]): Promise<ReplyOf<EventsProtocol, 'append'>> {
    const at = this.context.clock.now();
    let earlier: EventType | null = null;
    for (const event of events) earlier = this.add(event, at) ?? earlier;
    const { lastId } = this;
    this.written ??= this.writeTurn();
    await this.written;
    return { lastId, ...(earlier && { earlier }) };
  }

  history({ types, names, since, limit }: MessageOf<EventsProtocol, 'history'>): { events: EventRecord[] } {
    const fits = (event: EventRecord): boolean =>
      (types === null || types.includes(event.type)) &&
      (names === null || names.includes(event.name)) &&
      (since === null || event.id > since);
    const events = this.kept.list().filter(fits);
    return { events: since === null ? events.slice(-limit) : events.slice(0, limit) };
  }

  subscribe(): ReplyOf<EventsProtocol, 'subscribe'> {
    const { config, kept, lastId, pending } = this;
    config.subscribed = true;
    // The events of this turn follow once they are written.
    return { kept: kept.list(), lastId: lastId - pending.length, completeFrom: kept.completeFrom };
  }

  watch({ after }: MessageOf<EventsProtocol, 'watch'>): ReplyOf<EventsProtocol, 'watch'> {
    const { config, kept } = this;
    config.watched = true;
    const lastId = this.lastId - this.pending.length;
    this.toldTo = lastId;
    const events = after === null ? [] : kept.list().filter(({ id }) => id > after);
    const isComplete = after !== null && after + 1 >= kept.completeFrom;
    return { events: events.filter((event) => !isStatistics(event)), lastId, isComplete };
  }

  /** Adds an event. Returns null, or the type of the event that its run already has in place of it. */
  private add({ type, name, run, data, once }: NewEvent, at: number): EventType | null {
    const earlier = once && run !== null ? this.kept.claim(run, type) : null;
    if (earlier !== null) return earlier;
    this.lastId += 1;
    this.pending.push({ id: this.lastId, type, name, run, at, data });
    return null;
  }

  /** Writes the events of all messages of this turn at once. */
  private async writeTurn(): Promise<void> {
    await nextTurn();
    if (!this.isReserved(this.lastId)) await this.reserve();
    // After a crash the files belong to the next incarnation.
    if (this.context.scope.signal.aborted) return;
    this.written = undefined;
    if (this.pending.length > 0) this.write();
    if (!this.isReserved(this.lastId + EVENTS.reservedIds / 2))
      this.reserve().catch((error: unknown) => this.context.crash(error));
  }

  private write(): void {
    const events = this.pending;
    this.pending = [];
    const lines: JournalLines = { lifecycle: [], statistics: [] };
    for (const event of events) {
      (isStatistics(event) ? lines.statistics : lines.lifecycle).push(formatJournalLine(event));
      this.kept.push(event);
    }
    this.journal.write(lines, this.lastId);
    if (this.config.subscribed) this.views.tell('events', { events });
    if (this.config.watched) this.tellNotices(events);
  }

  private tellNotices(events: readonly EventRecord[]): void {
    const from = this.toldTo;
    const news = events.filter((event) => !isStatistics(event));
    if (news.length === 0) return;
    this.toldTo = news.at(-1)?.id ?? from;
    this.context.ref('notices').tell('events', { events: news, from, to: this.toldTo });
  }

  private isReserved(id: number): boolean {
    const { checkpoint } = this;
    return checkpoint?.boot === this.config.boot && checkpoint.ahead >= id;
  }

  /** Reserves the next ids. If the disk is full, ids continue without a reservation. */
  private reserve(): Promise<void> {
    const { clock } = this.context;
    if (clock.monotonic() < this.retryAt) return Promise.resolve();
    this.reserving ??= tolerateFailure(this.storeCheckpoint(this.lastId + EVENTS.reservedIds), () => {
      this.retryAt = clock.monotonic() + CHECKPOINT_RETRY_MS;
    }).finally(() => {
      this.reserving = undefined;
    });
    return this.reserving;
  }

  private async storeCheckpoint(ahead: number): Promise<void> {
    const { boot, marks } = this.config;
    const next = { ahead, boot, completeFrom: this.kept.completeFrom };
    await marks.put(CHECKPOINT_KEY, next);
    this.checkpoint = next;
  }

  private async close(): Promise<void> {
    const { journal } = this;
    try {
      await this.reserving;
      const { lastId } = this;
      if (journal.write({ lifecycle: [], statistics: [] }, lastId)) {
        // With everything on disk, the next start needs no gap in the ids, even after the machine crashes.
        journal.sync();
        await tolerateFailure(this.storeCheckpoint(lastId), () => undefined);
      }
    } finally {
      journal.close();
    }
  }
}

/**
 * The journal: assigns ids, writes each event before anyone sees it, publishes it to the views, and keeps the
 * events for replays.
 */
export const eventsActor = actor<EventsProtocol, EventsConfig>(
  'events',
  (context, config) => {
    const log = new Events(context, config);
    return {
      append: ({ events }) => context.replyLater(log.append(events)),
      history: (message) => log.history(message),
      watch: (message) => log.watch(message),
      subscribe: () => log.subscribe(),
    };
  },
  // Every service may report at once, each in its own message.
  { mailbox: 65_536 },
);
