// Follows the shown log.
import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '../../client/create_client.ts';
import type { LogEntry } from '../../client/records.ts';
import { hasErrorCode } from '../kit/context.ts';
import { MAX_LOG_ENTRIES } from './log_pages.ts';
import type { Message, ShownLogs } from './model.ts';
import { troubleText } from './trouble.ts';

/** The number of earlier lines to read first: for one service, and for each of several. */
const FIRST_LINES = 1_000;
const FIRST_LINES_OF_MANY = 200;
/** The least interval between two updates of the entries. */
const FLUSH_MS = 50;
const RETRY_MS = 1_000;
/** The longest text of a line; a screen shows less. */
const MAX_CHARS = 4_096;

/** An entry without its fields, and with its text cut to what a screen may show. */
export function shortenedEntry(entry: LogEntry): LogEntry {
  if (!('text' in entry)) return entry;
  const { fields: _fields, text, ...rest } = entry;
  return { ...rest, text: text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS)}…` : text };
}

/** Combines entries into one message at a time. Drops the oldest beyond MAX_LOG_ENTRIES at once. */
function entryGatherer(tell: (message: Message) => void, signal: AbortSignal): (entry: LogEntry) => void {
  let pending: LogEntry[] = [];
  let isDue = false;
  const flush = (): void => {
    isDue = false;
    const entries = pending;
    pending = [];
    if (!signal.aborted) tell({ kind: 'logged', entries: entries.slice(-MAX_LOG_ENTRIES) });
  };
  return (entry) => {
    pending.push(entry);
    if (pending.length > 2 * MAX_LOG_ENTRIES) pending = pending.slice(-MAX_LOG_ENTRIES);
    if (!isDue) setTimeout(flush, FLUSH_MS);
    isDue = true;
  };
}

/**
 * Reports the last lines of a log, or the entries after `after`, then every new entry, until `signal` aborts
 * or its service is removed. `clientNow` returns the current client, which changes with each new connection;
 * null: none yet.
 */
export async function followShownLog(
  clientNow: () => Client | null,
  { selection: { title: _title, ...wanted }, after }: { selection: ShownLogs; after?: string | undefined },
  tell: (message: Message) => void,
  signal: AbortSignal,
): Promise<void> {
  const gather = entryGatherer(tell, signal);
  const onState = (state: { open: true } | { open: false; error: Error }): void => {
    if (!signal.aborted) tell({ kind: 'logTrouble', trouble: state.open ? '' : troubleText(state.error) });
  };
  const limit = wanted.names?.length === 1 ? FIRST_LINES : FIRST_LINES_OF_MANY;
  let lastId = after;
  while (!signal.aborted) {
    try {
      const from = lastId === undefined ? { limit } : { lastEventId: lastId };
      const entries = clientNow()?.streamLogs({ ...wanted, ...from, ansi: true, signal, onState }) ?? [];
      for await (const { id, ...entry } of entries) {
        lastId = id;
        gather(shortenedEntry(entry as LogEntry));
      }
    } catch (error) {
      onState({ open: false, error: error instanceof Error ? error : new Error(String(error)) });
      if (hasErrorCode(error, 'unknown_service')) return;
    }
    await pause(RETRY_MS, undefined, { signal }).catch(() => {});
  }
}
