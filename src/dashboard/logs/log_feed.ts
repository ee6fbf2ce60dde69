// The lines of a log view, each once: new lines as they arrive, older lines on request.
import { signal } from '@preact/signals';
import type { LogEntry, LogSearchOptions, LogStreamOptions, StreamedLogEntry } from '../../client/browser.ts';
import { isBerthError } from '../../client/browser.ts';
import { isRetryable } from '../../client/errors.ts';
import { entryKey } from '../../presentation/log_entry.ts';
import { askForToken, client, errorText } from '../state/session.ts';
import { inTurns } from '../state/tab_streams.ts';

/** Which lines to show. */
export type LineSelection = Omit<LogSearchOptions, 'signal' | 'limit' | 'before' | 'until' | 'ansi'>;

/** Lines that are drawn together. */
export interface LineChunk {
  id: number;
  entries: LogEntry[];
  /** The rendered height, in pixels; null: not rendered yet. */
  height: number | null;
}

const CHUNK_LINES = 100;
/** The most lines to keep. Beyond it, the oldest are dropped unless they are in view. */
const MAX_LINES = 100_000;
/** How many past lines to read first: for one service, and for each of several. */
const FIRST_LINES = 1_000;
const FIRST_LINES_OF_MANY = 200;
const OLDER_LINES = 1_000;
/** The least time between two draws of new lines, because each draw causes a new layout of the log. */
const DRAW_MS = 100;

/** The lines of one selection. Another selection needs a new feed. */
export class LogFeed {
  /** The lines from the oldest to the newest. */
  readonly chunks: LineChunk[] = [];
  /** Increases with every change of `chunks`. */
  readonly changes = signal(0);
  readonly state = signal<{ word: 'loading' | 'following' | 'lost' | 'failed'; detail: string }>({
    word: 'loading',
    detail: '',
  });
  readonly count = signal(0);
  /** Whether older lines may exist; `searching`: they are being read. */
  readonly older = signal<'unknown' | 'searching' | 'none'>('unknown');
  private readonly selection: LineSelection;
  private readonly end = new AbortController();
  private readonly isMany: boolean;
  /** Whether the stream has passed the stored lines. Only then does the feed know which lines are older. */
  private isPastRead = false;
  /** The id of the last entry, after which the stream continues. */
  private lastId = '';
  /** Entries since the last draw. A tab in the background does not draw. */
  private pending: LogEntry[] = [];
  private isDrawing = false;
  /** The time of the last draw, by `performance.now()`. */
  private drawnAt = -DRAW_MS;
  private lastChunk = 0;
  /** The cursor to older lines; null: none have been read. */
  private cursor: string | null = null;

  constructor(selection: LineSelection) {
    this.selection = selection;
    this.isMany = selection.names?.length !== 1;
  }

  /** Reads the stored lines, then new lines until `stop`. */
  async follow(): Promise<void> {
    const limit = this.isMany ? FIRST_LINES_OF_MANY : FIRST_LINES;
    const past = this.selection.since ? {} : { limit };
    const { since: _since, ...selection } = this.selection;
    try {
      await this.consume({ ...this.selection, ...past, follow: false });
      this.isPastRead = true;
      // A view that shows its first line may read older ones from here on.
      this.changed(0);
      const from = this.lastId === '' ? { ...this.selection, ...past } : selection;
      await this.consume(from);
    } catch (error) {
      if (this.end.signal.aborted) return;
      this.state.value = { word: 'failed', detail: errorText(error) };
      askForToken(error);
    }
  }

  private consume(query: LogStreamOptions): Promise<void> {
    return inTurns(this.end.signal, (signal) => this.consumeTurn(query, signal));
  }

  private async consumeTurn(query: LogStreamOptions, signal: AbortSignal): Promise<void> {
    const entries = client.streamLogs({
      ...query,
      ...(this.lastId === '' ? {} : { lastEventId: this.lastId }),
      ansi: true,
      // The daemon may exit between two streams of a log, not only during one.
      reconnect: 'always',
      signal,
      onState: (now) => {
        if (!now.open) this.state.value = { word: 'lost', detail: now.error.message };
        else if (this.isPastRead) this.state.value = { word: 'following', detail: '' };
      },
    });
    for await (const entry of entries) this.add(entry);
  }

  /** Stops reading. */
  stop(): void {
    this.end.abort();
  }

  /** Removes all lines, and shows only lines that arrive from now on. */
  clear(): void {
    this.chunks.length = 0;
    this.pending = [];
    this.older.value = 'none';
    this.changed(-this.count.peek());
  }

  /** Reads older lines and inserts them before the first one. */
  async readOlder(): Promise<void> {
    const hasNone = this.chunks.length === 0 && this.pending.length === 0;
    const oldest = hasNone ? this.selection.since : this.chunks[0]?.entries[0]?.at;
    if (this.older.peek() !== 'unknown' || !oldest || !this.isPastRead) return;
    this.older.value = 'searching';
    try {
      const from = this.cursor === null ? { until: oldest } : { before: this.cursor };
      const { since: _since, ...selection } = this.selection;
      const page = await client.searchLogs({
        ...selection,
        ...from,
        limit: OLDER_LINES,
        ansi: true,
        signal: this.end.signal,
      });
      this.cursor = page.before;
      this.prepend(page.lines);
      this.older.value = page.before === null ? 'none' : 'unknown';
    } catch (error) {
      if (this.end.signal.aborted) return;
      if (isBerthError(error) && isRetryable(error)) this.older.value = 'unknown';
      else {
        this.older.value = 'none';
        this.state.value = { word: 'failed', detail: errorText(error) };
      }
    }
  }

  private add({ id, ...entry }: StreamedLogEntry): void {
    this.lastId = id;
    this.pending.push(entry as LogEntry);
    if (this.pending.length > MAX_LINES) this.pending = this.pending.slice(-MAX_LINES);
    if (this.isDrawing) return;
    this.isDrawing = true;
    const wait = this.drawnAt + DRAW_MS - performance.now();
    if (wait > 0) setTimeout(() => this.draw(), wait);
    else this.draw();
  }

  private draw(): void {
    requestAnimationFrame(() => {
      this.isDrawing = false;
      this.drawnAt = performance.now();
      this.append(this.pending);
      this.pending = [];
    });
  }

  private append(entries: readonly LogEntry[]): void {
    let last = this.chunks.at(-1);
    for (const entry of entries) {
      if (!last || last.entries.length >= CHUNK_LINES) {
        last = this.newChunk();
        this.chunks.push(last);
      }
      last.entries.push(entry);
      last.height = null;
    }
    this.changed(entries.length);
    while (this.count.peek() > MAX_LINES + CHUNK_LINES) {
      const dropped = this.chunks.shift();
      if (!dropped) break;
      this.changed(-dropped.entries.length);
      this.cursor = null;
      this.older.value = 'unknown';
    }
  }

  private prepend(entries: readonly LogEntry[]): void {
    // The feed may already have lines with the same millisecond as its first line.
    const time = this.chunks[0]?.entries[0]?.at;
    const isLater = ({ entries: lines }: LineChunk): boolean => lines.every(({ at }) => at !== time);
    const end = this.chunks.findIndex(isLater);
    const near = end < 0 ? this.chunks : this.chunks.slice(0, end);
    const known = new Set(near.flatMap((chunk) => chunk.entries.map(entryKey)));
    const fresh = entries.filter((entry) => !known.has(entryKey(entry)));
    for (let last = fresh.length; last > 0; last -= CHUNK_LINES) {
      const chunk = this.newChunk();
      chunk.entries = fresh.slice(Math.max(0, last - CHUNK_LINES), last);
      this.chunks.unshift(chunk);
    }
    this.changed(fresh.length);
  }

  private newChunk(): LineChunk {
    this.lastChunk += 1;
    return { id: this.lastChunk, entries: [], height: null };
  }

  private changed(lines: number): void {
    this.count.value += lines;
    this.changes.value += 1;
  }
}
