// The connection between a terminal of the page and the daemon. It attaches again after every disconnect.
import type { Signal } from '@preact/signals';
import type { TerminalSession } from '../../client/browser.ts';
import { bytesText, endText } from '../../presentation/format.ts';
import type { PageTerminal } from '../parts/terminal.ts';
import { notify } from '../state/actions.ts';
import { askForToken, client, errorText } from '../state/session.ts';
import { tokenColour } from '../state/theme.ts';

/** The status of a terminal. */
export interface TerminalStatus {
  word: 'loading' | 'attached' | 'lost' | 'ended';
  detail: string;
  size: readonly [cols: number, rows: number] | null;
  /** The bytes of input that wait until the program reads. */
  unsent: number;
}

/** `shared`: types alongside other viewers; `write`: is the only writer; `observe`: only watches. */
export type TypingMode = 'shared' | 'write' | 'observe';

const MODE_OPTIONS = {
  shared: {},
  write: { mode: 'write', takeover: true },
  observe: { mode: 'observe' },
} as const;

/** The close code for a writer whose place another writer has taken. */
const TAKEN_OVER = 4001;
const RETRY_MS = 1_000;
/** How long a pane must keep its size before the program gets it. */
const FIT_MS = 80;
const NARROW_PX = 600;
/** Fields that a person may type in. */
const FIELDS = 'input, textarea, select, dialog *';

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

/** The control character of a letter: `c` becomes ETX. Other text stays unchanged. */
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
  /** It takes the focus when it is loaded. */
  private isFocusDue = false;
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

  /** Attaches, and attaches again after every disconnect, until the program ends or `close` is called. */
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

  /** Detaches. The agent continues to run. */
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
    if (this.terminal) this.terminal.focus();
    else this.isFocusDue = true;
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

  /** Types a key by its name, or a text unchanged. */
  type(key: string): void {
    this.focus();
    // The sequence of a cursor key depends on a mode that the program sets and the daemon knows.
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
    // Unless another field has taken it meanwhile.
    if (this.isFocusDue && !document.activeElement?.matches(FIELDS)) this.terminal.focus();
  }

  /** Attaches once. Resolves, when the connection ends, with whether attaching again is pointless. */
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
        onUnsent: (unsent) => {
          this.status.value = { ...this.status.peek(), unsent };
        },
        onOutput: (bytes) => {
          if (isFirst) this.onFirstOutput(terminal);
          isFirst = false;
          return terminal.write(bytes);
        },
      });
      // The mode may have changed since the request.
      if (mode !== this.mode.peek()) this.session.detach();
      const { exit, reason, code, undelivered } = await this.session.ended;
      if (undelivered > 0) this.onInputLost(undelivered);
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

  private onInputLost(bytes: number): void {
    notify(
      'bad',
      `${this.name}: the last ${bytesText(bytes)} of the input did not arrive`,
      'The connection has ended before the program had read enough.',
    );
  }

  private onTakenOver(): void {
    this.mode.value = 'observe';
    notify(
      'bad',
      `${this.name}: another viewer has taken over`,
      'This one watches. It types again when it takes over.',
    );
  }

  /** The first output is the current screen. It replaces the screen of an earlier connection. */
  private onFirstOutput(terminal: PageTerminal): void {
    terminal.reset();
    this.fit();
  }

  private say(word: TerminalStatus['word'], detail: string, size = this.status.peek().size): void {
    if (this.end.signal.aborted) return;
    const { unsent } = this.status.peek();
    this.status.value = { word, detail, size, unsent: word === 'attached' ? unsent : 0 };
  }
}
