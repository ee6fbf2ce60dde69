// The connection between a terminal of the page and the daemon: attached again after every cut.
import type { Signal } from '@preact/signals';
import type { TerminalSession } from '../../client/browser.ts';
import { endText } from '../../presentation/format.ts';
import type { PageTerminal } from '../parts/terminal.ts';
import { notify } from '../state/actions.ts';
import { askForToken, client, errorText } from '../state/session.ts';
import { tokenColour } from '../state/theme.ts';

/** How a terminal is. */
export interface TerminalStatus {
  word: 'loading' | 'attached' | 'lost' | 'ended';
  detail: string;
  size: readonly [cols: number, rows: number] | null;
}

/** `shared`: types beside all others; `write`: as the only writer; `observe`: watches. */
export type TypingMode = 'shared' | 'write' | 'observe';

const MODE_OPTIONS = {
  shared: {},
  write: { mode: 'write', takeover: true },
  observe: { mode: 'observe' },
} as const;

/** The close code that tells a writer that another has taken over. */
const TAKEN_OVER = 4001;
const RETRY_MS = 1_000;
/** Pauses between two sizes while a pane is being resized. */
const FIT_MS = 80;
const NARROW_PX = 600;

const COLOURS = [
  ...['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'],
  ...['brightBlack', 'brightRed', 'brightGreen', 'brightYellow'],
  ...['brightBlue', 'brightMagenta', 'brightCyan', 'brightWhite'],
] as const;

const themeOf = () => ({
  background: tokenColour('--terminal'),
  foreground: tokenColour('--text'),
  cursor: tokenColour('--text'),
  cursorAccent: tokenColour('--terminal'),
  selectionBackground: tokenColour('--selection'),
  ...Object.fromEntries(COLOURS.map((name, at) => [name, tokenColour(`--ansi-${at}`)])),
});

const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });

/** The letter with Control held: `c` is ETX. Anything else is as it was. */
function withControl(text: string): string {
  const code = text.toUpperCase().charCodeAt(0);
  return text.length === 1 && code >= 0x40 && code <= 0x5f ? String.fromCharCode(code - 0x40) : text;
}

/** The terminal of one agent in one element. */
export class AttachedTerminal {
  /** Whether the next letter is typed with Control. */
  isControlHeld = false;
  private readonly name: string;
  private readonly status: Signal<TerminalStatus>;
  private readonly control: Signal<boolean>;
  private readonly mode: Signal<TypingMode>;
  private readonly end = new AbortController();
  private terminal: PageTerminal | null = null;
  private session: TerminalSession | null = null;
  private isAttaching = false;
  private fitTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    name: string,
    status: Signal<TerminalStatus>,
    control: Signal<boolean>,
    mode: Signal<TypingMode>,
  ) {
    this.name = name;
    this.status = status;
    this.control = control;
    this.mode = mode;
  }

  /** Attaches again in another mode. */
  setMode(mode: TypingMode): void {
    this.mode.value = mode;
    this.session?.detach();
  }

  /** Attaches, and again after every cut, until the program ends or `close`. */
  async attach(parent: HTMLElement): Promise<void> {
    if (this.isAttaching) return;
    this.isAttaching = true;
    await this.load(parent);
    while (!this.end.signal.aborted) {
      const mode = this.mode.peek();
      const isOver = await this.attachOnce(mode);
      if (isOver) break;
      if (mode === this.mode.peek()) await pause(RETRY_MS);
    }
    this.isAttaching = false;
  }

  /** Detaches; the agent goes on. */
  close(): void {
    this.end.abort();
    clearTimeout(this.fitTimer);
    this.session?.detach();
    this.terminal?.dispose();
  }

  /** Gives the program the size of the pane. */
  fit(): void {
    clearTimeout(this.fitTimer);
    this.fitTimer = setTimeout(() => {
      const wanted = this.terminal?.fittingSize();
      const [cols, rows] = this.status.peek().size ?? [];
      if (wanted && (wanted.cols !== cols || wanted.rows !== rows))
        this.session?.resize(wanted.cols, wanted.rows);
    }, FIT_MS);
  }

  focus(): void {
    this.terminal?.focus();
  }

  find(text: string, backwards: boolean): void {
    this.terminal?.find(text, backwards);
  }

  screenText(): string {
    return this.terminal?.screenText() ?? '';
  }

  recolour(): void {
    this.terminal?.setTheme(themeOf());
  }

  /** Types a key by its name, or text as it is. */
  type(key: string): void {
    this.focus();
    // Cursor keys have the form that the program has asked for, which the daemon knows.
    if (['Up', 'Down', 'Left', 'Right'].includes(key))
      client.typeKeys(this.name, { keys: [key] }).catch((error: unknown) => askForToken(error));
    else this.write(key);
  }

  private write(input: string | Uint8Array): void {
    const isHeld = this.isControlHeld && typeof input === 'string';
    this.session?.write(isHeld ? withControl(input) : input);
    if (!isHeld) return;
    this.isControlHeld = false;
    this.control.value = false;
  }

  private async load(parent: HTMLElement): Promise<void> {
    const { openTerminal } = await import('../parts/terminal.ts');
    if (this.terminal || this.end.signal.aborted) return;
    const fontSize = innerWidth < NARROW_PX ? 11 : 13;
    this.terminal = openTerminal(parent, { onInput: (input) => this.write(input) }, themeOf(), fontSize);
  }

  /** One connection. Resolves with whether there is nothing more to attach to. */
  private async attachOnce(mode: TypingMode): Promise<boolean> {
    const { terminal } = this;
    if (!terminal) return true;
    let isFirst = true;
    try {
      this.session = await client.attach(this.name, {
        ...MODE_OPTIONS[mode],
        signal: this.end.signal,
        onSize: (cols, rows) => {
          terminal.resize(cols, rows);
          this.say('attached', '', [cols, rows]);
        },
        onOutput: (bytes) => {
          if (isFirst) this.onFirstOutput(terminal);
          isFirst = false;
          return terminal.write(bytes);
        },
      });
      // Somebody may have chosen another mode since it was asked for.
      if (mode !== this.mode.peek()) this.session.detach();
      const { exit, reason, code } = await this.session.ended;
      if (code === TAKEN_OVER) this.onTakenOver();
      if (exit) this.say('ended', endText(exit));
      else this.say('lost', reason);
      return exit !== null;
    } catch (error) {
      if (this.end.signal.aborted) return true;
      this.say('lost', errorText(error).split('\n')[0] ?? '');
      return askForToken(error);
    } finally {
      this.session = null;
    }
  }

  private onTakenOver(): void {
    this.mode.value = 'observe';
    notify(
      'bad',
      `${this.name}: another viewer has taken over`,
      'This one watches. It types again when it takes over.',
    );
  }

  /** The screen as it is comes first. It takes the place of what an earlier connection has left. */
  private onFirstOutput(terminal: PageTerminal): void {
    terminal.reset();
    this.fit();
  }

  private say(word: TerminalStatus['word'], detail: string, size = this.status.peek().size): void {
    if (!this.end.signal.aborted) this.status.value = { word, detail, size };
  }
}
