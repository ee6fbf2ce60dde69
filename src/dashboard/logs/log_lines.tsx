// The lines of a feed in a scrolling box. Only visible chunks are rendered; spacers replace the others.
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { countText } from '../../presentation/format.ts';
import { entryKey } from '../../presentation/log_entry.ts';
import { Button } from '../frame/button.tsx';
import type { LineChunk, LogFeed } from './log_feed.ts';
import { type LineLook, LogRow } from './log_line.tsx';

/** The assumed height of a line that has not been rendered yet, in pixels. */
const LINE_HEIGHT = 19;
/** Within this distance from its end, the box follows new lines. */
const NEAR_END_PX = 24;
/** How far beyond the visible edges to render, in pixels. */
const SPARE_PX = 800;
/** The part of the box that shows the lines before a time to which it jumps. */
const CONTEXT_PART = 0.3;

const heightOf = ({ height, entries }: LineChunk): number => height ?? entries.length * LINE_HEIGHT;

interface Range {
  first: number;
  last: number;
  above: number;
  below: number;
}

/** The chunks between two positions in the whole list, and the heights before and after them. */
function chunksBetween(chunks: readonly LineChunk[], top: number, bottom: number): Range {
  const range: Range = { first: chunks.length, last: chunks.length, above: 0, below: 0 };
  let at = 0;
  chunks.forEach((chunk, index) => {
    const height = heightOf(chunk);
    if (at + height <= top) range.above += height;
    else if (at >= bottom) {
      range.last = Math.min(range.last, index);
      range.below += height;
    } else range.first = Math.min(range.first, index);
    at += height;
  });
  return range;
}

/** The rows of a chunk, which only grows. Existing rows keep their elements and are not compared again. */
function useRows({ entries }: LineChunk, look: LineLook): readonly JSX.Element[] {
  const rows = useMemo(
    (): JSX.Element[] => [],
    [look.hasNames, look.wanted, look.aroundHash, look.time, look.line],
  );
  for (const entry of entries.slice(rows.length))
    rows.push(<LogRow key={entryKey(entry)} entry={entry} look={look} />);
  return [...rows];
}

function Chunk({ chunk, look }: { chunk: LineChunk; size: number; look: LineLook }) {
  const box = useRef<HTMLDivElement>(null);
  const rows = useRows(chunk, look);
  useLayoutEffect(() => {
    chunk.height = box.current?.offsetHeight ?? null;
  });
  return (
    <div class="log-chunk" ref={box} data-chunk={chunk.id}>
      {rows}
    </div>
  );
}

/** Follows the end until a person scrolls up. A list that starts elsewhere waits until they go there. */
function useEnd(feed: LogFeed, startsAtEnd: boolean) {
  const box = useRef<HTMLDivElement>(null);
  const lastTop = useRef(0);
  const [seen, setSeen] = useState({ top: 0, height: 600 });
  const [isAtEnd, setAtEnd] = useState(startsAtEnd);
  const look = (isScroll = false): void => {
    if (!box.current) return;
    const { scrollTop, clientHeight, scrollHeight } = box.current;
    setSeen((old) =>
      Math.abs(old.top - scrollTop) < SPARE_PX / 4 && old.height === clientHeight
        ? old
        : { top: scrollTop, height: clientHeight },
    );
    // Lines and sizes may change between a scroll and its event, but only a person scrolls up.
    const isNearEnd = scrollHeight - scrollTop - clientHeight < NEAR_END_PX;
    const mayFollow = startsAtEnd || (isScroll && scrollTop > lastTop.current);
    if (isNearEnd && mayFollow) setAtEnd(true);
    else if (scrollTop < lastTop.current) setAtEnd(false);
    lastTop.current = scrollTop;
    if (scrollTop < SPARE_PX) void feed.readOlder();
  };
  const toEnd = (): void => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
    setAtEnd(true);
  };
  return { box, seen, isAtEnd, look, toEnd };
}

interface LogBox {
  box: { current: HTMLElement | null };
  toEnd: () => void;
}

/** The position of the line with the key `line` in the whole list; null: it is not there. */
function placeOf(chunks: readonly LineChunk[], line: string): number | null {
  let above = 0;
  for (const chunk of chunks) {
    const index = chunk.entries.findIndex((entry) => entryKey(entry) === line);
    if (index >= 0) return above + (heightOf(chunk) * index) / chunk.entries.length;
    above += heightOf(chunk);
  }
  return null;
}

/**
 * Scrolls the box to an element, and holds it `below` the top until the chunks around it have their real
 * heights. The element may be absent until the box has been scrolled to about its place.
 */
function useHeld(box: LogBox['box']) {
  const held = useRef<{ selector: string; below: number } | null>(null);
  const settle = (): void => {
    const element = held.current && box.current?.querySelector(held.current.selector);
    if (!box.current || !element || !held.current) return;
    const { scrollTop: before } = box.current;
    const { top } = box.current.getBoundingClientRect();
    box.current.scrollTop += element.getBoundingClientRect().top - top - held.current.below;
    if (Math.abs(box.current.scrollTop - before) < 1) held.current = null;
  };
  useLayoutEffect(settle);
  return (selector: string, place: number, below: number): void => {
    if (!box.current) return;
    box.current.scrollTop = place - below;
    held.current = { selector, below };
  };
}

/**
 * Brings the line with the key `line` into sight once it has been read, below some of the lines before it.
 * Returns whether it has just done so.
 */
function useFoundLine(feed: LogFeed, { box }: LogBox, hold: ReturnType<typeof useHeld>, line: string | null) {
  const isDone = useRef(line === null);
  return (): boolean => {
    const place = isDone.current || line === null ? null : placeOf(feed.chunks, line);
    if (!box.current || place === null) return false;
    const below = box.current.clientHeight * CONTEXT_PART;
    // Otherwise it is shown again, below the older lines that are read next.
    isDone.current = place >= below || feed.older.peek() === 'none';
    hold('[data-found]', place, below);
    return true;
  };
}

/**
 * Keeps the lines in sight in place when older ones are inserted above the first line. Elsewhere the browser
 * does that. The first time, a box that jumps to a time then shows some of the lines before it, or the end if
 * all lines are before it; a box that jumps to a line shows that one.
 */
function useInserted(feed: LogFeed, end: LogBox, { time, line }: LineLook) {
  const { box, toEnd } = end;
  const first = useRef<number | null>(null);
  const hasContext = useRef(time === null);
  const hold = useHeld(box);
  const showFound = useFoundLine(feed, end, hold, line);
  return (): void => {
    const was = first.current;
    const [oldest] = feed.chunks;
    first.current = oldest?.id ?? null;
    if (showFound() || !box.current || !oldest || box.current.scrollTop > 0) return;
    const isAllBefore = was === null && time !== null && Date.parse(oldest.entries[0]?.at ?? '') < time;
    if (isAllBefore) toEnd();
    const at = feed.chunks.findIndex(({ id }) => id === was);
    if (was === null || at <= 0) return;
    const inserted = feed.chunks.slice(0, at).reduce((sum, chunk) => sum + heightOf(chunk), 0);
    const below = hasContext.current ? 0 : box.current.clientHeight * CONTEXT_PART;
    hasContext.current = true;
    hold(`[data-chunk="${was}"]`, inserted, below);
  };
}

interface LogLinesProps {
  feed: LogFeed;
  look: LineLook;
  isWrapped: boolean;
  /** Whether it does not follow new lines. */
  isPaused: boolean;
}

/** The lines of `feed`. */
export function LogLines({ feed, look, isWrapped, isPaused }: LogLinesProps) {
  const end = useEnd(feed, look.time === null);
  const { box, seen, isAtEnd, look: onScroll, toEnd } = end;
  const [countSeen, setCountSeen] = useState<number | null>(null);
  const keepInPlace = useInserted(feed, end, look);
  const changes = feed.changes.value;
  const count = feed.count.value;
  const isFollowing = isAtEnd && !isPaused;
  useLayoutEffect(() => {
    if (isFollowing) {
      toEnd();
      setCountSeen(count);
    }
    keepInPlace();
    onScroll();
  }, [changes, isFollowing, isWrapped]);
  useEffect(() => {
    const sizes = new ResizeObserver(() => {
      if (isFollowing) toEnd();
      onScroll();
    });
    if (box.current) sizes.observe(box.current);
    return () => sizes.disconnect();
  }, [isFollowing]);
  const { chunks } = feed;
  const height = chunks.reduce((sum, chunk) => sum + heightOf(chunk), 0);
  const top = isFollowing ? height - seen.height : seen.top;
  const range = chunksBetween(chunks, top - SPARE_PX, top + seen.height + SPARE_PX);
  const missed = countSeen === null ? 0 : count - countSeen;
  return (
    <div class="log-frame">
      <section
        class="log-lines"
        ref={box}
        onScroll={() => onScroll(true)}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolled region is reached by the keyboard
        tabIndex={0}
        data-wrap={isWrapped}
        aria-label="log lines"
      >
        <div style={{ height: `${range.above}px` }} />
        {chunks.slice(range.first, range.last).map((chunk) => (
          <Chunk key={chunk.id} chunk={chunk} size={chunk.entries.length} look={look} />
        ))}
        <div style={{ height: `${range.below}px` }} />
      </section>
      {!isFollowing && !isPaused && count > 0 && (
        <div class="log-more">
          <Button
            kind="main"
            label="go to the newest lines"
            text={missed > 0 ? `${countText(missed, 'new line')}` : 'Newest lines'}
            onPress={toEnd}
          />
        </div>
      )}
    </div>
  );
}
