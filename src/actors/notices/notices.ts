// State: the queue of each rule. Rebuilt from: the rules and notices in the store, and the journal's events
// after the last one that the store has notices of.
//
// A notice and the mark of its event form one commit, and a notice is removed once delivered. So a notice
// that a killed daemon may have sent is sent again under the same id, and none is lost.
import { isDeepStrictEqual } from 'node:util';
import type { Store } from '../../adapters/storage/store_tables.ts';
import type { EnvironmentRows } from '../../protocol/base_environment.ts';
import { EVENT_TYPES, type EventRecord } from '../../protocol/events.ts';
import {
  type NoticesProtocol,
  type NoticeTest,
  REMOVED_RULES,
  type StoredNotice,
  type StoredRule,
} from '../../protocol/notices.ts';
import { actor, type Context, type Failure, type MessageOf, tolerateFailure } from '../../runtime/actor.ts';
import { NOTICE } from '../../settings/limits.ts';
import { matchesPattern, type NoticeRule, targetLabel } from '../../settings/notify.ts';
import { NoticeQueue } from './notice_queue.ts';
import { messageOf, testMessage } from './notice_text.ts';
import { recognize } from './rule_identity.ts';

export interface NoticesConfig {
  store: Pick<Store, 'table'>;
  rules: readonly NoticeRule[];
  /** For the programs that receive notices. */
  environment: EnvironmentRows;
  /** Writes a line to the daemon's log. */
  report: (text: string) => void;
}

const MARK = 'notices';
/** Types with a state after this prefix are not in the list of event types. */
const STATES = 'agent.state.';

class Notices {
  private readonly context: Context;
  private readonly config: NoticesConfig;
  private queues: NoticeQueue[] = [];
  /** What each rule is recognized by when the rules change. */
  private known: readonly StoredRule[];
  private droppedWithRules = 0;
  /** The last event that was handled; null: events are not followed. */
  private taken: number | null = null;
  private cancelTimer = (): void => {};
  private reading: Promise<void> | null = null;

  constructor(context: Context, config: NoticesConfig) {
    this.context = context;
    this.config = config;
    this.known = config.store.table('rules').get(MARK) ?? [];
  }

  /** Takes over the notices that an earlier daemon or incarnation has stored. */
  start(rules: readonly NoticeRule[]): void {
    const rows = this.config.store.table('notices').all();
    this.setRules(
      rules,
      rows.map(([, notice]) => notice),
    );
  }

  /** Replaces the rules. The notices of a changed rule keep waiting, those of a removed one are dropped. */
  setRules(rules: readonly NoticeRule[], stored: readonly StoredNotice[] = []): null {
    const before = this.queues;
    const distinct = [...new Map(rules.map((rule) => [JSON.stringify(rule), rule])).values()];
    const known = recognize(this.known, distinct);
    this.queues = known.map(({ id, rule }) => {
      const queue = before.find((one) => one.id === id) ?? new NoticeQueue(id, rule);
      queue.change(rule);
      return queue;
    });
    this.keepRules(known.map(({ rule, ...one }) => one));
    this.reportMistakes(rules);
    const orphans = stored.filter((notice) => {
      const queue = this.queues.find(({ id }) => id === notice.rule);
      queue?.restore(notice);
      return !queue;
    });
    const removed = before.filter((queue) => !this.queues.includes(queue));
    this.drop([...orphans.map(({ id }) => id), ...removed.flatMap((queue) => queue.drain())]);
    if (this.queues.length > 0) this.inBackground(this.readOn());
    else this.forget();
    this.plan();
    return null;
  }

  /** Events that happen while there are no rules cause no notices later. */
  forget(): void {
    this.taken = null;
    const { store } = this.config;
    if (store.table('positions').get(MARK) === undefined) return;
    this.inBackground(tolerateFailure(store.table('positions').remove(MARK), () => undefined));
  }

  take(message: MessageOf<NoticesProtocol, 'events'>): null {
    const { events, from, to } = message;
    if (this.queues.length === 0) return null;
    if (this.reading) this.inBackground(this.reading.then(() => this.take(message)));
    // Events are missing in between: the journal was restarted.
    else if (this.taken === null || from > this.taken) this.inBackground(this.readOn());
    else this.inBackground(this.takeAll(events, to));
    return null;
  }

  async test(): Promise<{ results: NoticeTest[] }> {
    const {
      clock,
      scope: { signal },
    } = this.context;
    const { sendNotice } = await import('../../adapters/notice_targets.ts');
    const results = this.queues.map(async ({ rule: { target } }, index) => {
      const began = clock.monotonic();
      const message = testMessage(`test-${clock.now()}-${index}`, clock.now());
      const error = await sendNotice(target, message, this.config.environment, signal, clock);
      const ms = Math.round(clock.monotonic() - began);
      return { target: targetLabel(target), ok: error === null, error, ms };
    });
    return { results: await Promise.all(results) };
  }

  status() {
    const targets = this.queues.map((queue) => queue.status);
    const dropped = this.droppedWithRules;
    const removed = { target: REMOVED_RULES, pending: 0, delivered: 0, failed: 0, dropped, error: null };
    return { targets: dropped === 0 ? targets : [...targets, removed] };
  }

  /** Handles the journal's events after the last one handled, and subscribes to all that follow. */
  private readOn(): Promise<void> {
    this.reading ??= this.read().finally(() => {
      this.reading = null;
    });
    return this.reading;
  }

  private async read(): Promise<void> {
    const after = this.taken ?? this.config.store.table('positions').get(MARK) ?? null;
    const asked = this.context.ref('events').ask('watch', { after });
    const answer = await tolerateFailure(asked, () => null);
    if (!answer) {
      this.context.clock.after(NOTICE.minBackoffMs, () => this.inBackground(this.readOn()));
      return;
    }
    const isFirst = after === null;
    if (!answer.isComplete && !isFirst)
      this.config.report('notices: events were lost before their notices could be made');
    await this.takeAll(answer.events, answer.lastId);
    // The first start: events from before the rules existed cause no notices.
    if (isFirst) await this.save([], [], answer.lastId);
  }

  private async takeAll(events: readonly EventRecord[], to: number): Promise<void> {
    const news = events.filter(({ id }) => id > (this.taken ?? 0));
    this.taken = Math.max(this.taken ?? 0, to);
    const changes = news.flatMap((event) => this.queues.map((queue) => queue.take(event)));
    const put = changes.flatMap((change) => change.put);
    const removed = changes.flatMap((change) => change.removed);
    if (put.length > 0 || removed.length > 0) {
      // A notice is stored before it is sent.
      await this.save(put, removed, put.length > 0 ? this.taken : null);
      this.plan();
    }
  }

  /** One commit. If the disk is full, this daemon still sends the notices it holds in memory. */
  private async save(
    put: readonly StoredNotice[],
    removed: readonly string[],
    mark: number | null,
  ): Promise<void> {
    const { store } = this.config;
    const rows = store.table('notices');
    const gone = removed.filter((id) => !put.some((notice) => notice.id === id));
    const changes = [
      ...put.map((notice) => rows.put(notice.id, notice)),
      ...gone.map((id) => rows.remove(id)),
      ...(mark === null ? [] : [store.table('positions').put(MARK, mark)]),
    ];
    await tolerateFailure(Promise.all(changes), (failure) => this.reportUnkept(failure));
  }

  /** Sends what is due, and sets the timer for what is due next. */
  private plan(): void {
    this.cancelTimer();
    const now = this.context.clock.now();
    for (const queue of this.queues) {
      const notice = queue.next(now);
      if (notice) this.inBackground(this.deliver(queue, notice));
    }
    const dueAt = Math.min(...this.queues.map((queue) => queue.dueAt(now)));
    if (dueAt === Number.POSITIVE_INFINITY) return;
    // Timers do not notice that the clock is set or that the machine sleeps.
    const ms = Math.min(NOTICE.lookMs, Math.max(0, dueAt - now));
    this.cancelTimer = this.context.clock.after(ms, () => this.plan());
  }

  private async deliver(queue: NoticeQueue, notice: StoredNotice): Promise<void> {
    const { sendNotice } = await import('../../adapters/notice_targets.ts');
    const { clock, scope } = this.context;
    const { signal } = scope;
    const message = messageOf(notice);
    const error = await sendNotice(queue.rule.target, message, this.config.environment, signal, clock);
    // The interrupted notice is still on disk; the next daemon sends it.
    if (signal.aborted) return;
    const isDone = queue.settle(error, this.context.clock.now());
    if (!isDone && !this.queues.includes(queue)) this.drop([notice.id]);
    if (isDone) await this.save([], [notice.id], null);
    this.plan();
  }

  /** Stores the rules, so that the next daemon recognizes them. */
  private keepRules(rules: readonly StoredRule[]): void {
    const isSame = isDeepStrictEqual(rules, this.known);
    this.known = rules;
    if (isSame) return;
    const kept = this.config.store.table('rules').put(MARK, [...rules]);
    this.inBackground(tolerateFailure(kept, (failure) => this.reportUnkept(failure)));
  }

  /** Gives up notices whose rule was removed. */
  private drop(ids: readonly string[]): void {
    if (ids.length === 0) return;
    this.droppedWithRules += ids.length;
    this.config.report(`notices: dropped because their rule was removed: ${ids.length}`);
    this.inBackground(this.save([], ids, null));
  }

  private reportUnkept({ message }: Failure): void {
    this.config.report(`notices: not kept for a restart: ${message}`);
  }

  private reportMistakes(rules: readonly NoticeRule[]): void {
    const types = rules.flatMap((rule) => rule.types);
    for (const pattern of types) {
      const isKnown = EVENT_TYPES.some((type) => matchesPattern(pattern, type)) || pattern.startsWith(STATES);
      if (!isKnown) this.config.report(`notices: no event has the type ${pattern}`);
    }
  }

  private inBackground(work: Promise<unknown>): void {
    work.catch((error: unknown) => this.context.crash(error));
  }
}

/** Sends notices of events: docs/reference.md "Notices". Costs nothing without rules. */
export const noticesActor = actor<NoticesProtocol, NoticesConfig>('notices', (context, config) => {
  const notices = new Notices(context, config);
  notices.start(config.rules);
  return {
    rules: ({ rules }) => {
      // Keeps the rules for the next incarnation.
      config.rules = rules;
      return notices.setRules(rules);
    },
    events: (message) => notices.take(message),
    status: () => notices.status(),
    test: () => context.replyLater(notices.test()),
  };
});
