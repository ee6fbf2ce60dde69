// The undelivered notices of one rule, and the state of its target. Pure except for the clock it is given:
// the actor stores and sends.
import { isDeepStrictEqual } from 'node:util';
import type { EventRecord } from '../../protocol/events.ts';
import type { NoticeTargetStatus, StoredNotice } from '../../protocol/notices.ts';
import { NOTICE } from '../../settings/limits.ts';
import { matchesPattern, type NoticeRule, targetLabel } from '../../settings/notify.ts';

/** The names that a rule's types are compared with: `agent.state` also with its state. */
function typesOf({ type, data }: EventRecord): string[] {
  if (type !== 'agent.state') return [type];
  const { state }: { state?: string } = JSON.parse(data);
  return [type, `${type}.${state ?? ''}`];
}

const fits = ({ types, names }: NoticeRule, event: EventRecord): boolean =>
  names.some((pattern) => matchesPattern(pattern, event.name)) &&
  typesOf(event).some((type) => types.some((pattern) => matchesPattern(pattern, type)));

/** What an event changes in the queue, for the store. */
export interface QueueChange {
  put: StoredNotice[];
  removed: string[];
}

export class NoticeQueue {
  readonly id: string;
  rule: NoticeRule;
  readonly counts: Pick<NoticeTargetStatus, 'delivered' | 'failed' | 'dropped' | 'error'> = {
    delivered: 0,
    failed: 0,
    dropped: 0,
    error: null,
  };
  private readonly waiting = new Map<string, StoredNotice>();
  /** By the key of a notice: when it was last sent, in epoch milliseconds. */
  private readonly sent = new Map<string, number>();
  private inFlight: StoredNotice | null = null;
  private failures = 0;
  private retryAt = 0;

  constructor(id: string, rule: NoticeRule) {
    this.id = id;
    this.rule = rule;
  }

  get status(): NoticeTargetStatus {
    const pending = this.waiting.size + (this.inFlight ? 1 : 0);
    return { target: targetLabel(this.rule.target), pending, ...this.counts };
  }

  /** Restores a notice that an earlier daemon or incarnation has stored. */
  restore(notice: StoredNotice): void {
    this.waiting.set(notice.id, notice);
  }

  /** Sets the rule. A new version of it is tried without delay. */
  change(rule: NoticeRule): void {
    if (isDeepStrictEqual(rule, this.rule)) return;
    this.rule = rule;
    this.counts.error = null;
    this.failures = 0;
    this.retryAt = 0;
  }

  /** Returns the ids of the waiting notices and forgets them. The one in flight is not among them. */
  drain(): string[] {
    const ids = [...this.waiting.keys()];
    this.waiting.clear();
    return ids;
  }

  /** Handles an event, which may create a notice, join a waiting one, or cancel a held one. */
  take(event: EventRecord): QueueChange {
    const removed = [...this.waiting.values()]
      .filter((held) => held.event.name === event.name && held.event.id < event.id)
      .filter(({ heldUntil }) => event.at < heldUntil)
      .map(({ id }) => id);
    for (const id of removed) this.waiting.delete(id);
    if (!fits(this.rule, event)) return { put: [], removed };
    const key = `${event.type} ${event.name}`;
    const before = [...this.waiting.values()].find((notice) => notice.key === key);
    // The journal was read again after a kill.
    if (before && before.event.id >= event.id) return { put: [], removed };
    const { id, count } = before ?? { id: `${event.id}-${this.id}`, count: 0 };
    const heldUntil = event.at + this.rule.forMs;
    const notice = { id, rule: this.id, key, event, count: count + 1, heldUntil };
    this.waiting.set(id, notice);
    return { put: [notice], removed: [...removed, ...this.dropExcess()] };
  }

  /** Returns the next due notice and marks it in flight; null: nothing is due. */
  next(now: number): StoredNotice | null {
    if (this.inFlight || this.dueAt(now) > now) return null;
    const [notice] = [...this.waiting.values()].filter((one) => this.dueAtOf(one) <= now);
    if (!notice) return null;
    this.waiting.delete(notice.id);
    this.inFlight = notice;
    this.sent.set(notice.key, now);
    return notice;
  }

  /** When `next` will return a notice; infinite: only after another event. Epoch milliseconds. */
  dueAt(now: number): number {
    for (const [key, at] of this.sent) if (at + NOTICE.perKeyMs <= now) this.sent.delete(key);
    if (this.inFlight || this.waiting.size === 0) return Number.POSITIVE_INFINITY;
    return Math.max(this.retryAt, Math.min(...[...this.waiting.values()].map((one) => this.dueAtOf(one))));
  }

  /**
   * Records the result of sending the notice in flight; `error` null: it was delivered. Returns whether the
   * notice is finished; otherwise it waits for another attempt.
   */
  settle(error: string | null, now: number): boolean {
    const notice = this.inFlight;
    this.inFlight = null;
    this.counts.error = error;
    if (!notice) return true;
    if (error === null) {
      this.counts.delivered += 1;
      this.failures = 0;
      return true;
    }
    this.counts.failed += 1;
    this.failures += 1;
    this.retryAt = now + Math.min(NOTICE.maxBackoffMs, NOTICE.minBackoffMs * 2 ** (this.failures - 1));
    this.sent.delete(notice.key);
    if (now - notice.event.at > NOTICE.keepMs) {
      this.counts.dropped += 1;
      return true;
    }
    // Put back at the front, so that notices are sent in the order of their events.
    const others = [...this.waiting];
    this.waiting.clear();
    this.waiting.set(notice.id, notice);
    for (const [id, other] of others) this.waiting.set(id, other);
    return false;
  }

  private dueAtOf({ key, heldUntil }: StoredNotice): number {
    return Math.max(heldUntil, (this.sent.get(key) ?? Number.NEGATIVE_INFINITY) + NOTICE.perKeyMs);
  }

  /** Drops the oldest notices above the limit. */
  private dropExcess(): string[] {
    const ids = [...this.waiting.keys()].slice(0, Math.max(0, this.waiting.size - NOTICE.maxWaiting));
    for (const id of ids) this.waiting.delete(id);
    this.counts.dropped += ids.length;
    return ids;
  }
}
