// The handlers of the logs of many services.
import type { logs } from '../../../api/logs.ts';
import { decodeCursor, encodeCursor } from '../../../logs/log_cursor.ts';
import { fail } from '../../../protocol/errors.ts';
import type { FoundEntry, LogSearchAnswer } from '../../../protocol/logs.ts';
import { localTime } from '../../../protocol/timestamps.ts';
import { LOGS } from '../../../settings/limits.ts';
import { statePaths } from '../../../settings/state_paths.ts';
import type { HandlersOf } from '../handler.ts';
import { filterOf, namesSelector, selectedNames } from './logs_selection.ts';
import { assertStackExists } from './stacks.ts';

/** The number of parts of a search that run in parallel. */
const PARTS = 2;

/** Reads a cursor. Throws invalid_spec. */
function cursorOf(path: string, text: string): (name: string) => number | undefined {
  const cursor = decodeCursor(text);
  if (cursor) return cursor;
  const message = `${path} must be a cursor that an answer gave`;
  throw fail('invalid_spec', message, { details: [{ path, message }] });
}

interface Page {
  /** The newest first. */
  entries: FoundEntry[];
  /** For each log: every wanted entry from this key on is in this page or an earlier one. */
  taken: Map<string, number>;
  /** No remaining entry is later than this; null: none remain. */
  bound: number | null;
}

/** Whether two entries are marks at one position, as without output between them: they are on one page. */
const isTogether = (one: FoundEntry, other: FoundEntry | undefined): boolean =>
  one.name === other?.name && one.key === other.key;

/**
 * Puts marks that are much older than the ones at the same position where their time belongs. `entries` are
 * newest first, except for those. The order within each log stays, whatever the clock did.
 */
function inOrderOfTime(entries: readonly FoundEntry[]): FoundEntry[] {
  const ordered: FoundEntry[] = [];
  let held: FoundEntry[] = [];
  for (const [at, entry] of entries.entries()) {
    if (isTogether(entry, entries[at - 1])) held.push(entry);
    else {
      const isDue = ({ name, time }: FoundEntry): boolean => name === entry.name || time >= entry.time;
      held.sort((one, other) => other.time - one.time);
      ordered.push(...held.filter(isDue), entry);
      held = held.filter((one) => !isDue(one));
    }
  }
  return [...ordered, ...held.sort((one, other) => other.time - one.time)];
}

/** Merges the answers, each about several logs, into one page, newest entry first. */
export function mergeAnswers(answers: readonly LogSearchAnswer[], limit: number): Page {
  const taken = new Map(answers.flatMap((answer) => answer.taken.map(({ name, key }) => [name, key])));
  const heads = answers.map(() => 0);
  const entries: FoundEntry[] = [];
  let lines = 0;
  const latestOf = (part: number): number =>
    answers[part]?.entries[heads[part] ?? 0]?.time ?? answers[part]?.bound ?? Number.NEGATIVE_INFINITY;
  const newestPart = (): number =>
    answers.reduce((best, _, part) => (latestOf(part) > latestOf(best) ? part : best), 0);
  while (lines < limit) {
    const part = newestPart();
    const entry = answers[part]?.entries[heads[part] ?? 0];
    // A log that was not searched far enough may still have something newer.
    if (!entry) break;
    if (entry.isLine) lines += 1;
    let next: FoundEntry | undefined = entry;
    while (next && isTogether(entry, next)) {
      entries.push(next);
      heads[part] = (heads[part] ?? 0) + 1;
      next = answers[part]?.entries[heads[part] ?? 0];
    }
  }
  const bound = Math.max(...answers.map((_, part) => latestOf(part)));
  for (const [part, answer] of answers.entries())
    for (const { name, key } of answer.entries.slice(heads[part]).reverse()) taken.set(name, key + 1);
  return { entries: inOrderOfTime(entries), taken, bound: bound === Number.NEGATIVE_INFINITY ? null : bound };
}

/** `items` spread over `count` lists. */
function deal<T>(items: readonly T[], count: number): T[][] {
  const lists: T[][] = Array.from({ length: Math.max(1, Math.min(count, items.length)) }, () => []);
  for (const [at, item] of items.entries()) lists[at % lists.length]?.push(item);
  return lists;
}

export const logHandlers: HandlersOf<typeof logs> = {
  // Concatenated as text, because an entry is already JSON.
  search: async ({ app, query, reach }) => {
    const { limit: asked, before, run, ansi } = query;
    const limit = asked ?? LOGS.defaultPageLines;
    const filter = filterOf(query, Date.now());
    if (query.stack !== null) await assertStackExists(app, query.stack);
    const cursor = before === null ? null : cursorOf('before', before);
    // Logs that the cursor does not mention are searched from their end.
    const wanted = selectedNames(app, query, reach).map((name) => ({
      name,
      before: cursor ? (cursor(name) ?? 0) : null,
    }));
    const rest = {
      folder: statePaths(app.daemonInfo.stateDir).logs,
      filter,
      run,
      limit,
      ansi: ansi ?? false,
    };
    const parts = deal(
      wanted.filter(({ before: key }) => key !== 0),
      PARTS,
    );
    const answers = await Promise.all(
      parts.map((part) => app.logJobs.search({ ...rest, logs: part, budgetMs: LOGS.searchMs })),
    );
    const page = mergeAnswers(answers, limit);
    const { bound } = page;
    const next = bound === null ? null : encodeCursor([...page.taken].filter(([, key]) => key > 0));
    const isShort = page.entries.filter(({ isLine }) => isLine).length < limit;
    const searchedTo = bound !== null && isShort && Number.isFinite(bound) ? localTime(bound) : undefined;
    const rows = page.entries.map(({ json }) => json).reverse();
    const end = JSON.stringify({ before: next, searchedTo }).slice(1);
    return Buffer.from(`{"lines":[${rows.join(',')}],${end}`);
  },

  follow: async ({ app, query, reach, lastEventId, open }) => {
    const now = Date.now();
    const { limit, since, run, ansi, follow } = query;
    const asked = filterOf(query, now);
    if (query.stack !== null) await assertStackExists(app, query.stack);
    // Lines written from now on are later than `until`.
    const isFollowing = follow !== false && (asked.until === null || asked.until > now);
    const after = lastEventId || query.lastEventId;
    // A client repeats a relative `since`, which has moved on meanwhile. Nothing after its last id is older.
    const from = after ? null : asked.since;
    const filter = { ...asked, since: from, until: isFollowing ? asked.until : (asked.until ?? now) };
    return app.mergedLogs.follow({
      select: namesSelector(app, query, reach),
      endsWithServices: query.names !== null,
      filter,
      run,
      ansi: ansi ?? false,
      lines: limit ?? (since === null ? 0 : null),
      cursor: after ? cursorOf('lastEventId', after) : null,
      follow: isFollowing,
      open,
    });
  },
};
