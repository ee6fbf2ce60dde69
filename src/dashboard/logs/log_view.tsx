// A log view: the tools, and the lines below them.
import { signal } from '@preact/signals';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { countText } from '../../presentation/format.ts';
import { Button } from '../frame/button.tsx';
import { copyText } from '../state/actions.ts';
import { draftOf } from '../state/drafts.ts';
import { setFilter, shownPlace } from '../state/place.ts';
import { downloadLog, shownText } from './log_export.ts';
import { type LineSelection, LogFeed } from './log_feed.ts';
import { LogLines } from './log_lines.tsx';

interface LogViewProps {
  selection: LineSelection;
  /** The time to which it jumps, in epoch milliseconds; absent: it begins at its newest line. */
  time?: number | null;
  /** The key of the line to which it jumps, of that time. */
  line?: string | null;
  /** Called with the search text; absent: the view keeps a search of its own. */
  onSearch?: (text: string) => void;
}

const STATE_TEXTS = {
  loading: 'reading',
  following: 'live',
  lost: 'reconnecting',
  failed: 'failed',
} as const;

function FeedState({ feed }: { feed: LogFeed }) {
  const { word, detail } = feed.state.value;
  const count = feed.count.value;
  const isSearching = feed.older.value === 'searching';
  return (
    <span class="log-state soft number" role="status" data-state={word} title={detail}>
      {STATE_TEXTS[word]}
      {word === 'failed' && `: ${detail}`} · {countText(count, 'line')}
      {isSearching && ' · reading older ones'}
    </span>
  );
}

/** The level from which lines tell of something wrong. */
const WORST = 'warn' as const;
/** The time between the last key and the search. */
const SEARCH_MS = 200;

/** The search field. It searches after a short pause in typing. */
function SearchField({ wanted, onSearch }: { wanted: string; onSearch: (text: string) => void }) {
  const [typed, setTyped] = useState(wanted);
  useEffect(() => setTyped(wanted), [wanted]);
  useEffect(() => {
    const timer = setTimeout(() => onSearch(typed), SEARCH_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return (
    <input
      type="search"
      class="field log-search"
      aria-label="search in all that is kept of the log"
      placeholder="Search in all that is kept"
      autocomplete="off"
      spellcheck={false}
      value={typed}
      onInput={(event) => setTyped(event.currentTarget.value)}
    />
  );
}

function useFeed(selection: LineSelection): LogFeed {
  const key = JSON.stringify(selection);
  const feed = useMemo(() => new LogFeed(selection), [key]);
  useEffect(() => {
    void feed.follow();
    return () => feed.stop();
  }, [feed]);
  return feed;
}

/**
 * The address of the log around a line, whose time and key follow it: without the search, which hides what is
 * around.
 */
function aroundHash({ names, stack }: LineSelection): string {
  const query = { ...(names && { names: names.join(',') }), ...(stack && { stack }), at: '' };
  return `#/logs?${new URLSearchParams(query)}`;
}

const copyShown = (feed: LogFeed): Promise<void> =>
  copyText(shownText(feed), countText(feed.count.peek(), 'line'));

/** Whether the panes show only warnings and worse. */
const panesShowWorst = signal(false);

/** Shows only warnings and worse, or all lines again: in the view of logs, elsewhere in the panes. */
export function toggleWorst(): void {
  const { view, query } = shownPlace.peek();
  if (view === 'logs') setFilter('level', query['level'] ? '' : WORST);
  else panesShowWorst.value = !panesShowWorst.peek();
}

/** What can be done with the lines: clear, copy, download. */
function FeedTools({ feed, selection }: { feed: LogFeed; selection: LineSelection }) {
  return (
    <>
      <Button
        kind="quiet"
        icon="clear"
        label="clear: show only what comes from now on"
        onPress={() => feed.clear()}
      />
      <Button kind="quiet" icon="copy" label="copy the lines" onPress={() => void copyShown(feed)} />
      <Button
        kind="quiet"
        icon="download"
        label="download the log"
        onPress={() => void downloadLog(selection)}
      />
    </>
  );
}

/** A log with its search, its tools and its lines. */
export function LogPanel({ selection, time = null, line = null, onSearch }: LogViewProps) {
  const search = draftOf(`search in the log of ${selection.names}`);
  const ownSearch = onSearch ? '' : search.value;
  const [isWrapped, setWrapped] = useState(true);
  const [isPaused, setPaused] = useState(false);
  const setOwnSearch = (text: string): void => {
    search.value = text;
  };
  const wanted = selection.q ?? selection.regex ?? ownSearch;
  const ownLevel = !onSearch && panesShowWorst.value && { level: WORST };
  const chosen = { ...selection, ...(ownSearch !== '' && { q: ownSearch }), ...ownLevel };
  const feed = useFeed(chosen);
  const look = {
    hasNames: selection.names?.length !== 1,
    wanted: wanted.toLowerCase(),
    aroundHash: aroundHash(selection),
    time,
    line,
  };
  return (
    <div class="log-view">
      <div class="tools">
        <SearchField wanted={wanted} onSearch={onSearch ?? setOwnSearch} />
        <FeedState feed={feed} />
        <span class="tools-end">
          <Button
            kind="quiet"
            icon="warning"
            label="only warnings and errors"
            isPressed={chosen.level !== undefined}
            onPress={toggleWorst}
            keyHint="e"
          />
          <Button
            kind="quiet"
            icon={isPaused ? 'start' : 'pause'}
            label={isPaused ? 'go on' : 'pause'}
            isPressed={isPaused}
            onPress={() => setPaused(!isPaused)}
          />
          <Button
            kind="quiet"
            icon="wrap"
            label="wrap long lines"
            isPressed={isWrapped}
            onPress={() => setWrapped(!isWrapped)}
          />
          <FeedTools feed={feed} selection={chosen} />
        </span>
      </div>
      <LogLines
        key={JSON.stringify([chosen, line])}
        feed={feed}
        look={look}
        isWrapped={isWrapped}
        isPaused={isPaused}
      />
    </div>
  );
}
