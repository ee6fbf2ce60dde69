// The terminal of one agent as its viewers see it. Output is read from the log by offset, so no viewer can
// slow the program down. A viewer that is new or has fallen behind gets the current screen, which a job draws
// from the end of the log. docs/reference.md "Terminal repaint".
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type SizeMark, type TerminalViewersProtocol, viewerShare } from '../../protocol/terminal.ts';
import type { Ref } from '../../runtime/actor.ts';
import { AGENT } from '../../settings/agent_limits.ts';
import { LoggedScreen, type LoggedScreenConfig } from './logged_screen.ts';
import type { LogChunk } from './service_log.ts';
import { type TerminalSize, TerminalSizes } from './terminal_sizes.ts';

const READ_BYTES = 64 * 1024;
/** A viewer gets a screen only once its unread bytes are below this part of its share. */
const SCREEN_SHARE = 1 / 4;
/** The pause between the two size changes that make a full-screen program repaint. */
const REPAINT_MS = 40;

type Drawing = Pick<LoggedScreenConfig, 'read' | 'end' | 'screens' | 'clock'>;

export interface SharedTerminalOptions extends Drawing {
  size: TerminalSize;
  resize(cols: number, rows: number): void;
  /** Called with the sizes it has had. */
  onSizes(marks: readonly SizeMark[]): void;
  viewers: Ref<TerminalViewersProtocol>;
  /** The viewers of all terminals of the thread, which share `AGENT.maxViewerBytes`. */
  viewersInThread: { count: number };
  /** Called when the last viewer has left. */
  onUnwatched(): void;
  /** Whether viewers get all output, however far behind they are, and no screen. */
  isWhole?: boolean;
  /** Called with an exception, after which the terminal is unusable. */
  onDefect(error: unknown): void;
}

interface Viewer {
  unacknowledged: number;
  /** The log offset up to which it has received everything; null: it needs the screen first. */
  position: number | null;
  /** Whether the program must repaint if this viewer's first screen lacks earlier output. */
  wantsRepaint: boolean;
  /** Whether output of the present size has followed its screen, which it may show at the next one. */
  hasRest: boolean;
}

export interface TerminalExit {
  exitCode: number | null;
  signal: string | null;
}

export class SharedTerminal {
  private readonly options: SharedTerminalOptions;
  private readonly viewers = new Map<string, Viewer>();
  private readonly sizes: TerminalSizes;
  /** Its screen, drawn from the log. */
  readonly screen: LoggedScreen;
  private isDrawing = false;
  private isPumping = false;
  /** The latest pass, which may be under way. */
  private pass: Promise<void> = Promise.resolve();
  /** Something has changed since the current step began. */
  private isPumpDue = false;
  private exit: TerminalExit | undefined;

  constructor(options: SharedTerminalOptions) {
    this.options = options;
    this.sizes = new TerminalSizes(options.size);
    this.screen = new LoggedScreen({ ...options, sizes: this.sizes, maxBytes: () => this.share() });
  }

  /** Whether anyone is attached, so that the log must be followed. */
  get hasViewers(): boolean {
    return this.viewers.size > 0;
  }

  get viewerCount(): number {
    return this.viewers.size;
  }

  get size(): { cols: number; rows: number } {
    return this.sizes.current;
  }

  /** Its sizes, each with the log offset from which it applied. */
  get sizeMarks(): readonly SizeMark[] {
    return this.sizes.marks;
  }

  /** `observes`: nothing the program would notice happens, such as a change of its size. */
  attach(viewer: string, observes = false): void {
    const { isWhole = false } = this.options;
    const position = isWhole ? 0 : null;
    this.viewers.set(viewer, {
      ...{ unacknowledged: 0, position, hasRest: false },
      wantsRepaint: !isWhole && !observes,
    });
    this.options.viewersInThread.count += 1;
    this.options.viewers.tell('size', { viewer, ...this.size });
    void this.pump();
  }

  detach(viewer: string): void {
    if (!this.viewers.delete(viewer)) return;
    this.options.viewersInThread.count -= 1;
    if (!this.hasViewers) this.options.onUnwatched();
  }

  resize(cols: number, rows: number): void {
    const end = this.options.end();
    const isChanged = this.sizes.change(end, cols, rows);
    if (isChanged) this.options.onSizes(this.sizes.marks);
    this.options.resize(cols, rows);
    for (const [name, viewer] of this.viewers) {
      this.options.viewers.tell('size', { viewer: name, cols, rows });
      if (isChanged && !this.options.isWhole && this.mayMisplace(viewer, end)) viewer.position = null;
    }
    if (isChanged) void this.pump();
  }

  /**
   * Whether the viewer may show output before the log offset `end` at a size that begins there. Its own
   * terminal may have had that size since before the rest of its screen arrived.
   */
  private mayMisplace({ hasRest, position }: Viewer, end: number): boolean {
    return hasRest || (position !== null && position < end);
  }

  acknowledge(viewer: string, bytes: number): void {
    const seen = this.viewers.get(viewer);
    if (!seen) return;
    const isWaiting = seen.position === null || seen.unacknowledged >= this.share();
    seen.unacknowledged = Math.max(0, seen.unacknowledged - bytes);
    if (isWaiting) void this.pump();
  }

  /** The process has ended. Viewers get its last output, then the exit. */
  onExit(exit: TerminalExit): void {
    this.exit = exit;
    void this.pump();
  }

  /** Detaches all viewers, which may attach again. */
  close(): void {
    for (const viewer of [...this.viewers.keys()]) {
      this.options.viewers.tell('detached', { viewer });
      this.detach(viewer);
    }
  }

  /**
   * Sends new output to every viewer that can accept it. Only one pass runs at a time, and no call is lost.
   * Resolves at the end of the pass under way.
   */
  pump(): Promise<void> {
    this.isPumpDue = true;
    if (!this.isPumping) this.pass = this.sendAll();
    return this.pass;
  }

  private async sendAll(): Promise<void> {
    this.isPumping = true;
    try {
      while (this.isPumpDue && this.hasViewers) {
        this.isPumpDue = this.step();
        if (this.isPumpDue) await nextTurn();
      }
    } catch (error) {
      this.options.onDefect(error);
    } finally {
      this.isPumping = false;
    }
  }

  /** Sends each viewer the next piece of output. Returns whether there may be more. */
  private step(): boolean {
    const end = this.options.end();
    const share = this.share();
    const chunks = new Map<number, LogChunk>();
    let isMore = false;
    for (const [name, viewer] of this.viewers) {
      const { position } = viewer;
      if (position === null || position >= end) continue;
      if (end - position > AGENT.replayBytes && !this.options.isWhole) {
        viewer.position = null;
        continue;
      }
      if (viewer.unacknowledged >= share) continue;
      const chunk = chunks.get(position) ?? this.readNext(position, share);
      chunks.set(position, chunk);
      this.send(name, viewer, chunk.bytes);
      viewer.position = chunk.end;
      // A read without progress is the last one. Later output causes a growth notification.
      if (chunk.end > position) isMore = true;
    }
    if (this.waitingForScreen().length > 0) void this.draw();
    else if (this.exit && !isMore) this.sendExit(this.exit);
    return isMore;
  }

  /** Reads up to a boundary that all viewers share, so that their later reads coincide. */
  private readNext(position: number, share: number): LogChunk {
    const chunk = this.options.read(position, Math.min(READ_BYTES - (position % READ_BYTES), share));
    this.screen.modes.note(chunk.bytes, chunk.end);
    return chunk;
  }

  private share(): number {
    return viewerShare(this.options.viewersInThread.count);
  }

  /** The viewers that need a screen and have room for it. */
  private waitingForScreen(): [name: string, viewer: Viewer][] {
    const room = this.share() * SCREEN_SHARE;
    return [...this.viewers].filter(
      ([, { position, unacknowledged }]) => position === null && unacknowledged <= room,
    );
  }

  private async draw(): Promise<void> {
    if (this.isDrawing) return;
    this.isDrawing = true;
    try {
      let { marks } = this.sizes;
      let fresh = await this.screen.fresh();
      // A viewer resizes as soon as it is attached, so redraw before it is shown anything.
      if (marks !== this.sizes.marks) {
        ({ marks } = this.sizes);
        fresh = await this.screen.fresh();
      }
      const waiting = this.waitingForScreen();
      if (!fresh.isWhole && waiting.some(([, { wantsRepaint }]) => wantsRepaint)) this.repaint();
      for (const [name, viewer] of waiting) {
        // After a further change of size, it gets another screen.
        viewer.position = marks === this.sizes.marks ? fresh.position : null;
        viewer.wantsRepaint = false;
        viewer.hasRest = fresh.hasRest;
        this.send(name, viewer, fresh.bytes);
      }
    } catch (error) {
      this.options.onDefect(error);
    } finally {
      this.isDrawing = false;
    }
    await this.pump();
  }

  private send(viewer: string, state: Viewer, bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    state.unacknowledged += bytes.length;
    this.options.viewers.tell('output', { viewer, bytes });
  }

  private sendExit(exit: TerminalExit): void {
    for (const viewer of [...this.viewers.keys()]) {
      this.options.viewers.tell('exit', { viewer, ...exit });
      this.detach(viewer);
    }
  }

  /**
   * Changes the size briefly, because a full-screen program repaints when its size changes. Only for screens
   * that lack output: vim shows nothing until a key is pressed if its size changes while it starts.
   */
  private repaint(): void {
    const { cols, rows } = this.size;
    if (rows < 2) return;
    // Viewers are not told, so this does not count as a size of their output.
    this.options.resize(cols, rows - 1);
    this.options.clock.after(REPAINT_MS, () => this.options.resize(this.size.cols, this.size.rows));
  }
}
