// Shows on stderr what a command is doing: on a terminal one line per service, redrawn in place; elsewhere a
// line at intervals.
import { formatDuration } from '../../project/duration.ts';
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
  /** performance.now() at the begin, and at the last line where nothing is redrawn. */
  startedAt: number;
  lastNoteAt: number;
}

const SPINNER_FRAMES = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏';
const REDRAW_MS = 100;
/** Without a terminal: interval between two lines about one service. */
const NOTE_INTERVAL_MS = 10_000;

/** Makes the progress of one command. It draws only between the first `begin` and `stop`. */
export function createProgress(out: Output): Progress {
  const rows = new Map<string, ProgressRow>();
  const isLive = out.isInteractive();
  const stream = stderr();
  let drawn = 0;
  let frame = 0;
  let timer: NodeJS.Timeout | undefined;

  const erase = (): void => {
    if (drawn > 0) stream.write(`\x1b[${drawn}A\x1b[J`);
    drawn = 0;
  };
  const draw = (): void => {
    erase();
    const now = performance.now();
    const width = (stream.columns ?? 80) - 1;
    // Rows that scroll off the screen cannot be erased.
    const shown = [...rows].slice(0, Math.max(1, (stream.rows ?? 24) - 2));
    const spinner = SPINNER_FRAMES[frame % SPINNER_FRAMES.length] ?? '';
    for (const [name, { about, startedAt }] of shown) {
      const text = `${spinner} ${name}  ${formatDuration(now - startedAt)}  ${sanitizeLine(about)}`;
      stream.write(`${[...text].slice(0, width).join('')}\n`);
    }
    drawn = shown.length;
  };
  const say = (): void => {
    const now = performance.now();
    for (const [name, row] of rows) {
      if (now - row.lastNoteAt < NOTE_INTERVAL_MS) continue;
      row.lastNoteAt = now;
      out.note(`${name}: ${row.about} (${formatDuration(now - row.startedAt)})`);
    }
  };
  const tick = (): void => {
    frame += 1;
    if (isLive) draw();
    else say();
  };

  return {
    begin: (name, about) => {
      const now = performance.now();
      rows.set(name, { about, startedAt: now, lastNoteAt: now });
      timer ??= setInterval(tick, REDRAW_MS);
    },
    update: (name, about) => {
      const row = rows.get(name);
      if (row) row.about = about;
    },
    end: (name) => {
      rows.delete(name);
      if (isLive && drawn > 0) draw();
    },
    print: (work) => {
      erase();
      work();
      if (isLive && rows.size > 0 && timer) draw();
    },
    stop: () => {
      clearInterval(timer);
      timer = undefined;
      rows.clear();
      erase();
    },
  };
}
