// State: the newest events, and those that are not on disk yet. Rebuilt from: the history on disk.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { type CloudHistory, HistoryError } from '../../adapters/storage/cloud_history.ts';
import {
  type CloudEventRecord,
  type CloudEventsProtocol,
  type CommittedCloudEvent,
  cloudEventJson,
  cloudEventMatcher,
  type NewCloudEvent,
  parseCloudEvent,
} from '../../protocol/cloud_events.ts';
import type { CloudViewsProtocol } from '../../protocol/cloud_views.ts';
import {
  actor,
  type Context,
  type Handlers,
  type MessageOf,
  type Ref,
  type ReplyOf,
} from '../../runtime/actor.ts';
import { deferred, withTimeout } from '../../runtime/deferred.ts';
import { CLOUD_EVENTS } from '../../settings/cloud_limits.ts';
import { THREADS } from '../../settings/limits.ts';
import { CommittedEvents, lineOf } from './committed_events.ts';

export interface CloudEventsConfig {
  /** Opens the history, which this actor closes. */
  openHistory: () => CloudHistory | Promise<CloudHistory>;
  /** Writes a line to the daemon's log. */
  report: (text: string) => void;
  /** Whether the front has subscribed. Kept outside the actor, because it outlives a crash. */
  subscribed: boolean;
  /** The names of clusters by id; null: not known yet. Outlives a crash as well. */
  names: Map<string, string> | null;
}

/**
 * The longest wait for the names of clusters. After it, events from before a kill are recorded without a
 * name.
 */
const NAMES_WAIT_MS = 5_000;

interface WaitingEvent {
  at: number;
  event: NewCloudEvent;
}

class CloudEvents {
  private readonly context: Context;
  private readonly config: CloudEventsConfig;
  private readonly history: CloudHistory;
  private readonly views: Ref<CloudViewsProtocol>;
  /** The newest events, oldest first. */
  private kept: CloudEventRecord[] = [];
  private waiting: WaitingEvent[] = [];
  /** Resolves once the names of all clusters have arrived after the start. */
  private readonly namesKnown = deferred<void>();
  /** The number of events lost because neither the disk nor memory had room. */
  private lost = 0;
  /** Settles when `waiting` has been written, or the write has failed. */
  private nextWrite: Promise<boolean> | null = null;
  private lastWrite: Promise<unknown> = Promise.resolve();
  private cancelRetry: (() => void) | null = null;

  constructor(context: Context, config: CloudEventsConfig, history: CloudHistory) {
    this.context = context;
    this.config = config;
    this.views = context.ref('cloudviews');
    this.history = history;
    if (config.names) this.namesKnown.resolve();
    context.scope.defer(() => this.close());
  }

  async load(): Promise<void> {
    this.history.prune(this.context.clock.now());
    for await (const lines of this.history.newestFirst(Number.MAX_SAFE_INTEGER)) {
      const room = CLOUD_EVENTS.kept - this.kept.length;
      const events = lines.slice(0, room).flatMap((line) => parseCloudEvent(line) ?? []);
      this.kept.unshift(...events.reverse().map(({ id, type, data }) => ({ id, type, data })));
      if (this.kept.length >= CLOUD_EVENTS.kept) break;
    }
  }

  async append(events: readonly NewCloudEvent[]): Promise<{ isStored: boolean }> {
    const at = this.context.clock.now();
    for (const event of events) this.waiting.push({ at, event: this.withName(event) });
    return { isStored: await this.write() };
  }

  async appendCommitted({
    events,
    isRepeated,
  }: MessageOf<CloudEventsProtocol, 'appendCommitted'>): Promise<{ isStored: boolean }> {
    const missing = isRepeated ? await this.missingOf(events) : events;
    for (const { at, event } of missing) this.waiting.push({ at, event: this.withName(event) });
    return { isStored: await this.write() };
  }

  named(names: Readonly<Record<string, string>>): null {
    this.config.names ??= new Map();
    for (const [id, name] of Object.entries(names)) this.config.names.set(id, name);
    this.namesKnown.resolve();
    return null;
  }

  async page({
    filter,
    before,
    limit,
  }: MessageOf<CloudEventsProtocol, 'page'>): Promise<ReplyOf<CloudEventsProtocol, 'page'>> {
    const isWanted = cloudEventMatcher(filter);
    const rows: string[] = [];
    const end = this.shown().lastId + 1;
    for await (const lines of this.history.newestFirst(Math.min(before ?? end, end))) {
      for (const line of lines) {
        const event = isWanted(line) ? parseCloudEvent(line) : null;
        if (!event) continue;
        if (rows.length === limit) return { rows, next: event.id + 1 };
        rows.push(line);
      }
    }
    return { rows, next: null };
  }

  async replay({
    filter,
    after,
    limit,
  }: MessageOf<CloudEventsProtocol, 'replay'>): Promise<ReplyOf<CloudEventsProtocol, 'replay'>> {
    const isWanted = cloudEventMatcher(filter);
    const { lastId, firstId: oldest } = this.shown();
    const events: CloudEventRecord[] = [];
    for await (const lines of this.history.oldestFirst(after)) {
      for (const line of lines) {
        const event = isWanted(line) ? parseCloudEvent(line) : null;
        if (!event || event.id > lastId) continue;
        events.push({ id: event.id, type: event.type, data: line });
        if (events.length === limit) return { events, lookedTo: event.id, oldest };
      }
    }
    return { events, lookedTo: lastId, oldest };
  }

  subscribe(): ReplyOf<CloudEventsProtocol, 'subscribe'> {
    this.config.subscribed = true;
    const { lastId } = this.shown();
    return { kept: this.kept, lastId, completeFrom: this.kept[0]?.id ?? lastId + 1 };
  }

  /** The events that are neither in the journal nor about to be written. */
  private async missingOf(events: readonly CommittedCloudEvent[]): Promise<CommittedCloudEvent[]> {
    // An event contains the name its cluster has when the event is written.
    await withTimeout(NAMES_WAIT_MS, this.namesKnown.promise, this.context.clock);
    await this.lastWrite;
    const missing = new CommittedEvents(events);
    for (const waiting of this.waiting) missing.remove(lineOf(waiting));
    for await (const lines of this.history.newestFirst(Number.MAX_SAFE_INTEGER)) {
      for (const line of lines) missing.remove(line);
      if (missing.isEmpty) break;
    }
    return missing.rest();
  }

  private withName(event: NewCloudEvent): NewCloudEvent {
    const { clusterId, cluster = null } = event;
    if (cluster !== null || !clusterId) return event;
    return { ...event, cluster: this.config.names?.get(clusterId) ?? null };
  }

  /** The synced range. Newer events are still on their way to the disk and must not be seen yet. */
  private shown(): { firstId: number; lastId: number } {
    const { firstId, lastId } = this.history;
    return { firstId, lastId: this.kept.at(-1)?.id ?? lastId };
  }

  /** Writes in batches: everything appended during one write goes into the next. */
  private write(): Promise<boolean> {
    if (this.nextWrite) return this.nextWrite;
    const write = this.lastWrite.then(() => this.writeWaiting());
    this.nextWrite = write;
    this.lastWrite = write;
    write.catch((error: unknown) => this.context.crash(error));
    return write;
  }

  private async writeWaiting(): Promise<boolean> {
    await nextTurn();
    this.nextWrite = null;
    const { waiting, lost, history } = this;
    const now = this.context.clock.now();
    if (waiting.length === 0) return true;
    this.waiting = [];
    const told: WaitingEvent[] = lost === 0 ? waiting : [{ at: now, event: lostEvent(lost) }, ...waiting];
    const first = history.lastId + 1;
    const events = told.map(({ at, event }, index): CloudEventRecord => {
      const id = first + index;
      return { id, type: event.type, data: cloudEventJson(id, at, event) };
    });
    try {
      await history.write(
        events.map(({ data }) => data),
        now,
      );
    } catch (error) {
      if (!(error instanceof HistoryError)) throw error;
      this.keepWaiting(waiting, error);
      return false;
    }
    if (lost > 0) this.config.report('cloud events: the history is written again');
    this.lost -= lost;
    this.show(events);
    history.prune(now);
    return true;
  }

  /** Keeps the newest events that found no room on the disk, and tries again later. */
  private keepWaiting(waiting: readonly WaitingEvent[], error: Error): void {
    const all = [...waiting, ...this.waiting];
    this.waiting = all.slice(-CLOUD_EVENTS.maxWaiting);
    this.lost += all.length - this.waiting.length;
    if (this.cancelRetry) return;
    this.config.report(`cloud events: the history cannot be written, they wait in memory: ${error.message}`);
    this.cancelRetry = this.context.clock.after(CLOUD_EVENTS.retryMs, () => {
      this.cancelRetry = null;
      void this.write();
    });
  }

  private show(events: readonly CloudEventRecord[]): void {
    this.kept.push(...events);
    if (this.kept.length >= 2 * CLOUD_EVENTS.kept) this.kept = this.kept.slice(-CLOUD_EVENTS.kept);
    if (this.config.subscribed) this.views.tell('events', { events: [...events] });
  }

  private async close(): Promise<void> {
    this.cancelRetry?.();
    // A defect in it is the crash that closes this.
    await Promise.allSettled([this.lastWrite]);
    this.history.close();
  }
}

const lostEvent = (count: number): NewCloudEvent => ({
  type: 'events.lost',
  result: 'storage_full',
  reason: `${count} events were lost while the disk was full`,
});

async function init(context: Context, config: CloudEventsConfig): Promise<Handlers<CloudEventsProtocol>> {
  const events = new CloudEvents(context, config, await config.openHistory());
  await events.load();
  return {
    append: (message) => context.replyLater(events.append(message.events)),
    // One after the other, because two that look for the same event at once would both append it.
    appendCommitted: (message) =>
      message.isRepeated
        ? context.turn('repeated', () => events.appendCommitted(message))
        : context.replyLater(events.appendCommitted(message)),
    named: ({ names }) => events.named(names),
    page: (message) => context.replyLater(events.page(message)),
    replay: (message) => context.replyLater(events.replay(message)),
    subscribe: () => events.subscribe(),
  };
}

/**
 * At `cloudevents`: the journal of the cloud part. No one sees an event before it is on disk, so no id is
 * assigned twice, however the daemon or the machine dies. docs/reference.md "Cloud events".
 */
export const cloudEventsActor = actor<CloudEventsProtocol, CloudEventsConfig>('cloudevents', init, {
  mailbox: THREADS.mailboxCapacity,
});
