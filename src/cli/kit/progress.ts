// Shows on stderr what a command is doing: on a terminal one line per service, redrawn in place; elsewhere a
// line at intervals.
import { tookText } from '../../presentation/format.ts';
import type { Output } from './output.ts';
import { sanitizeLine } from './sanitize.ts';
import { stderr } from './standard_streams.ts';

export interface Progress {
  /** Adds a line for `name`. */
  begin(name: string, about: string): void;
  /** Changes the text of the line. */
  update(name: string, about: string): void;
  end(name: string): void;
  /** Lets `work` print above the lines. */
  print(work: () => void): void;
  /** Removes all lines from the screen. */
  stop(): void;
}

interface ProgressRow {
  about: string;
  /** performance.now() at the begin, and at the last note, which only output without a terminal has. */
  startedAt: number;
  lastNoteAt: number;
}

const SPINNER_FRAMES = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏';
const REDRAW_MS = 100;
/** Without a terminal: interval between two lines about one service. */
const NOTE_INTERVAL_MS = 10_000;

type ProgressRows = ReadonlyMap<string, ProgressRow>;

/** Where progress is shown. */
interface ProgressView {
  /** Called every REDRAW_MS. */
  tick(rows: ProgressRows): void;
  /** Shows the rows at once, as after a change. */
  redraw(rows: ProgressRows): void;
  erase(): void;
  isDrawn(): boolean;
}

/** On a terminal: one line per row, drawn again in place. */
function terminalView(stream: NodeJS.WriteStream): ProgressView {
  let drawn = 0;
  let frame = 0;
  const erase = (): void => {
    if (drawn > 0) stream.write(`\x1b[${drawn}A\x1b[J`);
    drawn = 0;
  };
  const redraw = (rows: ProgressRows): void => {
    erase();
    const now = performance.now();
    const width = (stream.columns ?? 80) - 1;
    // Rows that scroll off the screen cannot be erased.
    const shown = [...rows].slice(0, Math.max(1, (stream.rows ?? 24) - 2));
    const spinner = SPINNER_FRAMES[frame % SPINNER_FRAMES.length] ?? '';
    for (const [name, { about, startedAt }] of shown) {
      const text = `${spinner} ${sanitizeLine(name)}  ${tookText(now - startedAt)}  ${sanitizeLine(about)}`;
      stream.write(`${[...text].slice(0, width).join('')}\n`);
    }
    drawn = shown.length;
  };
  const tick = (rows: ProgressRows): void => {
    frame += 1;
    redraw(rows);
  };
  return { tick, redraw, erase, isDrawn: () => drawn > 0 };
}

/** Without a terminal: a note about each row at intervals. */
function noteView(out: Output): ProgressView {
  const tick = (rows: ProgressRows): void => {
    const now = performance.now();
    for (const [name, row] of rows) {
      if (now - row.lastNoteAt < NOTE_INTERVAL_MS) continue;
      row.lastNoteAt = now;
      out.note(`${name}: ${row.about} (${tookText(now - row.startedAt)})`);
    }
  };
  return { tick, redraw: () => {}, erase: () => {}, isDrawn: () => false };
}

/** Makes the progress of one command. It draws only between the first `begin` and `stop`. */
export function createProgress(out: Output): Progress {
  const rows = new Map<string, ProgressRow>();
  const view = out.isInteractive() ? terminalView(stderr()) : noteView(out);
  let timer: NodeJS.Timeout | undefined;
  return {
    begin: (name, about) => {
      const now = performance.now();
      rows.set(name, { about, startedAt: now, lastNoteAt: now });
      timer ??= setInterval(() => view.tick(rows), REDRAW_MS);
    },
    update: (name, about) => {
      const row = rows.get(name);
      if (row) row.about = about;
    },
    end: (name) => {
      rows.delete(name);
      if (view.isDrawn()) view.redraw(rows);
    },
    print: (work) => {
      view.erase();
      work();
      if (rows.size > 0 && timer) view.redraw(rows);
    },
    stop: () => {
      clearInterval(timer);
      timer = undefined;
      rows.clear();
      view.erase();
    },
  };
}
