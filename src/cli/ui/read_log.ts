// Reads lines of a log beyond the loaded ones, and searches everything that the daemon keeps.
import type { Client } from '../../client/create_client.ts';
import type { LogEntry } from '../../client/records.ts';
import { entryKey } from '../../presentation/log_entry.ts';
import { shortenedEntry } from './follow_log.ts';
import { noMatch } from './log_find.ts';
import { plainTextOf } from './log_lines.ts';
import { standsBefore } from './log_pages.ts';
import type { LineReading, LogPageRead, ShownLogs } from './model.ts';
import { troubleText } from './trouble.ts';

const PAGE_LINES = 1_000;
/** The number of lines to read around a found line, in each direction. */
const AROUND_LINES = 500;
/** The matches per page of a search. If the filter removes all of them, the next page is read. */
const MATCHES = 50;

/** The logs to read, the client, and the signal that ends the read. */
interface LogSource {
  client: Client;
  selection: ShownLogs;
  signal: AbortSignal;
}

/** The parameters of a query. Callers may override `q`. */
const queryOf = ({ selection: { title: _title, ...wanted }, signal }: LogSource) => ({
  ...wanted,
  ansi: true,
  signal,
});

/** The newest lines before `other`, starting at `cursor` if there is one. */
async function olderPage(
  source: LogSource,
  other: LogEntry,
  cursor: string | null,
  limit: number,
): Promise<{ entries: LogEntry[]; cursor: string | null }> {
  let from = cursor === null ? { until: other.at } : { before: cursor };
  for (;;) {
    const page = await source.client.searchLogs({ ...queryOf(source), ...from, limit });
    const entries = page.lines.filter((entry) => standsBefore(entry, other) !== false).map(shortenedEntry);
    if (entries.length > 0 || page.before === null) return { entries, cursor: page.before };
    from = { before: page.before };
  }
}

/** The oldest lines that do not come before `other`; `lastId` is null if more lines follow. */
async function newerPage(
  source: LogSource,
  other: LogEntry,
  limit: number,
): Promise<{ entries: LogEntry[]; lastId: string | null }> {
  const entries: LogEntry[] = [];
  let lastId: string | null = null;
  const query = { ...queryOf(source), since: other.at, follow: false, reconnect: false };
  for await (const { id, ...entry } of source.client.streamLogs(query)) {
    lastId = id;
    if (standsBefore(entry as LogEntry, other) !== true) entries.push(shortenedEntry(entry as LogEntry));
    if (entries.length >= limit) return { entries, lastId: null };
  }
  return { entries, lastId };
}

type Search = Extract<LineReading, { kind: 'find' }>;

/** The nearest line beyond the edge that contains the text and passes the selection's filter. */
async function findLine(source: LogSource, { search, direction, edge }: Search): Promise<LogEntry | null> {
  const { client, selection } = source;
  const only = selection.q?.toLowerCase() ?? '';
  const isWanted = (entry: LogEntry): boolean =>
    'text' in entry &&
    entryKey(entry) !== entryKey(edge) &&
    standsBefore(entry, edge) !== direction > 0 &&
    plainTextOf(entry).toLowerCase().includes(only);
  const query = { ...queryOf(source), q: search };
  if (direction > 0) {
    const newer = client.streamLogs({ ...query, since: edge.at, follow: false, reconnect: false });
    for await (const { id: _id, ...entry } of newer)
      if (isWanted(entry as LogEntry)) return entry as LogEntry;
    return null;
  }
  // The daemon limits the time of a search and answers with what it has found so far.
  let from: { until: string } | { before: string } = { until: edge.at };
  for (;;) {
    const page = await client.searchLogs({ ...query, ...from, limit: MATCHES });
    const found = page.lines.findLast(isWanted);
    if (found || page.before === null) return found ?? null;
    from = { before: page.before };
  }
}

async function readFound(source: LogSource, search: Search): Promise<LogPageRead> {
  const found = await findLine(source, search);
  if (!found) return { kind: 'nothing', reason: noMatch(search.search, search.direction) };
  const { entries: before, cursor } = await olderPage(source, found, null, AROUND_LINES);
  const known = new Set(before.map(entryKey));
  const { entries: after } = await newerPage(source, found, AROUND_LINES);
  const entries = [...before, ...after.filter((entry) => !known.has(entryKey(entry)))];
  return { kind: 'found', entries, cursor, found: entryKey(found) };
}

/** The lines that `reading` requests, or the reason why they cannot be read. */
export async function readLogPage(source: LogSource, reading: LineReading): Promise<LogPageRead> {
  try {
    if (reading.kind === 'find') return await readFound(source, reading);
    if (reading.kind === 'newer')
      return { kind: 'newer', ...(await newerPage(source, reading.last, PAGE_LINES)) };
    const { cursor, first } = reading;
    return { kind: 'older', ...(await olderPage(source, first, cursor, PAGE_LINES)) };
  } catch (error) {
    return { kind: 'nothing', reason: troubleText(error) };
  }
}
