// Notices of events, sent out of the daemon: docs/reference.md "Notices".
import type { NoticeRule } from '../settings/notify.ts';
import type { EventRecord } from './events.ts';

/** A notice that has not been delivered yet. */
export interface StoredNotice {
  /** Identifies it to its receiver, even when it is sent again. */
  id: string;
  /** The id of its rule. */
  rule: string;
  /** At most one notice a minute is sent per key. */
  key: string;
  event: EventRecord;
  /** The number of events it stands for; `event` is the last of them. */
  count: number;
  /** Epoch milliseconds. It is sent only if nothing else happens to its subject until then. */
  heldUntil: number;
}

/** What a changed rule is recognized by, also by the next daemon. */
export interface StoredRule {
  id: string;
  /** Hashes: the address of a webhook or a topic is as secret as its key. */
  when: string;
  address: string;
}

/** What the receiver of a notice gets. */
export interface NoticeMessage {
  id: string;
  type: string;
  name: string;
  /** Epoch milliseconds. */
  at: number;
  count: number;
  /** The fields of the event, as JSON text. */
  data: string;
  /** One line for people. */
  text: string;
}

/** The target under which the dropped notices of removed rules are counted. */
export const REMOVED_RULES = 'removed rules';

/** The state of one target. */
export interface NoticeTargetStatus {
  /** The target without its secret parts. */
  target: string;
  pending: number;
  delivered: number;
  /** Failed attempts. */
  failed: number;
  /** Notices given up, because they were too old or too many, or their rule was removed. */
  dropped: number;
  /** Why the last attempt failed; null if it did not. */
  error: string | null;
}

export interface NoticeTest {
  target: string;
  ok: boolean;
  error: string | null;
  ms: number;
}

export interface NoticesProtocol {
  /** Replaces the rules. Without any, nothing is sent or held. */
  rules(message: { rules: readonly NoticeRule[] }): null;
  /** New events of the journal except statistics; `from`: the last id of the previous message. */
  events(message: { events: EventRecord[]; from: number; to: number }): null;
  status(message: Record<string, never>): { targets: NoticeTargetStatus[] };
  /** Sends a notice to every target at once, and replies when all have answered or timed out. */
  test(message: Record<string, never>): { results: NoticeTest[] };
}
