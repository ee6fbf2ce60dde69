// The lines of a log view: the newest as they come, older ones when they are asked for. Nothing twice.
import { signal } from '@preact/signals';
import type { LogEntry, LogSearchOptions, LogStreamOptions, StreamedLogEntry } from '../../client/browser.ts';
import { isBerthError } from '../../client/browser.ts';
import { isRetryable } from '../../client/errors.ts';
import { entryKey } from '../../presentation/log_entry.ts';
import { askForToken, client, errorText } from '../state/session.ts';

/** Which lines are wanted. */
export type LineSelection = Omit<LogSearchOptions, 'signal' | 'limit' | 'before' | 'until' | 'ansi'>;

/** Lines that are drawn together. */
export interface LineChunk {
  id: number;
  entries: LogEntry[];
  /** As drawn, in pixels; null: not drawn yet. */
  height: number | null;
}

const CHUNK_LINES = 100;
/** Lines kept; beyond, the oldest are dropped while nobody looks at them. */
const MAX_LINES = 100_000;
/** Lines of the past that come first: of one service, and of each of many. */
const FIRST_LINES = 1_000;
const FIRST_LINES_OF_MANY = 200;
const OLDER_LINES = 1_000;
/** New lines are drawn at most this often: nobody reads faster, and each draw lays the log out anew. */
const DRAW_MS = 100;

/** The lines of one selection. Make a new one for another. */
export class LogFeed {
  /** The lines from the oldest to the newest. */
  readonly chunks: LineChunk[] = [];
  /** Grows when `chunks` change. */
  readonly changes = signal(0);
  readonly state = signal<{ word: 'loading' | 'following' | 'lost' | 'failed'; detail: string }>({
    word: 'loading',
    detail: '',
  });
  readonly count = signal(0);
  /** Whether older lines may exist; `searching` while they are read. */
  readonly older = signal<'unknown' | 'searching' | 'none'>('unknown');
  private readonly selection: LineSelection;
  private readonly end = new AbortController();
  private readonly isMany: boolean;
  /** Whether the stream is past what there was: only then it is known which lines are older. */
  private isPastRead = false;
  /** Of the last entry, from which the stream goes on. */
  private lastId = '';
  /** Came since the last draw: a tab in the background draws nothing. */
  private pending: LogEntry[] = [];
  private isDrawing = false;
  /** As of `performance.now()`. */
  private drawnAt = -DRAW_MS;
  private lastChunk = 0;
  /** Leads to older lines; null: not asked yet. */
  private cursor: string | null = null;

  constructor(selection: LineSelection) {
    this.selection = selection;
    this.isMany = selection.names?.length !== 1;
  }

  /** Reads what there is, then what comes, until `stop`. */
  async follow(): Promise<void> {
    const limit = this.isMany ? FIRST_LINES_OF_MANY : FIRST_LINES;
    const past = this.selection.since ? {} : { limit };
    const { since: _since, ...selection } = this.selection;
    try {
      await this.consume({ ...this.selection, ...past, follow: false });
      this.isPastRead = true;
      const from =
        this.lastId === '' ? { ...this.selection, ...past } : { ...selection, lastEventId: this.lastId };
      await this.consume(from);
    } catch (error) {
      if (this.end.signal.aborted) return;
      this.state.value = { word: 'failed', detail: errorText(error) };
      askForToken(error);
    }
  }

  private async consume(query: LogStreamOptions): Promise<void> {
    const entries = client.streamLogs({
      ...query,
      ansi: true,
      // Between two streams of a log the daemon may end as well as in the middle of one.
      reconnect: 'always',
      signal: this.end.signal,
      onState: (now) => {
        if (!now.open) this.state.value = { word: 'lost', detail: now.error.message };
        else if (this.isPastRead) this.state.value = { word: 'following', detail: '' };
      },
    });
    for await (const entry of entries) this.add(entry);
  }

  /** Ends the reading. */
  stop(): void {
    this.end.abort();
  }

  /** Shows only what comes from now on. */
  clear(): void {
    this.chunks.length = 0;
    this.pending = [];
    this.older.value = 'none';
    this.changed(-this.count.peek());
  }

  /** Puts older lines before the first one. */
  async readOlder(): Promise<void> {
    const [first] = this.chunks[0]?.entries ?? [];
    if (this.older.peek() !== 'unknown' || !first || !this.isPastRead) return;
    this.older.value = 'searching';
    try {
      const from = this.cursor === null ? { until: first.at } : { before: this.cursor };
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
    // Lines of the same millisecond as the first may be there already.
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
