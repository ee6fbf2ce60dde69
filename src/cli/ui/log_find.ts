// Searches a log: first the loaded lines, then everything that the daemon keeps.
import { plainTextOf } from './log_lines.ts';
import { LINES_BEFORE_FOUND, readLines, withLog } from './log_pages.ts';
import { firstShown, shownLog } from './log_steps.ts';
import type { Model, OpenLog, Step } from './model.ts';

/** The notice if a direction has no match. */
export const noMatch = (search: string, direction: 1 | -1): string =>
  `No ${direction > 0 ? 'newer' : 'older'} line has ${search}`;

/** The index of the first match from `from` in `direction`; -1: none. */
function indexOfMatch({ entries, search }: OpenLog, from: number, direction: 1 | -1): number {
  const wanted = search.toLowerCase();
  for (let at = from; at >= 0 && at < entries.length; at += direction) {
    const entry = entries[at];
    if (entry && plainTextOf(entry).toLowerCase().includes(wanted)) return at;
  }
  return -1;
}

const goTo = (model: Model, at: number): Step => [
  withLog({ ...model, notice: null }, (log) => ({
    ...log,
    ...{ top: Math.max(0, at - LINES_BEFORE_FOUND), found: at, isFollowing: false },
  })),
];

/** Requests a search of the lines beyond the loaded ones. */
function findBeyond(model: Model, log: OpenLog, direction: 1 | -1): Step {
  const { entries, search, isLive, isOldest } = log;
  const edge = direction > 0 ? entries.at(-1) : entries[0];
  if (!edge || (direction > 0 ? isLive : isOldest))
    return [{ ...model, notice: { tone: 'bad', text: noMatch(search, direction) } }];
  return readLines(model, { kind: 'find', search, direction, edge });
}

/** Goes to the next newer (1) or older (-1) entry that contains the search text. */
export function findInLog(model: Model, direction: 1 | -1): Step {
  const log = shownLog(model);
  if (!log || log.search === '') return [model];
  const from = log.found === null ? firstShown(log, model) : log.found + direction;
  const at = indexOfMatch(log, from, direction);
  return at < 0 ? findBeyond(model, log, direction) : goTo(model, at);
}

/** Searches for a new text: from the first entry on the screen towards newer ones, then in older ones. */
export function searchLog(model: Model, search: string): Step {
  const searching = withLog(model, (log) => ({ ...log, search, found: null }));
  const log = shownLog(searching);
  if (!log || search === '') return [searching];
  const at = indexOfMatch(log, firstShown(log, searching), 1);
  return at < 0 ? findInLog(searching, -1) : goTo(searching, at);
}
