// Notices of events, sent out of the daemon: docs/reference.md "Notices".
import type { NoticeRule } from '../settings/notify.ts';
import type { EventRecord } from './events.ts';

/** A notice that has not been delivered. */
export interface StoredNotice {
  /** Names it to its receiver, also when it is sent again. */
  id: string;
  /** The rule, by a hash of it: one that has changed is another rule. */
  rule: string;
  /** What one notice a minute is sent of. */
  key: string;
  event: EventRecord;
  /** Events that it stands for, of which `event` is the last. */
  count: number;
  /** Epoch milliseconds: until then nothing else may happen to what is named. */
  heldUntil: number;
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

/** How one target fares. */
export interface NoticeTargetStatus {
  /** Without what is secret of it. */
  target: string;
  pending: number;
  delivered: number;
  /** Attempts that have failed. */
  failed: number;
  /** Given up: too old, or too many. */
  dropped: number;
  /** Why the last attempt failed; null: it did not. */
  error: string | null;
}

export interface NoticeTest {
  target: string;
  ok: boolean;
  error: string | null;
  ms: number;
}

export interface NoticesProtocol {
  /** Takes rules; without any, nothing is done or held. */
  rules(message: { rules: readonly NoticeRule[] }): null;
  /** New events of the journal but statistics; `from`: the last id of the message before. */
  events(message: { events: EventRecord[]; from: number; to: number }): null;
  status(message: Record<string, never>): { targets: NoticeTargetStatus[] };
  /** Sends a notice to every target at once, and replies when all have answered or it is too late. */
  test(message: Record<string, never>): { results: NoticeTest[] };
}
